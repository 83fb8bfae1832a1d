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


#: what a round does beside filling a ring of 1,000 (None: no ring), and the bytes that are growth, on a device
_GROWS = {
    "no ring": ("None", "pass", 4 * 256, "cpu"),
    "a leak beside it": ("1000", "keep(torch.randn(512))", 4 * 512, "cpu"),
    "more than there is room for": ("10**12", "pass", 4 * 256, "cpu"),
    "a leak on the host": ("1000", "keep(bytearray(200_000))", 200_000, "host"),
    "rings that are collected": (
        "1000",
        "keep(collections.deque([torch.randn(256) for _ in range(64)], maxlen=64))",
        64 * 4 * 256,
        "cpu",
    ),
    "a state with all graphs before it": ("1000", "chain.append(cell(chain[-1]))", 4 * 16 * 64, "cpu"),
}


_CHAIN = """\
cell = nn.Sequential(nn.Linear(64, 64), nn.Tanh())
chain = collections.deque([torch.zeros(16, 64)], maxlen=50)
"""


@pytest.mark.parametrize("name", _GROWS)
def test_what_else_is_kept_is_growth(tmp_path: Path, name: str) -> None:
    most, more, each, device = _GROWS[name]
    (tmp_path / "train.py").write_text(_START + _CHAIN + _RUN.format(most=most, more=more), encoding="utf-8")
    run = verified("train.py", "--fail-on", "growth", cwd=tmp_path)
    (left,) = run.report["unattributed"]["loops"]
    assert (run.code, left["device"]) == (1, device)
    assert left["bytes_per_iteration"] == pytest.approx(each, rel=0.2 if device == "host" else 0)


def test_a_ring_of_many_fields_that_was_filled_before_is_none(tmp_path: Path) -> None:
    fields = "".join(f"    f{number} = torch.randn(64)\n" for number in range(6))
    text = (
        "ring = collections.deque([torch.randn(64) for _ in range(500)], maxlen=2_000)\n"
        f"def fields():\n{fields}    return [f0, f1, f2, f3, f4, f5]\n"
        "for number in range(60):\n    ring.extend(fields())\n    step()\n"
    )
    (tmp_path / "train.py").write_text(_START + text, encoding="utf-8")
    run = verified("train.py", "--fail-on", "growth", cwd=tmp_path)
    assert (run.code, run.report["unattributed"]["loops"]) == (0, [])


def test_the_loop_around_one_that_fills_a_ring_is_flat(tmp_path: Path) -> None:
    text = (
        "ring = collections.deque(maxlen=1_000)\n"
        "for epoch in range(60):\n    for number in range(7):\n        step()\n        ring.append(torch.randn(256))\n"
    )
    (tmp_path / "train.py").write_text(_START + text, encoding="utf-8")
    run = verified("train.py", "--fail-on", "growth", "--full", cwd=tmp_path)
    assert (run.code, run.report["unattributed"]["loops"]) == (0, [])
    filling = [loop["fills"] for loop in run.report["loops"] if loop["fills"]]
    assert filling
    assert all(each == {"ring": 1_000 * 4 * 256} for each in filling)
