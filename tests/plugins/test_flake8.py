"""The real flake8 says what memlint says."""

from __future__ import annotations

import hashlib
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from programs_run import ENVIRONMENT, LEAK, Place, flake8, memlint, places, plugin_options, run

pytest.importorskip("flake8")

Make = Callable[[dict[str, str]], Path]
KEPT = ("a.py", 12, 9, "MEM102")
MINE = ("--select", "MEM")


@pytest.fixture(scope="module")
def expected(project: Path) -> set[Place]:
    found = memlint(".", cwd=project)
    assert {path.partition("/")[0] for path, *_ in found} == {"demo", "projects"}
    return found


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_folder_gets_what_memlint_gives(jobs: str, project: Path, expected: set[Place]) -> None:
    done = flake8(*MINE, "--jobs", jobs, ".", cwd=project)
    assert (places(done.stdout), done.stderr, done.returncode) == (expected, "", 1)


def test_no_paths_are_the_working_directory(project: Path, expected: set[Place]) -> None:
    assert places(flake8(*MINE, cwd=project).stdout) == expected


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_workers_that_share_no_memory_are_told(method: str, make: Make) -> None:
    """As on macOS, on Windows, and on Linux from Python 3.14: they repeat what the parent left, and lint nothing."""
    script = (
        "import multiprocessing, sys\n"
        f"multiprocessing.set_start_method({method!r})\n"
        "import memlint.plugins.flake8 as plugin\n"
        "write = plugin._write\n"
        "def mark(known):\n"
        "    return write({path: (stamp, [(*row[:2], row[2] + ' (said by the parent)') for row in rows])\n"
        "                  for path, (stamp, rows) in known.items()})\n"
        "plugin._write = mark\n"
        "from flake8.main.cli import main\n"
        "sys.exit(main(sys.argv[1:]))\n"
    )
    root = make({name: LEAK.format(comment="") for name in ("a.py", "b.py", "c.py")})
    done = run("-c", script, *plugin_options(), *MINE, "--jobs", "2", ".", cwd=root)
    assert done.stdout.count("(said by the parent)") == len(places(done.stdout)) == 3
    assert (done.stderr, done.returncode) == ("", 1)


def test_a_file_alone_gets_what_it_gets_among_all(project: Path, expected: set[Place]) -> None:
    files = sorted({path for path, *_ in expected} | {"demo/meters.py", "plain.py"})
    alone: set[Place] = set()
    for file in files:
        found = places(flake8(*MINE, file, cwd=project).stdout)
        assert found == memlint(file, cwd=project), file
        alone |= found
    assert alone == expected


def test_standard_input_is_linted_as_the_file_it_stands_for(project: Path, expected: set[Place]) -> None:
    changed = "# one line more\n" + (project / "demo" / "engine.py").read_text()
    done = flake8(*MINE, "-", "--stdin-display-name", "demo/engine.py", cwd=project, text=changed)
    moved = {(path, line + 1, column, code) for path, line, column, code in expected if path == "demo/engine.py"}
    assert places(done.stdout) == moved != set()


def test_standard_input_without_a_name(make: Make) -> None:
    done = flake8(*MINE, "-", cwd=make({}), text=LEAK.format(comment=""))
    assert places(done.stdout) == {("stdin", *KEPT[1:])}


def test_standard_input_that_memlint_excludes(make: Make) -> None:
    root = make({"pyproject.toml": '[tool.memlint]\nexclude = ["gen/"]\n'})
    done = flake8(*MINE, "-", "--stdin-display-name", "gen/a.py", cwd=root, text=LEAK.format(comment=""))
    assert (done.stdout, done.stderr, done.returncode) == ("", "", 0)


def test_selected_without_being_asked_for(make: Make) -> None:
    """The message begins with its code, and the column counts characters from 1."""
    root = make({"a.py": LEAK.format(comment="").replace("history.append", "'é…'; history.append")})
    done = flake8("--extend-ignore", "E702", "a.py", cwd=root)
    (line,) = done.stdout.splitlines()
    assert line.startswith("a.py:12:15: MEM102 `history` keeps `loss` and its autograd graph")


@pytest.mark.parametrize(
    ("comment", "options", "codes"),
    [
        ("  # noqa: MEM102", (), set()),
        ("  # noqa", (), set()),
        ("  # noqa: MEM102", ("--disable-noqa",), {"MEM102"}),
        ("  # memlint: ignore[MEM102] -- few", (), set()),
        ("  # memlint: ignore[MEM102] -- few", ("--disable-noqa",), set()),
        ("  # noqa: MEM101", (), {"MEM102", "MEM001"}),
        ("", ("--ignore", "MEM102"), set()),
        ("", ("--select", "E"), set()),
        ("", ("--per-file-ignores", "a.py:MEM102"), set()),
        ("", ("--per-file-ignores", "b.py:MEM102"), {"MEM102"}),
        ("", ("--exclude", "a.py"), set()),
    ],
)
def test_what_flake8_filters(comment: str, options: tuple[str, ...], codes: set[str], make: Make) -> None:
    done = flake8(*options, "a.py", cwd=make({"a.py": LEAK.format(comment=comment)}))
    assert {place[3] for place in places(done.stdout)} == codes
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("table", "options", "found"),
    [
        ('ignore = ["MEM102"]', (), False),
        ('extend-exclude = ["a.py"]', (), False),
        ('severity = {MEM102 = "note"}', (), False),
        ('severity = {MEM102 = "note"}', ("--memlint-notes",), True),
        ('min-confidence = "low"', (), True),
        ("", ("--memlint-config", "other.toml"), False),
    ],
)
def test_memlints_own_configuration(table: str, options: tuple[str, ...], found: bool, make: Make) -> None:
    root = make({
        "a.py": LEAK.format(comment=""),
        "pyproject.toml": f"[tool.memlint]\n{table}\n",
        "other.toml": 'ignore = ["MEM102"]\n',
    })  # fmt: skip
    assert (places(flake8(*options, "a.py", cwd=root).stdout) == {KEPT}) is found


def test_options_in_flake8s_configuration(make: Make) -> None:
    # `loss` is known by its name alone
    guess = "import torch\n\n\ndef f(losses, batches):\n    for loss in batches:\n        losses.append(loss)\n"
    root = make({
        "a.py": LEAK.format(comment=""),
        "b.py": guess,
        "config/memlint.toml": 'severity = {MEM102 = "note"}\n',
        ".flake8": "[flake8]\nmemlint-config = config/memlint.toml\nmemlint_notes = true\n",
        "deeper/c.py": LEAK.format(comment=""),
    })  # fmt: skip
    assert places(flake8("c.py", cwd=root / "deeper").stdout) == {("c.py", *KEPT[1:])}
    low = flake8("--memlint-min-confidence", "low", ".", cwd=root)
    assert places(low.stdout) >= {KEPT, ("deeper/c.py", *KEPT[1:])}
    assert low.stderr == ""


@pytest.mark.parametrize(
    ("table", "options", "said"),
    [
        ('selct = ["MEM102"]', (), "unknown key `selct` (did you mean `select`?)"),
        ('ignore = ["MEM1O2"]', (), "unknown rule `MEM1O2`"),
        ("", ("--memlint-min-confidence", "hgih"), "`hgih` is not one of high, medium, low (did you mean `high`?)"),
        ("", ("--memlint-config", "./none.toml"), "--memlint-config: there is no file"),
    ],
)
@pytest.mark.parametrize("files", [("a.py", "b.py"), ("-",)])
def test_a_wrong_configuration_is_said_once(
    table: str, options: tuple[str, ...], said: str, files: tuple[str, ...], make: Make
) -> None:
    text = LEAK.format(comment="")
    root = make({"a.py": text, "b.py": text, "pyproject.toml": f"[tool.memlint]\n{table}\n"})
    done = flake8("--jobs", "2", *options, *files, cwd=root, text=text)
    assert done.returncode == 1
    assert (done.stdout + done.stderr).count(said) == 1
    assert "Traceback" not in done.stdout + done.stderr


def test_a_file_that_does_not_parse_is_flake8s(make: Make) -> None:
    root = make({"a.py": LEAK.format(comment=""), "b.py": "import torch\nx = (\n"})
    done = flake8("--jobs", "1", ".", cwd=root)
    assert places(done.stdout) == {KEPT}
    assert "b.py:2:" in done.stdout and "E999" in done.stdout


def test_a_rule_that_fails_is_reported_for_each_file(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(ENVIRONMENT, "MEMLINT_LOCAL_RULES", "1")
    rule = (
        "from memlint.sdk import Meta\n"
        "META = Meta(code='MEM999', name='broken', summary='', severity='error')\n"
        "def check(facts):\n    raise RuntimeError('no')\n"
    )
    root = make({
        "a.py": LEAK.format(comment=""),
        "b.py": "import torch\n",
        "rules/mem999_broken/rule.py": rule,
        "pyproject.toml": '[tool.memlint]\nrule-paths = ["rules"]\n',
    })  # fmt: skip
    done = flake8(*MINE, "a.py", "b.py", cwd=root)
    assert places(done.stdout) == {KEPT, ("a.py", 1, 1, "MEM000"), ("b.py", 1, 1, "MEM000")}
    assert "internal error in the rule MEM999: RuntimeError: no" in done.stdout


def test_a_file_that_is_not_named_like_python(make: Make) -> None:
    """flake8 checks what is named; so does its plugin."""
    done = flake8(*MINE, "tool", cwd=make({"tool": LEAK.format(comment="")}))
    assert places(done.stdout) == {("tool", *KEPT[1:])}


def test_files_that_git_ignores_are_not_context_of_the_others(make: Make) -> None:
    """Nine copies of a class in an ignored folder would make a method's name too common to mean anything."""
    meter = "class Meter:\n    def __init__(self):\n        self.sum = 0.0\n\n    def feed(self, value):\n"
    meter += "        self.sum += value\n"
    train = LEAK.format(comment="").replace("history.append(loss)", "meter.feed(loss)")
    train = train.replace("loader, optimizer", "loader, optimizer, meter")
    copies = {f"build/lib/copy{number}.py": meter for number in range(9)}
    root = make({".gitignore": "build/\n", "meters.py": "import torch\n\n\n" + meter, "train.py": train, **copies})
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    alone = memlint("train.py", cwd=root)
    assert [code for *_, code in alone] == ["MEM101"]
    assert places(flake8(*MINE, ".", cwd=root).stdout) == alone


def test_the_api_gives_the_same(make: Make) -> None:
    script = (
        "from flake8.api import legacy\n"
        "guide = legacy.get_style_guide(select=['MEM'])\n"
        "print(guide.check_files(['a.py', 'b.py']).get_statistics('MEM'))\n"
    )
    text = LEAK.format(comment="")
    if plugin_options():
        pytest.skip("the API reads no --append-config: the plugin has to be installed")
    done = run("-c", script, cwd=make({"a.py": text, "b.py": text}))
    assert places(done.stdout) == {KEPT, ("b.py", *KEPT[1:])}, done.stderr


def test_a_file_that_changed_since_is_linted_again(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    import ast

    from flake8.options.parse_args import parse_args

    from memlint.plugins.flake8 import Plugin

    monkeypatch.chdir(make({"a.py": LEAK.format(comment="")}))
    parse_args([*plugin_options(), "a.py"])
    text = "# one line more\n" + LEAK.format(comment="")
    Path("a.py").write_text(text)
    found = list(Plugin(ast.parse(text), "a.py", text.splitlines(keepends=True)).run())
    assert [(line, column, text[:6]) for line, column, text, _ in found] == [(13, 8, "MEM102")]


def test_without_torch_nothing_is_parsed_or_analysed(make: Make) -> None:
    script = (
        "import sys\n"
        "import memlint.plugins.flake8\n"
        "print([name for name in ('libcst', 'rich', 'msgspec', 'memlint.engine') if name in sys.modules])\n"
        "from flake8.main.cli import main\n"
        "code = main(sys.argv[1:])\n"
        "print([name for name in ('libcst', 'rich', 'memlint.analysis.driver.run') if name in sys.modules], code)\n"
    )
    root = make({"a.py": "import numpy\n\nprint(numpy.pi)\n", "b.py": '"""From torch to jax (it was slow)."""\n'})
    done = run("-c", script, *plugin_options(), "--jobs", "1", ".", cwd=root)
    assert done.stdout.split("\n") == ["[]", "[] 0", ""], done.stdout + done.stderr


def test_evidence_silences_here_as_well(make: Make) -> None:
    root = make({"a.py": LEAK.format(comment=""), "pyproject.toml": '[tool.memlint]\nevidence = "proof.json"\n'})
    assert flake8(*MINE, "a.py", cwd=root).stdout.count("`evidence`: there is no file") == 1
    found = json.loads(run("-m", "memlint", "a.py", "--isolated", "--output-format", "json", cwd=root).stdout)
    record = {
        "fingerprint": found["findings"][0]["fingerprint"], "code": "MEM102", "path": "a.py", "verdict": "refuted",
        "reason": "all is freed", "files": {"a.py": hashlib.sha256((root / "a.py").read_bytes()).hexdigest()},
    }  # fmt: skip
    how = dict.fromkeys(("python", "torch", "device", "meter", "end"), "") | {"warmup": 3, "window": 12}
    proof = {"format": "memlint-evidence", "version": 1, "memlint": "0.1.0", "run": how, "findings": [record]}
    (root / "proof.json").write_text(json.dumps(proof))
    assert flake8(*MINE, "a.py", cwd=root).stdout == ""
    (root / "a.py").write_text(LEAK.format(comment="") + "# changed\n")
    assert places(flake8(*MINE, "a.py", cwd=root).stdout) == {KEPT}
