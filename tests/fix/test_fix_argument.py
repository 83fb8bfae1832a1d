"""Where an argument is written that a call gets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """\
import torch


def restore(model, path):
    model.cuda()
    model.load_state_dict({call})
"""
CPU = 'map_location="cpu"'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.load(path)", f"torch.load(path, {CPU})"),
        ("torch.load(path, weights_only=True,)", f"torch.load(path, weights_only=True, {CPU})"),
        (
            "torch.load(\n        path\n    )",
            f"torch.load(\n        path, {CPU}\n    )",
        ),
        (
            "torch.load(\n        path,\n        weights_only=True,\n    )",
            f"torch.load(\n        path,\n        weights_only=True,\n        {CPU},\n    )",
        ),
        (
            "torch.load(path,\n                          weights_only=True\n                )",
            f"torch.load(path,\n                          weights_only=True, {CPU}\n                )",
        ),
        (
            "torch.load(path, # of the best epoch\n                )",
            "torch.load(path, # of the best epoch\n                )",
        ),
        (
            "torch.load(path \\\n                )",
            f"torch.load(path \\\n                , {CPU})",
        ),
        (
            'torch.load(path["é"]\n                )',
            f'torch.load(path["é"], {CPU}\n                )',
        ),
    ],
)
def test_an_argument_stands_where_people_write_it(before: str, after: str, tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(PROGRAM.format(call=before), encoding="utf-8")
    command = [sys.executable, "-m", "memlint", "train.py", "--isolated", "--fix"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert file.read_text(encoding="utf-8") == PROGRAM.format(call=after)
