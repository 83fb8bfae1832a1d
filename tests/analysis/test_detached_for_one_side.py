"""A generator that also runs for the discriminator's step, which gets what it gives without its graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

SOURCE = """
import torch
from torch import nn, optim


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Linear(64, 64)

    def forward(self, x):
        return self.layers(x)


{helper}


def train(loader):
    made = Net().cuda()
    judge = Net().cuda()
    {names}
    made_opt, judge_opt = optim.Adam(made.parameters()), optim.Adam(judge.parameters())
    for x in loader:
        made_opt.zero_grad()
        judge_opt.zero_grad()
        {first}
        fake = made(torch.randn(8, 64).cuda())
        (judge({given}) - judge(x.cuda())).mean().backward()
        judge_opt.step()
        {second}
        {again}
        (-judge(fake)).mean().backward()
        made_opt.step()


train(torch.utils.data.DataLoader(range(9)))
"""
ON = """for p in judge.parameters():
            p.requires_grad_(True)"""
OFF = """for p in judge.parameters():
            p.requires_grad_(False)"""


def found(folder: Path, **parts: str) -> list[str]:
    usual = {
        "helper": "",
        "names": "",
        "first": ON,
        "second": OFF,
        "given": "fake.detach()",
        "again": "fake = made(torch.randn(8, 64).cuda())",
    }
    return codes_in(folder, SOURCE.format(**{**usual, **parts}))


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({}, id="by a method"),
        pytest.param({"second": OFF.replace("_(False)", " = False")}, id="by the attribute"),
        pytest.param({"second": "pass"}, id="nothing is frozen"),
    ],
)
def test_another_network_is_frozen_by_its_name(tmp_path: Path, parts: dict[str, str]) -> None:
    assert found(tmp_path, **parts) == ["MEM201"]


PENALTY = """def penalty(judge, x):
    x.requires_grad_()
    return torch.autograd.grad(judge(x).sum(), x, create_graph=True)[0].pow(2).sum()"""


def test_the_other_network_is_differentiated(tmp_path: Path) -> None:
    first = f"{ON}\n        penalty(judge, x.cuda()).backward()"
    assert found(tmp_path, helper=PENALTY, first=first) == ["MEM201"]


EACH = """    for p in net.parameters():
                    p.requires_grad_(False)"""
HELPER = """def switch(judge, on):
    for p in judge.parameters():
        p.requires_grad_(on)"""


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"first": OFF.replace("judge", "made")}, id="the generator itself"),
        pytest.param({"names": "other = nn.Sequential(made)", "first": ON.replace("judge", "other")}, id="around it"),
        pytest.param({"names": "other = made", "first": OFF.replace("judge", "other")}, id="another name of it"),
        pytest.param(
            {"names": "nets = (made, judge)", "first": f"for net in nets:\n            {EACH}"},
            id="one after the other",
        ),
        pytest.param({"helper": HELPER, "first": "switch(made, False)"}, id="by a helper"),
        pytest.param({"given": "fake"}, id="with its graph"),
        pytest.param({"again": "pass"}, id="its graph is used afterwards"),
    ],
)
def test_who_is_frozen_is_not_told_or_the_graph_is_wanted(tmp_path: Path, parts: dict[str, str]) -> None:
    assert found(tmp_path, **parts) == []
