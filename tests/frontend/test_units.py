from __future__ import annotations

import pytest

from memlint.frontend.index import index_and_units
from memlint.frontend.lower import lower
from memlint.frontend.units import split


def names(text: str) -> list[str]:
    return [unit.name for unit in split(text)]


def test_definitions_are_cut_out_and_their_lines_stay_blank():
    text = "import a\n\n@d\n@e(\n 1)\ndef f():\n    pass\n\n# c\nclass A: pass\nx = 1"
    own, f, a = split(text)
    assert own.text == "import a\n\n\n\n\n\n\n\n# c\n\nx = 1"
    assert (own.name, own.index, own.start_line) == ("", 0, 1)
    assert (f.name, f.index, f.start_line, f.text) == ("f", 1, 3, "@d\n@e(\n 1)\ndef f():\n    pass\n")
    assert (a.name, a.index, a.start_line, a.text) == ("A", 2, 10, "class A: pass\n")


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_newlines_of_every_kind(newline):
    text = newline.join(["x = 1", "def f():", "  '''a", "  b'''", "y = 2", "class A:", "  pass"])
    assert [(unit.name, unit.start_line) for unit in split(text)] == [("", 1), ("f", 2), ("A", 6)]
    assert [len(lower(unit).body) for unit in split(text)] == [2, 1, 1]


def test_blanked_lines_keep_their_newlines():
    assert split("a\rdef f():\r  b\rc\r")[0].text == "a\r\r\rc\r"
    assert split("a\r\ndef f(): b\r\nc")[0].text == "a\r\n\r\nc"


def test_characters_that_only_str_splitlines_takes_for_newlines():
    text = "x = '\x0b\x1c\x85\u2028'\n\x0c\ndef f():\n  return '\u2029'\n"
    assert [(unit.name, unit.start_line) for unit in split(text)] == [("", 1), ("f", 3)]


def test_definitions_below_a_statement_stay_with_the_module():
    assert names("if a:\n  def f(): pass\ntry:\n  import b\nexcept E:\n  class B: pass\n") == [""]


def test_a_name_may_be_defined_twice():
    assert names("def f(): 1\ndef f(): 2\n") == ["", "f", "f"]


@pytest.mark.parametrize(
    "text",
    ["\\\ndef f(): pass\n", "x = 1\n\\\n\\\ndef f(): pass\n", "def f(): return 1 \\\n\n", "def f(): pass; \\\n\n"],
)
def test_a_definition_that_a_backslash_joins_to_other_lines_stays_with_the_module(text):
    assert names(text) == [""]
    assert any(type(each).__name__ == "FunctionDef" for each in lower(split(text)[0]).body)


def test_a_form_feed_before_a_definition():
    units = split("x = 1\n\x0cdef f():\n  pass\n\x0c\nclass A:\n\x0c  pass\n")
    assert [lower(unit).name for unit in units] == ["", "f", "A"]


def test_a_grammar_that_the_host_does_not_know():
    text = "# header\nlazy import a\n\n# about f\n@d\ndef f():\n  pass\n\nclass A: pass\n"
    index, units = index_and_units(text)
    assert not index.complete
    assert [(unit.name, unit.start_line) for unit in units] == [("", 1), ("f", 5), ("A", 9)]
    assert units[1].text == "@d\ndef f():\n  pass\n"


def test_what_nobody_can_parse_is_one_unit():
    assert names("def f():\n  print 'a'\n") == [""]


def test_an_empty_source():
    assert names("") == [""]
    assert lower(split("")[0]).body == ()
