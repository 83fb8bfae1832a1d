"""A phase that is a member of an enumeration, or a constant of a class: what a call passes decides which side runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

PROGRAM = """
import enum

import torch
from torch.nn.functional import cross_entropy

{phase}


class Trainer:
    def train(self, loader, model, optimizer):
        model.train()
        return self.run(loader, model, optimizer, Phase.TRAIN)

    def eval(self, loader, model, optimizer):
        model.eval()
        return self.run(loader, model, optimizer{passed})

    def run(self, loader, model, optimizer, phase=Phase.EVAL):
        total = 0.0
        for x, y in loader:
            loss = cross_entropy(model(x), y)
            if {test}:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                continue
            total += loss.item()
        return total
"""
MEMBERS = "class Phase(enum.Enum):\n    TRAIN = 1\n    EVAL = enum.auto()"
STRINGS = 'class Phase(str, enum.Enum):\n    TRAIN = "train"\n    EVAL = "eval"'
NUMBERS = "class Phase(enum.IntEnum):\n    TRAIN = 0\n    EVAL = 1"
WORDS = 'class Phase:\n    TRAIN = "train"\n    EVAL = "eval"'


@pytest.mark.parametrize("phase", [MEMBERS, WORDS, STRINGS], ids=["enum", "class", "strings"])
@pytest.mark.parametrize(
    ("passed", "test", "codes"),
    [
        ("", "phase == Phase.TRAIN", ["MEM201"]),
        (", Phase.EVAL", "phase is Phase.TRAIN", ["MEM201"]),
        ("", "phase != Phase.EVAL", ["MEM201"]),
        ("", "phase in (Phase.TRAIN,)", ["MEM201"]),
        # both of them train
        (", Phase.TRAIN", "phase == Phase.TRAIN", []),
        ("", "phase in (Phase.TRAIN, Phase.EVAL)", []),
        # which it is, is not known
        (", self.phase", "phase == Phase.TRAIN", []),
        ("", "phase == self.trains", []),
    ],
)
def test_what_a_call_passes_decides(tmp_path: Path, phase: str, passed: str, test: str, codes: list[str]) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.format(phase=phase, passed=passed, test=test))
    result = memlint.lint([tmp_path], isolated=True)
    assert not result.failures
    assert [item.code for item in result.findings] == codes


@pytest.mark.parametrize(
    ("phase", "passed", "test"),
    [
        # each of these tests holds where the member is passed, though they do not name it
        (STRINGS, ', "train"', "phase == Phase.TRAIN"),
        (STRINGS, ", Phase.TRAIN", 'phase == "train"'),
        (NUMBERS, ", Phase.TRAIN", "not phase"),
        (NUMBERS, ", Phase.TRAIN", "phase == 0"),
        (NUMBERS, ", 0", "phase == Phase.TRAIN"),
    ],
)
def test_what_a_member_is_equal_to(tmp_path: Path, phase: str, passed: str, test: str) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.format(phase=phase, passed=passed, test=test))
    assert not memlint.lint([tmp_path], isolated=True).findings
