"""States of recurrent networks that an attribute keeps in a tuple, list or dictionary, from call to call."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

PROGRAM = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(64, 64)
        self.hidden = None

    def forward(self, x):
        {body}
        return out


def evaluate(loader):
    net = Net().cuda().eval()
    for x, y in loader:
        print(net(x.cuda()).argmax().item())


evaluate(torch.utils.data.DataLoader(torch.load("data.pt")))
"""


def found(tmp_path: Path, *body: str) -> list[str]:
    """The places of the findings of MEM103."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(PROGRAM.format(body="\n        ".join(body)))
    result = memlint.lint([tmp_path], isolated=True)
    assert not result.failures
    return [each.message.split("`")[1].partition("[")[0] for each in result.findings if each.code == "MEM103"]


RUN = "out, (h, c) = self.rnn(x, self.hidden)"


@pytest.mark.parametrize(
    "body",
    [
        (RUN, "self.hidden = (h, c)"),
        (RUN, "self.hidden = [h, c]"),
        ("out, state = self.rnn(x, self.hidden)", "self.hidden = state[0], state[1]"),
        (RUN, "self.hidden = (h.detach(), c)"),
        (
            "if self.hidden is None:",
            "    self.hidden = (torch.zeros(1, 8, 64), torch.zeros(1, 8, 64))",
            RUN,
            "self.hidden = (h, c)",
        ),
        ("h, c = self.hidden", "out, (h, c) = self.rnn(x, (h, c))", "self.hidden = (h, c)"),
        ("state = self.hidden", "out, (h, c) = self.rnn(x, state)", "self.hidden = {'h': h, 'c': c}"),
    ],
)
def test_a_pair_with_its_graph(tmp_path: Path, body: tuple[str, ...]) -> None:
    assert found(tmp_path, *body) == ["self.hidden"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param((RUN, "self.hidden = (h.detach(), c.detach())"), id="detached"),
        pytest.param((RUN, "self.hidden = tuple(one.data for one in (h, c))"), id="data alone"),
        pytest.param(
            (
                "if self.hidden is not None:",
                "    self.hidden = tuple(one.detach() for one in self.hidden)",
                RUN,
                "self.hidden = (h, c)",
            ),
            id="detached before",
        ),
        pytest.param(("self.hidden = None", RUN, "self.hidden = (h, c)"), id="begun in each call"),
        pytest.param(("out, (h, c) = self.rnn(x)", "self.hidden = (h, c)"), id="of this call"),
        pytest.param(("out, (h, c) = self.rnn(x)", "self.hidden = (self.hidden[1], h)"), id="the last two"),
        pytest.param(
            ("old = self.hidden[1]", "out, (h, c) = self.rnn(x)", "self.hidden = [old, h]"), id="the last two, by name"
        ),
        pytest.param(("with torch.no_grad():", f"    {RUN}", "self.hidden = (h, c)"), id="not recorded"),
    ],
)
def test_a_pair_that_keeps_no_earlier_call(tmp_path: Path, body: tuple[str, ...]) -> None:
    assert found(tmp_path, *body) == []


CALLER = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(64, 64)
        self.hidden = None

    def begin(self):
        self.hidden = (torch.zeros(1, 8, 64), torch.zeros(1, 8, 64))

    def cut(self):
        self.hidden = tuple(one.detach() for one in self.hidden)

    def ask(self, x):
        out, (h, c) = self.rnn(x, self.hidden)
        self.hidden = (h, c)
        return out


def evaluate(net: Net, loader):
    net.eval()
    for x, y in loader:
        {before}
        print(net.ask(x.cuda()).argmax().item())


evaluate(Net().cuda(), torch.utils.data.DataLoader(torch.load("data.pt")))
"""


@pytest.mark.parametrize(
    ("before", "places"),
    [
        ("x = x.float()", ["net.hidden"]),
        ("net.begin()", []),
        ("net.cut()", []),
        ("net.hidden = None", []),
        ("net.hidden = tuple(one.detach() for one in net.hidden)", []),
        ("net.hidden = (net.hidden[0].detach(), net.hidden[1].detach())", []),
    ],
)
def test_a_pair_that_a_caller_lets_grow_or_cuts(tmp_path: Path, before: str, places: list[str]) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(CALLER.format(before=before))
    findings = memlint.lint([tmp_path], isolated=True).findings
    assert [each.message.split("`")[1] for each in findings if each.code == "MEM103"] == places
    assert [" keeps it" in each.message for each in findings if each.code == "MEM201"] == [bool(places)]


def test_the_help_assigns_no_member_of_a_tuple(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(
        """
import torch
from torch import nn

rnn = nn.LSTM(64, 64).cuda()
state = (torch.zeros(1, 64).cuda(), torch.zeros(1, 64).cuda())
for x in torch.utils.data.DataLoader(torch.load("data.pt")):
    out, (h, c) = rnn(x.cuda(), state)
    state = (h, c)
    print(out.mean().item())
"""
    )
    (found,) = (one for one in memlint.lint([tmp_path], isolated=True).findings if one.code == "MEM103")
    assert "].detach()" not in found.help
    assert "`state`" in found.help
