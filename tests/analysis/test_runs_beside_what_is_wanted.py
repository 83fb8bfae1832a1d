"""Evaluations beside code that wants gradients of something else, and networks that come in unusual ways."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

HEAD = """
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader


def load():
    return DataLoader(torch.load("data.pt"), batch_size=32)

"""

ATTACK = """
def attack(model, x, y):
    changed = x.detach().clone().requires_grad_(True)
    loss = F.cross_entropy(model(changed), y)
    grad = torch.autograd.grad(loss, changed)[0]
    return (changed + 0.01 * grad.sign()).detach()


def measure(model, loader):
    model.eval()
    right = 0
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        other = attack(model, x, y)
        right += (model(other).argmax(1) == y).float().mean().item()
    return right


print(measure(nn.Linear(8, 8).cuda(), load()))
"""

#: the callee differentiates the graph of the caller's run
PENALTY = """
def penalty(out, x):
    return torch.autograd.grad(out.sum(), x)[0].norm().item()


def measure(model, loader):
    model.eval()
    total = 0
    for x, y in loader:
        x = x.cuda().requires_grad_()
        total += penalty(model(x), x)
    return total


print(measure(nn.Linear(8, 8).cuda(), load()))
"""

#: one that may keep the graph for another call
KEPT = PENALTY.replace("out.sum(), x)", "out.sum(), x, retain_graph=True)")


def test_an_attack_wants_only_its_own_graph(tmp_path: Path) -> None:
    assert "MEM201" in codes_in(tmp_path, HEAD + ATTACK)


@pytest.mark.parametrize("text", [PENALTY, KEPT])
def test_a_callee_that_differentiates_the_callers_run(tmp_path: Path, text: str) -> None:
    assert "MEM201" not in codes_in(tmp_path, HEAD + text)


TRAINED = """
def train(model, loader, given, optimizer):
    for epoch in range(9):
        for x, y in loader:
            x = x.cuda().requires_grad_()
            loss = F.cross_entropy(model(x), y.cuda())
            slope = torch.autograd.grad({outputs}, x, create_graph=True)[0]
            (loss + slope.pow(2).mean()).backward()
            optimizer.step()
        model.eval()
        right = 0
        for x, y in given:
            {before}
            out = model(x.cuda())
            {between}
            right += (out.argmax(1) == y.cuda()).sum().item()
        print(right)


net = nn.Linear(8, 8).cuda()
train(net, load(), load(), torch.optim.SGD(net.parameters(), 0.1))
"""


@pytest.mark.parametrize(
    ("outputs", "before", "between", "found"),
    [
        ("loss", "pass", "pass", True),
        ("pick(x, y)", "pass", "pass", False),  # what is differentiated is not known
        ("loss", "pass", "torch.autograd.grad(out.sum(), x)", False),
        ("loss", "x.requires_grad_()", "pass", False),
    ],
)
def test_a_gradient_penalty_beside_an_evaluation(
    tmp_path: Path, outputs: str, before: str, between: str, *, found: bool
) -> None:
    text = TRAINED.format(outputs=outputs, before=before, between=between)
    assert ("MEM201" in codes_in(tmp_path, HEAD + text)) is found


ADAPTED = """
class Adapted(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def logits(self, x, y):
        weight = self.body.weight
        for step in range(5):
            loss = F.cross_entropy(F.linear(x, weight), y)
            {inner}
        return F.linear(self.body(x), weight)


def measure(model, loader):
    model.eval()
    right = 0
    for x, y in loader:
        right += (model.logits(x.cuda(), y.cuda()).argmax(1) == y.cuda()).sum().item()
    return right


print(measure(Adapted().cuda(), load()))
"""


@pytest.mark.parametrize(
    ("inner", "found"),
    [
        ("weight = weight - 0.1 * torch.autograd.grad(loss, weight, create_graph=True)[0]", False),
        ("weight = weight - 0.1 * torch.autograd.grad(loss, weight)[0]", False),
        ("weight = weight - 0.1 * loss", True),
    ],
)
def test_a_call_that_differentiates_inside_needs_grad_mode(tmp_path: Path, inner: str, *, found: bool) -> None:
    assert ("MEM201" in codes_in(tmp_path, HEAD + ADAPTED.format(inner=inner))) is found


FEATURES = """
def features(model, loader, size):
    found = []
    for x, _ in loader:
        {before}
        found.append(model(x.cuda()){cut}.cpu())
    centers = torch.zeros(size, 8, requires_grad=True)
    {after}
    return found, centers


features(nn.Linear(8, 8).cuda(), load(), 4)
"""


@pytest.mark.parametrize(
    ("before", "cut", "after", "found"),
    [
        ("pass", ".detach()", "pass", True),
        ("x.requires_grad_()", ".detach()", "pass", False),
        ("x = load_input(requires_grad=True)", ".detach()", "pass", False),
        ("pass", ".detach()", "model.centers = centers", False),
        ("pass", ".detach()", "model.register_forward_hook(lambda *given: slope(given[2], centers))", False),
        ("pass", ".detach()", "load_into(model, lambda: centers)", False),
        ("pass", "", "pass", False),
    ],
)
def test_a_leaf_that_is_no_input(tmp_path: Path, before: str, cut: str, after: str, *, found: bool) -> None:
    text = FEATURES.format(before=before, cut=cut, after=after)
    assert ("MEM201" in codes_in(tmp_path, HEAD + text)) is found


HOOKED = """
class Probe:
    def __init__(self):
        self.leaf = torch.zeros(8, requires_grad=True)
        self.seen = []

    def keep(self, module, given, out):
        {inside}


def measure(model, loader):
    model.eval()
    probe = Probe()
    model.register_forward_hook(probe.keep)
    right = 0
    for x, y in loader:
        right += (model(x.cuda()).argmax(1) == y.cuda()).sum().item()
    return right, probe.seen


print(measure(nn.Linear(8, 8).cuda(), load()))
"""


@pytest.mark.parametrize(
    ("inside", "found"),
    [
        ("self.seen.append(out.norm().item())", True),
        ("self.seen.append(torch.autograd.grad((out + self.leaf).sum(), self.leaf)[0].norm().item())", False),
        ("out.sum().backward(retain_graph=True)", False),
    ],
)
def test_a_hook_that_differentiates_needs_grad_mode(tmp_path: Path, inside: str, *, found: bool) -> None:
    assert ("MEM201" in codes_in(tmp_path, HEAD + HOOKED.format(inside=inside))) is found


LOADED = """
def get(path):
    return torch.load(path) if path else nn.Linear(8, 8)


def measure(path, loader):
    model = get(path).cuda()
    model.eval()
    right = 0
    for x, y in loader:
        {guard}
            right += (model.forward(x.cuda()).argmax(1) == y.cuda()).sum().item()
    return right


print(measure("model.pt", load()))
"""


@pytest.mark.parametrize(("guard", "found"), [("if True:", True), ("with torch.no_grad():", False)])
def test_the_forward_of_what_may_come_from_a_file(tmp_path: Path, guard: str, *, found: bool) -> None:
    assert ("MEM201" in codes_in(tmp_path, HEAD + LOADED.format(guard=guard))) is found


CLOSURE = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(8, 8)

    def forward(self, x):
        return self.lin(x)

    def validater(self, loader):
        {other}

        def validate():
            x, y = loader.next_batch()
            return F.cross_entropy({owner}(x.cuda()), y.cuda())

        return validate


def main(loader):
    validate = Net().cuda().validater(loader)
    for i in range(1000):
        print(validate().data.cpu().numpy())
"""


@pytest.mark.parametrize(
    ("other", "owner", "found"),
    [("pass", "self", True), ("self = loader", "self", False), ("pass", "loader", False)],
)
def test_the_object_of_the_method_around(tmp_path: Path, other: str, owner: str, *, found: bool) -> None:
    assert ("MEM201" in codes_in(tmp_path, HEAD + CLOSURE.format(other=other, owner=owner))) is found


def test_what_a_starred_parameter_collects_is_no_object(tmp_path: Path) -> None:
    source = CLOSURE.format(other="pass", owner="self[1]").replace(
        "def validater(self, loader)", "def validater(*self)"
    )
    assert "MEM201" not in codes_in(tmp_path, HEAD + source.replace("loader.next_batch()", "self[2].next_batch()"))
