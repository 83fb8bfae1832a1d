"""A call that may mean several methods: each frees what it made, and what it gives is unpacked by its length."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

AGENTS = """
import torch


class Agent:
    def __init__(self, model):
        self.model = model
        self.result = None

    def step(self, x):
        pass

    def fit(self, loader):
        losses, gaps = [], []
        for x, _ in loader:
            loss, gap = self.step(x.cuda())
            losses.append(loss)
            gaps.append(gap)
        print(len(losses), len(gaps))


class Short(Agent):
    def step(self, x):
        loss = self.model(x).mean()
        loss.backward()
        with torch.no_grad():
            gap = loss * 2
        self.result = (loss, gap)
        return self.result


class Long(Agent):
    def step(self, x):
        loss = self.model(x).square().mean()
        {backward}
        with torch.no_grad():
            gap = loss * 2
        self.result = (gap, loss, loss)
        return self.result
"""


@pytest.mark.parametrize("backward", ["loss.backward()", pytest.param("pass", id="of a method whose three do not fit")])
def test_each_override_frees_what_it_made(tmp_path: Path, backward: str) -> None:
    (tmp_path / "agents.py").write_text(AGENTS.format(backward=backward))
    said = [one for one in memlint.lint([tmp_path], isolated=True).findings if one.code == "MEM102"]
    assert [(one.message.split("`")[1], one.severity) for one in said] == [("losses", "warning")]
