from __future__ import annotations

import random
import sys
import sysconfig
import warnings
from pathlib import Path

import libcst as cst
import msgspec
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from memlint.finding import Span
from memlint.frontend.deep_stack import normalised
from memlint.frontend.host_spans import host_spans
from memlint.frontend.libcst_spans import _Recorder, libcst_spans
from memlint.frontend.lower import by_libcst, lower
from memlint.frontend.problem import SyntaxProblem
from memlint.frontend.spans import spans_of
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
        table = libcst_spans(unit)
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
        table = libcst_spans(unit)
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
    one, two = libcst_spans(unit), libcst_spans(other)
    assert [one[at] for at in range(len(one))] == [two[at] for at in range(len(two))]


@pytest.mark.parametrize("text", ["x = 1", "", "\n\n", "# c", "if a:\n\tb # c\n\n# d\n\n", "x;  # c\n"])
def test_odd_layouts(text):
    check(text)


@pytest.mark.parametrize("text", ["\x0cx = 1\n", "\x0c\nx = 1\n", "y\n\x0cx = 1", "if a:\n\x0c  b\n  \x0cx = 1\n"])
def test_a_form_feed_is_a_column(texts, text):
    assert ("Assign", "x = 1", "x = 1") in texts(text)


#: libcst knows no annotation of an attribute in brackets; Python does
UNKNOWN_TO_LIBCST = """\
x = 1


@deco
def f(a, é="é"):
    (a.b): int = 1
    for é in g(é, {1: a}): g(é); h(é)
    while lambda y: y:  # c: d
        pass
"""


def test_what_libcst_does_not_read_is_placed_by_the_host():
    unit = split(UNKNOWN_TO_LIBCST)[1]
    with pytest.raises(SyntaxProblem):
        libcst_spans(unit)
    lowered = lower(unit)
    table = spans_of(unit, lowered.count)
    found = [(kind, table.header(at)) for at, kind in sorted(_records(lowered.body))]
    assert {(kind, span) for kind, span in found if kind not in ("Name", "Const", "Attr", "Param")} == {
        ("FunctionDef", Span(5, 1, 5, 17)),
        ("AnnAssign", Span(6, 5, 6, 19)),
        ("For", Span(7, 5, 7, 27)),
        ("Call", Span(7, 14, 7, 26)),
        ("DictDisplay", Span(7, 19, 7, 25)),
        ("ExprStmt", Span(7, 28, 7, 32)),
        ("Call", Span(7, 28, 7, 32)),
        ("ExprStmt", Span(7, 34, 7, 38)),
        ("Call", Span(7, 34, 7, 38)),
        ("While", Span(8, 5, 8, 23)),
        ("Lambda", Span(8, 11, 8, 22)),
        ("Jump", Span(9, 9, 9, 13)),
    }


@pytest.mark.parametrize("path", random.Random(7).sample(CORPUS, 12), ids=lambda path: path.name)
def test_the_host_gives_the_spans_of_libcst(path):
    for unit in split(path.read_text(encoding="utf-8")):
        try:
            one = libcst_spans(unit)
        except SyntaxProblem:
            continue
        other = host_spans(unit)
        assert other is not None and len(other) == len(one)
        assert [other[at] for at in range(len(one))] == [one[at] for at in range(len(one))]
        assert [other.header(at) for at in range(len(one))] == [one.header(at) for at in range(len(one))]


#: where the host's places hold brackets, commas, stars or annotations that are no part of a record
ODD_PLACES = """x = (a, (b), )
y = (a), (b)
z = ((a), b)
e = ( ), (a,  # (c,
     )  , (  # d
     *a, b)
t: d[(a), (b), ] = d[a, b,]
u = f(n for n in (m) if (n))
v = f((n) for n in m), ( # c
    (n) for n in (m)  ), [(n) for n in m]
w = a or (b) or ((c)) or (d and (e))
s = a or (b or c
    )  or d
def f(a: int, /, b=(1), * c : int, d, ** e: é) : return a; b ;
def g(* , é: int = 1): (yield a, b)
k = lambda * a, ** b: (a, b)
class C( a , b ) : x, = y ;
for a, (b), in ((c, d), ): pass
with (a as b, c as d): (a, b)
with (a, b): x = f"{(a, b)!r:{c}} {a or (b) or c}" "é" f'{
    é}'
if (a, ): x = "é", (a, é) ; y
try: a;
except (B, C): b ;
match a, b:
    case ((c), d) if (c): x = (c) ,
"""


def test_the_host_gives_the_spans_of_libcst_for_odd_records():
    if sys.version_info < (3, 12):
        text = ODD_PLACES.replace("\n    é}'", "é}'")
    else:
        text = ODD_PLACES
    units = split(text)
    assert len(units) > 3
    for unit in units:
        one, other = libcst_spans(unit), host_spans(unit)
        assert other is not None and len(other) == len(one)
        assert [(other[at], other.header(at)) for at in range(len(one))] == [
            (one[at], one.header(at)) for at in range(len(one))
        ]


@pytest.mark.parametrize(
    "text",
    [
        "if key == f'{a}:{b}': pass",
        "for x in f'{a}:{b}(', c : pass",
        "while f'{x}:[' != y or (lambda: f':')(): pass",
        "x[f'{x:{y}}':f'lambda'] = f'){a, b}'",
        "x = f'{a, b:>3}'",
        'match f"{tag}(":\n    case (1): pass',
        "def f(*  # c\n      args, ** # d ** e\n      kept): pass",
        "def f(a, # **\n      b, é) -> f':': pass",
        "def f(\ufb01, y, e\u0301): pass",
        "if x: a \\\n;",
        "if x == f'\\{a}': pass",
    ],
)
def test_odd_places_are_those_of_libcst_whoever_tells_them(text):
    for unit in split(text):
        one = libcst_spans(unit)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            other = spans_of(unit, len(one))
        assert [(other[at], other.header(at)) for at in range(len(one))] == [
            (one[at], one.header(at)) for at in range(len(one))
        ]


def test_a_long_line_beyond_ascii_takes_linear_time_to_place():
    """Each of 60,000 records was found by encoding the whole line: that took minutes."""
    (unit,) = split("x = [" + "'é', " * 60_000 + "]\n")
    table = host_spans(unit)
    assert table is not None and table[len(table) - 1] == Span(1, 5 * 60_000 + 1, 1, 5 * 60_000 + 4)
