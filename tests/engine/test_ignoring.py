"""Suppressions that ``--add-ignore`` writes: where they stand, and that the program stays what it is."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlint.cli import main
from memlint.engine.comments.ignoring import ignores
from memlint.engine.comments.suppressions import read
from memlint.fix.edits import place, splice

Toy = Callable[..., Path]


def with_ignores(text: str, wanted: dict[int, set[str]], reason: str = "") -> tuple[str, set[int]]:
    """The text with its comments, and the lines that have them."""
    edits, lines = ignores(text, wanted, reason)
    return splice(text, place(text, edits)), lines


Capture = pytest.CaptureFixture[str]
IGNORE = "# memlint: ignore[MEM901]"

CASES = {
    "a plain line": ("leak(1)\n", 1, f"leak(1)  {IGNORE}\n"),
    "no newline at the end": ("leak(1)", 1, f"leak(1)  {IGNORE}"),
    "blanks at the end": ("leak(1)  \t\n", 1, f"leak(1)  {IGNORE}\n"),
    "CRLF": ("x = 1\r\nleak(1)\r\n", 2, f"x = 1\r\nleak(1)  {IGNORE}\r\n"),
    "brackets": ("leak(\n    1,\n)\n", 1, f"leak(\n    1,\n)  {IGNORE}\n"),
    "a line inside": ("f(\n    leak(1),\n)\n", 2, f"f(\n    leak(1),\n)  {IGNORE}\n"),
    "a backslash": ("x = 1 + \\\n    leak(1)\n", 1, f"x = 1 + \\\n    leak(1)  {IGNORE}\n"),
    "a string of lines": ('leak("""\n# no comment\n""")\n', 1, f'leak("""\n# no comment\n""")  {IGNORE}\n'),
    "a string with #": ("leak('# x')\n", 1, f"leak('# x')  {IGNORE}\n"),
    "a header": ("for x in y:\n    leak(x)\n", 1, f"for x in y:  {IGNORE}\n    leak(x)\n"),
    "a block on its line": ("if x: leak(1); f()\n", 1, f"if x: leak(1); f()  {IGNORE}\n"),
    "a comment": ("leak(1)  # words\n", 1, f"leak(1)  # words  {IGNORE}\n"),
    "another tool's": ("leak(1)  # noqa: E501\n", 1, f"leak(1)  # noqa: E501  {IGNORE}\n"),
    "a comment inside": ("leak(  # words\n    1)\n", 1, f"leak(  # words\n    1)  {IGNORE}\n"),
    "type: ignore": ("leak(1)  # type: ignore[x]\n", 1, f"{IGNORE}\nleak(1)  # type: ignore[x]\n"),
    "a type comment": ("if 1:\n\tx = []  # type: list[int]\n", 2, f"if 1:\n\t{IGNORE}\n\tx = []  # type: list[int]\n"),
    "fmt: skip": ("leak( 1 )  # fmt: skip\n", 1, f"{IGNORE}\nleak( 1 )  # fmt: skip\n"),
    "the signature of a function": (
        "def f(a):\n    # type: (int) -> None\n    leak(a)\n", 3,
        f"def f(a):\n    # type: (int) -> None\n    leak(a)  {IGNORE}\n",
    ),
    "one of ours": (
        "leak(1)  # memlint: ignore[MEM902] -- known\n", 1, "leak(1)  # memlint: ignore[MEM902, MEM901] -- known\n",
    ),
    "one of ours above": (
        "# memlint: ignore[ MEM902 ]\nleak(1)\n", 2, "# memlint: ignore[ MEM902, MEM901]\nleak(1)\n",
    ),
    "one of ours behind another": (
        "leak(1)  # noqa: E1  # memlint: ignore[MEM902]\n", 1,
        "leak(1)  # noqa: E1  # memlint: ignore[MEM902, MEM901]\n",
    ),
    "a decorator": ("@d\ndef f(\n    a\n):\n    pass\n", 2, f"@d\ndef f(\n    a\n):  {IGNORE}\n    pass\n"),
    "an encoding": ("# coding: latin-1\nleak('é')\n", 2, f"# coding: latin-1\nleak('é')  {IGNORE}\n"),
}  # fmt: skip


@pytest.mark.parametrize(("before", "line", "after"), CASES.values(), ids=CASES)
def test_where_a_suppression_stands(before: str, line: int, after: str) -> None:
    assert with_ignores(before, {line: {"MEM901"}}) == (after, {line})


def test_a_reason_is_not_put_on_what_others_suppressed() -> None:
    before = "leak(1)  # memlint: ignore[MEM902] -- known\n"
    after, _ = with_ignores(before, {1: {"MEM901"}}, "later")
    assert after == "leak(1)  # memlint: ignore[MEM902] -- known  # memlint: ignore[MEM901] -- later\n"
    assert [(one.codes, one.reason) for one in read(after).suppressions] == [
        (("MEM902",), "known"), (("MEM901",), "later"),
    ]  # fmt: skip


PIECES = (
    "x = 1", "x = [\n    1,  # one\n    2,\n]", 'x = """\n# no comment\n"""', "x = 1 + \\\n    2", "x = 1  # type: int",
    "for x in y: z = x", "for x in y:  # words\n    z = (x,\n        1)", "x = 1  # memlint: ignore[MEM102]",
    "# memlint: ignore[MEM102] -- known\nx = f'{1}#'",
    "@d\ndef f(a,  # type: int\n      b):\n    # type: (...) -> None\n    x = 1",
    "if x:\n    y = 1\nelse:\n\n    # words\n    y = 2", "x = 1; y = 2  # noqa",
    "class A:\n    '''Doc.'''\n    x = '# y'",
)  # fmt: skip


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map(lambda pieces: "\n".join(pieces) + "\n"),
    st.sets(st.integers(1, 30)),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "later -- or never"]),
)
def test_any_program_stays_the_same_and_a_second_time_changes_nothing(
    text: str, lines: set[int], newline: str, reason: str
) -> None:
    text = text.replace("\n", newline)
    wanted = {line: {"MEM901", "MEM102"} for line in lines}
    after, placed = with_ignores(text, wanted, reason)
    assert ast.dump(ast.parse(after, type_comments=True)) == ast.dump(ast.parse(text, type_comments=True))
    if after.count(newline) == text.count(newline):  # no line moved
        again, _ = with_ignores(after, {line: wanted[line] for line in placed}, "")
        assert again == after


def test_a_run_suppresses_what_it_finds_and_reports_what_is_left(toy: Toy, capsys: Capture) -> None:
    root = toy({"a.py": "leak(1)\nburst(\n    1)\n", "b.py": "leak(2)  # type: int\n", "c.py": "leak(1\n"})
    assert main([".", "--add-ignore=not now", "--output-format", "concise"]) == 1
    out, err = capsys.readouterr()
    assert "suppressed 3 findings in 2 files" in err
    assert "MEM000 at c.py:1 not suppressed" in err
    assert "c.py:1" in out and "a.py" not in out and "b.py" not in out
    assert (root / "a.py").read_text() == (
        "leak(1)  # memlint: ignore[MEM901] -- not now\nburst(\n    1)  # memlint: ignore[MEM902] -- not now\n"
    )
    before = {path: path.read_bytes() for path in root.glob("*.py")}
    main([".", "--add-ignore", "--output-format", "concise"])
    assert {path: path.read_bytes() for path in root.glob("*.py")} == before
    assert "suppressed 0 findings" in capsys.readouterr().err


def test_the_word_behind_the_option_is_a_path(toy: Toy) -> None:
    root = toy({"a.py": "leak(1)\n", "b.py": "leak(1)\n"})
    assert main(["--add-ignore", "a.py", "-q"]) == 0
    assert (root / "a.py").read_text() == f"leak(1)  {IGNORE}\n"
    assert (root / "b.py").read_text() == "leak(1)\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["a.py", "--add-ignore=one # two"], "without `#`"),
        (["a.py", "--add-ignore=one\ntwo"], "one line"),
        (["-", "--add-ignore"], "not standard input"),
        (["a.py", "--add-ignore", "--fix"], "cannot be combined"),
        (["a.py", "--add-ignore", "--write-baseline", "base.json"], "cannot be combined"),
    ],
)
def test_what_cannot_be_meant_changes_nothing(toy: Toy, capsys: Capture, arguments: list[str], said: str) -> None:
    root = toy({"a.py": "leak(1)\n"})
    assert main(arguments) == 2
    assert said in capsys.readouterr().err
    assert (root / "a.py").read_text() == "leak(1)\n"


@pytest.mark.parametrize(
    ("content", "reason", "said"),
    [
        ("# coding: latin-1\nleak('é')\n".encode("latin-1"), "später ☃", "iso-8859-1 has no '☃'"),
        (b"print 'old'\nleak(1)\n", "", "older grammar"),
    ],
)
def test_what_cannot_be_written_is_said_and_left(
    toy: Toy, capsys: Capture, content: bytes, reason: str, said: str
) -> None:
    root = toy({"a.py": content})
    assert main(["a.py", f"--add-ignore={reason}"]) == 1
    assert said in capsys.readouterr().err
    assert (root / "a.py").read_bytes() == content


def test_a_read_only_file_is_said_and_left(toy: Toy, capsys: Capture) -> None:
    root = toy({"a.py": "leak(1)\n"})
    os.chmod(root / "a.py", 0o444)  # noqa: PTH101
    assert main(["a.py", "--add-ignore"]) == 1
    assert "the file is read-only" in capsys.readouterr().err
