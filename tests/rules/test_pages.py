"""Every example of every page: Bad is reported where it is marked and nowhere else, Good is silent for all rules."""

from __future__ import annotations

import ast
from pathlib import Path

import pages
import pytest
from pages import Example
from programs import assert_as_marked, lint

EXAMPLES = pages.all_examples()


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_example(example: Example, tmp_path: Path) -> None:
    assert_as_marked(lint(tmp_path, example.files), example.files)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.id)
def test_example_is_well_formed(example: Example) -> None:
    found = pages.marks(example.files)
    own = example.room[:6].upper()
    assert example.files
    for path, text in example.files.items():
        ast.parse(text, path)
    if example.section == "Good":
        assert not found.errors and not found.todo_errors
    else:
        assert any(code == own for _, _, code in found.errors | found.todo_errors)


def test_ids_are_unique() -> None:
    ids = [example.id for example in EXAMPLES]
    assert sorted(ids) == sorted(set(ids))
