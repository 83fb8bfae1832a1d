"""Files in the grammar of Python 2, or of Python before 3.7."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from memlint import lint
from memlint.project.old_syntax import modern

OLD = (
    "print 'a'\n",
    "print'a'\n",
    'print "%d" % (x,\n   3), y\n',
    "if x: print x,\n",
    "x = 1; print x\n",
    "print not x\n",
    "y = x.cuda(async=True)\n",
    "y = print_function(x) ; x.async = 3\n",
    "try:\n    pass\nexcept (A, B), e:\n    print e\n",
    "try:\n    pass\nexcept E, e: raise\n",
    "def f():\n    raise E, 'no'\n",
    "print 10L, 0xFFL, 0755, 00\n",
    "if x <> 3: print ur'a'\n",
    "exec 'x = 1' in scope\n",
    "print 'a'\r\nprint 'b'\r\n",
)


@pytest.mark.parametrize("text", OLD)
def test_old_code_is_read_with_each_character_in_its_place(text: str) -> None:
    new = modern(text)
    ast.parse(new)
    assert new != text
    assert list(map(len, new.splitlines(keepends=True))) == list(map(len, text.splitlines(keepends=True)))


@pytest.mark.parametrize(
    "text",
    [
        "print('a')\n",
        "print (1, 2), 3\n",
        "x = print if y else z\n",
        '"""\nprint x\nasync = 3\n"""\n',
        "# x.cuda(async=True)\nasync def f():\n    pass\n",
        "except E, e:\n",
        "print `x`\n",
        "def f(:\n    print 'a'\n",
        "print 'a\n",
    ],
)
def test_new_code_and_what_cannot_be_read_stay_as_they_are(text: str) -> None:
    assert modern(text) is text


EVALUATION = """\
import torch


def test(model, loader):
    model.eval()
    right = 0
    for x, y in loader:
        x, y = x.cuda(async=True), y.cuda(async=True)
        out = model(x)
        right += (out.max(1)[1] == y).sum().item()
    print 'accuracy', right
"""


def test_old_code_is_analysed_and_not_fixed(tmp_path: Path) -> None:
    file = tmp_path / "old.py"
    file.write_text(EVALUATION)
    broken, found = lint([file]).findings
    assert (broken.code, broken.severity, broken.line) == ("MEM000", "warning", 8)
    assert "it was checked as Python 2" in broken.message
    assert (found.code, found.line, found.fix) == ("MEM201", 9, None)
