"""Dictionaries whose members are set by a step's number, which a caller or the object itself counts."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

LOG = """
import torch


class Log:
    def __init__(self, size):
        self.size = size
        self.data = {{}}
        self.step = 0

    def add(self, step, **values):
        {add}

    {other}


def fit(net, optimizer, loader):
    log = Log(10)
    for step, batch in enumerate(loader):
        loss = net(batch.cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {call}
"""
COUNTS = "self.data[self.step] = values\n        self.step += 1"
AT_STEP = "self.data[step] = values"
GIVEN = "log.add(step, loss=loss)"
PART = "log.add(i, loss=net(part).mean())\n            i += 1"
SETTER = "@at.setter\n    def at(self, value):\n        self.step = value"
RING = "class Ring(Log):\n    def wrap(self):\n        self.step = 0"


@pytest.mark.parametrize(
    ("add", "other", "call", "expected"),
    [
        (AT_STEP, "", GIVEN, ["MEM102"]),
        ('self.data[f"step {step}"] = values', "", GIVEN, ["MEM102"]),
        ('self.data.setdefault("train", {})[step] = values', "", GIVEN, ["MEM102"]),
        (COUNTS, "", GIVEN, ["MEM102"]),
        (AT_STEP, "", "log.add(step, loss=loss.item())", []),
        (AT_STEP, "", 'log.add("last", loss=loss)', []),
        ("self.data[step % self.size] = values", "", GIVEN, []),
        (COUNTS + "\n        if self.step == self.size:\n            self.step = 0", "", GIVEN, []),
        (COUNTS, "def begin(self):\n        self.step = 0", GIVEN, []),
        (AT_STEP, "", "for i, p in enumerate(net.parameters()):\n            log.add(i, grad=p.grad)", []),
        # up to a limit
        ("if step >= self.size:\n            return\n        " + AT_STEP, "", GIVEN, []),
        ("if step < 3:\n            return\n        " + AT_STEP, "", GIVEN, ["MEM102"]),
        ("if self.step >= self.size:\n            return\n        " + COUNTS, "", GIVEN, []),
        (AT_STEP, "", "if step > 9:\n            continue\n        " + GIVEN, []),
        (AT_STEP, "", "if not step > 9:\n            continue\n        " + GIVEN, ["MEM102"]),
        # an inner loop begins anew with each batch
        (AT_STEP, "", "for t, part in enumerate(batch.split(4)):\n            log.add(t, loss=net(part).mean())", []),
        (AT_STEP, "", "i = 0\n        for part in batch.split(4):\n            " + PART, []),
        (AT_STEP, "", "i = 4 * step\n        for part in batch.split(4):\n            " + PART, []),
        # other code begins to count anew
        (COUNTS, "", "log.step = 0\n        " + GIVEN, []),
        (COUNTS, "@property\n    def at(self):\n        return self.step\n\n    " + SETTER, GIVEN, []),
        (COUNTS, "def wrap(self):\n        pass\n\n" + RING, GIVEN, []),
        (COUNTS, "def wrap(self):\n        pass\n\n" + RING.replace("(Log)", ""), GIVEN, ["MEM102"]),
        (AT_STEP + "\n        self.data.pop(step - self.size, None)", "", GIVEN, []),
    ],
)
def test_members(tmp_path: Path, add: str, other: str, call: str, expected: list[str]) -> None:
    assert codes_in(tmp_path, LOG.format(add=add, other=other, call=call)) == expected
