"""Networks of torchvision that give the same bits whether autograd records or not, and what replaces their parts."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixed_programs import safety

PROGRAM = """
import torch
from torch import nn
from torchvision import models
from elsewhere import Layer


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2048, 10)

    def forward(self, x):
        return self.fc(x)


class Asking(nn.Module):
    def __init__(self):
        super().__init__()
        self.avgpool = Layer(2048, 10)

    def forward(self, x):
        return x if torch.is_grad_enabled() else 2 * x


def evaluate(model, loader):
    model.eval()
    right = 0
    for x, y in loader:
        right += (model(x.cuda()).argmax(1).cpu() == y).sum().item()
    return right


def main(loader):
    model = models.{made}.cuda()
    {then}
    print(evaluate(model, loader))


main([])
"""
RESNET = "resnet50(weights='DEFAULT')"


@pytest.mark.parametrize(
    ("made", "then", "expected"),
    [
        (RESNET, "pass", "safe"),
        ("vgg16(weights=None)", "pass", "safe"),
        ("efficientnet_b0()", "pass", "safe"),
        (RESNET, "model.fc = nn.Identity()", "safe"),
        (RESNET, "model.fc = Head()", "safe"),
        ("vgg16()", "model.classifier[6] = nn.Linear(4096, 10)", "safe"),
        # attention takes another path, and a densenet may run its layers again
        ("vit_b_16()", "pass", "unsafe"),
        ("densenet121(memory_efficient=True)", "pass", "unsafe"),
        (RESNET, "model.fc = Asking()", "unsafe"),
        (RESNET, "model.fc = Layer()", "unsafe"),
        (RESNET, "model.layer4[2].conv2 = Layer()", "unsafe"),
        ("vgg16()", "model.classifier[6] = Layer()", "unsafe"),
        (RESNET, "model.fc.register_forward_hook(print)", "unsafe"),
        (RESNET, "model = torch.compile(model)", "unsafe"),
        (RESNET, "setattr(model, 'fc', Layer())", "unsafe"),
        (RESNET, "model.fc, model.name = Layer(), 'own'", "unsafe"),
        (RESNET, "model.forward = Layer()", "unsafe"),
        (RESNET, "model.stem = Layer()", "safe"),
        # what the maker is given
        ("resnet18(weights=None, num_classes=len(loader))", "pass", "safe"),
        ("resnet18(norm_layer=Asking)", "pass", "unsafe"),
        ("mobilenet_v2(**loader[0])", "pass", "unsafe"),
        # other ways to put a layer in
        ("vgg16()", "layers = model.features\n    layers[0] = Asking()", "unsafe"),
        ("vgg16()", "layers = [model]\n    layers[0] = Asking()", "safe"),
        ("vgg16()", "model.classifier.append(Asking())", "unsafe"),
        ("vgg16()", "model.classifier.append(nn.ReLU())", "safe"),
        ("vgg16()", "model.classifier += nn.Sequential(Asking())", "unsafe"),
        (RESNET, "model.fc: nn.Module = Asking()", "unsafe"),
        (RESNET, "with Layer() as model.fc:\n        pass", "unsafe"),
        (RESNET, "for block in model.layer1:\n        block.act = Asking()", "unsafe"),
        (RESNET, "for part in model.modules():\n        part.own = Asking()", "unsafe"),
        (RESNET, "for part in model.modules():\n        part.momentum = 0.1", "safe"),
        (RESNET, "model._modules['fc'] = Asking()", "unsafe"),
        (RESNET, "model.__setattr__('fc', Asking())", "unsafe"),
        (RESNET, "model.__class__ = Asking", "unsafe"),
    ],
)
def test_a_guard_around_a_network_of_a_library(made: str, then: str, expected: str, tmp_path: Path) -> None:
    assert safety(tmp_path, PROGRAM.format(made=made, then=then), "MEM201") == expected


MADE_INSIDE = """
from torchvision.models import resnet50
from elsewhere import Layer


def evaluate(loader):
    model = {made}.cuda()
    model.eval()
    right = 0
    for x, y in loader:
        right += (model(x.cuda()).argmax(1).cpu() == y).sum().item()
    return right


print(evaluate([]))
"""


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("resnet50(weights='DEFAULT')", "safe"),
        ("resnet50(norm_layer=Layer)", "unsafe"),
        ("resnet50(**Layer.options)", "unsafe"),
    ],
)
def test_a_network_that_the_guarded_function_makes(tmp_path: Path, made: str, expected: str) -> None:
    assert safety(tmp_path, MADE_INSIDE.format(made=made), "MEM201") == expected
