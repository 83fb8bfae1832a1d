"""A sum of what unknown code gives is cut safely only where a use tells that it is a tensor."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixed_programs import safety

import memlint

SUMS = """
import torch
from torch import nn
from elsewhere import LOSSES

class Trainer:
    def __init__(self, model, optimizer, name):
        self.model, self.optimizer = model, optimizer
        self.criterion = {criterion}

    def epoch(self, loader, train):
        total = 0.0
        for x, y in loader:
            loss = self.criterion(self.model(x), y)
            {step}
            total += {added}
        {end}

def main(loader):
    model = nn.Linear(4, 4)
    trainer = Trainer(model, torch.optim.SGD(model.parameters(), 0.1), "ce")
    trainer.epoch(loader, True)
    trainer.epoch(loader, False)

main([])
"""
TRAINS = "self.optimizer.zero_grad(); loss.backward(); self.optimizer.step()"
SOMETIMES = "if train:\n                " + TRAINS
SCALED = "torch.amp.GradScaler().scale(loss).backward()"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, "unsafe"),
        ({"added": "loss / 2"}, "unsafe"),
        ({"criterion": "nn.MSELoss()"}, "safe"),
        ({"step": TRAINS}, "safe"),
        ({"step": TRAINS, "added": "loss / 2"}, "safe"),
        ({"step": SCALED}, "safe"),
        ({"step": SOMETIMES + "\n            print(loss.item())"}, "safe"),
        ({"end": "print(total.item())"}, "safe"),
        ({"end": "return total.data / 2"}, "safe"),
        ({"end": "if train:\n            print(total.item())"}, "unsafe"),
    ],
)
def test_a_loss_that_only_its_name_tells_of(parts: dict[str, str], expected: str, tmp_path: Path) -> None:
    """What a table of losses gives when nothing is trained may be a number, which has no ``detach()``."""
    plain = {"criterion": "LOSSES[name]", "step": SOMETIMES, "added": "loss", "end": "print(total)"}
    assert safety(tmp_path, SUMS.format(**plain | parts), "MEM101") == expected


LOG = """
class Log:
    def note_losses(self, loss, entropy):
        self.entropies.append(entropy)
"""
PARAMETERS = """
from torch import nn


class Parameters(nn.Module):
    def gradient_update(self, loss):
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
"""
HELD_BY_A_CALLEE = """
import torch

from parameters import Parameters


class Trainer:
    def train(self, rollout, sampler):
        for _ in range(self.epochs):
            for batch in sampler:
                loss = self.shared_loss(*rollout[batch])
                self.parameters.gradient_update(-loss)

    def shared_loss(self, states: torch.Tensor, actions: torch.Tensor, returns: torch.Tensor) -> torch.Tensor:
        values, entropy = self.policy.evaluate(states=states, actions=actions)
        bonus = torch.mean(entropy)
        loss = self.value_loss(returns, values) + self.share * bonus
        self.log.note_losses(loss, bonus)
        return loss
"""


def test_what_a_callee_keeps_is_not_what_it_gives(tmp_path: Path) -> None:
    """The loss that the call gives is trained by: `.detach()` of it would end the training."""
    for name, text in (("log", LOG), ("parameters", PARAMETERS), ("train", HELD_BY_A_CALLEE)):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    (found,) = memlint.lint([tmp_path], isolated=True).findings
    assert (found.code, found.fix) == ("MEM102", None)
