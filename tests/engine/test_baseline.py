"""What a baseline holds back, which of its entries are stale, and what is no baseline."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import memlint
from memlint.cli import main
from memlint.engine.fingerprint import Fingerprints

Toy = Callable[..., Path]
Capture = pytest.CaptureFixture[str]

LOOP = "    for x in loader:\n        loss = model(x).sum()\n        loss.backward()\n"
FUNCTIONS = {
    "sums": f"def sums(model, loader):\n    total = 0\n{LOOP}        total += loss\n    return total\n",
    "stores": f"def stores(model, loader):\n    kept = []\n{LOOP}        kept.append(loss)\n    return kept\n",
    "twice": f"def twice(model, loader):\n    kept = []\n{LOOP}        kept.append(loss)\n{LOOP}"
    "        kept.append(loss)\n    return kept\n",
}


def program(names: list[str], between: str = "\n\n") -> str:
    return "import torch\n" + between + between.join(FUNCTIONS[name] for name in names)


def prints(path: Path) -> list[str]:
    return sorted(one.statement.fingerprint for one in memlint.lint([path], isolated=True).findings if one.statement)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.permutations(sorted(FUNCTIONS)), st.sampled_from(["\n\n", "\n\n\n# words\n\n", "\nX = 1\n\n"]), st.booleans())
def test_fingerprints_survive_lines_above_moved_functions_and_another_name(
    tmp_path: Path, order: list[str], between: str, named: bool
) -> None:
    (tmp_path / "train.py").write_text(program(sorted(FUNCTIONS)))
    moved = tmp_path / ("other.py" if named else "train.py")
    before = prints(tmp_path / "train.py")
    moved.write_text(program(order, between))
    assert len(set(before)) == 4
    assert prints(moved) == before


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("kept.append(loss)", "kept.append(\n        loss,\n    )"),
        ("kept.append(loss['a'])", 'kept.append(\n    loss["a"]  # the first\n)'),
        ("f(a, [b, c])", "f(\n    a,\n    [\n        b,\n        c,\n    ],\n)"),
    ],
)
def test_formatting_leaves_a_fingerprint_as_it_is(one: str, other: str) -> None:
    assert Fingerprints().anywhere("MEM101", "f", one) == Fingerprints().anywhere("MEM101", "f", other)


def run(capsys: Capture, *arguments: str) -> tuple[int, list[str], str]:
    """The exit code, what is reported, and what is said beside it."""
    code = main([*arguments, "--output-format", "json"])
    out, err = capsys.readouterr()
    findings: list[Any] = json.loads(out)["findings"] if out else []
    return code, [f"{row['path']}:{row['line']}" for row in findings if row["suppressed"] is None], err


def write(capsys: Capture, *paths: str) -> None:
    assert run(capsys, *paths, "--write-baseline", "base.json")[:2] == (0, [])


MOVES: list[tuple[str, dict[str, str | None], list[str]]] = [
    ("nothing", {}, []),
    ("lines above", {"a.py": "# words\n\nleak(1)\nleak(2)\n"}, []),
    ("other order", {"a.py": "leak(2)\nleak(1)\n"}, []),
    ("one more of the same", {"a.py": "leak(1)\nleak(2)\nleak(1)\n"}, ["a.py:3"]),
    ("another rule on it", {"a.py": "leak(1)\nleak(2)\nburst(1)\n"}, ["a.py:3"]),
    ("a renamed file", {"a.py": None, "b.py": "leak(1)\nleak(2)\n"}, []),
    ("renamed into a folder and edited", {"a.py": None, "in/a.py": "leak(0)\nleak(1)\nleak(2)\n"}, ["in/a.py:1"]),
    ("a copy", {"b.py": "leak(1)\nleak(2)\n"}, ["b.py:1", "b.py:2"]),
    ("renamed, and a copy", {"a.py": None, "b.py": "leak(1)\nleak(2)\n", "c.py": "leak(1)\n"}, ["c.py:1"]),
]


@pytest.mark.parametrize(("files", "reported"), [row[1:] for row in MOVES], ids=[row[0] for row in MOVES])
def test_what_moves_stays_held_back_and_what_is_new_is_reported(
    toy: Toy, capsys: Capture, files: dict[str, str | None], reported: list[str]
) -> None:
    root = toy({"a.py": "leak(1)\nleak(2)\n"})
    write(capsys, ".")
    for name, text in files.items():
        if text is None:
            (root / name).unlink()
        else:
            (root / name).parent.mkdir(exist_ok=True)
            (root / name).write_text(text)
    code, found, err = run(capsys, ".", "--baseline", "base.json")
    assert (code, found) == (1 if reported else 0, reported)
    assert "stale" not in err


def test_a_function_that_moves_to_another_file_stays_held_back(
    tmp_path: Path, capsys: Capture, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").touch()
    Path("a.py").write_text(program(["sums", "stores"]))
    Path("b.py").write_text(program([]))
    write(capsys, ".")
    Path("a.py").write_text(program(["stores"]))
    Path("b.py").write_text(program(["sums"]))
    assert run(capsys, ".", "--baseline", "base.json")[:2] == (0, [])
    # where the function is still there, another one of that name is new
    Path("a.py").write_text(program(["stores"]) + "\n\ndef sums():\n    return 0\n")
    assert run(capsys, ".", "--baseline", "base.json")[:2] == (1, ["b.py:9"])


def test_a_summary_and_the_json_say_what_is_held_back(toy: Toy, capsys: Capture) -> None:
    toy({"a.py": "leak(1)\nburst(1)\n"}, 'baseline = "base.json"')
    write(capsys, ".")
    assert main(["."]) == 0
    assert ", 2 in the baseline (--no-baseline), " in capsys.readouterr().out
    main([".", "--output-format", "json"])
    report = json.loads(capsys.readouterr().out)
    assert report["summary"]["baselined"] == 2
    assert [row["suppressed"] for row in report["findings"]] == [{"by": "baseline", "reason": None}] * 2
    assert run(capsys, ".", "--no-baseline")[:2] == (1, ["a.py:1", "a.py:2"])
    assert run(capsys, ".", "--isolated")[0] == 0, "no configuration, no rules of the project, no baseline"


STALE: list[tuple[str, list[str], dict[str, str | None], int]] = [
    ("fixed", ["."], {"a.py": "x = 1\n"}, 1),
    ("deleted", ["."], {"a.py": None}, 1),
    ("a comment took over", ["."], {"a.py": "leak(1)  # memlint: ignore[MEM901]\n"}, 1),
    ("not among the paths", ["b.py"], {"a.py": "x = 1\n"}, 0),
    ("deleted, and one file linted", ["b.py"], {"a.py": None}, 0),
    ("does not parse", ["."], {"a.py": "leak(1\n"}, 0),
    ("another rule", [".", "--select", "MEM902"], {"a.py": "x = 1\n"}, 0),
    ("less confidence", [".", "--min-confidence", "high", "--select", "MEM903"], {"c.py": "x = 1\n"}, 0),
    ("excluded", [".", "--extend-exclude", "a.py"], {"a.py": "x = 1\n"}, 0),
]


@pytest.mark.parametrize(("arguments", "files", "count"), [row[1:] for row in STALE], ids=[row[0] for row in STALE])
def test_an_entry_is_stale_where_the_run_would_have_found_it(
    toy: Toy, capsys: Capture, arguments: list[str], files: dict[str, str | None], count: int
) -> None:
    root = toy({"a.py": "leak(1)\n", "b.py": "leak(2)\n", "c.py": "whisper(1)\n"})
    assert run(capsys, ".", "--min-confidence", "low", "--write-baseline", "base.json")[:2] == (0, [])
    before = (root / "base.json").read_text()
    for name, text in files.items():
        (root / name).unlink() if text is None else (root / name).write_text(text)
    _, _, err = run(capsys, *arguments, "--baseline", "base.json")
    assert ("base.json has 1 stale entry (--prune-baseline removes them)" in err) == bool(count)
    code, _, _ = run(capsys, *arguments, "--baseline", "base.json", "--error-stale")
    assert (code == 1) == bool(count or "leak(1\n" in files.values())
    run(capsys, *arguments, "--baseline", "base.json", "--prune-baseline")
    after = json.loads((root / "base.json").read_text())["findings"]
    assert len(after) == 3 - count
    assert bool(count) == ((root / "base.json").read_text() != before)
    assert "stale" not in run(capsys, *arguments, "--baseline", "base.json", "--error-stale")[2]


def test_writing_again_keeps_what_the_run_did_not_look_at(toy: Toy, capsys: Capture) -> None:
    root = toy({"a.py": "leak(1)\n", "b.py": "leak(2)\n"})
    write(capsys, ".")
    before = (root / "base.json").read_text()
    write(capsys, "b.py")
    assert (root / "base.json").read_text() == before
    (root / "a.py").write_text("x = 1\n")
    (root / "b.py").write_text("burst(1)\nleak(2)\n")
    write(capsys, ".")
    assert [(row["path"], row["code"]) for row in json.loads((root / "base.json").read_text())["findings"]] == [
        ("b.py", "MEM901"), ("b.py", "MEM902"),
    ]  # fmt: skip


def test_a_baseline_is_sorted_and_has_a_line_for_each_finding(toy: Toy, capsys: Capture) -> None:
    root = toy({"b.py": "leak(1)\nleak(0)\n", "a/ä.py": "leak('\u202e')\nburst(1)\n"})
    write(capsys, ".")
    text = (root / "base.json").read_text("utf-8")
    rows = [line.strip().rstrip(",") for line in text.splitlines() if '"fingerprint"' in line]
    assert [(json.loads(row)["path"], json.loads(row)["source"]) for row in rows] == [
        ("a/ä.py", "leak('\\u202e')"), ("a/ä.py", "burst(1)"), ("b.py", "leak(0)"), ("b.py", "leak(1)"),
    ]  # fmt: skip
    write(capsys, "b.py", "a")
    assert (root / "base.json").read_text("utf-8") == text


def test_a_baseline_serves_from_another_folder_and_under_another_name(
    toy: Toy, capsys: Capture, monkeypatch: Any
) -> None:
    root = toy({"in/a.py": "leak(1)\n"})
    write(capsys, ".")
    monkeypatch.chdir(root / "in")
    assert run(capsys, ".", "--baseline", "../base.json", "--error-stale")[:2] == (0, [])
    (root / "base.json").rename(root.parent / "elsewhere.json")
    assert run(capsys, ".", "--baseline", "../../elsewhere.json", "--error-stale")[:2] == (0, [])


BAD = {
    "not JSON": ("leak(1)\n", "is no baseline"),
    "another JSON": ('{"findings": []}', "has no `version`"),
    "a list": ("[]", "has no `version`"),
    "newer": ('{"version": 2, "all": "else"}', "is of version 2, and this memlint reads version 1"),
    "of wrong types": ('{"version": 1, "findings": [{"path": 1}]}', "is no baseline: Expected `str`"),
    "in a merge": ('{\n<<<<<<< HEAD\n  "version": 1\n', "the marks of a merge conflict"),
    "bytes": (b"\xff\xfe\x00", "is no baseline"),
    "deep": ("[" * 100_000, "is no baseline"),
}


@pytest.mark.parametrize("option", ["--baseline", "--write-baseline"])
@pytest.mark.parametrize(("content", "said"), BAD.values(), ids=BAD)
def test_what_is_no_baseline_is_an_error_and_stays_as_it_is(
    toy: Toy, capsys: Capture, option: str, content: str | bytes, said: str
) -> None:
    raw = content if isinstance(content, bytes) else content.encode()
    root = toy({"a.py": "leak(1)\n", "base.json": raw})
    code, found, err = run(capsys, "a.py", option, "base.json")
    assert (code, found) == (2, [])
    assert said in err and "internal error" not in err
    assert (root / "base.json").read_bytes() == raw


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--baseline", "none.json"], "there is no file"),
        (["--baseline", "."], "it is a folder and no regular file"),
        (["--write-baseline", "."], "directory"),
        (["--write-baseline", "/dev/null"], "it is a device and no regular file"),
        (["--write-baseline", "none/base.json"], "cannot be written"),
        (["--prune-baseline"], "needs a baseline"),
        (["--error-stale"], "needs a baseline"),
        (["--baseline", "b.json", "--no-baseline"], "cannot be combined"),
        (["--write-baseline", "b.json", "--fix"], "cannot be combined"),
        (["--prune-baseline", "--diff"], "cannot be combined"),
    ],
)
def test_options_that_cannot_be_meant(toy: Toy, capsys: Capture, arguments: list[str], said: str) -> None:
    root = toy({"a.py": "leak(1)\n"})
    before = sorted(path.name for path in root.iterdir())
    code, _, err = run(capsys, "a.py", *arguments)
    assert code == 2
    assert said in err
    assert sorted(path.name for path in root.iterdir()) == before


def test_a_run_that_fails_writes_no_baseline(toy: Toy, capsys: Capture) -> None:
    root = toy({"a.py": "leak(1)\n", "b.py": b"x = '\xff'\n"})
    code, _, err = run(capsys, ".", "--write-baseline", "base.json")
    assert code == 2
    assert "base.json was not written" in err
    assert not (root / "base.json").exists()


def test_a_file_that_does_not_parse_is_said_with_any_baseline(toy: Toy, capsys: Capture) -> None:
    root = toy({"a.py": "leak(1\n"})
    assert run(capsys, ".", "--write-baseline", "base.json")[:2] == (1, ["a.py:1"])
    assert json.loads((root / "base.json").read_text())["findings"] == []


def test_fixes_leave_what_is_held_back(tmp_path: Path, capsys: Capture, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    Path("pyproject.toml").write_text('[tool.memlint]\nbaseline = "base.json"\n')
    Path("a.py").write_text(program(["sums"]))
    Path("base.json").touch()
    write(capsys, ".")
    Path("a.py").write_text(program(["sums", "stores"]))
    assert main([".", "--fix", "--unsafe-fixes"]) == 0
    text = Path("a.py").read_text()
    assert "total += loss\n" in text and "kept.append(loss.detach())" in text
