"""The programs of fixtures/verify: each says in comments what `memlint verify` must say of it.

``# verdict: CODE verdict, …`` stands on the line of the findings, ``# unattributed`` where memory is asked for that
stays and that no finding explains; ``# verify: …`` are options, ``# run: …`` the arguments of one of several runs, and
``# slow`` keeps a program out of the quick tests, ``# slow run: …`` one of its runs.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import ROOT, verify

PROGRAMS = ROOT / "fixtures" / "verify"
_RUNS = re.compile(r"^# (slow )?run: (.*)$", re.MULTILINE)
_VERDICTS = re.compile(r"# verdict: ([A-Z0-9a-z, -]+)")


def _programs() -> list[object]:
    scripts = [*sorted(PROGRAMS.glob("*.py")), PROGRAMS / "several_files/train.py", PROGRAMS / "packaged/__main__.py"]
    found: list[object] = []
    for script in scripts:
        text = script.read_text(encoding="utf-8")
        slow = re.search(r"^# slow$", text, re.MULTILINE) is not None
        name = script.stem if script.parent == PROGRAMS else script.parent.name
        for mark, arguments in _RUNS.findall(text) or [("", "")]:
            found.append(
                pytest.param(
                    script.relative_to(PROGRAMS),
                    arguments.split(),
                    marks=[pytest.mark.slow] if slow or mark else [],
                    id=" ".join([name, arguments]).strip(),
                )
            )
    return found


def _expected(script: Path) -> tuple[list[str], list[str]]:
    """The verdicts and the unattributed places, as sorted lines of text. A program in a folder of its own is all of
    it."""
    files = [PROGRAMS / script] if script.parent == Path() else sorted((PROGRAMS / script.parent).glob("*.py"))
    verdicts, unattributed = [], []
    for file in files:
        shown = file.relative_to(PROGRAMS).as_posix()
        for number, line in enumerate(file.read_text(encoding="utf-8").split("\n"), 1):
            found = _VERDICTS.search(line)
            names = found[1].split(",") if found else ()
            verdicts += [f"{shown}:{number} {name.strip()}" for name in names]
            if line.endswith("# unattributed"):
                unattributed.append(f"{shown}:{number}")
    return sorted(verdicts), sorted(unattributed)


def _said(report: dict[str, object]) -> tuple[list[str], list[str]]:
    findings = report["findings"]
    left = report["unattributed"]
    assert isinstance(findings, list)
    assert isinstance(left, dict)
    verdicts = [f"{one['path']}:{one['line']} {one['code']} {one['verdict']['verdict']}" for one in findings]
    places = set()
    for stack in left["stacks"]:
        own = next((frame for frame in stack["frames"] if not frame["path"].startswith(("/", "<"))), None)
        places.add("nowhere" if own is None else f"{own['path']}:{own['line']}")
    if left["loops"] and not places:
        places.add("nowhere")
    return sorted(verdicts), sorted(places)


def check(script: Path, arguments: list[str], device: str) -> None:
    """Verify a run of a program, and compare what is said with what is so."""
    text = (PROGRAMS / script).read_text(encoding="utf-8")
    options = re.search(r"^# verify: (.*)$", text, re.MULTILINE)
    words = options[1].split() if options else []
    named = [] if "-m" in words else [script.as_posix()]
    own = ["--", "--device", device, *arguments]
    done = verify(*named, *words, "--device", device, "--output-format", "json", *own, cwd=PROGRAMS)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        raise AssertionError(done.stdout + done.stderr) from None
    assert _said(report) == _expected(script), done.stderr
    bad = re.compile("confirmed|cycle|peak-only")
    verdicts, _ = _expected(script)
    assert done.returncode == int(any(bad.search(verdict) for verdict in verdicts)), done.stderr


@pytest.mark.parametrize(("script", "arguments"), _programs())
def test_verdicts_on_cpu(script: Path, arguments: list[str]) -> None:
    check(script, arguments, "cpu")


@pytest.mark.gpu
@pytest.mark.parametrize(("script", "arguments"), _programs())
def test_verdicts_on_cuda(script: Path, arguments: list[str]) -> None:
    check(script, arguments, "cuda")


LATE = """\
import torch
from torch import nn

model = nn.Linear(8, 8)
batches = [torch.randn(4, 8) for _ in range(60)]


def look(batches, most):
    seen = []
    for x in batches[:most]:
        seen.append(model(x))
    print(len(seen))


def train(batches):
    late, kept = [], []
    for step, x in enumerate(batches):
        y = model(x)
        if step > 7:
            late.append(y)
        kept.append(y)
    print(len(late), len(kept))


look(batches, 1)
train(batches)
"""


def test_places_that_are_reached_once_or_late_take_nothing_from_others(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text(LATE)
    done = verify("late.py", "--isolated", "--device", "cpu", "--output-format", "json", cwd=tmp_path)
    findings = {(one["line"], one["code"]): one["verdict"] for one in json.loads(done.stdout)["findings"]}
    line = LATE[: LATE.index("kept.append")].count("\n") + 1
    assert findings[line, "MEM102"]["bytes_per_iteration"]["exact"] == 4 * 8 * 4


RARE = """\
import gc
import torch
from torch import nn

collected = []
gc.callbacks.append(lambda phase, about: collected.append(1) if about["generation"] == 2 else None)
model = nn.Linear(8, 8)


def train(steps):
    kept = []
    for step in range(steps):
        for part in range(2):
            loss = model(torch.randn(4, 8)).square().mean()
            loss.backward()
            if step in (5, 6) and part == 0:
                kept.append(loss)
    print(len(kept))


train(60)
print("collected", len(collected))
"""


def test_loops_that_end_often_make_no_collection_each(tmp_path: Path) -> None:
    (tmp_path / "rare.py").write_text(RARE)
    done = verify("rare.py", "--isolated", "--device", "cpu", "--full", cwd=tmp_path)
    assert "1 finding" in done.stdout
    assert int(done.stdout.split("collected ")[1].split()[0]) < 40, done.stdout


def test_every_comment_is_understood() -> None:
    for file in PROGRAMS.rglob("*.py"):
        for line in file.read_text(encoding="utf-8").split("\n"):
            if "verdict:" in line:
                assert _VERDICTS.search(line), line
