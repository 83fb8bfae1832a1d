"""A place that keeps the graphs of an evaluation, and the call that makes them, are two findings on one memory."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

KEEPS = """
import torch
import torch.nn.functional as F


def put(kept, out):
    kept.append(out)


def evaluate(model, loader):
    model.eval()
    kept, by_name, total, table = [], {{}}, 0, torch.zeros(0, 10).cuda()
    for i, (x, y) in enumerate(loader):
        out = model(x.cuda())
        {keeps}
    return {result}
"""


@pytest.mark.parametrize(
    ("keeps", "result", "code"),
    [
        ("kept.append(out)", "torch.cat(kept).argmax(1)", "MEM102"),
        ("put(kept, out)", "torch.cat(kept).argmax(1)", "MEM102"),
        ("by_name[i] = out", "[each.argmax(1) for each in by_name.values()]", "MEM102"),
        ("total += F.cross_entropy(out, y.cuda())", "total.item()", "MEM101"),
        ("table = torch.cat([table, out])", "table.argmax(1)", "MEM302"),
    ],
)
def test_each_names_the_other(tmp_path: Path, keeps: str, result: str, code: str) -> None:
    (tmp_path / "evaluate.py").write_text(KEEPS.format(keeps=keeps, result=result))
    found = {one.code: one for one in memlint.lint([tmp_path]).findings}
    assert found.keys() == {"MEM201", code}
    called, kept = found["MEM201"], found[code]
    assert any(code in step.message and step.line == kept.line for step in called.trace)
    assert any("MEM201" in step.message for step in kept.trace)
    assert called.growth == kept.growth


def test_an_evaluation_that_keeps_nothing_names_no_place(tmp_path: Path) -> None:
    keeps = "kept.append(out.argmax(1).tolist())"
    (tmp_path / "evaluate.py").write_text(KEEPS.format(keeps=keeps, result="kept"))
    (found,) = memlint.lint([tmp_path]).findings
    assert (found.code, found.trace) == ("MEM201", ())


KEPT = """
import torch
from torch import nn


def validate(model, loader):
    model.eval()
    total = 0.0
    for x, y in loader:
        out = model(x.{place}())
        total += nn.functional.cross_entropy(out, y.{place}())
    return total
"""


@pytest.mark.parametrize(
    ("place", "memory", "grown"), [("cpu", "host memory", "host"), ("cuda", "device memory", "device-graph")]
)
def test_the_memory_that_a_kept_graph_is_in(tmp_path: Path, place: str, memory: str, grown: str) -> None:
    (tmp_path / "main.py").write_text(KEPT.format(place=place))
    (found,) = [one for one in memlint.lint([tmp_path]).findings if one.code == "MEM201"]
    assert f"{memory} grows by the graph of every batch" in found.message
    assert found.growth is not None and found.growth.memory == grown
