"""What findings say of tests and of what holds several tensors."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

STEP = """
import torch
from torch import nn


def run(model: nn.Module, loader, optimizer=None, mode="eval"):
    total = 0
    for x in loader:
        loss = model(x.cuda()).mean()
        if {test}:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total


def main(loader, val_loader):
    model = nn.Linear(4, 4).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        run(model, loader, optimizer, "train")
        run(model, val_loader, None, "val")


main([], [])
"""


@pytest.mark.parametrize(
    ("test", "said"),
    [
        ("optimizer is not None", "where `optimizer is None`"),
        ("optimizer", "where `not optimizer`"),
        ("mode == 'train'", "where `mode != 'train'`"),
    ],
)
def test_where_nobody_trains(tmp_path: Path, test: str, said: str) -> None:
    (tmp_path / "a.py").write_text(STEP.replace("{test}", test))
    messages = [found.message for found in memlint.lint([tmp_path]).findings if found.code == "MEM201"]
    assert any(said in message for message in messages), messages


KEPT = """
import torch
from torch import nn
from torch.utils.data import DataLoader


{guard}
def predict(model: nn.Module, loader: DataLoader):
    model.eval()
    kept = []
    for x in loader:
        row = {}
        row["scores"] = model(x.cuda())
        kept.append(row)
    return kept
"""


@pytest.mark.parametrize(
    ("guard", "code", "said"),
    [
        ("@torch.no_grad()", "MEM104", "move each tensor in `row` to the host first (`.cpu()`)"),
        ("", "MEM102", "detach each tensor in `row` before it is stored (`.detach()`)"),
    ],
)
def test_a_dictionary_has_no_methods_of_tensors(tmp_path: Path, guard: str, code: str, said: str) -> None:
    (tmp_path / "a.py").write_text(KEPT.replace("{guard}", guard))
    found = [found for found in memlint.lint([tmp_path]).findings if found.code == code]
    assert [said in one.help for one in found] == [True], found
