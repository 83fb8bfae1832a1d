"""What the text of a file tells before it is read as a program: its words, and what may be bases of its classes."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from memlint.analysis.index.word_index import may_bind, may_define, words_of, words_of_bases


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


@pytest.mark.parametrize(
    ("line", "binds", "defines"),
    [
        ("net = 1", True, True),
        ("a, net = 1, 2", True, True),
        ("net: int = 1", True, True),
        ("first = net = 1", True, True),
        ("if x: net = 1", True, True),
        ("def net(): pass", True, True),
        ("class  net(Base): pass", True, True),
        ("class net:", True, True),
        ("import other as net", True, True),
        ("from m import (one as net,\n  two)", True, True),
        ("with open() as net:", True, True),
        ("for net in x:", True, True),
        ("for i, net in x:", True, True),
        ("if (net := make()):", True, True),
        ("def f():\n    global net", True, True),
        ("if net := f():\n    pass", True, True),
        ("if x: pass\nelif net := f(): pass", True, True),
        ("while net := f(): pass", True, True),
        ("match net := f():\n    case _: pass", True, True),
        ("match x:\n    case 1 if net := f(): pass", True, True),
        ("match x:\n    case Foo(a=net): pass", True, True),
        ("match x:\n    case (1,\n      net as other): pass", True, True),
        ("import math; net = math.pi", True, True),
        ("(\n    net,\n    other,\n) = f()", True, True),
        ("(other, net), more = f()", True, True),
        ("[\n    other, net\n] = f()", True, True),
        ("with f() as (other, net):", True, True),
        ("for (other, net) in f():", True, True),
        ("import m as \\\nnet", True, True),
        ("from m import (other as\n    net)", True, True),
        ("def f():\n    global other, net", True, True),
        ("x.net = ﬁ.net", True, True),
        ("from m import net\n\n            assets = 1", True, False),
        ("class Other(Base, net):\n    pass", True, False),
        ("f(one, net, two)", True, False),
        ("x: list[net]", True, False),
        ("import net", True, False),
        ("from m import net", True, False),
        ("from m import (\n    one,\n    net,\n)", True, False),
        ("from m import one, net, two", True, False),
        ("import net as other", False, False),
        ("from m import net  as other", False, False),
        ("x.net = 1", False, False),
        ("# of the net\n'''a net and others'''", False, False),
        ("subnet = nets = 1", False, False),
        ("", False, False),
    ],
)
def test_what_a_text_tells_of_a_name(line: str, binds: bool, defines: bool) -> None:
    text = f"import torch\n{line}\nprint(x)\n"
    assert (may_bind(text, "net"), may_define(text, "net")) == (binds, defines)


def test_whatever_a_program_binds_its_text_may_bind() -> None:
    for module in (ast, pytest):
        text = Path(str(module.__file__)).read_text("utf-8")
        for node in ast.parse(text).body:
            names = [node.name] if isinstance(node, ast.FunctionDef | ast.ClassDef) else []
            names += [each.id for each in getattr(node, "targets", ()) if isinstance(each, ast.Name)]
            assert all(may_bind(text, name) and may_define(text, name) for name in names)
            if isinstance(node, ast.Import | ast.ImportFrom):
                assert all(may_bind(text, alias.asname or alias.name.split(".")[0]) for alias in node.names)


@pytest.mark.parametrize("filler", [" ", "\t", ", net", "("])
def test_what_stands_far_from_a_name_on_its_line_is_not_looked_at(filler: str) -> None:
    assert may_define("net" + filler * 100_000 + "\n", "net")
    assert may_define("(" + filler * 100_000 + "net, ?\n", "net")
