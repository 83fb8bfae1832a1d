"""Attacks on a network: gradients of its input are wanted, so nothing is said of a network that no optimizer trains."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in, findings_in, why

ATTACK = """
import torch
import torch.nn.functional as F
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(3, 3)

    def forward(self, x):
        return self.lin(x)


def main(train_loader, test_loader, device):
    encoder = Encoder().to(device)
    head = nn.Linear(3, 2).to(device)
    optimizer = torch.optim.SGD(head.parameters(), 0.1)
    for x, y in train_loader:
        optimizer.zero_grad()
        F.cross_entropy(head(x.to(device)), y.to(device)).backward()
        optimizer.step()
    encoder.eval()
    for x, y in test_loader:
        x, y = x.to(device), y.to(device)
        {leaf}
        loss = F.cross_entropy(head(encoder({given})), y)
        loss.backward()
        print({read})
"""


@pytest.mark.parametrize(
    ("leaf", "given"),
    [
        ("x.requires_grad = True", "x"),
        ("x.requires_grad_()", "x"),
        ("x.requires_grad_(True)", "x"),
        ("x = x.detach().requires_grad_()", "x"),
        ("x = x.clone().detach()\n        x.requires_grad = True", "(x - 0.5) / 0.2"),
        ("delta = torch.zeros_like(x)\n        delta.requires_grad = True", "x + delta"),
        ("with torch.no_grad():\n            x.requires_grad_()", "x"),
        ("same = x\n        same.requires_grad_()", "x"),
        ("held = {'x': x}\n        held['x'].requires_grad = True", "held['x']"),
        ("x.requires_grad_(len(x) > 1)", "x"),
    ],
)
def test_a_network_through_which_an_input_is_differentiated(tmp_path: Path, leaf: str, given: str) -> None:
    source = ATTACK.format(leaf=leaf, given=given, read="x.grad")
    assert "MEM202" not in codes_in(tmp_path, source)


def test_a_network_whose_input_needs_no_gradient(tmp_path: Path) -> None:
    assert "MEM202" in codes_in(tmp_path, ATTACK.format(leaf="pass", given="x", read="loss.item()"))


KEPT = """
import torch
import torch.nn.functional as F


def saliency(net, loader, optimizer):
    kept, total = [], 0
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        x.requires_grad = True
        F.cross_entropy(net(x), y).backward()
        optimizer.step()
        seen = x.grad.detach()
        {off}
        kept.append((x * seen).cpu())
        total += (x * seen).sum()
    return kept, total
"""


@pytest.mark.parametrize(
    ("off", "found"),
    [("pass", True), ("x.requires_grad = False", False), ("x.requires_grad_(False)", False), ("x = x.detach()", False)],
)
def test_a_tensor_is_a_leaf_until_its_flag_is_off(tmp_path: Path, off: str, found: bool) -> None:
    codes = codes_in(tmp_path, KEPT.format(off=off))
    assert ("MEM101" in codes) is found
    assert ("MEM102" in codes) is found


INCEPTION = """
import torch
from torch import nn


class Inception(nn.Module):
    def __init__(self, blocks=3, requires_grad=False):
        super().__init__()
        self.blocks = nn.ModuleList([nn.Linear(3, 3) for _ in range(blocks)])
        {freeze}

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x


def activations(files, model, device):
    model.eval()
    for i in range(10):
        print(model(files[i].to(device)).cpu().data.numpy())


def of_paths(paths, device):
    activations(paths, Inception(3).to(device), device)


def of_images(images, device, shared=False):
    if shared:
        global MODEL
    if "MODEL" not in globals() or not shared:
        model = Inception(3).to(device)
        if shared:
            MODEL = model
    else:
        model = MODEL
    activations(images, model, device)


if __name__ == "__main__":
    of_paths([torch.zeros(3)] * 10, "cuda")
    of_images([torch.zeros(3)] * 10, "cuda")
"""


@pytest.mark.parametrize(
    ("freeze", "found"),
    [("for p in self.parameters():\n            p.requires_grad = requires_grad", False), ("pass", True)],
)
def test_a_caller_that_makes_a_frozen_model_tells_of_it(tmp_path: Path, freeze: str, found: bool) -> None:
    assert ("MEM201" in codes_in(tmp_path, INCEPTION.format(freeze=freeze))) is found


STEPS = """
import torch
import torch.nn.functional as F


def clip(image, low, high):
    kept = (image >= low).float() * image + (image < low).float() * low
    return (kept <= high).float() * kept + (kept > high).float() * high


def attack(model, image, label, low, high, rounds):
    image.requires_grad = True
    for _ in range(rounds):
        F.cross_entropy(model(image), label).backward()
        step = image.grad.data.sign()
        {change}
        {anew}
    return image.detach()
"""

CHANGES = (
    "image = torch.clamp(image + 0.01 * step, 0, 1)",
    "image = image + 0.01 * step\n        image = clip(image, low, high)",
    "image = low + 0.9 * (image - low) + step",
)


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(
    "anew",
    [
        "image = image.detach().requires_grad_(True)",
        "image = image.clone().detach()\n        image.requires_grad = True",
        "image = image.detach_().requires_grad_()",
        "image = torch.autograd.Variable(image.data, requires_grad=True)",
    ],
)
def test_an_image_that_ends_each_round_as_a_leaf_carries_no_graph(tmp_path: Path, change: str, anew: str) -> None:
    codes = codes_in(tmp_path, STEPS.format(change=change, anew=anew))
    assert not {"MEM101", "MEM102", "MEM103"}.intersection(codes)


@pytest.mark.parametrize(
    ("anew", "found"),
    [("pass", True), ("image.retain_grad()", True), ("image = image.detach().requires_grad_()", False)],
)
def test_an_image_that_began_as_a_leaf_carries_the_graph_of_each_round(tmp_path: Path, anew: str, found: bool) -> None:
    source = (
        "import torch\n"
        "from torch import nn\n"
        "def drift(loader):\n"
        "    model = nn.Linear(8, 8)\n"
        "    image = torch.zeros(8)\n"
        "    image.requires_grad_()\n"
        "    for noise in loader:\n"
        "        image = image + model(noise).mean()\n"
        "        print(image.mean().item())\n"
        f"        {anew}\n"
    )
    assert bool({"MEM101", "MEM103"}.intersection(codes_in(tmp_path, source))) is found


LATENT = """
import torch
from torch import nn
from torch.autograd import Variable


def invert(target, steps):
    net = nn.Sequential(nn.Linear(8, 512), nn.ReLU(), nn.Linear(512, 8)).cuda()
    {freeze}
    z = {made}
    solver = torch.optim.Adam([z], lr=0.01)
    weight = 0
    {before}
    for step in range(steps):
        solver.zero_grad()
        first = {run}.square().mean()
        second = (z - target).square().mean()
        weight = weight + 0.1 * (first{cut} - second{cut})
        loss = first + weight * second
        {back}
        solver.step()


invert(torch.ones(8).cuda(), 100)
"""
FROZEN = {
    "freeze": "for p in net.parameters(): p.requires_grad = False",
    "made": "torch.zeros(8, device='cuda', requires_grad=True)",
    "before": "pass",
    "run": "net(z)",
    "cut": "",
    "back": "loss.backward(retain_graph=True)",
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, ["warning"]),
        ({"freeze": "net.requires_grad_(False)"}, ["warning"]),
        ({"freeze": "pass"}, ["warning"]),
        ({"made": "Variable(torch.zeros(8).cuda(), requires_grad=True)"}, ["warning"]),
        ({"made": "torch.zeros(8).cuda().requires_grad_()"}, ["warning"]),
        ({"cut": ".detach()"}, []),
        ({"back": "pass"}, ["note"]),
        ({"back": "pass", "made": "torch.zeros(8, device='cuda')"}, []),
        ({"before": "start = net(z)", "run": "start"}, []),
    ],
)
def test_a_frozen_network_records_the_graph_of_a_leaf(
    tmp_path: Path, change: dict[str, str], expected: list[str]
) -> None:
    said = [one for one in findings_in(tmp_path, LATENT.format(**{**FROZEN, **change})) if one.code == "MEM101"]
    assert [one.severity for one in said] == expected
    assert all(one.growth.memory == "device-graph" and "`net` records the graph" in why(one) for one in said)


REFINED = """
import torch
from torch import nn


def refine(model, image, target):
    image = image.detach().requires_grad_()
    loss = (model(image) - target).square().mean()
    gradient = torch.autograd.grad(loss, image{words})[0]
    return image - 0.1 * gradient


def attack(model, start, target, steps):
    old = start
    for step in range(steps):
        new = {step}
        {between}
        old = new{cut}
    {behind}


attack(nn.Linear(8, 8).cuda(), torch.ones(8).cuda(), torch.ones(8).cuda(), 100)
"""
STEP = {
    "words": "",
    "step": "(refine(model, old, target) + 0.1 * old) / 1.1",
    "between": "pass",
    "cut": "",
    "behind": "pass",
}


@pytest.mark.parametrize(
    ("change", "found"),
    [
        ({}, True),
        ({"words": ", create_graph=False"}, True),
        ({"words": ", create_graph=True"}, False),
        ({"words": ", create_graph=model.training"}, False),
        ({"words": ", **dict(create_graph=True)"}, False),
        ({"words": ", None, True, True"}, False),
        ({"behind": "return old.detach()"}, True),
        ({"cut": ".detach()"}, False),
        ({"step": "refine(model, old, target)"}, False),
        ({"behind": "torch.autograd.grad(old.sum(), start)"}, False),
        ({"behind": "old.sum().backward()"}, False),
        ({"behind": "return old"}, True),
    ],
)
def test_an_image_that_a_step_with_gradients_carries_on(tmp_path: Path, change: dict[str, str], found: bool) -> None:
    assert ("MEM103" in codes_in(tmp_path, REFINED.format(**{**STEP, **change}))) == found


LEAVES = """
import torch


def main(n):
    alphas = []
    for i in range(n):
        {make}
    return alphas


main(1000)
"""


@pytest.mark.parametrize(
    "make",
    [
        "alphas.append(1e-3 * torch.randn(4, 5, device='cuda', requires_grad=True))",
        "w = torch.randn(4, 5, device='cuda')\n        w.requires_grad_()\n        alphas.append(1e-3 * w)",
    ],
)
def test_leaves_that_are_collected_are_wanted(tmp_path: Path, make: str) -> None:
    assert codes_in(tmp_path, LEAVES.format(make=make)) == []
