"""Growth that no finding explains, in loops that are shorter than a window: the verdict is that of a long loop."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import verified

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


@pytest.mark.parametrize("name", _GROWS)
def test_what_short_loops_keep_is_growth(tmp_path: Path, name: str) -> None:
    text, each = _GROWS[name]
    (tmp_path / "train.py").write_text(_START + text, encoding="utf-8")
    run = verified("train.py", "--fail-on", "growth", "--ignore", "MEM201", cwd=tmp_path)
    left = {(loop["device"], loop["bytes_per_iteration"]) for loop in run.report["unattributed"]["loops"]}
    assert (left, run.code) == ({("cpu", each)}, 1)


@pytest.mark.parametrize("name", _HEALTHY)
def test_what_short_loops_give_back_is_none(tmp_path: Path, name: str) -> None:
    text, each = _HEALTHY[name]
    (tmp_path / "train.py").write_text(_START + text, encoding="utf-8")
    run = verified("train.py", "--fail-on", "growth", "--ignore", "MEM201", cwd=tmp_path)
    assert (run.report["unattributed"]["loops"], run.code) == ([], 0)
    read = [loop for loop in run.report["loops"] if loop["bytes_per_iteration"] is not None]
    assert read, "at least one of its loops is judged"
    if each is not None:
        assert {loop["until_its_end"].get("cpu", 0) for loop in read} == {each}
