"""`x.forward(…)` shows a module, unless a class of the project that is no module has a forward as well."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

PROGRAM = """
import torch
import numpy as np


def scales(stat, {name}):
    example = {name}.forward(stat["mean"])
    return np.ones_like(example), np.zeros_like(example)
"""

OTHERS = """
import torch
from library import Transform


class Turn{bases}:
    def forward(self, x):
        return torch.as_tensor(x).flip(0)

    def inverse(self, x):
        return torch.as_tensor(x).flip(0)
"""


@pytest.mark.parametrize(
    ("name", "bases", "codes"),
    [
        ("turn", "", []),
        ("turn", "(torch.nn.Module)", ["MEM201"]),
        # the base may be a module, and a name counts where the project leaves both possible
        ("turn", "(Transform)", ["MEM201"]),
        ("pose_model", "", ["MEM201"]),
        ("teacher", "", ["MEM201"]),
    ],
)
def test_classes_of_the_project_say_what_has_a_forward(tmp_path: Path, name: str, bases: str, codes: list[str]) -> None:
    (tmp_path / "normalize.py").write_text(PROGRAM.format(name=name))
    (tmp_path / "turns.py").write_text(OTHERS.format(bases=bases))
    result = memlint.lint([tmp_path])
    assert [item.code for item in result.findings] == codes


MIXED = """
from torch import nn


class Runs:
    def forward(self, x):
        return self.body(x)


class Net(Runs, nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Conv2d(3, 64, 3)
"""


def test_a_class_that_modules_inherit_from_is_no_other(tmp_path: Path) -> None:
    (tmp_path / "normalize.py").write_text(PROGRAM.format(name="turn"))
    (tmp_path / "turns.py").write_text(MIXED)
    assert [item.code for item in memlint.lint([tmp_path]).findings] == ["MEM201"]


NORM = """
import torch
from torch import nn
{imports}


class Norm({base}):
    def __init__(self, features):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(features))
        self.register_buffer("mean", torch.zeros(features))

    def forward(self, inputs):
        if {test}:
            self.mean.mul_(0.9).add_({added})
        return self.scale * (inputs - self.mean)
"""


@pytest.mark.parametrize(
    ("imports", "base", "test", "added", "codes"),
    [
        ("", "nn.Module", "self.training", "0.1 * inputs.mean(0)", ["MEM103"]),
        # torch calls the forward of what only a module can be, whatever its base is called
        ("from library import Transform", "Transform", "self.training", "0.1 * inputs.mean(0)", ["MEM103"]),
        ("from library import Transform", "Transform", "self.training", "0.1 * inputs.detach().mean(0)", []),
        ("from library import Transform", "Transform", "inputs.requires_grad", "0.1 * inputs.mean(0)", []),
        ("import gym", "gym.Wrapper", "self.training", "0.1 * inputs.mean(0)", []),
    ],
)
def test_a_module_by_its_use_is_run_each_iteration(
    tmp_path: Path, imports: str, base: str, test: str, added: str, codes: list[str]
) -> None:
    (tmp_path / "norm.py").write_text(NORM.format(imports=imports, base=base, test=test, added=added))
    assert [item.code for item in memlint.lint([tmp_path], isolated=True).findings] == codes
