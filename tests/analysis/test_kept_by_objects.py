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


MADE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 1)
        self.total = 0.0
        self.losses = []

    def forward(self, x):
        return self.body(x)

    def loss_of(self, x, y):
        loss = nn.functional.mse_loss(self(x), y)
        {keeps}
        return loss

    def reset(self):
        self.total = 0.0
        self.losses = []


def main(loader, folds):
    {before}
    for x, y in loader:
        {inside}
        loss = net.loss_of(x.cuda(), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {after}
    print(len(net.losses), net.total)
"""
MAKES = "net = Net().cuda(); optimizer = torch.optim.Adam(net.parameters())"


@pytest.mark.parametrize(
    ("keeps", "before", "inside", "after", "told"),
    [
        ("self.losses.append(loss)", MAKES, "pass", "pass", ["MEM102"]),
        ("self.total += loss", MAKES, "pass", "pass", ["MEM101"]),
        ("self.losses.append(loss.item())", MAKES, "pass", "pass", []),
        ("self.total += loss.detach()", MAKES, "pass", "pass", []),
        pytest.param("self.losses.append(loss)", MAKES, "net.reset()", "pass", [], id="begun anew in each round"),
        pytest.param("self.losses.append(loss)", MAKES, "pass", "net.losses.clear()", [], id="emptied in each round"),
        pytest.param("self.total += loss", MAKES, "pass", "net.total = 0.0", [], id="set by whoever has made it"),
        pytest.param("self.losses.append(loss)", "pass", MAKES, "pass", [], id="another module in each round"),
    ],
)
def test_a_module_is_asked_what_it_keeps_where_it_is_made(
    tmp_path: Path, keeps: str, before: str, inside: str, after: str, told: list[str]
) -> None:
    assert codes_in(tmp_path, MADE.format(keeps=keeps, before=before, inside=inside, after=after)) == told


LEARNS = """
import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.data = []

    def forward(self, x):
        return self.net(x).softmax(0)

    def put(self, item):
        self.data.append(item)

    def learn(self, optimizer):
        optimizer.zero_grad()
        for reward, probability in self.data:
            (-torch.log(probability) * reward).backward()
        optimizer.step()
        self.data = []


def train({params}):
    {makes}
    optimizer = torch.optim.Adam(policy.parameters())
    for episode in range(episodes):
        state, done = env.reset(), False
        while not done:
            probabilities = policy(torch.from_numpy(state).float())
            action = torch.distributions.Categorical(probabilities).sample()
            state, reward, done, _ = env.step(action.item())
            policy.put((reward, probabilities[action]))
        policy.learn(optimizer)
"""


@pytest.mark.parametrize(
    ("params", "makes"), [("env, episodes", "policy = Policy()"), ("env, episodes, policy: Policy", "pass")]
)
def test_a_record_that_a_method_keeps_is_wanted_by_the_backward_that_reads_a_part_of_it(
    tmp_path: Path, params: str, makes: str
) -> None:
    assert codes_in(tmp_path, LEARNS.format(params=params, makes=makes)) == []


SUMMARY = """
import torch
from torch import nn


class Summary:
    def __init__(self):
        self.values = {{}}
        self.names = []

    def register(self, name, optim):
        self.names.append({{"name": name, "optim": optim}})

    def update(self, name, value, weight=1.0):
        if name in self.values:
            self.values[name] = (value, weight)

    def loss(self):
        loss = 0
        for item in self.names:
            if item["optim"]:
                value = self.values[item["name"]]
                loss += value[0] * value[1]
        return loss


def run(model: nn.Module, loader, optimizer, summary: Summary, evaluates=False):
    total, count = 0.0, 0
    for x, y in loader:
        if evaluates:
            with torch.no_grad():
                part = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        else:
            part = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        total = total + {part}
        count += 1
        summary.update("loss", part)
        summary.update("mean", total, 1.0 / count)
        loss = summary.loss()
        if {test}:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            {after}
    return float(total) / count
"""


@pytest.mark.parametrize(
    ("part", "test", "after", "told"),
    [
        ("part", "not evaluates", "pass", ["MEM101"]),
        ("part.detach()", "not evaluates", "pass", []),
        pytest.param("part", "count % 4 == 0", "pass", [], id="the rounds differ"),
    ],
)
def test_a_backward_in_each_round_goes_through_no_sum_over_all_rounds(
    tmp_path: Path, part: str, test: str, after: str, told: list[str]
) -> None:
    found = codes_in(tmp_path, SUMMARY.format(part=part, test=test, after=after))
    assert [code for code in found if code.startswith("MEM10")] == told
