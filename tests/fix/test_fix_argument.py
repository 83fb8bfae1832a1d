"""Where an argument is written that a call gets."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import memlint

PROGRAM = """\
import torch


def f(loader, device, model):
    for x in loader:
        model(x, {call})
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("torch.zeros(len(x), 512).to(device)", "torch.zeros(len(x), 512, device=device)"),
        ("torch.zeros(len(x), 512,).to(device)", "torch.zeros(len(x), 512, device=device)"),
        (
            "torch.zeros(\n            len(x), 512\n        ).to(device)",
            "torch.zeros(\n            len(x), 512, device=device\n        )",
        ),
        (
            "torch.zeros(\n            len(x),\n            512,\n        ).to(\n            device\n        )",
            "torch.zeros(\n            len(x),\n            512,\n            device=device,\n        )",
        ),
        (
            "torch.zeros(len(x),\n                           512\n                ).to(device)",
            "torch.zeros(len(x),\n                           512, device=device\n                )",
        ),
        (
            "torch.zeros(len(x), 512, # rows\n                ).to(device)",
            "torch.zeros(len(x), 512, # rows\n                ).to(device)",
        ),
        (
            "torch.zeros(len(x), 512 \\\n                ).to(device)",
            "torch.zeros(len(x), 512 \\\n                , device=device)",
        ),
        (
            'torch.zeros(len(x["é"]), 512\n                ).to(device)',
            'torch.zeros(len(x["é"]), 512, device=device\n                )',
        ),
    ],
)
def test_an_argument_stands_where_people_write_it(before: str, after: str, tmp_path: Path) -> None:
    file = tmp_path / "train.py"
    file.write_text(PROGRAM.format(call=before), encoding="utf-8")
    command = [sys.executable, "-m", "memlint", "train.py", "--isolated", "--preview", "--fix"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert file.read_text(encoding="utf-8") == PROGRAM.format(call=after)


@pytest.mark.parametrize(
    ("wrapped", "loss", "safety"),
    [
        ("Variable(torch.ones(len(x)).cuda())", "loss.data[0]", "unsafe"),  # torch 0.3 knows no `device=`
        ("Variable(torch.ones(len(x)).cuda())", "loss.item()", "safe"),
        ("torch.ones(len(x)).cuda()", "loss.data[0]", "safe"),
    ],
)
def test_code_of_before_the_argument_gets_it_only_when_asked(
    tmp_path: Path, wrapped: str, loss: str, safety: str
) -> None:
    text = f"import torch\nfrom torch.autograd import {'Variable' if 'Var' in wrapped else 'grad'}\n\n\n"
    text += f"def f(loader, model):\n    for x in loader:\n        loss = model(x, {wrapped})\n        print({loss})\n"
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    found = memlint.lint([tmp_path], select=["MEM303"], preview=True, isolated=True).findings
    assert [one.fix.safety for one in found if one.fix is not None] == [safety]
