"""A state that goes through a model of unknown class has a graph, unless all classes that the model may have cut it."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

NET = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Bank(nn.Module):
    def refresh(self, feats, slots):
        moved = F.normalize(slots + feats.flatten(2).mean(2).t() @ feats.flatten(2).mean(2), dim=1)
        return moved.detach()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Conv2d(3, 512, 3)
        self.bank = Bank()

    def forward(self, x, slots, train=True):
        feats = self.encoder(x)
        if train:
            {trained}
            return feats, slots, feats.mean()
        {tested}
        return feats, slots
"""
EVALUATE = """
import sys
import torch
from torch.utils.data import DataLoader
from data import Frames

loader = DataLoader(Frames(sys.argv[1]), batch_size=16)
model = {loaded}
model.cuda()
slots = torch.load(sys.argv[3])
errors = []
model.eval()
for x in loader:
    out, slots{rest} = model(x.cuda(), slots, False)
    errors.append(out.mean().item())
"""
LOADED = "torch.load(sys.argv[2])"


def carried(path: Path, trained: str, tested: str, loaded: str = LOADED, rest: str = "") -> list[str]:
    (path / "net.py").write_text(NET.format(trained=trained, tested=tested))
    (path / "evaluate.py").write_text(EVALUATE.format(loaded=loaded, rest=rest))
    return [one.confidence for one in memlint.lint([path], min_confidence="low").findings if one.code == "MEM103"]


CUT = "slots = self.bank.refresh(feats, slots)"
KEPT = "slots = slots + feats.mean((0, 2, 3))"


@pytest.mark.parametrize("loaded", [LOADED, LOADED + '["model"]'])
@pytest.mark.parametrize(
    "tested", ["pass", CUT, "slots = slots.clone().detach()", "slots = torch.zeros(8, 512).cuda()"]
)
def test_a_state_that_the_class_cuts(tmp_path: Path, tested: str, loaded: str) -> None:
    assert carried(tmp_path, CUT, tested, loaded) == []


@pytest.mark.parametrize(("trained", "tested"), [(CUT, KEPT), (KEPT, CUT), (KEPT, KEPT)])
def test_a_state_that_the_class_carries_on(tmp_path: Path, trained: str, tested: str) -> None:
    assert carried(tmp_path, trained, tested) == ["medium"]


def test_no_class_that_the_call_fits(tmp_path: Path) -> None:
    found = carried(tmp_path, CUT, CUT)
    assert found == []
    (tmp_path / "net.py").write_text((tmp_path / "net.py").read_text().replace("x, slots, train=True", "x"))
    again = [one for one in memlint.lint([tmp_path], min_confidence="low").findings if one.code == "MEM103"]
    assert [one.confidence for one in again] == ["medium"]
