"""A tensor that grows by rows of a few numbers is a note; one whose rows are not known to be small a warning."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

GROWN = """
import torch
from neighbours import nearest


@torch.no_grad()
def collect(model, loader, width):
    model.eval()
    rows = {start}
    hits = 0
    for x, y in loader:
        {name} = model(x.cuda())
        rows = {name} if rows is None else torch.cat([rows, {name}.cpu()])
        {use}
    return rows, hits
"""


def severity(tmp_path: Path, **parts: str) -> str:
    defaults = {"start": "None", "name": "outputs", "use": "pass"}
    (tmp_path / "collect.py").write_text(GROWN.format(**(defaults | parts)))
    (finding,) = memlint.lint([tmp_path]).findings
    assert finding.code == "MEM302"
    return finding.severity


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"start": "torch.empty(0, width)"},
        {"start": "torch.empty(0, 3, 64, 64)"},
        {"name": "image_log_probs"},
        {"use": "hits += outputs.max().item()"},
        {"use": "print(rows.shape, len(rows))"},
    ],
)
def test_rows_of_unknown_width(tmp_path: Path, parts: dict[str, str]) -> None:
    assert severity(tmp_path, **parts) == "warning"


@pytest.mark.parametrize(
    "parts",
    [
        {"start": "torch.empty(0, 2)"},
        {"start": "torch.zeros((0, 1))"},
        {"name": "logits"},
        {"use": "hits += (outputs.argmax(-1).cpu() == y).sum().item()"},
        {"use": "hits += (torch.max(outputs, 1)[1].cpu() == y).sum().item()"},
        {"use": "hits = y.new_tensor(torch.argmax(rows, -1))"},
        {"use": "hits = nearest(rows)"},
    ],
)
def test_rows_of_a_few_numbers_and_what_is_needed_whole(tmp_path: Path, parts: dict[str, str]) -> None:
    assert severity(tmp_path, **parts) == "note"
