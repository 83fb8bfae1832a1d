"""Models that only their use, their base class or a flag tells of: what nobody defines in sight runs all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint


def said(folder: Path, text: str) -> list[tuple[str, str]]:
    """(code, severity) of what is found, notes apart."""
    (folder / "engine.py").write_text(text, encoding="utf-8")
    found = memlint.lint([folder], isolated=True).findings
    return [(one.code, one.severity) for one in found if one.severity != "note"]


HELD = """
import torch
from parts import build, load


class Task:
    def __init__(self, path):
        self.model = build(path)
        self.limit = 8


def score(path, loader):
    task = {made}
    {switched}
    {guard}
        for batch in loader:
            print(task.model(batch.cuda()).argmax().item())
"""


@pytest.mark.parametrize("made", ["load(path)", "load(path)[0]", "Task(path)"])
@pytest.mark.parametrize(
    ("switched", "guard", "found"),
    [
        ("task.model.eval()", "if True:", [("MEM201", "warning")]),
        ("task.model.to('cuda').eval()", "if True:", [("MEM201", "warning")]),
        ("task.model.eval()", "with torch.no_grad():", []),
        ("task.prepare()", "if True:", []),  # nothing tells that it is a module
    ],
)
def test_a_module_that_an_object_holds(
    tmp_path: Path, made: str, switched: str, guard: str, found: list[tuple[str, str]]
) -> None:
    assert said(tmp_path, HELD.format(made=made, switched=switched, guard=guard)) == found
