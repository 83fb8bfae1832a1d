"""The programs of fixtures/verify: each says in comments what `memlint verify` must say of it (table.py)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import verify
from table import PROGRAMS, VERDICTS, Run, arguments, expected, expected_exit, runs, said


def _runs() -> list[object]:
    return [pytest.param(run, marks=[pytest.mark.slow] if run.slow else [], id=run.name) for run in runs()]


def check(run: Run, device: str) -> None:
    """Verify a run of a program, and compare what is said with what is so."""
    done = verify(*arguments(run, device), cwd=PROGRAMS, forked=device == "cpu" and not run.slow)
    try:
        report = json.loads(done.stdout)
    except ValueError:
        raise AssertionError(done.stdout + done.stderr) from None
    assert said(report) == expected(run.script), done.stderr
    assert done.returncode == expected_exit(run.script), done.stderr


@pytest.mark.parametrize("run", _runs())
def test_verdicts_on_cpu(run: Run) -> None:
    check(run, "cpu")


@pytest.mark.gpu
@pytest.mark.parametrize("run", _runs())
def test_verdicts_on_cuda(run: Run) -> None:
    check(run, "cuda")


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
    done = verify("late.py", "--isolated", "--device", "cpu", "--output-format", "json", cwd=tmp_path, forked=True)
    findings = {(one["line"], one["code"]): one["verdict"] for one in json.loads(done.stdout)["findings"]}
    line = LATE[: LATE.index("kept.append")].count("\n") + 1
    assert findings[line, "MEM102"]["bytes_per_iteration"]["exact"] == 4 * 8 * 4


SHARED = """\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))
total, square, outputs, scale = 0, 0, [], 0
for _ in range(40):
    x = torch.randn(8, 64)
    target = torch.randn(8, 64)
    loss = (model(x) * target).mean()
    loss.backward()
    total += loss
    out = model(x)
    square += (out * target).square().mean()
    outputs.append(out)
    scale += model(torch.randn(8, 64)).abs().mean()
"""


def test_places_that_keep_the_same_name_each_other(tmp_path: Path) -> None:
    (tmp_path / "shared.py").write_text(SHARED)
    done = verify("shared.py", "--isolated", "--device", "cpu", "--output-format", "json", cwd=tmp_path, forked=True)
    reasons = {one["line"]: one["verdict"]["reason"] for one in json.loads(done.stdout)["findings"]}
    assert "B of which count for MEM101 at shared.py:13 as well" in reasons[14]
    assert not any("as well" in reasons[line] for line in (11, 13, 15))


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
    done = verify("rare.py", "--isolated", "--device", "cpu", "--full", cwd=tmp_path, forked=True)
    assert "1 finding" in done.stdout
    assert int(done.stdout.split("collected ")[1].split()[0]) < 40, done.stdout


def test_every_comment_is_understood() -> None:
    for file in PROGRAMS.rglob("*.py"):
        for line in file.read_text(encoding="utf-8").split("\n"):
            if "verdict:" in line:
                assert VERDICTS.search(line), line
