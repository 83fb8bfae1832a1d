"""Graphs that objects keep: loggers that may be one that does nothing, modules that their maker runs, and sums that go
through an object which gives the loss, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

LOGGERS = """
import torch
from torch import nn
from settings import make_logger


class Silent:
    def log(self, name, value):
        {silent}


class Recorder:
    def __init__(self):
        self.data = {{}}

    def log(self, name, value):
        if name not in self.data:
            self.data[name] = []
        self.data[name].append({kept})


class Agent:
    def __init__(self, net: nn.Module, logger=None):
        self.net = net
        self.optimizer = torch.optim.Adam(net.parameters())
        self.logger = {given}
        if self.logger is None:
            self.logger = Silent()

    def learn(self, loader):
        for x, y in loader:
            loss = nn.functional.mse_loss(self.net(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.logger.log("loss", loss)
"""


@pytest.mark.parametrize(
    ("silent", "kept", "given", "told"),
    [
        ("pass", "value", "make_logger(logger)", ["MEM102"]),
        ("pass", "value", "logger", ["MEM102"]),
        ("pass", "value.item()", "logger", []),
        pytest.param("print(name)", "value", "logger", [], id="one that does something may be the only one"),
        pytest.param("pass", "value", "Silent()", [], id="nothing else is ever there"),
    ],
)
def test_what_does_nothing_stands_in_for_what_is_not_known(
    tmp_path: Path, silent: str, kept: str, given: str, told: list[str]
) -> None:
    assert codes_in(tmp_path, LOGGERS.format(silent=silent, kept=kept, given=given)) == told


MANY = """
import torch
from torch import nn


class Base:
    def write(self, name, value):
        raise NotImplementedError


class Silent(Base):
    def write(self, name, value):
        pass


class Printing(Base):
    def write(self, name, value):
        print(name, float(value))


class Recorder(Base):
    def __init__(self):
        self.data = []

    def write(self, name, value):
        self.data.append(value)

{more}

def learn(net: nn.Module, optimizer, logger, loader):
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        logger.write("loss", loss)
"""


@pytest.mark.parametrize(("more", "told"), [(0, ["MEM102"]), (3, [])])
def test_methods_that_do_nothing_are_not_counted(tmp_path: Path, more: int, told: list[str]) -> None:
    others = "".join(
        f"\nclass Other{number}(Base):\n    def write(self, name, value):\n        print(value.item())\n\n"
        for number in range(more)
    )
    assert codes_in(tmp_path, MANY.format(more=others)) == told
