"""What a loop puts into a container that holds so much and no more is no growth, unless it does not fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from runs import verified

_START = """\
import collections
import torch
from torch import nn
net = nn.Linear(16, 4)
optimizer = torch.optim.SGD(net.parameters(), lr=1e-3)
class Memory:
    def __init__(self, most):
        self.items = collections.deque([], maxlen=most)
    def push(self, *items):
        self.items.append(items)
def step():
    loss = net(torch.randn(8, 16)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
other = []
keep = getattr(other, "append")  # no rule looks through this
"""
_RUN = """\
def main(memory):
    state = torch.randn(1, 256)
    for number in range(60):
        after = torch.randn(1, 256)
        memory.push(state, after)
        state = after
        step()
        {more}
memory = Memory({most})
main(memory)
"""


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
@pytest.mark.parametrize("most", [1_000, 100_000])
def test_a_ring_that_is_not_full_is_no_growth(tmp_path: Path, most: int, device: str) -> None:
    start = f'import torch\ntorch.set_default_device("{device}")\n' + _START
    (tmp_path / "train.py").write_text(start + _RUN.format(most=most, more="pass"), encoding="utf-8")
    run = verified("train.py", "--fail-on", "growth", cwd=tmp_path)
    assert (run.code, run.report["unattributed"]["loops"]) == (0, [])
    (loop,) = (one for one in run.report["loops"] if one["fills"])
    ((path, size),) = loop["fills"].items()
    assert path == "memory.items"
    assert size == pytest.approx(most * 4 * 256, rel=0.1)
    assert set(loop["bytes_per_iteration"].values()) == {0}


@pytest.mark.parametrize(
    ("most", "more", "each"),
    [
        ("None", "pass", 4 * 256),
        ("1000", "keep(torch.randn(512))", 4 * 512),
        ("10**12", "pass", 4 * 256),
    ],
    ids=["no ring", "a leak beside it", "more than there is room for"],
)
def test_what_else_is_kept_is_growth(tmp_path: Path, most: str, more: str, each: int) -> None:
    (tmp_path / "train.py").write_text(_START + _RUN.format(most=most, more=more), encoding="utf-8")
    run = verified("train.py", "--fail-on", "growth", cwd=tmp_path)
    (left,) = run.report["unattributed"]["loops"]
    assert (run.code, left["bytes_per_iteration"]) == (1, each)
