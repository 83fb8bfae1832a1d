"""Objects that a configuration names (``hydra.utils.instantiate``): they may be networks, and are not numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

EVALUATES = """
import hydra
import torch
from hydra.utils import get_class, instantiate
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Conv2d(3, 64, 3)

    def compute_loss(self, batch):
        return (self.net(batch["x"]) - batch["y"]).mean()


class Workspace:
    def __init__(self, cfg):
        {made}

    def run(self, loader, optimizer, held_out):
        for batch in loader:
            optimizer.zero_grad()
            self.model.compute_loss(batch).backward()
            optimizer.step()
        self.model.eval()
        {guard}:
            losses = []
            for batch in held_out:
                losses.append(self.model.compute_loss(batch){taken})
            print(sum(losses))
"""


@pytest.mark.parametrize(
    "made",
    [
        "self.model: Policy = hydra.utils.instantiate(cfg.policy)",
        "self.model: Policy = instantiate(cfg.policy)",
        "self.model: Policy = get_class(cfg.policy)(cfg)",
        "self.model: Policy = hydra.utils.call(cfg.policy)",
    ],
)
def test_a_network_of_a_configuration_is_evaluated(tmp_path: Path, made: str) -> None:
    source = EVALUATES.format(made=made, guard="if True", taken="")
    assert codes_in(tmp_path, source) == ["MEM102", "MEM201"]
    source = EVALUATES.format(made=made, guard="with torch.no_grad()", taken=".item()")
    assert codes_in(tmp_path, source) == []


def test_the_class_may_be_unknown(tmp_path: Path) -> None:
    made = "self.model = hydra.utils.instantiate(cfg.policy)"
    assert codes_in(tmp_path, EVALUATES.format(made=made, guard="if True", taken=".item()")) == ["MEM201"]


TRAINS = """
import hydra
from torch import nn


def train(cfg):
    model = nn.Conv2d(3, 64, 3).cuda()
    optimizer = hydra.utils.instantiate(cfg.optimizer, params=model.parameters())
    scheduler = hydra.utils.instantiate(cfg.scheduler, optimizer=optimizer)
    {other} = hydra.utils.instantiate(cfg.other)
    loader = hydra.utils.instantiate(cfg.loader)
    rates, total = [], 0.0
    for x, y in loader:
        optimizer.zero_grad()
        loss = {loss}
        loss.backward()
        optimizer.step()
        scheduler.step()
        rates.append(scheduler.get_last_lr())
        {last}
    return rates, total
"""


@pytest.mark.parametrize(
    ("other", "last"),
    [
        ("metric", "metric.update(loss.detach(), y); rates.append(metric.compute())"),
        ("environment", "rates.append(environment.step(x.tolist()))"),
        ("transform", "rates.append(transform.name)"),
        ("callbacks", "[one.on_step() for one in callbacks]"),
        ("criterion", "total += loss.item()"),
    ],
)
def test_other_objects_of_a_configuration(tmp_path: Path, other: str, last: str) -> None:
    source = TRAINS.format(other=other, loss="((model(x.cuda()) - y) ** 2).mean()", last=last)
    assert codes_in(tmp_path, source) == []


def test_a_loss_of_a_configuration_has_a_graph(tmp_path: Path) -> None:
    source = TRAINS.format(other="criterion", loss="criterion(model(x.cuda()), y)", last="total += loss")
    assert codes_in(tmp_path, source) == ["MEM101"]
