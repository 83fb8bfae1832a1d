"""Functions whose results look like counts or fresh tensors and have the graph of what they are given all the same; the
ones beside them cut it."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

PROGRAM = """
import torch


def train(model, loader, optimizer, criterion):
    kept = []
    for x, y in loader:
        out = model(x.cuda())
        loss = criterion(out, y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.append({kept})
    return kept
"""


@pytest.mark.parametrize(
    ("kept", "found"),
    [
        ("torch.sign(out)", True),
        ("out.sign()", True),
        ("torch.floor_divide(out, 2)", True),
        ("torch.unique(out)", True),
        ("torch.as_tensor(out)", True),
        ("torch.Tensor(out)", True),
        ("torch.bernoulli(out.sigmoid())", True),
        ("torch.normal(out, 1.0)", True),
        ("torch.signbit(out)", False),
        ("torch.tensor(loss)", False),
        ("torch.as_tensor([0.5, 2.0])", False),
        ("torch.as_tensor(out, dtype=torch.long)", False),
        ("torch.unique(out.argmax(1))", False),
        ("torch.sign(out.detach())", False),
        ("torch.normal(0.0, 1.0, size=(4,))", False),
        ("torch.multinomial(out.softmax(1), 1)", False),
        ("(out > 0).all()", False),
    ],
)
def test_what_is_kept_has_a_graph(tmp_path: Path, kept: str, found: bool) -> None:
    (tmp_path / "train.py").write_text(PROGRAM.format(kept=kept))
    codes = {one.code for one in memlint.lint([tmp_path], isolated=True).findings}
    assert ("MEM102" in codes) is found
