"""Generated sources: what Python can parse is lowered, and units give the same records as the whole file."""

from __future__ import annotations

import ast
import warnings

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memlint.frontend.host_spans import host_spans
from memlint.frontend.index import index_and_units
from memlint.frontend.libcst_spans import libcst_spans
from memlint.frontend.lower import SyntaxProblem, by_libcst, lower
from memlint.frontend.spans import spans_of
from memlint.frontend.units import split
from memlint.ir import nodes as ir

NAMES = st.sampled_from(["a", "loss", "名", "_x1", "match", "type"])
ATOMS = NAMES | st.sampled_from(["1", "2.5", "'s'", "b'b'", "None", "...", "f'{a:{b}}'", "()", "[]", "{}"])


def _larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(inner, inner)
    return st.one_of(
        two.map("({0[0]} + {0[1]})".format),
        two.map("({0[0]} not in {0[1]})".format),
        two.map("[{0[0]}, *{0[1]}]".format),
        two.map("(lambda x={0[0]}: {0[1]})".format),
        two.map("({0[0]} if a else {0[1]})".format),
        two.map("{{k: {0[0]} for k in {0[1]}}}".format),
        two.map("f({0[0]}, k={0[1]}, **d)".format),
        two.map("(a)[{0[0]}:, {0[1]}]".format),
        st.tuples(inner, NAMES).map("({0[0]}).{0[1]}".format),
        st.tuples(NAMES, inner).map("({0[0]} := {0[1]})".format),
    )


EXPRESSIONS = st.recursive(ATOMS, _larger, max_leaves=8)
SIMPLE = st.one_of(
    EXPRESSIONS.map("a = {}".format),
    EXPRESSIONS.map("a.b += {}; pass".format),
    EXPRESSIONS.map("return {}  # c".format),
    EXPRESSIONS.map("yield {}".format),
    EXPRESSIONS,
)


def _block(header: str, body: list[str]) -> str:
    return header + "\n" + "\n".join("    " + line for statement in body for line in statement.split("\n"))


def _compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    bodies = st.lists(inner, min_size=1, max_size=3)
    headers = st.one_of(
        EXPRESSIONS.map("if {}:".format),
        EXPRESSIONS.map("for a, b in {}:".format),
        EXPRESSIONS.map("while {}: # c".format),
        EXPRESSIONS.map("with ({}) as c:".format),
        EXPRESSIONS.map("@{}\ndef f(a, *, b=1):".format),
        EXPRESSIONS.map("class A(B, k={}):".format),
    )
    return st.tuples(headers, bodies).map(lambda pair: _block(*pair))


STATEMENTS = st.recursive(SIMPLE, _compound, max_leaves=6)
PROGRAMS = st.lists(_compound(STATEMENTS) | SIMPLE, max_size=5).map("\n\n".join)


def _check(text: str) -> None:
    index, units = index_and_units(text)
    assert units == split(text)
    assert index.complete
    assert [unit.name for unit in units] == [unit.name for unit in index.units]
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for unit, names in zip(units, index.units, strict=True):
        lowered = lower(unit)
        assert lowered == by_libcst(unit)
        assert msgspec.msgpack.decode(msgspec.msgpack.encode(lowered), type=ir.Unit) == lowered
        table = spans_of(unit, lowered.count)
        by_other = libcst_spans(unit)
        assert [table[at] for at in range(lowered.count)] == [by_other[at] for at in range(lowered.count)]
        for at, record in _records(lowered.body):
            span = table[at]
            assert (1, 1) <= (span.line, span.column) <= (span.end_line, span.end_column)
            if isinstance(record, ir.Name):
                assert lines[span.line - 1][span.column - 1 : span.end_column - 1] == record.id
                assert record.id in names.names
            if isinstance(record, ir.Call) and isinstance(record.func, (ir.Name, ir.Attr)):
                assert (record.func.id if isinstance(record.func, ir.Name) else record.func.name) in names.calls


def _records(value: object) -> list[tuple[int, object]]:
    if isinstance(value, tuple):
        return [each for item in value for each in _records(item)]
    if not isinstance(value, msgspec.Struct):
        return []
    own = [(value.at, value)] if hasattr(value, "at") else []
    return own + [each for field in value.__struct_fields__ for each in _records(getattr(value, field))]


@settings(max_examples=150, deadline=None)
@given(PROGRAMS, st.sampled_from(["\n", "\r\n", "\r"]), st.booleans())
def test_programs_are_lowered_and_placed(text, newline, ends):
    _check((text + "\n" * ends).replace("\n", newline))


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="ab1 \t\n\r\x0c\\'\"#(){}[]:;,.=+-@*f\0\ud800é", max_size=40))
def test_any_text_is_lowered_or_a_problem(text):
    index, units = index_and_units(text)
    assert len(index.units) == len(units)
    for unit in units:
        try:
            libcst_spans(unit)
            spans_of(unit, lower(unit).count)
        except SyntaxProblem as problem:
            assert problem.line >= 1 and problem.column >= 1


@pytest.mark.parametrize("seed", range(12))
def test_sources_of_pysource_codegen(seed):
    codegen = pytest.importorskip("pysource_codegen")
    text = codegen.generate(seed, node_limit=400)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ast.parse(text)
    for unit in split(text):
        try:
            assert lower(unit) == by_libcst(unit)
            one, other = libcst_spans(unit), host_spans(unit)
            assert other is None or [one[at] for at in range(len(one))] == [other[at] for at in range(len(other))]
            assert len(one) == lower(unit).count
        except SyntaxProblem as problem:
            pytest.skip(f"libcst cannot parse it: {problem}")
