"""Classes whose base is out of sight: one that reads ``self.training`` in its forward is a module, whose callers set
the grad mode. Beside it, the same class where that attribute is its own."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

SEGMENTOR = """
import torch
from torch import nn
{imports}


class Segmentor({base}):
    def __init__(self, flips, training):
        super().__init__()
        self.flips = flips
        self.head = nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 2, 3))
        {own}

    def forward(self, image, label=None):
        if self.training:
            return nn.functional.cross_entropy(self.head(image), label)
        return self.inference(image).argmax(1).cpu().numpy()

    def inference(self, image):
        outputs = []
        for flip in self.flips:
            outputs.append(self.calculate(image.flip(flip)).softmax(1))
        return sum(outputs) / len(outputs)

    def calculate(self, image):
        return self.head(image)
"""


@pytest.mark.parametrize(
    ("imports", "base", "own", "found"),
    [
        ("import library", "library.Layers", "pass", False),
        ("from mmcv.runner import BaseModule", "BaseModule", "pass", False),
        ("", "nn.Module", "pass", False),
        ("import library", "library.Layers", "self.training = training", True),
        ("", "object", "self.training = training", True),
        ("import gym", "gym.Env", "pass", True),
        ("from tensorflow import keras", "keras.Model", "pass", True),
        ("import keras", "keras.Model", "pass", False),  # torch may be what it computes with
        ("import torch.fx", "torch.fx.GraphModule", "pass", False),
        ("from torch.distributed.fsdp import FullyShardedDataParallel", "FullyShardedDataParallel", "pass", False),
        ("from torch.utils.data import Dataset", "Dataset", "pass", True),
        ("import gym, library", "library.Layers, gym.Wrapper", "pass", False),
    ],
)
def test_a_class_that_asks_whether_it_trains(tmp_path: Path, imports: str, base: str, own: str, found: bool) -> None:
    (tmp_path / "case.py").write_text(SEGMENTOR.format(imports=imports, base=base, own=own), encoding="utf-8")
    codes = {one.code for one in memlint.lint([tmp_path], isolated=True, min_confidence="low").findings}
    assert ("MEM102" in codes or "MEM201" in codes) == found
