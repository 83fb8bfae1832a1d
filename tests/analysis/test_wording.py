"""What findings say of tests and of what holds several tensors."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from tests.linting import findings_in, severities_in

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


SUMS = """
import torch
from torch import nn


class Memory:
    def __init__(self):
        self.rows = []

    def push(self, *row):
        self.rows.append(row)


def train(model: nn.Module, loader, optimizer):
    total, sums, memory = 0, {"loss": 0}, Memory()
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {kept}
"""


@pytest.mark.parametrize(
    "kept",
    [
        "total = total + loss",
        "total = loss + total",
        "total = loss if total is None else total + loss",
        'sums["loss"] = sums.get("loss", 0) + loss',
        'sums = {"loss": sums["loss"] + loss}',
        "memory.push(1, y, loss)",
    ],
)
def test_what_is_kept_is_named_alone(tmp_path: Path, kept: str) -> None:
    messages = [found.message for found in findings_in(tmp_path, SUMS.replace("{kept}", kept))]
    assert len(messages) == 1
    assert "`loss`" in messages[0]


COLLECTED = """
import torch


def evaluate(model, {source}, criterion):
    model.eval()
    losses = [criterion(model(x), y) for x, y in {source}]
    return sum(losses) / len(losses)
"""


@pytest.mark.parametrize(
    ("source", "severity"), [("loader", "error"), ("val_loader", "error"), ("parts", "note"), ("loaders", "note")]
)
def test_a_list_of_all_batches_is_told_by_the_name_of_a_loader(tmp_path: Path, source: str, severity: str) -> None:
    assert severities_in(tmp_path, COLLECTED.replace("{source}", source), "MEM201") == [severity]
