"""Values that a trainer collects by name over its rounds, where each round gives a dictionary of them."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

PROGRAM = """
import torch
from torch import nn


class Trainer{base}:
    def __init__(self, rounds, source):
        super().__init__()
        self.rounds, self.source = rounds, source

    def learn(self, batch):
        raise NotImplementedError

    def fit(self):
        {start}
        for _ in range(self.rounds):
            {anew}
            values = {{}}
            if self.source:
                values = self.learn(self.source.sample())
            for key, value in values.items():
                {keeps}
        return kept

{others}

class Regression(Trainer):
    def __init__(self, rounds, source):
        super().__init__(rounds, source)
        self.net = nn.Sequential(nn.Linear(100, 1000), nn.ReLU(), nn.Linear(1000, 1))
        self.optim = torch.optim.Adam(self.net.parameters())

    def learn(self, batch):
        x, y = batch
        prediction = self.net(x)
        loss = ((prediction - y) ** 2).mean()
        self.optim.zero_grad()
        loss.backward()
        self.optim.step()
        return {{"loss": loss.item(), "prediction": {given}}}
"""
OTHER = """
class Fixed{number}(Trainer):
    def learn(self, batch):
        return {{"loss": {number}}}
"""
ONE_BY_ONE = ("if key in kept:", "    kept[key].append(value)", "else:", "    kept[key] = [value]")
BEGUN = ("if key not in kept:", "    kept[key] = []", "kept[key].append(value)")
ANEW = ("kept[key] = []", "kept[key].append(value)")


def codes(folder: Path, keeps: tuple[str, ...], given: str, anew: bool, base: str = "", others: int = 0) -> list[str]:
    code = PROGRAM.format(
        base=base,
        start="pass" if anew else "kept = {}",
        anew="kept = {}" if anew else "pass",
        keeps="\n                ".join(keeps),
        given=given,
        others="".join(OTHER.format(number=number) for number in range(others)),
    )
    (folder / "program.py").write_text(code, encoding="utf-8")
    result = memlint.lint([folder], select=["MEM102"], isolated=True)
    assert not result.failures
    return [finding.code for finding in result.findings]


@pytest.mark.parametrize("keeps", [ONE_BY_ONE, BEGUN])
@pytest.mark.parametrize("base", ["", "(nn.Module)"])
@pytest.mark.parametrize("others", [0, 4])
def test_lists_by_name(tmp_path: Path, keeps: tuple[str, ...], base: str, others: int) -> None:
    """A list that the first round makes for a name grows with each later round; a module that trains is no layer."""
    assert codes(tmp_path, keeps, "prediction", False, base, others) == ["MEM102"]


@pytest.mark.parametrize(
    ("keeps", "given", "anew"),
    [
        (ONE_BY_ONE, "prediction.detach()", False),
        (ONE_BY_ONE, "prediction", True),
        (BEGUN, "prediction", True),
        (ANEW, "prediction", False),
        (("kept[key] = [value]",), "prediction", False),
    ],
)
def test_silent(tmp_path: Path, keeps: tuple[str, ...], given: str, anew: bool) -> None:
    """Nothing is kept over rounds where the dictionary or the list is made anew, or the value has no graph."""
    assert codes(tmp_path, keeps, given, anew) == []


FLUSHED = """
import collections

import torch
from torch import nn


def train(loader):
    net = nn.Linear(1000, 1000).cuda()
    optim = torch.optim.Adam(net.parameters())
    kept = collections.defaultdict(list)
    total = []
    for step, (x, y) in enumerate(loader):
        out = net(x.cuda())
        losses = {{"l1": (out - y.cuda()).abs().mean(), "l2": (out - y.cuda()).square().mean()}}
        optim.zero_grad()
        sum(losses.values()).backward()
        optim.step()
        for name, loss in losses.items():
            kept[name].append(loss)
        {after}
    return total
"""


@pytest.mark.parametrize(
    ("after", "severity"),
    [
        ("print(step)", "warning"),
        ("kept.clear()", ""),
        ("if step % loader.every == 0: print(sum(kept['l1'])); kept.clear()", "note"),
        # the lists stay elsewhere
        ("total.extend(kept.values()); kept.clear()", "warning"),
    ],
)
def test_flushed(tmp_path: Path, after: str, severity: str) -> None:
    """A dictionary that is cleared drops its lists, unless something else holds them."""
    (tmp_path / "program.py").write_text(FLUSHED.format(after=after), encoding="utf-8")
    result = memlint.lint([tmp_path], select=["MEM102"], isolated=True)
    assert {str(finding.severity) for finding in result.findings if "kept" in finding.message} == ({severity} - {""})
