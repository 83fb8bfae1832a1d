"""Evaluations that a table holds, and that code which cannot be followed calls out of it, perhaps under a guard."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from linting import codes_in

found = functools.partial(codes_in, name="evaluate.py")


TABLE = """
import torch
import fire


def evaluate(net, loader):
    net.eval()
    return sum((net(x).argmax(1) == y).sum().item() for x, y in loader)


{before}


def main(net, loader, names):
    with torch.no_grad():
        net.eval()
    {statement}
"""


@pytest.mark.parametrize(
    ("before", "statement", "codes"),
    [
        ("METRICS = [evaluate]", "all_of(METRICS, net, loader)", []),
        ("METRICS = {'accuracy': evaluate}", "all_of(METRICS, net, loader)", []),
        ("METRICS = dict(accuracy=evaluate)", "all_of(METRICS, net, loader)", []),
        ("METRICS = {}\nMETRICS['accuracy'] = evaluate", "all_of(METRICS, net, loader)", []),
        ("METRICS = []\nMETRICS.append(evaluate)", "all_of(METRICS, net, loader)", []),
        ("METRICS = [evaluate]", "evaluate(net, loader)", ["MEM201"]),
        ("METRICS = ['evaluate']", "all_of(METRICS, net, loader)", ["MEM201"]),
        ("", "fire.Fire({'evaluate': evaluate})", ["MEM201"]),
    ],
)
def test_functions_in_tables(tmp_path: Path, before: str, statement: str, codes: list[str]) -> None:
    assert found(tmp_path, TABLE.format(before=before, statement=statement)) == codes


def test_nobody_guards_where_the_project_has_no_guard(tmp_path: Path) -> None:
    source = TABLE.format(before="METRICS = [evaluate]", statement="all_of(METRICS, net, loader)")
    assert found(tmp_path, source.replace("with torch.no_grad():", "if names:")) == ["MEM201"]
