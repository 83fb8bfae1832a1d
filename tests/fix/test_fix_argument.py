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


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("loss.backward(retain_graph=True)", "loss.backward()"),
        ("loss.backward( retain_graph = True )", "loss.backward()"),
        ("loss.backward(retain_graph=True, gradient=None)", "loss.backward(gradient=None)"),
        ("loss.backward(gradient=None, retain_graph=True)", "loss.backward(gradient=None)"),
        ("loss.backward(None, retain_graph=True, create_graph=False)", "loss.backward(None, create_graph=False)"),
        (
            "loss.backward(\n            retain_graph=True,\n        )",
            "loss.backward(\n            retain_graph=False,\n        )",
        ),
        (
            "loss.backward(retain_graph=True,  # why?\n        )",
            "loss.backward(retain_graph=False,  # why?\n        )",
        ),
        ("loss.backward(retain_graph=(True))", "loss.backward(retain_graph=(False))"),
    ],
)
def test_an_argument_goes_with_its_comma(before: str, after: str, tmp_path: Path) -> None:
    program = (
        "from torch import nn, optim\n\n\ndef train(loader):\n    net = nn.Linear(9, 9).cuda()\n"
        "    weights = list(net.parameters())\n    optimizer = optim.SGD(weights, lr=0.1)\n"
        "    for x, y in loader:\n        optimizer.zero_grad()\n"
        "        loss = nn.functional.mse_loss(net(x.cuda()), y.cuda())\n        {call}\n        optimizer.step()\n"
    )
    file = tmp_path / "train.py"
    file.write_text(program.format(call=before), encoding="utf-8")
    command = [sys.executable, "-m", "memlint", "train.py", "--isolated", "--fix", "--unsafe-fixes"]
    subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
    assert file.read_text(encoding="utf-8") == program.format(call=after)
