from __future__ import annotations

import msgspec
import pytest

from memlint.frontend.lower import SyntaxProblem, by_libcst, lower
from memlint.frontend.unit_text import UnitText
from memlint.frontend.units import split
from memlint.ir import nodes as ir


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a = b = c", "Assign([a, b], c)"),
        ("a, *b = c", "Assign([Display(tuple, [a, Starred(b)])], c)"),
        ("a.b @= c", "AugAssign(Attr(a, b), @, c)"),
        ("a >>= b; c **= d; e //= f", "AugAssign(a, >>, b) ; AugAssign(c, **, d) ; AugAssign(e, //, f)"),
        ("a: int", "AnnAssign(a, int, -)"),
        ("a: 'T' = 1", "AnnAssign(a, 'T', 1)"),
        ("del a, b[0]", "Delete([a, Subscript(b, 0)])"),
        ("del (a)", "Delete([a])"),
        ("del (a, b)", "Delete([a, b])"),
        ("del (a, b),", "Delete([Display(tuple, [a, b])])"),
        ("assert a, b", "Assert(a, b)"),
        ("raise", "Raise(-, -)"),
        ("raise A from b", "Raise(A, b)"),
        ("global a, b", "Scope(global, [a, b])"),
        ("import a.b as c, d", "Import([Alias(a.b, c), Alias(d, -)])"),
        ("from . import (a, b as c,)", "ImportFrom(, 1, [Alias(a, -), Alias(b, c)])"),
        ("from ...a.b import *", "ImportFrom(a.b, 3, [Alias(*, -)])"),
        ("type X[T: int] = list[T]", "Assign([X], Subscript(list, T))"),
        ("if a: pass\nelif b: x\nelse: y", "If(a, [Jump(pass)], [If(b, [ExprStmt(x)], [ExprStmt(y)])])"),
        ("for a, b in c: break\nelse: d", "For(Display(tuple, [a, b]), c, [Jump(break)], [ExprStmt(d)], False)"),
        ("for x in *a, b: continue", "For(x, Display(tuple, [Starred(a), b]), [Jump(continue)], [], False)"),
        ("while (a := b): c; d", "While(Walrus(a, b), [ExprStmt(c), ExprStmt(d)], [])"),
        ("while a: b\nelse: c", "While(a, [ExprStmt(b)], [ExprStmt(c)])"),
        ("with (a as b, c): d", "With([WithItem(a, b), WithItem(c, -)], [ExprStmt(d)], False)"),
        ("with a() as (b, c): d", "With([WithItem(Call(a, [], []), Display(tuple, [b, c]))], [ExprStmt(d)], False)"),
        (
            "try: a\nexcept B as c: d\nexcept (E, F): g\nexcept: h\nelse: i\nfinally: j",
            "Try([ExprStmt(a)], [Handler(B, c, [ExprStmt(d)]), Handler(Display(tuple, [E, F]), -, [ExprStmt(g)]), "
            "Handler(-, -, [ExprStmt(h)])], [ExprStmt(i)], [ExprStmt(j)])",
        ),
        ("try: a\nexcept* B: c", "Try([ExprStmt(a)], [Handler(B, -, [ExprStmt(c)])], [], [])"),
        ("def f(): return", "FunctionDef(f, [], [], -, [Return(-)], False, False)"),
        ("def f(): return *a, b", "FunctionDef(f, [], [], -, [Return(Display(tuple, [Starred(a), b]))], False, False)"),
        ("def f(): yield", "FunctionDef(f, [], [], -, [ExprStmt(Yield(-, False))], False, True)"),
        ("def f(): a = yield from b", "FunctionDef(f, [], [], -, [Assign([a], Yield(b, True))], False, True)"),
        (
            "def f(): lambda: (yield)",
            "FunctionDef(f, [], [], -, [ExprStmt(Lambda([], Yield(-, False)))], False, False)",
        ),
        (
            "def f():\n  def g(): yield\n  nonlocal x",
            "FunctionDef(f, [], [], -, [FunctionDef(g, [], [], -, [ExprStmt(Yield(-, False))], False, True), "
            "Scope(nonlocal, [x])], False, False)",
        ),
        (
            "@a.b\n@c(1)\nasync def f[T](x: T = 1, /, *a: int) -> T: await x",
            "FunctionDef(f, [Param(x, positional-only, T, 1), Param(a, star, int, -)], [Attr(a, b), Call(c, [1], [])], "
            "T, [ExprStmt(Await(x))], True, False)",
        ),
        (
            "async def f():\n  async for a in b: [c async for c in d]\n  async with e: pass",
            "FunctionDef(f, [], [], -, [For(a, b, [ExprStmt(Comprehension(list, c, -, [CompFor(c, d, [], True)]))], "
            "[], True), With([WithItem(e, -)], [Jump(pass)], True)], True, False)",
        ),
        ("class A: 'doc'", "ClassDef(A, [], [], [], [ExprStmt('doc')])"),
        (
            "@d\nclass A[T](B, *c, metaclass=M, **k): x: int",
            "ClassDef(A, [B, Starred(c)], [Keyword(metaclass, M), Keyword(-, k)], [d], [AnnAssign(x, int, -)])",
        ),
        (
            "match a, b:\n case 1 | -2 | 'x': pass\n case _: pass",
            "Match(Display(tuple, [a, b]), [Case([], [1, Unary(-, 2), 'x'], -, [Jump(pass)]), "
            "Case([], [], -, [Jump(pass)])])",
        ),
        (
            "match a:\n case P(x, y=[z, *r]) as w if g: pass",
            "Match(a, [Case([x, z, r, w], [P], g, [Jump(pass)])])",
        ),
        (
            "match a:\n case {'k': v, q.K: None, **rest} | (v, *_, rest): pass",
            "Match(a, [Case([v, rest], ['k', Attr(q, K), None], -, [Jump(pass)])])",
        ),
        ("match = case = type = 1", "Assign([match, case, type], 1)"),
        ("", ""),
        ("# only a comment", ""),
        ("a  # no newline at the end", "ExprStmt(a)"),
        ("\x0ca\n\x0cb", "ExprStmt(a) ; ExprStmt(b)"),
        ("if a:\n\tb\n\tif c:\n\t\td", "If(a, [ExprStmt(b), If(c, [ExprStmt(d)], [])], [])"),
        ("if a:\r\n  b\r\nc", "If(a, [ExprStmt(b)], []) ; ExprStmt(c)"),
        ("if a:\r  b\rc", "If(a, [ExprStmt(b)], []) ; ExprStmt(c)"),
        ("a = '''x\r\ny'''", r"Assign([a], 'x\ny')"),
        ("a = \\\n  b", "Assign([a], b)"),
    ],
)
def test_a_statement(say, source, expected):
    assert say(source) == expected


PROGRAM = """\
@wrap(1)
class Meter(Base, metaclass=Meta):
    def update(self, loss, *rest, n=1):
        for i, x in enumerate(rest):
            self.total[i, *rest] += loss * n if x else -f"{n:{i}}"
        match loss:
            case Tensor(grad_fn=g) if g: return lambda a=n: a
"""


def test_ordinals_count_every_record_once_in_source_order_parents_first():
    unit = lower(split(PROGRAM)[1])
    seen: list[int] = []

    def walk(value: object) -> None:
        if isinstance(value, tuple):
            for each in value:
                walk(each)
        elif isinstance(value, msgspec.Struct):
            if hasattr(value, "at"):
                seen.append(value.at)
            for field in value.__struct_fields__:
                walk(getattr(value, field))

    walk(unit.body)
    assert sorted(seen) == list(range(unit.count))
    assert lower(split(PROGRAM)[1]) == unit


def test_a_unit_survives_serialisation():
    unit = lower(split(PROGRAM)[1])
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(unit), type=ir.Unit) == unit


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("x = 1\nx.cuda(async=True)\n", 11, 8),
        ("print 'a'\n", 10, 1),
        ("x = (\n", 10, 5),
        ("\n\nx = '\ud800'\n", 12, 6),
        ("x = 1\0\n", 10, 1),
        ("if a:\n\tb\n        c\n", 12, 1),
    ],
)
def test_what_cannot_be_parsed_is_a_problem_at_its_place_in_the_file(text, line, column):
    with pytest.raises(SyntaxProblem) as caught:
        lower(UnitText("f", 1, 10, text))
    assert (caught.value.line, caught.value.message != "") == (line, True)
    assert caught.value.column >= 1


@pytest.mark.parametrize(
    "source", ["del (a, b)", "del ((a, b))", "del ([a, b])", "del (a, b),", "del a, b", "del (\n (a, b)\n)"]
)
def test_both_trees_read_a_delete_alike(source: str) -> None:
    unit = UnitText("", 0, 1, source)
    assert lower(unit) == by_libcst(unit)
