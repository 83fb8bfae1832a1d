"""The source text of an expression, for messages and for the comparison of places."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from memlint.analysis.syntax.memo import kept
from memlint.ir import nodes as ir

#: precedence of operators; an operand of lower precedence needs parentheses
_BINDS = {
    **dict.fromkeys(("or",), 1),
    **dict.fromkeys(("and",), 2),
    **dict.fromkeys(("not",), 3),
    **dict.fromkeys(("|",), 5),
    **dict.fromkeys(("^",), 6),
    **dict.fromkeys(("&",), 7),
    **dict.fromkeys(("<<", ">>"), 8),
    **dict.fromkeys(("+", "-"), 9),
    **dict.fromkeys(("*", "/", "//", "%", "@"), 10),
    **dict.fromkeys(("**",), 12),
}
_CHOICE, _COMPARISON, _SIGN, _AWAIT, _PRIMARY = 0, 4, 11, 13, 14
_BINDING = {
    ir.Unary: _SIGN,
    ir.Compare: _COMPARISON,
    ir.Await: _AWAIT,
    ir.IfExp: _CHOICE,
    ir.Lambda: _CHOICE,
    ir.Walrus: _CHOICE,
    ir.Yield: _CHOICE,
}


def text(expr: ir.Expr | None, limit: int = 60) -> str:
    """The source of an expression, shortened to ``limit`` characters."""
    if expr is None:
        return ""
    result = _whole(expr)
    return result if len(result) <= limit else result[: limit - 1] + "…"


@kept
def _whole(expr: ir.Expr) -> str:
    return _text(expr, 0)


def _binds(expr: ir.Expr) -> int:
    """The precedence of an expression."""
    if isinstance(expr, ir.Binary | ir.BoolOp) or (isinstance(expr, ir.Unary) and expr.op == "not"):
        return _BINDS[expr.op]
    return _BINDING.get(type(expr), _PRIMARY)


def _text(expr: ir.Expr | None, depth: int, place: int = 0) -> str:
    """``place``: the precedence that the expression needs to stand without parentheses."""
    if expr is None:
        return ""
    if depth > 6:
        return "…"
    write = _WRITTEN.get(type(expr))
    if write is None:
        return "…"
    plain: str = write(expr, depth + 1)
    return f"({plain})" if place and _binds(expr) < place and plain != "…" else plain


def _constant(expr: ir.Const, _: int) -> str:
    return repr(expr.value) if expr.value is not None else "None" if expr.kind == "None" else "…"


def _called(expr: ir.Call, inner: int) -> str:
    parts = [_text(arg, inner) for arg in expr.args]
    parts += [
        f"{word.name}={_text(word.value, inner)}" if word.name else f"**{_text(word.value, inner)}"
        for word in expr.keywords
    ]
    return f"{_text(expr.func, inner, _PRIMARY)}({', '.join(parts)})"


def _subscripted(expr: ir.Subscript, inner: int) -> str:
    index = expr.index
    several = isinstance(index, ir.Display) and index.kind == "tuple" and len(index.elements) > 1
    shown = _text(index, inner)
    shown = shown[1:-1] if several and shown.startswith("(") else shown
    return f"{_text(expr.value, inner, _PRIMARY)}[{shown}]"


def _operation(expr: ir.Binary | ir.BoolOp, inner: int) -> str:
    binds = _binds(expr)
    left, right = (binds + 1, binds) if expr.op == "**" else (binds, binds + 1)
    return f"{_text(expr.left, inner, left)} {expr.op} {_text(expr.right, inner, right)}"


def _displayed(expr: ir.Display, inner: int) -> str:
    joined = ", ".join([_text(element, inner) for element in expr.elements])
    comma = "," if len(expr.elements) == 1 else ""
    return {"list": f"[{joined}]", "tuple": f"({joined}{comma})", "set": f"{{{joined}}}"}[expr.kind]


def _choice(expr: ir.IfExp, inner: int) -> str:
    test, other = _text(expr.test, inner, 1), _text(expr.orelse, inner)
    return f"{_text(expr.body, inner, 1)} if {test} else {other}"


def _comparison(expr: ir.Compare, inner: int) -> str:
    pairs = zip(expr.ops, expr.rights, strict=False)
    tail = "".join([f" {op} {_text(right, inner, _COMPARISON + 1)}" for op, right in pairs])
    return _text(expr.left, inner, _COMPARISON + 1) + tail


#: the writer of each type of expression; others are shown as "…"
_WRITTEN: dict[type, Callable[[Any, int], str]] = {
    ir.Name: lambda expr, _: str(expr.id),
    ir.Const: _constant,
    ir.Attr: lambda expr, inner: f"{_text(expr.value, inner, _PRIMARY)}.{expr.name}",
    ir.Call: _called,
    ir.Subscript: _subscripted,
    ir.Slice: lambda expr, inner: f"{_text(expr.lower, inner)}:{_text(expr.upper, inner)}",
    ir.Binary: _operation,
    ir.BoolOp: _operation,
    ir.Unary: lambda expr, inner: (
        f"{expr.op}{' ' if expr.op == 'not' else ''}{_text(expr.operand, inner, _binds(expr))}"
    ),
    ir.Display: _displayed,
    ir.IfExp: _choice,
    ir.Starred: lambda expr, inner: f"*{_text(expr.value, inner)}",
    ir.Await: lambda expr, inner: f"await {_text(expr.value, inner, _AWAIT)}",
    ir.Compare: _comparison,
}
