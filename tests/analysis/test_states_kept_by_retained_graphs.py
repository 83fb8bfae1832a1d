"""States whose graphs ``retain_graph=True`` keeps from one round to the next, in a helper or in the loop itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(32, 32)
        self.hidden = None

    def forward(self, x, state):
        return self.rnn(x, state)

"""

METHOD = """
class Trainer:
    def __init__(self, optimizer):
        self.net = Net().cuda()
        self.optimizer = optimizer
        self.state = None

    def step(self, x, y):
        {before}
        out, self.state = self.net(x, self.state)
        loss = nn.functional.mse_loss(out, y)
        self.optimizer.zero_grad()
        loss.backward({given})
        self.optimizer.step()

    def fit(self, loader):
        for x, y in loader:
            self.step(x.cuda(), y.cuda())
"""

HELPER = """
def step(net, x, y, state, optimizer):
    {before}
    out, state = net(x, state)
    loss = nn.functional.mse_loss(out, y)
    optimizer.zero_grad()
    loss.backward({given})
    optimizer.step()
    return loss.item(), state


def fit(optimizer, loader):
    net, state = Net().cuda(), None
    for x, y in loader:
        loss, state = step(net, x.cuda(), y.cuda(), state, optimizer)
"""


@pytest.mark.parametrize(
    ("source", "before", "given", "expected"),
    [
        (METHOD, "pass", "retain_graph=True", ["MEM103"]),
        (HELPER, "pass", "retain_graph=True", ["MEM103"]),
        (METHOD, "self.state = None", "retain_graph=True", []),
        (HELPER, "state = None if state is None else state.detach()", "retain_graph=True", []),
        (
            METHOD,
            "if self.state is not None:\n            self.state = self.state.detach()",
            "retain_graph=True",
            [],
        ),
        (
            METHOD,
            "if self.state != None:\n            self.state = self.state.detach()",
            "retain_graph=True",
            [],
        ),
        (METHOD, "if self.state is not None:\n            self.state.detach_()", "retain_graph=True", []),
        (METHOD, "if self.state is not None:\n            self.optimizer.detach_()", "retain_graph=True", ["MEM103"]),
        (METHOD, "if self.state:\n            self.state = self.state.detach()", "retain_graph=True", []),
        (METHOD, "if self.state:\n            self.state = self.state * 2", "retain_graph=True", ["MEM103"]),
    ],
)
def test_state(tmp_path: Path, source: str, before: str, given: str, expected: list[str]) -> None:
    found = codes_in(tmp_path, NET + source.format(before=before, given=given))
    assert [code for code in found if code == "MEM103"] == expected


PAIR = """
class Trainer:
    def __init__(self):
        self.net = nn.LSTM(32, 32).cuda()
        self.h = self.c = None

    def step(self, x):
        {before}
        out, (self.h, self.c) = self.net(x, (self.h, self.c))
        out.mean().backward(retain_graph=True)


def fit(loader):
    trainer = Trainer()
    for x in loader:
        trainer.step(x.cuda())
"""


@pytest.mark.parametrize(
    ("cut", "expected"),
    [
        ("self.h, self.c = self.h.detach(), self.c.detach()", []),
        ("self.h = self.h.detach()\n            self.c = self.c.detach()", []),
        ("self.h, self.c = self.h * 2, self.c * 2", ["MEM103"]),
    ],
)
def test_pair_of_states(tmp_path: Path, cut: str, expected: list[str]) -> None:
    before = f"if self.h is not None:\n            {cut}"
    found = codes_in(tmp_path, NET + PAIR.format(before=before))
    assert [code for code in found if code == "MEM103"] == expected


KEPT = """
class Memory(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(10, 10)
        self.state = None

    def forward(self, x):
        {before}
        y, self.state = self.rnn(x, self.state)
        return y


def fit(loader, optimizer):
    model = Memory().cuda()
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("if self.state is not None:\n            self.state = self.state.detach()", []),
        ("if self.state is not None:\n            self.state = self.state * 2", ["MEM103"]),
    ],
)
def test_attribute_that_is_none_around_the_body(tmp_path: Path, before: str, expected: list[str]) -> None:
    found = codes_in(tmp_path, NET + KEPT.format(before=before))
    assert [code for code in found if code == "MEM103"] == expected


GIVEN = """
import torch
from torch import nn


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.GRU(10, 10)
        self.state = torch.zeros(1, 8, 10)

    def forward(self, x):
        y, {state} = self.rnn(x, self.state)
        return y


def fit(model, loader, optimizer):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
"""


@pytest.mark.parametrize(("state", "expected"), [("self.state", False), ("_", True)])
def test_network_that_may_be_one_of_the_file(tmp_path: Path, state: str, expected: bool) -> None:
    """The graph that the next round's backward runs through is not kept in vain."""
    assert ("MEM112" in codes_in(tmp_path, GIVEN.format(state=state))) is expected
