"""A mistake of memlint, or code that its parser cannot take, costs the file that it happens on; all others are
reported, whoever asks."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import memlint
from memlint.cli import main

LEAK = """
import torch

def {name}(model, loader, optimizer):
    total = 0
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    return float(total)
"""

#: stage: the function that raises, and whether it is at work on the bad file, told by its arguments
STAGES: dict[str, tuple[str, Callable[..., bool]]] = {
    "decoding": ("memlint.project.source.decode", lambda raw: b"broken" in raw),
    "old grammar": ("memlint.project.source.modern", lambda text: "broken" in text),
    "parsing": ("memlint.analysis.index.definitions.read", lambda text: "broken" in text),
    "lowering": ("memlint.analysis.index.definitions.lower", lambda unit, body=None: "broken" in unit.text),
    "definitions": ("memlint.analysis.driver.run.functions_of", lambda module: module.key.endswith("bad.py")),
    "entering a function": (
        "memlint.analysis.facts.analyser.decorated_grad",
        lambda frame, function: function.name == "broken",
    ),
    "interpreting": (
        "memlint.analysis.calls.interpreting.run",
        lambda frame, *rest, **more: frame.function.name == "broken",
    ),
    "judging": (
        "memlint.analysis.judge.verdicts.judge",
        lambda analyser, summary, fixes: summary.function.name == "broken",
    ),
    "callers": (
        "memlint.analysis.driver.run.callers_of",
        lambda analyser, functions, linted: any(key.endswith("bad.py") for key in linted),
    ),
    "asking the rules": (
        "memlint.engine.judging.ask_rules",
        lambda display, *rest: display.endswith("bad.py"),
    ),
    "suppressions": ("memlint.engine.judging.silence", lambda source, *rest: source.display.endswith("bad.py")),
    "numbering": (
        "memlint.engine.judging.fingerprinted",
        lambda raws, relative: any(raw.finding.path.endswith("bad.py") for raw in raws),
    ),
    "places": (
        "memlint.engine.findings._raw",
        lambda room, report, *rest: report.site.path.endswith("bad.py"),
    ),
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two good files around a bad one."""
    for name in ("a", "z"):
        (tmp_path / f"{name}.py").write_text(LEAK.format(name=f"train_{name}"))
    (tmp_path / "bad.py").write_text(LEAK.format(name="broken"))
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def fail_at(stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, is_bad = STAGES[stage]
    module, _, name = target.rpartition(".")
    place = importlib.import_module(module)
    before = getattr(place, name)

    def fails(*args: Any, **more: Any) -> Any:
        if is_bad(*args, **more):
            raise ArithmeticError("a mistake")
        return before(*args, **more)

    monkeypatch.setattr(place, name, fails)


@pytest.mark.parametrize("stage", STAGES)
def test_a_mistake_costs_its_file(stage: str, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_at(stage, monkeypatch)
    result = memlint.lint(["."])
    assert [(one.path, one.code) for one in result.findings] == [("a.py", "MEM101"), ("z.py", "MEM101")]
    assert {failure.path for failure in result.failures} == {"bad.py"}
    assert all("ArithmeticError: a mistake" in failure.reason for failure in result.failures)


@pytest.mark.parametrize("stage", ["decoding", "parsing", "judging", "callers", "suppressions"])
def test_the_command_line_names_it_and_fails(
    stage: str, project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fail_at(stage, monkeypatch)
    assert main([".", "--no-cache"]) == 2
    out = capsys.readouterr().out
    assert "a.py:11:" in out and "z.py:11:" in out
    assert "bad.py: failed: " in out and "a mistake" in out
    assert main([".", "--no-cache", "--output-format", "json"]) == 2
    said = json.loads(capsys.readouterr().out)
    assert [one["path"] for one in said["findings"]] == ["a.py", "z.py"]
    assert {one["path"] for one in said["failures"]} == {"bad.py"}


@pytest.mark.parametrize("target", ["memlint.analysis.index.definitions.read", "memlint.engine.batch.run"])
def test_flake8_goes_on(target: str, project: Path) -> None:
    """Also where what fails is no single file, and all of memlint has failed."""
    pytest.importorskip("flake8")
    module, _, name = target.rpartition(".")
    script = (
        f"import sys, {module} as place\n"
        f"before = place.{name}\n"
        "def fails(*args, **more):\n"
        "    if 'broken' in str(args) or args and isinstance(args[0], list):\n"
        "        raise ArithmeticError('a mistake')\n"
        "    return before(*args, **more)\n"
        f"place.{name} = fails\n"
        "from flake8.main.cli import main\n"
        "sys.exit(main(['--jobs', '1', '--isolated', '--select', 'MEM,F', '.']))\n"
    )
    (project / "unused.py").write_text("import os\n")
    done = subprocess.run([sys.executable, "-c", script], cwd=project, capture_output=True, text=True, check=False)
    assert "unused.py:1:1: F401" in done.stdout
    assert "bad.py:1:1: MEM000 memlint could not check" in done.stdout and "a mistake" in done.stdout
    assert ("a.py:11:9: MEM101" in done.stdout) == (name == "read")
    assert (done.stderr, done.returncode) == ("", 1)


#: what libcst's parser takes and its validator refuses, or the other way round; CPython refuses all of it
REFUSED = {
    "mixed strings": 'x = "a" b"b"',
    "mixed strings, the other way round": 'x = b"a" "b"',
    "mixed in a function": 'def f():\n    return b"a" f"{f}"',
    "mixed of three": 'x = ("a"\n     "c"\n     b"b")',
    "an argument behind words": "f(**a, *b)",
    "a lone surrogate": "x = '\ud800'",
    "no spaces": "x = 1if 2else 3 b",
    "brackets": "(" * 300 + ")" * 299,
}


@pytest.mark.parametrize("code", REFUSED.values(), ids=REFUSED)
def test_code_that_nothing_reads_is_one_finding(code: str, project: Path) -> None:
    (project / "bad.py").write_bytes(f"import torch\n{code}\n".encode("utf-8", "surrogatepass"))
    result = memlint.lint(["."])
    found = [(one.path, one.code) for one in result.findings]
    assert found in (
        [("a.py", "MEM101"), ("bad.py", "MEM000"), ("z.py", "MEM101")],
        [("a.py", "MEM101"), ("z.py", "MEM101")],
    )
    assert [failure.path for failure in result.failures] == ["bad.py"] * (3 - len(found))


def test_a_bad_file_that_is_context_alone_is_named(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (project / "bad.py").write_text(LEAK.format(name="broken") + "\nfrom a import train_a\ntrain_a(1, 2, 3)\n")
    fail_at("parsing", monkeypatch)
    result = memlint.lint(["a.py"])
    assert [(one.path, one.code) for one in result.findings] == [("a.py", "MEM101")]
    assert [failure.path for failure in result.failures] == ["bad.py"]


def test_a_mistake_about_the_context_ends(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every analysis of every part fails: each file is named, and not one analysis a file is made for it."""
    calls: list[int] = []

    def fails(*args: Any) -> Any:
        calls.append(1)
        raise ZeroDivisionError

    for number in range(200):
        (project / f"more{number}.py").write_text("import torch\n")
    monkeypatch.setattr("memlint.analysis.driver.run.callers_of", fails)
    result = memlint.lint(["."])
    assert len(result.failures) == 203
    assert len(calls) < 100


def test_one_project_of_several_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("good", "bad"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "pyproject.toml").touch()
        (tmp_path / name / "a.py").write_text(LEAK.format(name="train"))
    monkeypatch.chdir(tmp_path)
    from memlint.engine import run

    before = run.judge

    def fails(prepared: Any, project: Any, *rest: Any) -> Any:
        if project.root.name == "bad":
            raise ZeroDivisionError
        return before(prepared, project, *rest)

    monkeypatch.setattr(run, "judge", fails)
    result = memlint.lint(["good", "bad"])
    assert [one.path for one in result.findings] == ["good/a.py"]
    assert [Path(failure.path).name for failure in result.failures] == ["bad"]


def test_a_mistake_in_a_fix_costs_the_fixes(project: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    def fails(*_: Any, **__: Any) -> Any:
        raise ArithmeticError("a mistake")

    monkeypatch.setattr("memlint.engine.fixing.fixing.apply_all", fails)
    before = {path.name: path.read_text() for path in project.iterdir()}
    assert main([".", "--fix", "--no-cache"]) == 2
    out = capsys.readouterr().out
    assert "a.py:11:" in out and "internal error in the fixing of this project: ArithmeticError" in out
    assert {path.name: path.read_text() for path in project.iterdir()} == before


def test_a_mistake_outside_of_all_files_is_no_finding(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Whose exit code is 1, as that of a traceback would be."""

    def fails(*_: Any, **__: Any) -> Any:
        raise ArithmeticError("a mistake")

    monkeypatch.setattr("memlint.engine.run.discover", fails)
    monkeypatch.setattr("memlint.cli._write_no_more", lambda: None)
    assert main(["."]) == 2
    assert "internal error in this command: ArithmeticError: a mistake" in capsys.readouterr().err
