"""Calls with `return_tensors`: a processor makes tensors of words and pictures, which have no graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlint.cli import main

PROGRAM = """
def build(process, texts, kept, place):
    rows = process(texts, {options})
    kept.append(rows)
    return rows
"""


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("return_tensors='pt', padding=True", "dictionary of tensors; without an autograd graph; on the CPU"),
        ("return_tensors='pt', device=place", "dictionary of tensors; without an autograd graph; device unknown"),
        ("padding=True", "`rows`: unknown"),
    ],
)
def test_what_a_processor_returns_has_no_graph(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: str, said: str
) -> None:
    file = tmp_path / "train.py"
    file.write_text(PROGRAM.format(options=options))
    assert main(["explain", "--isolated", f"{file}:4"]) == 0
    assert said in capsys.readouterr().out
