from __future__ import annotations

import random
import sysconfig
from pathlib import Path

import libcst as cst
import msgspec
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from memlint.finding import Span
from memlint.frontend.lower import by_libcst, lower
from memlint.frontend.room import normalised
from memlint.frontend.spans import _Recorder, placed, spans
from memlint.frontend.statements import statements
from memlint.frontend.units import split
from memlint.ir import nodes as ir

STDLIB = Path(sysconfig.get_paths()["stdlib"])
PACKAGES = Path(cst.__file__).parent.parent
CORPUS = [
    *sorted((STDLIB / "asyncio").glob("*.py")),
    *[STDLIB / name for name in ("typing.py", "dataclasses.py", "enum.py", "inspect.py", "argparse.py", "ast.py")],
    *sorted((STDLIB / "test").glob("test_[gpsu]*r*.py"))[:20],
    *sorted((PACKAGES / "rich").glob("*.py"))[:20],
]


def check(text: str) -> int:
    """Hold every span of every unit against libcst's own positions; gives the number of records."""
    count = 0
    for unit in split(text):
        table = spans(unit)
        wrapper = MetadataWrapper(cst.parse_module(normalised(unit.text)), unsafe_skip_copy=True)
        positions = wrapper.resolve(PositionProvider)
        recorder = _Recorder()
        statements(recorder, wrapper.module.body)
        assert lower(unit) == by_libcst(unit)
        assert len(table) == recorder.at == lower(unit).count
        for at, (first, last) in enumerate(recorder.nodes):
            start, end = positions[first].start, positions[last].end
            shift = unit.start_line - 1
            assert table[at] == Span(start.line + shift, start.column + 1, end.line + shift, end.column + 1)
        count += len(table)
    return count


@pytest.mark.parametrize("path", random.Random(7).sample(CORPUS, 12), ids=lambda path: path.name)
def test_spans_are_those_of_libcst(path):
    text = path.read_text(encoding="utf-8")
    try:
        compile(text, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        pytest.skip("no text of this Python")
    assert check(text) > 0


TEXT = """\
import a  # c
@deco
def f(x: int, *, y=(1)):
    '''名'''; g(名, *y)  # c
    for i in (
        x
    ):
        if i: pass
        elif (x): del i; x += 1
        else:
            return x[1, :2]
    while x: x
    with a as b, (
        c
    ): b
    try: x
    except E: y
    match x:
        case [1, k]: pass
    return f'{x!r}' 'b'
"""


@pytest.fixture
def texts():
    """Records of a source as (kind, text of its span, text of its header), in the order of their ordinals."""

    def read(text: str, name: str = "") -> list[tuple[str, str, str]]:
        lines = text.split("\n")

        def cut(span: Span) -> str:
            part = lines[span.line - 1 : span.end_line]
            part[-1] = part[-1][: span.end_column - 1]
            part[0] = part[0][span.column - 1 :]
            return "\n".join(part)

        unit = next(unit for unit in split(text) if unit.name == name)
        table = spans(unit)
        records = sorted(_records(lower(unit).body))
        return [(kind, cut(table[at]), cut(table.header(at))) for at, kind in records]

    return read


def _records(value: object) -> list[tuple[int, str]]:
    if isinstance(value, tuple):
        return [each for item in value for each in _records(item)]
    if not isinstance(value, msgspec.Struct):
        return []
    own = [(value.at, type(value).__name__)] if hasattr(value, "at") else []
    return own + [each for field in value.__struct_fields__ for each in _records(getattr(value, field))]


def test_a_header_ends_at_the_colon(texts):
    headers = [(kind, header) for kind, span, header in texts(TEXT, "f") if header != span]
    assert headers == [
        ("FunctionDef", "def f(x: int, *, y=(1)):"),
        ("For", "for i in (\n        x\n    ):"),
        ("If", "if i:"),
        ("If", "elif (x):"),
        ("While", "while x:"),
        ("With", "with a as b, (\n        c\n    ):"),
        ("Try", "try:"),
        ("Handler", "except E:"),
        ("Match", "match x:"),
    ]


def test_statements_end_before_comments_and_semicolons(texts):
    assert texts(TEXT)[0] == ("Import", "import a", "import a")
    found = {span for kind, span, _ in texts(TEXT, "f") if issubclass(getattr(ir, kind), ir.Node)}
    assert found >= {"'''名'''", "g(名, *y)", "*y", "pass", "del i", "x += 1", "return x[1, :2]", "1, :2", ":2", "b"}
    assert found >= {"return f'{x!r}' 'b'", "f'{x!r}' 'b'", "E", "1"}


@pytest.mark.parametrize("newline", ["\r\n", "\r"])
def test_newlines_do_not_move_spans(newline):
    unit, other = (split(text)[1] for text in (TEXT, TEXT.replace("\n", newline)))
    one, two = spans(unit), spans(other)
    assert [one[at] for at in range(len(one))] == [two[at] for at in range(len(two))]


@pytest.mark.parametrize("text", ["x = 1", "", "\n\n", "# c", "if a:\n\tb # c\n\n# d\n\n", "x;  # c\n"])
def test_odd_layouts(text):
    check(text)


@pytest.mark.parametrize("text", ["\x0cx = 1\n", "\x0c\nx = 1\n", "y\n\x0cx = 1", "if a:\n\x0c  b\n  \x0cx = 1\n"])
def test_a_form_feed_is_a_column(texts, text):
    assert ("Assign", "x = 1", "x = 1") in texts(text)


def test_what_libcst_does_not_read_is_at_the_first_line_of_its_definition():
    """libcst knows no annotation of an attribute in brackets; Python does."""
    unit = split("x = 1\n\n\ndef f(a):\n    (a.b): int = 1\n    g(a)\n")[1]
    lowered = lower(unit)
    table = placed(unit, lowered.count)
    assert {table[at] for at in range(lowered.count)} == {Span(4, 1, 4, 1)}
