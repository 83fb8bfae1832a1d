"""Layers of a library's network that a forward runs one by one, layers of the project's in a starred list, and the
features of an image that is optimised: outputs with a graph."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in, severities_in

PERCEPTUAL = """
import torch
from torch import nn
from torch.nn.functional import mse_loss
from torchvision import models


class Table:
    def __init__(self, steps):
        self._modules = dict(steps)


class Features(nn.Module):
    def __init__(self, layers):
        super().__init__()
        {made}

    def forward(self, x):
        found = []
        for {names} in {layers}:
            x = layer(x)
            found.append(x)
        return found


def train(net: nn.Module, loader, steps):
    features = Features(steps).cuda().eval()
    optimizer = torch.optim.Adam({trained})
    for x, y in loader:
        loss = mse_loss(features(net(x.cuda()))[0], features(y.cuda())[0])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
FEATURES = "self.vgg = models.vgg19(weights='DEFAULT').features"
FROZEN = FEATURES + "\n        for p in self.parameters():\n            p.requires_grad = False"
NET = "net.parameters()"


@pytest.mark.parametrize(
    ("made", "names", "layers", "trained", "severities"),
    [
        (FEATURES, "layer", "self.vgg", NET, ["warning"]),
        (FEATURES, "layer", "self.vgg.children()", NET, ["warning"]),
        (FEATURES, "name, layer", "self.vgg.named_children()", NET, ["warning"]),
        (FEATURES, "name, layer", "self.vgg._modules.items()", NET, ["warning"]),
        (FEATURES + "[:16]", "layer", "self.vgg", NET, ["warning"]),
        (
            "self.vgg = models.vgg19(weights='DEFAULT')",
            "name, layer",
            "self.vgg.features._modules.items()",
            NET,
            ["warning"],
        ),
        ("self.vgg = layers", "name, layer", "self.vgg._modules.items()", NET, ["warning"]),  # its use says what it is
        (FROZEN, "layer", "self.vgg", NET, []),
        (FROZEN, "name, layer", "self.vgg._modules.items()", NET, []),
        (FEATURES, "layer", "self.vgg", "[*net.parameters(), *features.parameters()]", []),
        # no module, though it has the attribute
        ("self.vgg = Table(layers)", "name, layer", "self.vgg._modules.items()", NET, []),
    ],
)
def test_a_perceptual_loss_through_the_layers(
    tmp_path: Path, made: str, names: str, layers: str, trained: str, severities: list[str]
) -> None:
    text = PERCEPTUAL.format(made=made, names=names, layers=layers, trained=trained)
    assert severities_in(tmp_path, text, "MEM202") == severities


STYLE = """
import torch
from torch import nn
from torch.nn.functional import mse_loss
from torchvision import models
from images import load


def main(config):
    content = load(config.content)
    target = {target}
    optimizer = torch.optim.Adam({trained}, lr=0.1)
    net = models.vgg19(weights="DEFAULT").features.cuda().eval()
    for step in range(config.steps):
        loss = mse_loss(net(target), {features})
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return target
"""


@pytest.mark.parametrize(
    ("target", "trained", "features", "found"),
    [
        ("content.clone().requires_grad_(True)", "[target]", "net(content)", True),
        ("content.detach().clone().requires_grad_()", "[target]", "net(content)", True),
        ("nn.Parameter(content.clone())", "[target]", "net(content)", True),
        ("content.clone().requires_grad_(True)", "[target]", "net(content).detach()", True),
        ("content.clone().requires_grad_(True)", "[target, *config.others]", "net(content)", False),
        # the same tensor, or one that is computed from it
        ("content.requires_grad_(True)", "[target]", "net(content)", False),
        ("content.clone().requires_grad_(True)", "[target]", "net(target.flip(3))", False),
        # a layer of it is learned as well
        ("content.clone().requires_grad_(True)", "[target, *net.parameters()]", "net(content)", False),
        ("content.clone().requires_grad_(True)", "[target, net[0].weight]", "net(content)", False),
    ],
)
def test_an_image_that_is_optimised(tmp_path: Path, target: str, trained: str, features: str, found: bool) -> None:
    codes = codes_in(tmp_path, STYLE.format(target=target, trained=trained, features=features))
    assert ("MEM202" in codes) == found


LISTED = """
import torch
from torch import nn


class Scale(nn.Module):
    def forward(self, x):
        return x / x.norm()


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(512, 512)

    def forward(self, x):
        return self.layer(x)


class Cut(nn.Module):
    def forward(self, x):
        return x.detach()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layers = {layers}
        for i in range({blocks}):
            layers.append({block}())
        self.body = nn.Sequential(*layers)

    def forward(self, x):
        return self.body(x)


def main(loader):
    net = Net().cuda().eval()
    total = 0
    for x in loader:
        total += net(x.cuda()).mean()
    return float(total)
"""


@pytest.mark.parametrize(
    ("layers", "blocks", "block"),
    [
        ("[Block()]", 8, "Block"),
        ("[nn.ReLU()]", 8, "Block"),
        ("[nn.ReLU(), Scale()]", 8, "Block"),
        ("[Block(), nn.ReLU()]", 8, "Scale"),
        ("[nn.Conv2d(3, 8, 3), nn.ReLU(), nn.Conv2d(8, 8, 3)]", 8, "Scale"),
        # which of them run, and in which order, is unknown
        ("[Block(), Cut()]", 8, "Block"),
        ("[Cut()]", 1, "Block"),
    ],
)
def test_a_starred_list_records_a_graph(tmp_path: Path, layers: str, blocks: int, block: str) -> None:
    codes = codes_in(tmp_path, LISTED.format(layers=layers, blocks=blocks, block=block))
    assert {"MEM101", "MEM201"} <= set(codes)
