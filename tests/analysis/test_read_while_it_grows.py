"""What to do with a tensor that grows by concatenation: a list replaces it only where the loop does not read it."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

LOOP = """
import torch


@torch.no_grad()
def collect(model, ids, steps, done):
    rows = {first}
    for step in range(steps):
        {read}
        part = model(ids)
        {grow}
    return rows
"""
JOINED = "rows = torch.cat([rows, part], dim=1)"
BEGUN = "rows = part if rows is None else torch.cat([rows, part])"


@pytest.mark.parametrize(
    ("first", "read", "grow", "listed"),
    [
        ("ids", "pass", JOINED, True),
        ("ids", "ids = rows[:, -8:]", JOINED, False),
        ("ids", "ids = model.embed(rows)", JOINED, False),
        ("ids", "if rows.size(1) > done: break", JOINED, False),
        ("None", "pass", BEGUN, True),
        ("None", "ids = ids + 1", f"if rows is not None: {JOINED}\n        else: rows = part", True),
    ],
)
def test_a_list_instead(tmp_path: Path, first: str, read: str, grow: str, listed: bool) -> None:
    (tmp_path / "case.py").write_text(LOOP.format(first=first, read=read, grow=grow), encoding="utf-8")
    found = [one for one in memlint.lint([tmp_path], isolated=True).findings if one.code == "MEM302"]
    assert ["in a list" in one.help for one in found] == [listed]
