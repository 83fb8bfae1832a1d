"""A loop over a handful of things that are written out keeps a handful of graphs, however the list is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from networks import severities

PROGRAM = """
import torch
from torch.autograd import Variable
from library import batches_of, fill
from tqdm import tqdm


def train(model, optimizer, rows, device):
    {made}
    kept = []
    for {target} in {over}:
        loss = model(x.to(device)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.append(loss)
    return kept
"""
RANDOM = "torch.randn(2, 8)"
FEW = {
    "a display": ("", "x", f"[{RANDOM}, {RANDOM}]"),
    "a name for a display": (f"batches = [{RANDOM}, {RANDOM}, {RANDOM}]", "x", "batches"),
    "a name for a tuple, numbered": (f"batches = ({RANDOM}, {RANDOM})", "i, x", "enumerate(batches)"),
    "a list by a literal range": (f"batches = [{RANDOM} for _ in range(6)]", "x", "tqdm(batches)"),
    "a repeated batch": (f"batches = [{RANDOM}] * 4", "x", "batches"),
    "pairs of lists": (f"xs, ys = rows, [0, 1, 2]\n    pairs = zip([{RANDOM}] * 3, ys)", "x, y", "pairs"),
    "the members of a dict": (f"batches = {{'a': {RANDOM}, 'b': {RANDOM}}}", "name, x", "batches.items()"),
    "a tensor of a written list": ("", "x", "torch.tensor([[1.0, 0.0], [0.0, 1.0]]).to(device)"),
    "a variable of written lists": (
        "one = [1.0, 0.0]\n    batches = Variable(torch.Tensor([one, one]))",
        "x",
        "batches",
    ),
    "the rows of a shape": ("batches = torch.randn(4, 2, 8)", "x", "batches"),
    "a list of a list": ("sizes = [2, 4, 8]\n    batches = [torch.randn(n, 8) for n in sizes]", "x", "list(batches)"),
}
MANY = {
    "a list that grows": (f"batches = [{RANDOM}]\n    batches.extend(rows)", "x", "batches"),
    "a list that others fill": (f"batches = [{RANDOM}]\n    fill(batches)", "x", "batches"),
    "a list that is added to": (f"batches = [{RANDOM}]\n    batches += rows", "x", "batches"),
    "many rounds": (f"batches = [{RANDOM} for _ in range(5000)]", "x", "batches"),
    "a list by what is given": ("batches = [row[:8] for row in rows]", "x", "batches"),
    "a list with others in it": (f"batches = [{RANDOM}, *rows]", "x", "batches"),
    "one of two lists": (
        f"batches = [{RANDOM}]\n    if len(rows) > 9:\n        batches = batches_of(rows)",
        "x",
        "batches",
    ),
    "a dict that grows": (f"batches = {{'a': {RANDOM}}}\n    batches[device] = rows[0]", "x", "batches.values()"),
}


@pytest.mark.parametrize(("made", "target", "over"), FEW.values(), ids=FEW)
def test_a_handful_of_rounds_is_no_growth(made: str, target: str, over: str, tmp_path: Path) -> None:
    assert severities(tmp_path, PROGRAM.format(made=made, target=target, over=over), "MEM102") == []


@pytest.mark.parametrize(("made", "target", "over"), MANY.values(), ids=MANY)
def test_rounds_that_nothing_bounds_are_growth(made: str, target: str, over: str, tmp_path: Path) -> None:
    assert severities(tmp_path, PROGRAM.format(made=made, target=target, over=over), "MEM102") == ["warning"]


@pytest.mark.parametrize(
    "made",
    [
        "torch.tensor(rows)",
        "torch.randn(len(rows), 2, 8)",
        "torch.Tensor(len(rows), 8)",
        "torch.randn(4, 5000).T",
        "torch.randn(4, 5000).mT",
        "torch.randn(4, 8).resize_(len(rows), 8)",
    ],
)
def test_rows_of_a_tensor_of_unknown_size_are_growth(made: str, tmp_path: Path) -> None:
    assert severities(tmp_path, PROGRAM.format(made="", target="x", over=made), "MEM102") == ["note"]
