from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a.b.c", "Attr(Attr(a, b), c)"),
        ("f(a, *b, k=c, **d)", "Call(f, [a, Starred(b)], [Keyword(k, c), Keyword(-, d)])"),
        ("f(x for x in y)", "Call(f, [Comprehension(generator, x, -, [CompFor(x, y, [], False)])], [])"),
        ("a[1]", "Subscript(a, 1)"),
        ("a[1,]", "Subscript(a, Display(tuple, [1]))"),
        ("a[1:b, ..., ::2]", "Subscript(a, Display(tuple, [Slice(1, b, -), Ellipsis, Slice(-, -, 2)]))"),
        ("a[*b]", "Subscript(a, Display(tuple, [Starred(b)]))"),
        ("a[b, *c]", "Subscript(a, Display(tuple, [b, Starred(c)]))"),
        ("a + b * c", "Binary(+, a, Binary(*, b, c))"),
        ("a - b - c", "Binary(-, Binary(-, a, b), c)"),
        ("a @ b // c ** -d", "Binary(//, Binary(@, a, b), Binary(**, c, Unary(-, d)))"),
        ("a << b >> c & d | e ^ f % g / h", "Binary(|, Binary(&, Binary(>>, Binary(<<, a, b), c), d), "
         "Binary(^, e, Binary(/, Binary(%, f, g), h)))"),
        ("not a or ~b and +c", "BoolOp(or, Unary(not, a), BoolOp(and, Unary(~, b), Unary(+, c)))"),
        ("a<b<=c!=d", "Compare(a, [<, <=, !=], [b, c, d])"),
        ("a not  in b is not\tc", "Compare(a, [not in, is not], [b, c])"),
        ("a is b in c", "Compare(a, [is, in], [b, c])"),
        ("a if b else c", "IfExp(b, a, c)"),
        ("[a, *b]", "Display(list, [a, Starred(b)])"),
        ("(a,)", "Display(tuple, [a])"),
        ("()", "Display(tuple, [])"),
        ("a, b", "Display(tuple, [a, b])"),
        ("{a, b}", "Display(set, [a, b])"),
        ("{a: 1, **b}", "DictDisplay([a, -], [1, b])"),
        ("[a for a in b if c if d for e in f]", "Comprehension(list, a, -, [CompFor(a, b, [c, d], False), "
         "CompFor(e, f, [], False)])"),
        ("{a for a in b}", "Comprehension(set, a, -, [CompFor(a, b, [], False)])"),
        ("{k: v for k, v in b}", "Comprehension(dict, v, k, [CompFor(Display(tuple, [k, v]), b, [], False)])"),
        ("{**d for d in e}", "Comprehension(dict, d, -, [CompFor(d, e, [], False)])"),
        ("[*d for d in e]", "Comprehension(list, Starred(d), -, [CompFor(d, e, [], False)])"),
        ("lambda: 0", "Lambda([], 0)"),
        ("lambda a, /, b=1, *c, d=2, **e: a", "Lambda([Param(a, positional-only, -, -), Param(b, positional, -, 1), "
         "Param(c, star, -, -), Param(d, keyword-only, -, 2), Param(e, double-star, -, -)], a)"),
        ("lambda *, a: a", "Lambda([Param(a, keyword-only, -, -)], a)"),
        ("(a := b)", "Walrus(a, b)"),
        ("((a))", "a"),
        ("print", "print"),
    ],
)  # fmt: skip
def test_an_expression(say, source, expected):
    assert say(source) == f"ExprStmt({expected})"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("1_000", "1000"),
        ("0xff", "255"),
        ("0o17", "15"),
        ("0b11", "3"),
        ("00", "0"),
        (str(2**63 - 1), str(2**63 - 1)),
        (str(2**63), "9.223372036854776e+18"),
        ("9" * 5000, "inf"),
        ("0x" + "f" * 400, "inf"),
        ("1_0.5e-1", "1.05"),
        ("1e999", "inf"),
        ("2j", "complex"),
        ("True", "True"),
        ("None", "None"),
        ("...", "Ellipsis"),
        ("b'x'", "bytes"),
        ("rb'x' b'y'", "bytes"),
        ("'a'", "'a'"),
        ("''", "''"),
        ("''''''", "''"),
        ("'''a\nb'''", r"'a\nb'"),
        (r"'a\n\x41\101\u0042\N{BULLET}\q'", r"'a\nAAB•\\q'"),
        (r"'\ud800'", "'\ufffd'"),
        (r"R'\n'", r"'\\n'"),
        (r"u'\''", '''"'"'''),
        ("'a\\\nb'", "'ab'"),
        ("'a' \"b\"", "'ab'"),
        ("'" + "x" * 300 + "'", repr("x" * 200)),
    ],
)
def test_a_literal(say, source, expected):
    assert say(source) == f"ExprStmt({expected})"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("f'{a} {b.c!r:>{width}}'", "a, Attr(b, c), width"),
        ("f'{a=}' 'x' f'{b}'", "a, b"),
        ("'x' 'y' f'none'", ""),
        ("f'{f\"{a}\"}'", "FormattedString([a])"),
        ("f'{a:{b:{c}}}'", "a, b, c"),
        ("t'{a}'", "a"),
    ],
)
def test_a_formatted_string_is_its_replacement_expressions(say, source, expected):
    assert say(source) == f"ExprStmt(FormattedString([{expected}]))"


def test_identifiers_are_compared_as_python_does(say):
    assert say("ﬁle.ﬁle = 名") == "Assign([Attr(file, file)], 名)"
