"""A network that gives the reference of a loss and that no optimizer trains, beside a tensor that one does."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

IN_LOOP = """
import torch
from torch import nn
from torchvision import models


def run(content, style, steps=300):
    net = models.vgg19(weights="DEFAULT").features.cuda().eval()
    {leaf}
    optimizer = torch.optim.Adam([{trained}])
    for step in range(steps):
        reference = net(style.cuda())
        optimizer.zero_grad()
        loss = (net(image) - reference).square().mean()
        loss.backward()
        optimizer.step()
    return image
"""

BEFORE = IN_LOOP.replace("        reference = net(style.cuda())\n", "").replace(
    "    for step", "    reference = net(style.cuda())\n    for step"
)

LEAVES = {
    "a copy": "image = content.clone().cuda().requires_grad_(True)",
    "a detached copy": "image = content.detach().to('cuda')\n    image.requires_grad_()",
    "a parameter": "image = nn.Parameter(content.clone())",
    "a new tensor": "image = torch.randn(1, 3, 224, 224, device='cuda', requires_grad=True)",
}


@pytest.mark.parametrize("leaf", LEAVES)
def test_nobody_needs_the_gradient_of_the_reference(tmp_path: Path, leaf: str) -> None:
    source = IN_LOOP.format(leaf=LEAVES[leaf], trained="image")
    assert codes_in(tmp_path, source) == ["MEM202"]
    both = IN_LOOP.format(leaf=LEAVES[leaf], trained="image, *net.parameters()")
    assert codes_in(tmp_path, both) == []


def test_the_reference_before_the_loop_keeps_its_graph_for_all_rounds(tmp_path: Path) -> None:
    source = BEFORE.format(leaf=LEAVES["a copy"], trained="image")
    kept = source.replace("backward()", "backward(retain_graph=True)")
    assert codes_in(tmp_path, kept) == ["MEM202"]
    assert codes_in(tmp_path, kept.replace("[image]", "net.parameters()")) == []


@pytest.mark.parametrize(
    "leaf",
    [
        pytest.param("style = style.cuda()\n    style.requires_grad_()\n    image = style.clone()", id="by its name"),
        pytest.param("image = style = content.clone().requires_grad_()", id="by another name"),
        pytest.param(
            "image = content.clone().cuda()\n    style = image if style is None else style\n    image.requires_grad_()",
            id="by another name, before it is a leaf",
        ),
        pytest.param(
            "image = content.clone()\n    both = [image, style]\n    image.requires_grad_()\n    style = both[steps]",
            id="in a list",
        ),
        pytest.param("image = content.requires_grad_()\n    style = image.view(-1)", id="what may be its input"),
        pytest.param("image = nn.Parameter(content.clone())\n    style = image * 2", id="computed from it"),
    ],
)
def test_an_input_that_is_trained_needs_the_graph(tmp_path: Path, leaf: str) -> None:
    assert codes_in(tmp_path, IN_LOOP.format(leaf=leaf, trained="image")) == []


def test_gradients_of_the_network_itself_may_be_read(tmp_path: Path) -> None:
    source = IN_LOOP.format(leaf=LEAVES["a copy"], trained="image")
    read = source.replace("optimizer.step()", "optimizer.step()\n        print(net[0].weight.grad.norm())")
    assert codes_in(tmp_path, read) == []


@pytest.mark.parametrize("asks", ["reference.register_hook(print)", "reference.retain_grad()"])
def test_a_gradient_of_the_reference_may_be_read(tmp_path: Path, asks: str) -> None:
    """Under a guard, these raise an error."""
    source = IN_LOOP.format(leaf=LEAVES["a copy"], trained="image")
    assert codes_in(tmp_path, source.replace("        optimizer.zero", f"        {asks}\n        optimizer.zero")) == []
    head = "head = nn.Linear(9, 9)\n    for p in head.parameters():\n        p.register_hook(lambda grad: grad / 2)"
    clipped = source.replace("    optimizer =", f"    {head}\n    optimizer =")
    assert codes_in(tmp_path, clipped) == ["MEM202"]
