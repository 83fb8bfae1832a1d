"""What the text of a file tells before it is read as a program: its words, and what may be bases of its classes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from memlint.analysis.index.word_index import words_of, words_of_bases


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("loss += model(x).sum()", {"loss", "model", "x", "sum"}, id="code"),
        pytest.param("# see Net\n'''of Base'''", {"see", "Net", "of", "Base"}, id="comments and strings"),
        pytest.param("y = 1if a else 0x1F_b", {"y", "if", "a", "else", "x1F_b"}, id="behind digits"),
        pytest.param("größe = “netz”·x", {"größe", "netz", "x"}, id="other alphabets"),
        pytest.param("ﬁt(Ⅷ)", {"fit", "VIII"}, id="as Python reads them"),
        pytest.param("", set(), id="nothing"),
        pytest.param("12 3.5 ...", set(), id="numbers alone"),
    ],
)
def test_words_of_a_text(text: str, words: set[str]) -> None:
    assert words_of(text) == words


def test_every_name_of_a_program_is_a_word_of_its_text() -> None:
    text = Path(ast.__file__).read_text("utf-8")
    names = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    assert names and names <= words_of(text)


@pytest.mark.parametrize(
    "head",
    [
        "class Net(Base):",
        "class Net( a.b.Base ):",
        "class Net(First,\n          Base,\n):",
        "class Net(Generic[T], Base, metaclass=Meta):",
        "class Net(make(Base)):",
        "class Net(make(other(Base))):",
        "class Net(First,  # and (not Base\n          Base):",
        "class Net(First['x'], Base):",
        "class \\\n  Net \\\n  (Base):",
        "class Net[T](Base):",
        "class Net[T: (int, 'str')](Base):",
        "if x:\n    class Net(Base): pass",
        "\x0cclass Net(Base):",
        "class Net(Bäse, Base):",
    ],
)
def test_a_base_is_among_the_words_of_the_heads_or_a_parser_is_asked(head: str) -> None:
    text = f"from x import *\n\n{head}\n        pass\n"
    found = words_of_bases(text)
    assert found is None or "Base" in found


@pytest.mark.parametrize(
    "text",
    [
        "class Net:\n    Base = 1\n",
        "class Net(First): pass\nBase(1)\n",
        "def make(Base): ...\n",
        "'''\nclass of Base (the first)\n'''\n",
        "subclass(Base)\n",
    ],
)
def test_what_stands_elsewhere_is_the_base_of_none(text: str) -> None:
    found = words_of_bases(text)
    assert found is not None
    assert "Base" not in found
