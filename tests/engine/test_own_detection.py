"""Rules of a project that bring their own detection are asked wherever ours are, and a wrong one costs itself alone."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from cached_runs import run as run_command

import memlint
from memlint.cli import main
from memlint.engine.options import Options
from memlint.engine.run import run
from memlint.engine.workers import parts

Capture = pytest.CaptureFixture[str]
RULE = """
from memlint.sdk import Event, Growth, Meta, Report

META = Meta(code="MEM950", name="fresh-eyes", summary="A matrix.", severity="warning")


class Eye(Event, frozen=True, kw_only=True):
    text: str


def check(facts):
    for event in facts.of(Eye):
        yield Report(
            site=event.site, message=f"`{event.text}` is made", help="do not", severity="warning", confidence="high",
            growth=Growth("host", "once"),
        )
"""
DETECT = """
from memlint.sdk.syntax import text

from .names import NAMES
from .rule import Eye

CALLS = NAMES


def detect(analyser, summary):
    for at, call in summary.notes.outside.items():
        if call.name in CALLS:
            yield Eye(
                site=summary.site(at), function=summary.function.qual, certainty="high", text=text(call.expr)
            )
"""
NAMES = 'NAMES = {"torch.eye"}\n'
#: an error of MEM950 in line 5, and one of ours in line 12
TRAIN = """
import torch

def rows(n):
    return torch.eye(n)

def train(model, loader, optimizer):
    losses = []
    for x in loader:
        loss = model(x).mean()
        loss.backward()
        losses.append(loss)
        optimizer.step()
    return losses
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Makes a project with a rule of these files, and goes there."""

    def make(detect: str = DETECT, files: int = 1) -> Path:
        room = tmp_path / "lint" / "mem950_fresh_eyes"
        room.mkdir(parents=True)
        for name, text in {"rule.py": RULE, "detect.py": detect, "names.py": NAMES}.items():
            (room / name).write_text(text)
        (tmp_path / "pyproject.toml").write_text('[tool.memlint]\nrule-paths = ["lint"]\nextend-exclude = ["lint"]\n')
        for number in range(files):
            (tmp_path / (f"train{number}.py" if number else "train.py")).write_text(TRAIN)
        monkeypatch.chdir(tmp_path)
        return room

    return make


def codes(result: memlint.Result) -> list[tuple[str, int]]:
    return [(one.code, one.line) for one in result.findings]


def test_it_finds_what_the_file_has(project: Callable[..., Path]) -> None:
    project()
    result = memlint.lint("train.py")
    assert codes(result) == [("MEM950", 5), ("MEM102", 12)]
    assert result.findings[0].message == "`torch.eye(n)` is made"


@pytest.mark.parametrize("alias", ["from torch import eye", "import torch as t", "from torch import eye as unit"])
def test_calls_are_known_by_whatever_name(alias: str, project: Callable[..., Path]) -> None:
    project()
    name = alias.rsplit(" ", 1)[-1]
    called = f"{name}.eye" if alias.startswith("import") else name
    Path("train.py").write_text(f"{alias}\n\ndef rows(n):\n    return {called}(n)\n")
    assert codes(memlint.lint("train.py")) == [("MEM950", 4)]


def test_worker_processes_ask_it(project: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    project(files=3)
    monkeypatch.setattr(parts, "LEAST", 300)
    monkeypatch.setattr(parts, "MOST", 300)
    result = run(["."], Options(cwd=Path.cwd(), jobs=2, local_rules=True)).result
    assert codes(result) == [("MEM950", 5), ("MEM102", 12)] * 3
    assert result.failures == ()


def test_only_rules_that_run_are_asked(project: Callable[..., Path]) -> None:
    project("raise RuntimeError('loaded')\n")
    assert codes(memlint.lint("train.py", ignore=["MEM950"])) == [("MEM102", 12)]


@pytest.mark.parametrize(("file", "text"), [("detect.py", DETECT + "#\n"), ("names.py", 'NAMES = {"torch.ones"}\n')])
def test_what_was_found_is_forgotten_when_its_files_change(file: str, text: str, project: Callable[..., Path]) -> None:
    room = project()
    found, _ = run_command()
    known = "nothing has changed"
    assert [one[0] for one in found] == ["MEM950", "MEM102"] and known in run_command()[1]
    (room / file).write_text(text)
    found, said = run_command()
    assert known not in said
    assert [one[0] for one in found] == (["MEM950", "MEM102"] if file == "detect.py" else ["MEM102"])


@pytest.mark.parametrize("file", ["rule.py", "detect.py", "names.py"])
def test_a_process_that_stays_sees_what_its_files_have_become(file: str, project: Callable[..., Path]) -> None:
    room = project()
    assert [one.code for one in memlint.lint("train.py").findings] == ["MEM950", "MEM102"]
    before = (room / file).read_text()
    words = {"rule.py": ("is made", "is a matrix"), "detect.py": ("in CALLS", "in ()"), "names.py": ("eye", "zeros")}
    (room / file).write_text(before.replace(*words[file]))
    result = memlint.lint("train.py")
    assert result.failures == ()
    said = [one.message for one in result.findings if one.code == "MEM950"]
    assert said == (["`torch.eye(n)` is a matrix"] if file == "rule.py" else [])


def test_a_process_that_stays_sees_the_folders_of_a_rule(project: Callable[..., Path]) -> None:
    room = project(DETECT.replace("from .names import", "from .known.names import"))
    (room / "known").mkdir()
    for name, found in (("eye", ["MEM950", "MEM102"]), ("zeros", ["MEM102"])):
        (room / "known" / "names.py").write_text(f'NAMES = {{"torch.{name}"}}\n')
        assert [one.code for one in memlint.lint("train.py").findings] == found


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import nowhere_at_all\n", "cannot be loaded: ModuleNotFoundError"),
        ("import sys\nsys.exit(0)\n", "cannot be loaded: SystemExit"),
        ("def detect(:\n", "cannot be loaded: SyntaxError"),
        ("x = 1\n", "must define `detect(analyser, summary)`"),
        (DETECT + 'CALLS = "torch.eye"\n', "`CALLS` in detect.py must be a set of qualified names"),
        (DETECT + "LOADER_CALLS = {1}\n", "`LOADER_CALLS` in detect.py must be a set of qualified names"),
    ],
)
def test_one_that_cannot_be_loaded_is_an_error(
    text: str, said: str, project: Callable[..., Path], capsys: Capture
) -> None:
    room = project(text)
    assert main(["train.py", "--local-rules"]) == 2
    shown = " ".join(capsys.readouterr().err.split())
    assert said in shown and room.name in shown


@pytest.mark.parametrize(
    "body",
    [
        "raise ArithmeticError('a mistake')",
        "raise SystemExit(3)",
        "return None",
        "return [summary]",
        "yield from detect(analyser, None)",
        "yield type('Odd', (), {})()",
        "yield 'x'",
        *(
            f"yield Eye(site={site}, function='', certainty='high', text='')"
            for site in (
                "summary.site(summary)",
                "summary.site(True)",
                "summary.site(10**6)",
                "summary.site(-1)",
                "Site('nowhere.py', 0, 0)",
                "Site(None, 0, 0)",
                "Site('train.py', 10**6, 0)",
                "Site('train.py', '0', 0)",
                "'train.py'",
            )
        ),
    ],
)
def test_one_that_fails_costs_itself_alone(body: str, project: Callable[..., Path], capsys: Capture) -> None:
    imports = "from memlint.analysis.domain.events import Site\nfrom .rule import Eye\n"
    project(f"{imports}def detect(analyser, summary):\n    {body}\n")
    assert main(["train.py", "--local-rules", "--output-format", "json"]) == 2
    shown = json.loads(capsys.readouterr().out)
    assert [one["code"] for one in shown["findings"]] == ["MEM102"]
    (failure,) = shown["failures"]
    assert failure["reason"].startswith("internal error in the rule MEM950: "), failure
    assert main(["train.py", "--local-rules", "--ignore", "MEM950"]) == 1
    capsys.readouterr()
    assert main(["explain", "train.py:12", "--local-rules"]) == 0
    assert "MEM102[" in capsys.readouterr().out
