"""Under a test for one of a loop's values, each of which comes once, nothing is carried from round to round."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

PROGRAM = """
import numpy as np
import torch
import torch.nn.functional as F


def generate(model, opt, labels, first):
    model.eval()
    seen = {values}
    state = first.cuda()
    for i, key in enumerate(seen):
        if {test}:
            state = F.interpolate(model(state), [64, 64])
    return state.detach().cpu().numpy()
"""


@pytest.mark.parametrize(
    ("values", "test", "told"),
    [
        ("[0, -1, 1]", "key == -1", False),
        ("[0, 2, 1]", "first is not None and key == 2", False),
        ("np.array(opt.frame_ids[1:])", "key == -2", False),
        ("('depth', 'pose')", "key == 'pose'", False),
        ("[0, -1, 1, -1] * 9", "key == -1", True),
        ("[*range(40)]", "key != -1", True),
        ("opt.frame_ids", "key == labels", True),
        ("labels", "key == 1", True),
        ("first.frame_ids", "key == 1", True),
    ],
)
def test_one_of_several_values(tmp_path: Path, values: str, test: str, told: bool) -> None:
    (tmp_path / "case.py").write_text(PROGRAM.format(values=values, test=test), encoding="utf-8")
    found = {one.code for one in memlint.lint([tmp_path], isolated=True).findings}
    assert ("MEM103" in found) is told


def test_values_by_which_batches_are_found(tmp_path: Path) -> None:
    """What a value leads to goes to the device, as a loader's batches do: the values are told apart all the same."""
    loading = "for i, key in enumerate(seen):\n        part = labels['color', key].cuda()"
    program = PROGRAM.format(values="np.array(opt.frame_ids[1:])", test="key == -2")
    program = program.replace("for i, key in enumerate(seen):", loading).replace("model(state)", "model(state + part)")
    (tmp_path / "case.py").write_text(program, encoding="utf-8")
    assert "MEM103" not in {one.code for one in memlint.lint([tmp_path], isolated=True).findings}
