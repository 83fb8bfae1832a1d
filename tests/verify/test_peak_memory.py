"""When a device held most, and what of that was the model's own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from commands import verify

from memlint.measure.memory.meters import Bytes, Meter
from memlint.measure.memory.peaks import Peaks
from memlint.verifier.judging.peaks import peaks
from memlint.verifier.model import Peak

PROGRAM = """\
import torch
from torch import nn

model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 8))
optimizer = torch.optim.Adam(model.parameters())


def train():
    for step in range(20):
        loss = model(torch.randn(4096 if step == 5 else 64, 256)).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


train()
"""
WEIGHTS = 4 * (256 * 256 + 256 + 256 * 8 + 8)


def row(**changed: Any) -> dict[str, Any]:
    kept = {"parameters": 100, "gradients": 100, "optimizer": 200}
    return {"device": "cuda:0", "bytes": 1000, "known_at": 1000, "kept": kept, "step": 7, "loop": 3, "grad": True,
            **changed}  # fmt: skip


def said(**changed: Any) -> Peak:
    [found] = peaks({"peaks": [row(**changed)]}, {3: "train.py:30"})
    return found


def test_what_is_not_the_models_own_is_the_rest() -> None:
    peak = said()
    assert (peak.bytes, peak.step, peak.loop, peak.phase) == (1000, 7, "train.py:30", "training")
    assert peak.parts == {"parameters": 100, "gradients": 100, "optimizer": 200, "rest": 600}


@pytest.mark.parametrize(
    "changed", [{"kept": None, "known_at": 0}, {"known_at": 500}, {"kept": {"parameters": 1200}}],
    ids=["nobody looked", "looked at a much lower one", "more than there was"],
)  # fmt: skip
def test_no_parts_are_said_where_they_are_not_known(changed: dict[str, Any]) -> None:
    assert said(**changed).parts == {}


def test_without_gradients_it_is_an_evaluation_or_nothing() -> None:
    assert said(grad=False).phase == "evaluation"
    assert said(kept={"parameters": 100, "gradients": 0, "optimizer": 0}).phase == ""


class Fixed(Meter):
    most = 0

    def peak(self) -> Bytes:
        return {"cuda:0": self.most}


class Torch:
    @staticmethod
    def is_grad_enabled() -> bool:
        return True


def test_only_a_higher_peak_moves_it() -> None:
    found, meter = Peaks(), Fixed()
    for step, most in enumerate([100, 700, 700, 650, 900, 900]):
        meter.most = most
        found.note(meter, step, 3, Torch, look=False)
    [one] = found.data()
    assert (one["bytes"], one["step"]) == (900, 4)


def test_the_peak_of_a_program(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    options = ("train.py", "--isolated", "--full", "--device", "cpu")
    done = verify(*options, "--window", "12", "--output-format", "json", cwd=tmp_path, forked=True)
    [peak] = json.loads(done.stdout)["peaks"]
    assert (peak["step"], peak["loop"], peak["phase"]) == (6, "train.py:9", "training"), "the sixth has the large batch"
    parts = dict(peak["parts"])
    assert parts["parameters"] == parts["gradients"] == WEIGHTS
    assert 2 * WEIGHTS <= parts["optimizer"] <= 2 * WEIGHTS + 4 * 4, "two moments, and a counter for each parameter"
    assert sum(parts.values()) == peak["bytes"]
    assert parts["rest"] > 4096 * 256 * 4, "the batch, and what was computed from it"
