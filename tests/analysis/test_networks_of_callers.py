"""A function that evaluates the network which its callers pass: what they pass tells whether layers run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import severities_in

PROGRAM = """
import torch
from torch import nn
from data import draw, load


class Network(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.embed = nn.Embedding(words, words)
        self.block = nn.TransformerEncoderLayer(words, 8)

    {forward}

    def compute(self, x, y=None):
        logits = self.block(self.embed(x))
        return logits, nn.functional.cross_entropy(logits.flatten(0, 1), y.flatten())


def estimate_loss(model, rounds):
    losses = []
    model.eval()
    for _ in range(rounds):
        x, y = draw("val")
        {run}
        losses.append(loss.item())
    return sum(losses) / rounds


def train(epochs):
    model = {made}
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(epochs):
        model.train()
        x, y = draw("train")
        logits, loss = model(x, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(estimate_loss(model, 20))


{also}
train(100)
"""

FORWARD = "def forward(self, x, y):\n        return self.compute(x, y)"
OTHER = 'def measure():\n    print(estimate_loss(load("best.pt"), 20))\n\n\nmeasure()'


def program(
    forward: str = FORWARD, run: str = "_, loss = model(x, y)", made: str = "Network(512).cuda()", also: str = ""
) -> str:
    return PROGRAM.format(forward=forward, run=run, made=made, also=also)


@pytest.mark.parametrize(
    ("source", "severities"),
    [
        (program(), ["warning"]),
        (program(run="loss = model(x, y)[1]"), ["warning"]),
        # what one caller passes is not known
        (program(also=OTHER), ["note"]),
        (program(made="load('first.pt')"), ["note"]),
        # and here no graph is recorded
        (program(run="with torch.no_grad():\n            _, loss = model(x, y)"), []),
    ],
)
def test_what_all_callers_pass_is_followed(tmp_path: Path, source: str, severities: list[str]) -> None:
    assert severities_in(tmp_path, source, "MEM201") == severities


def test_a_forward_that_guards_its_layers_is_no_reason_to_warn(tmp_path: Path) -> None:
    guarded = "@torch.no_grad()\n    " + FORWARD
    assert severities_in(tmp_path, program(forward=guarded), "MEM201") != ["warning"]
