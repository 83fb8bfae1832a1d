"""Growth that no finding explains, in loops that are shorter than a window: the verdict is that of a long loop."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import verified

from memlint.measure.loops.counted import CountedRuns

_START = """\
import collections
import torch
from torch import nn
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 32))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
kept, rows, ring = {}, {}, collections.deque(maxlen=12)
keep, push = getattr(kept, "__setitem__"), getattr(ring, "append")  # no rule looks through these
def step(x):
    loss = model(x).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss
def mask(n):
    if n not in kept:
        keep(n, torch.ones(n, n).tril())
    return kept[n]
def evaluate(name, batches, put=keep):
    model.eval()
    with torch.no_grad():
        for i in range(batches):
            put((name, i), model(torch.randn(32, 64)))
    return put
def features(batches):
    found = {}
    return evaluate("", batches, found.__setitem__)
"""
_OUT = 4 * 32 * 32

#: a program's end, and what an iteration of one of its loops leaves
_GROWS = {
    "one evaluation": ('evaluate("test", 8)', _OUT),
    "evaluations at several places": ('evaluate("val", 6)\nstep(torch.randn(8, 64))\nevaluate("test", 9)', _OUT),
    "few epochs": (
        """
def main():
    for epoch in range(3):
        for i in range(7):
            x = torch.randn(32, 64)
            step(x)
            keep((epoch, i), x)
main()
""",
        4 * 32 * 64,
    ),
    "a leak beside a result that is replaced": (
        """
def both(epoch):
    found = {}
    for i in range(8):
        keep((epoch, i), model(torch.randn(32, 64)).detach())
        found[i] = torch.randn(64)
    return found
for epoch in range(2):
    result = both(epoch)
""",
        _OUT,
    ),
    "an evaluation behind a long loop": (
        """
for epoch in range(20):
    for i in range(40):
        step(torch.randn(8, 64))
    evaluate(epoch, 8)
""",
        _OUT,
    ),
    "from epoch to epoch": (
        """
for epoch in range(7):
    for i in range(3):
        step(torch.randn(32, 64))
    keep(epoch, model(torch.randn(16, 64)).detach())
""",
        4 * 16 * 32,
    ),
    "graphs": (
        """
def run(epoch):
    for i in range(6):
        keep((epoch, i), model(torch.randn(32, 64)))
for epoch in range(3):
    run(epoch)
""",
        4 * 32 * (64 + 128 + 32),
    ),
}

#: a program's end, and what one of its loops gives back when it has ended
_HEALTHY = {
    "what an evaluation returns": ("for epoch in range(3):\n    result = features(8)\n", _OUT),
    "what the second of two evaluations replaces": ("for epoch in range(2):\n    result = features(8)\n", _OUT),
    "what two evaluations return, one behind the other": ("result = features(8)\nresult = features(9)\n", _OUT),
    "a cache that fills": (
        "for epoch in range(4):\n    for i in range(8):\n        step(torch.randn(32, 64) * mask(16 + i).mean())\n",
        0,
    ),
    "lengths that vary": (
        """
for epoch in range(4):
    for i in range(5 + epoch * 2):
        last = step(torch.randn(8 * (1 + i % 5), 64))
""",
        0,
    ),
    "a ring that is longer than a run": (
        """
for epoch in range(5):
    for i in range(7):
        x = torch.randn(32, 64)
        step(x)
        push(x)
""",
        None,
    ),
    "losses that are added up": (
        """
for epoch in range(3):
    total = 0
    for i in range(8):
        total = total + model(torch.randn(32, 64)).square().mean()
    optimizer.zero_grad()
    total.backward()
    optimizer.step()
""",
        4 * 32 * (64 + 128 + 32),
    ),
    "a list that is emptied after some episodes": (
        """
for episode in range(12):
    for i in range(6):
        keep((episode, i), model(torch.randn(32, 64)))
    if episode % 3 == 2:
        kept.clear()
""",
        None,
    ),
    "models of folds": (
        """
for fold in range(6):
    model = nn.Linear(64, 32)
    optimizer = torch.optim.Adam(model.parameters())
    for i in range(6):
        loss = step(torch.randn(32, 64))
""",
        0,
    ),
}


#: told on the CPU alone: where bytes are counted and not followed, one run tells nothing, nor do calls that no loop is
#: around, and what is replaced counts with what is beside it
_FOLLOWED = (
    "one evaluation",
    "evaluations at several places",
    "from epoch to epoch",
    "a leak beside a result that is replaced",
    "what two evaluations return, one behind the other",
)
_DEVICES = ("cpu", pytest.param("cuda", marks=pytest.mark.gpu))


def _program(folder: Path, text: str, device: str) -> None:
    start = f'import torch\ntorch.set_default_device("{device}")\n'
    (folder / "train.py").write_text(start + _START + text, encoding="utf-8")


@pytest.mark.parametrize("device", _DEVICES)
@pytest.mark.parametrize("name", _GROWS)
def test_what_short_loops_keep_is_growth(tmp_path: Path, name: str, device: str) -> None:
    if device == "cuda" and name in _FOLLOWED:
        pytest.skip("told on the CPU alone")
    text, each = _GROWS[name]
    _program(tmp_path, text, device)
    run = verified("train.py", "--fail-on", "growth", "--ignore", "MEM201", cwd=tmp_path)
    left = {
        (loop["device"].partition(":")[0], loop["bytes_per_iteration"]) for loop in run.report["unattributed"]["loops"]
    }
    assert (left, run.code) == ({(device, each)}, 1)
    assert all(loop["stacks"] for loop in run.report["unattributed"]["loops"]), "it says where"


@pytest.mark.parametrize("device", _DEVICES)
@pytest.mark.parametrize("name", _HEALTHY)
def test_what_short_loops_give_back_is_none(tmp_path: Path, name: str, device: str) -> None:
    if device == "cuda" and name in _FOLLOWED:
        pytest.skip("told on the CPU alone")
    text, each = _HEALTHY[name]
    _program(tmp_path, text, device)
    run = verified("train.py", "--fail-on", "growth", "--ignore", "MEM201", cwd=tmp_path)
    assert (run.report["unattributed"]["loops"], run.code) == ([], 0)
    read = [loop for loop in run.report["loops"] if loop["bytes_per_iteration"] is not None]
    assert read, "at least one of its loops is judged"
    if each is not None and device == "cpu":
        assert {loop["until_its_end"].get("cpu", 0) for loop in read} == {each}


#: what is held at the tops of each run and at its end, and at the end of all; the bytes an iteration that are growth
_COUNTED: dict[str, tuple[list[tuple[list[int], int]], int, int]] = {
    "kept in each run": ([([0, 10, 20, 30, 40], 50), ([50, 60, 70, 80, 90], 100)], 100, 10),
    "kept, behind an optimizer's state": ([([0, 99, 109, 119, 129], 139), ([139, 149, 159, 169, 179], 189)], 189, 10),
    "freed at the end of each run": ([([0, 10, 20, 30, 40], 50), ([0, 10, 20, 30, 40], 50)], 0, 0),
    "freed when the next has ended": ([([0, 10, 20, 30, 40], 50), ([50, 60, 70, 80, 90], 100)], 50, 0),
    "batches sorted by size": ([([5, 30, 40, 50, 60], 60), ([55, 30, 40, 50, 60], 60)] * 2, 60, 0),
    "a cache that fills": ([([0, 10, 20, 30, 40], 50), ([50, 50, 50, 50, 50], 50)], 50, 0),
    "emptied after two runs": (
        [([0, 10, 20, 30, 40], 50), ([50, 60, 70, 80, 90], 100)] * 2 + [([0, 10, 20, 30, 40], 50)],
        0,
        0,
    ),
    "one run alone": ([([0, 10, 20, 30, 40, 50, 60], 70)], 70, 0),
    "runs of two iterations": ([([place, place + 10], place + 20) for place in range(0, 200, 20)], 200, 0),
}


@pytest.mark.parametrize("name", _COUNTED)
def test_short_runs_are_judged_by_counters(name: str) -> None:
    runs, last, each = _COUNTED[name]
    short = _counted([([{"cuda:0": held} for held in tops], {"cuda:0": end}) for tops, end in runs])
    short.look({"cuda:0": last * _UNIT})
    assert short.grows == (each > 0)
    if each:
        held = [one["requested"]["cuda:0"] for one in short.read()]
        assert (held[-1] - held[0]) / (len(held) - 1) == each * _UNIT


_UNIT = 1024


def _counted(runs: list[tuple[list[dict[str, int]], dict[str, int]]]) -> CountedRuns:
    short = CountedRuns()
    for tops, end in runs:
        for held in tops:
            short.top({device: count * _UNIT for device, count in held.items()})
        short.end({device: count * _UNIT for device, count in end.items()}, 16)
    return short


def test_the_device_that_gives_back_does_not_grow_with_the_other() -> None:
    runs = [
        (
            [{"cuda:0": 50 * run + 10 * top, "cuda:1": 10 * top} for top in range(5)],
            {"cuda:0": 50 * run + 50, "cuda:1": 0},
        )
        for run in range(4)
    ]
    short = _counted(runs)
    short.look({"cuda:0": 200 * _UNIT, "cuda:1": 0})
    assert {device for one in short.read() for device in one["requested"]} == {"cuda:0"}
    assert short.passing == {"cuda:0": 0, "cuda:1": 10 * _UNIT}


def test_what_goes_with_the_program_is_told_of_no_run() -> None:
    short = _counted(
        [([{"cuda:0": 50 * run + 10 * top} for top in range(5)], {"cuda:0": 50 * run + 50}) for run in (0, 1)]
    )
    short.look({"cuda:0": 0}, finished=True)
    assert not short.grows


def test_where_nothing_is_read_nothing_is_told() -> None:
    assert not _counted([([{}] * 5, {}), ([{}] * 5, {})]).tells
