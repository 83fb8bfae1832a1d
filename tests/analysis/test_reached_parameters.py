"""Networks whose parameters are frozen, or trained, by whatever way code comes to them. Beside each, the same done to
the student, which leaves the teacher as it was."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

PROGRAM = """
import itertools
import torch
from torch import nn
import torch.nn.functional as F
from elsewhere import Lookahead

{helper}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Sequential(nn.Linear(32, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 16))
        self.g = nn.Linear(16, 16)

    def forward(self, x):
        return self.g(self.f(x))


def train(loader):
    student, teacher, head = Net().cuda(), Net().cuda(), nn.Linear(16, 16).cuda()
    optimizer = torch.optim.Adam([*student.parameters(), *head.parameters()])
    {before}
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        loss = F.mse_loss(head(student(x)), teacher(x))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {after}
"""


def codes(folder: Path, *, helper: str = "", before: str = "pass", after: str = "pass") -> list[str]:
    before, after = before.replace("\n", "\n    "), after.replace("\n", "\n        ")
    (folder / "case.py").write_text(PROGRAM.format(helper=helper, before=before, after=after), encoding="utf-8")
    return [one.code for one in memlint.lint([folder], isolated=True).findings]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        # of several networks at once
        (
            "for t, s in zip(teacher.parameters(), student.parameters()):\n"
            "    t.data.copy_(s.data)\n"
            "    t.requires_grad = False",
            [],
        ),
        ("for (n, s), t in zip(student.named_parameters(), teacher.parameters()):\n    t.requires_grad_(False)", []),
        ("for t, s in zip(teacher.parameters(), student.parameters()):\n    s.requires_grad = False", ["MEM202"]),
        ("for t, s in zip(teacher.parameters(), student.parameters()):\n    t.data.copy_(s.data)", ["MEM202"]),
        ("for p in itertools.chain(teacher.f.parameters(), teacher.g.parameters()):\n    p.requires_grad = False", []),
        # by what detaches
        ("for p in teacher.parameters():\n    p.detach_()", []),
        ("for p in student.g.parameters():\n    p.detach_()", ["MEM202"]),
        # through the modules inside
        ("for m in teacher.children():\n    m.requires_grad_(False)", []),
        ("for m in teacher.modules():\n    for p in m.parameters():\n        p.requires_grad = False", []),
        ("for m in teacher.modules():\n    if hasattr(m, 'weight'):\n        m.weight.requires_grad = False", []),
        (
            "for m in student.modules():\n    if hasattr(m, 'weight'):\n        m.weight.requires_grad = False",
            ["MEM202"],
        ),
        # by parts
        ("for p in teacher.f[:2].parameters():\n    p.requires_grad = False", []),
        ("for p in student.f.parameters():\n    p.requires_grad = False", ["MEM202"]),
        # out of what holds them
        ("params = list(teacher.parameters())\nfor p in params:\n    p.requires_grad_(False)", []),
        ("params = dict(teacher.named_parameters())\nfor k in params:\n    params[k].requires_grad = False", []),
        ("params = list(student.g.parameters())\nfor p in params:\n    p.requires_grad_(False)", ["MEM202"]),
        ("[p.requires_grad_(False) for p in teacher.parameters()]", []),
        ("for p in filter(lambda q: q.requires_grad, teacher.parameters()):\n    p.requires_grad = False", []),
        ("for p in teacher.parameters():\n    setattr(p, 'requires_grad', False)", []),
        ("for p in teacher.parameters():\n    setattr(p, 'requires_grad', True)", ["MEM202"]),
        ("for p in teacher.parameters():\n    p.requires_grad_(requires_grad=False)", []),
        ("for p in teacher.parameters():\n    p.requires_grad_(requires_grad=True)", ["MEM202"]),
    ],
)
def test_frozen_in_place(tmp_path: Path, before: str, expected: list[str]) -> None:
    assert codes(tmp_path, before=before) == expected


@pytest.mark.parametrize(
    ("helper", "call"),
    [
        ("def off(ps):\n    for p in ps:\n        p.requires_grad = False\n", "off({}.parameters())"),
        ("def off(ps, flag):\n    for p in ps:\n        p.requires_grad = flag\n", "off({}.parameters(), False)"),
        (
            "def off(net):\n    for p in net.parameters():\n        one(p)\n\n"
            "def one(p):\n    p.requires_grad = False\n",
            "off({})",
        ),
        ("def off(nets):\n    for k in nets:\n        nets[k].requires_grad_(False)\n", "off({{'one': {}}})"),
        (
            "def off(nets):\n    for n in nets.values():\n        for p in n.parameters():\n"
            "            p.requires_grad = False\n",
            "off({{'one': {}}})",
        ),
        (
            "def off(*nets):\n    for n in nets:\n        for p in n.parameters():\n"
            "            p.requires_grad = False\n",
            "off({})",
        ),
        (
            "def off(net):\n    for layer in net.f:\n        for p in layer.parameters():\n"
            "            p.requires_grad = False\n",
            "for m in [{}]:\n    off(m)",
        ),
        (
            "def off(net, but=()):\n    for name, layer in net.named_children():\n        if name in but:\n"
            "            continue\n        for p in layer.parameters():\n            p.requires_grad = False\n",
            "off({})",
        ),
        ("def off(m):\n    for p in m.parameters(recurse=False):\n        p.requires_grad = False\n", "{}.apply(off)"),
        ("", "{}.apply(lambda m: m.requires_grad_(False))"),
    ],
)
def test_frozen_by_a_helper(tmp_path: Path, helper: str, call: str) -> None:
    assert codes(tmp_path, helper=helper, before=call.format("teacher")) == []
    assert codes(tmp_path, helper=helper, before=call.format("student")) == ["MEM202"]


OWN = """
class Descent:
    def __init__(self, params, rate):
        self.params, self.rate = list(params), rate

    def step(self):
        for p in self.params:
            {step}
"""


@pytest.mark.parametrize(
    ("helper", "before", "after"),
    [
        ("", "optimizer.add_param_group({{'params': {}.parameters(), 'lr': 0.1}})", "pass"),
        ("", "optimizer.param_groups.append({{'params': list({}.parameters()), 'lr': 0.1}})", "pass"),
        ("", "other = Lookahead({}.parameters())", "other.step()"),
        (OWN.format(step="p.data -= self.rate * p.grad"), "other = Descent({}.parameters(), 0.1)", "other.step()"),
        (
            OWN.format(step="self.move(p)") + "\n    def move(self, p):\n        p.data.sub_(p.grad)\n",
            "other = Descent([*{}.parameters()], 0.1)",
            "other.step()",
        ),
        (
            "def descend(params, rate):\n    with torch.no_grad():\n        for p in params:\n"
            "            p -= rate * p.grad\n",
            "pass",
            "descend({}.parameters(), 0.1)",
        ),
        ("", "pass", "for p in {}.parameters():\n    p.data.add_(p.grad.data, alpha=-0.1)"),
        ("", "pass", "with torch.no_grad():\n    for p in {}.parameters():\n        p -= 0.1 * p.grad"),
    ],
)
def test_trained_by_other_means(tmp_path: Path, helper: str, before: str, after: str) -> None:
    for name, expected in (("teacher", []), ("student", ["MEM202"])):
        found = codes(tmp_path, helper=helper, before=before.format(name), after=after.format(name))
        assert [code for code in found if code == "MEM202"] == expected


def test_an_average_is_no_training(tmp_path: Path) -> None:
    after = "for t, s in zip(teacher.parameters(), student.parameters()):\n    t.data.mul_(0.9).add_(s.data, alpha=0.1)"
    assert codes(tmp_path, after=after) == ["MEM202"]
    assert codes(tmp_path, helper=OWN.format(step="p.data.zero_()"), before="Descent(teacher.parameters(), 1)") == [
        "MEM202"
    ]


BY_HAND = """
import torch
from torch import nn


def predict(loader):
    net = nn.Linear(3, 3).cuda()
    for p in net.parameters():
        {statement}
    net.eval()
    return [net(x.cuda()).argmax(1).tolist() for x in loader]
"""


@pytest.mark.parametrize(
    ("statement", "told"), [("p.grad.detach_()", True), ("p.grad.zero_()", True), ("p.detach_()", False)]
)
def test_gradients_that_are_cut_by_hand_freeze_nothing(tmp_path: Path, statement: str, told: bool) -> None:
    (tmp_path / "case.py").write_text(BY_HAND.format(statement=statement), encoding="utf-8")
    assert ("MEM201" in {one.code for one in memlint.lint([tmp_path], isolated=True).findings}) is told


APPLIED = """
import torch
from torch import nn


def off({params}):
    for p in m.parameters():
        p.requires_grad = {flag}


def predict(loader):
    net = nn.Linear(3, 3).cuda()
    net.apply(off)
    net.eval()
    return [net(x.cuda()).argmax(1).tolist() for x in loader]
"""


@pytest.mark.parametrize(
    ("params", "flag", "told"), [("m", False, False), ("m, verbose=False", False, False), ("m", True, True)]
)
def test_what_apply_gives_each_module_to(tmp_path: Path, params: str, flag: bool, told: bool) -> None:
    (tmp_path / "case.py").write_text(APPLIED.format(params=params, flag=flag), encoding="utf-8")
    assert ("MEM201" in {one.code for one in memlint.lint([tmp_path], isolated=True).findings}) is told


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("state = make_state(); state[0].detach_()", ["MEM202"]),
        ("state = make_state(x); state.detach_()", ["MEM202"]),
        ("out = student(x)\nfor one in out:\n    one.detach_()", ["MEM202", "MEM201"]),  # (nobody uses it)
        ("for one in make_state():\n    one.detach_()", []),
        ("params = list(teacher.parameters()); params[0].detach_()", []),
    ],
)
def test_states_that_are_cut_in_place(tmp_path: Path, after: str, expected: list[str]) -> None:
    """What is carried along is no parameter; what a loop goes through, and nothing is known of, may be."""
    assert codes(tmp_path, helper="from elsewhere import make_state", after=after) == expected
