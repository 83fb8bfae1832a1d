"""What means the same must be reported the same: each Bad example, changed in ways that change nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import metamorphic
import pages
import pytest
from metamorphic import Files, Skip
from pages import Example, Mark
from programs import assert_as_marked, lint

BAD = [example for example in pages.all_examples() if example.section == "Bad"]


@pytest.mark.parametrize("change", metamorphic.CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("example", BAD, ids=lambda example: example.id)
def test_findings_stay(example: Example, change, tmp_path: Path) -> None:
    try:
        files = change(example.files)
    except Skip as reason:
        pytest.skip(str(reason))
    for path, text in files.items():
        ast.parse(text, path)
    assert _codes(files) == _codes(example.files)
    assert files != example.files
    assert_as_marked(lint(tmp_path, files), files)


def _codes(files: Files) -> list[str]:
    errors: frozenset[Mark] = pages.marks(files).errors
    return sorted(code for _, _, code in errors)


PROGRAM = {
    "a.py": """import torch
from torch import nn as net


def helper(x):
    return torch.relu(x)


def main(x):
    total = 0
    for part in x:
        total += helper(part)
    return total, net
"""
}


def test_rename_locals() -> None:
    text = metamorphic.rename_locals(PROGRAM)["a.py"]
    assert "total" not in text and "helper(zq_" in text and "def main(x)" in text


def test_alias_imports() -> None:
    text = metamorphic.alias_imports(PROGRAM)["a.py"]
    assert "import torch as zq_torch\nfrom torch import nn as zq_net\n" in text
    assert "zq_torch.relu(x)" in text and "return total, zq_net" in text


def test_wrap_in_function() -> None:
    text = metamorphic.wrap_in_function(PROGRAM)["a.py"]
    assert text.startswith("def zq_program():\n    import torch\n") and text.endswith("\nzq_program()\n")


def test_wrap_in_class() -> None:
    text = metamorphic.wrap_in_class(PROGRAM)["a.py"]
    assert "class Zq_helper:\n    def helper(self, x):\n" in text and "total += Zq_helper().helper(part)" in text


def test_move_helpers() -> None:
    files = metamorphic.move_helpers(PROGRAM)
    assert "def helper" not in files["a.py"] and files["a.py"].startswith("from zq_helpers import helper\n")
    assert "import torch\n" in files["zq_helpers.py"] and "def helper(x):\n" in files["zq_helpers.py"]


def test_guard_program() -> None:
    text = metamorphic.guard_program(PROGRAM)["a.py"]
    assert text.startswith('if __name__ == "__main__":\n    import torch\n') and "\n    def helper(x):\n" in text


def test_guard_statements() -> None:
    text = metamorphic.guard_statements({"a.py": PROGRAM["a.py"] + "\n\nmain([1])\n"})["a.py"]
    assert text.endswith('\n\nif __name__ == "__main__":\n    main([1])\n') and text.startswith("import torch\n")
