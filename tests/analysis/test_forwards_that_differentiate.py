"""Forwards that differentiate under a flag: an evaluation that switches this part off can have a guard."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

CODEC = """
import torch
from torch import nn


def penalty(x, score):
    (slope,) = torch.autograd.grad(score.sum(), x, create_graph=True)
    return (slope.norm(dim=1) - 1).pow(2).mean()


class Codec(nn.Module):
    def __init__(self):
        super().__init__()
        self.decode = nn.Linear(512, 512)
        self.judge = nn.Linear(512, 1)

    def forward(self, x, only_output=False, with_penalty=True):
        y = self.decode(x)
        if only_output:
            return y
        loss = (y - x).abs().mean()
        if with_penalty:
            x.requires_grad_()
            loss = loss + penalty(x, self.judge(x))
        return loss


def train(loader, held_out):
    codec = Codec().cuda()
    optimizer = torch.optim.Adam(codec.parameters())
    for step, x in enumerate(loader):
        codec.train()
        codec(x.cuda()).backward()
        optimizer.step()
        optimizer.zero_grad()
        if step % 100 == 0:
            codec.eval()
            for x in held_out:
                {shown}
"""


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        ("print(codec(x.cuda(), only_output=True).detach().cpu())", True),
        ("print(codec(x.cuda(), True).detach().cpu())", True),
        ("print(codec(x.cuda(), with_penalty=False).item())", True),
        ("print(codec(x.cuda()).item())", False),
        ("print(codec(x.cuda(), only_output=step < 5).detach().cpu())", False),
        ("with torch.no_grad():\n                    print(codec(x.cuda(), only_output=True).cpu())", False),
    ],
)
def test_an_evaluation_without_the_penalty(tmp_path: Path, shown: str, found: bool) -> None:
    assert ("MEM201" in codes_in(tmp_path, CODEC.format(shown=shown))) is found
