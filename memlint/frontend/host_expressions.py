"""Expressions of the host's syntax tree (``ast``) -> expressions of the IR: see `memlint.frontend.host`."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from memlint.frontend import literals
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern


class UnknownNodeError(Exception):
    """A class of nodes that is not supported, from a newer Python."""


class Handlers(dict[type, Callable[[Any, Any], Any]]):
    def __missing__(self, cls: type) -> Callable[[Any, Any], Any]:
        raise UnknownNodeError(cls.__name__)


class Walk:
    """The state of one walk: the next ordinal, and whether the current function contains a ``yield``."""

    __slots__ = ("at", "yields")

    def __init__(self) -> None:
        self.at = 0
        self.yields = False

    def enter(self, node: ast.AST, end: ast.AST | None = None) -> int:
        """The ordinal of the next record, which stands for ``node`` (for all from ``node`` to ``end``)."""
        at = self.at
        self.at = at + 1
        return at


def expr(walk: Walk, node: ast.expr) -> ir.Expr:
    lowered: ir.Expr = _EXPRESSIONS[type(node)](walk, node)
    return lowered


def optional(walk: Walk, node: ast.expr | None) -> ir.Expr | None:
    return None if node is None else _EXPRESSIONS[type(node)](walk, node)


def each(walk: Walk, nodes: Iterable[ast.expr]) -> tuple[ir.Expr, ...]:
    return tuple([_EXPRESSIONS[type(node)](walk, node) for node in nodes])


OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
    ast.USub: "-", ast.UAdd: "+", ast.Invert: "~", ast.Not: "not", ast.And: "and", ast.Or: "or",
    ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Is: "is",
    ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
_SURROGATE = lazy_pattern("[\ud800-\udfff]")


def _name(walk: Walk, node: ast.Name) -> ir.Expr:
    at = walk.enter(node)
    return ir.Name(at, node.id)


def _attribute(walk: Walk, node: ast.Attribute) -> ir.Expr:
    at = walk.enter(node)
    return ir.Attr(at, _EXPRESSIONS[type(node.value)](walk, node.value), node.attr)


def constant(walk: Walk, node: ast.Constant) -> ir.Expr:
    at = walk.enter(node)
    value: Any = node.value
    kind = type(value)
    if kind is str:
        value = value[: literals.MAX_STRING]
        # lone surrogates cannot be encoded, so they cannot be cached
        return ir.Const(at, "str", value if value.isascii() else _SURROGATE.sub("\ufffd", value))
    if kind is int:
        return ir.Const(at, "int", literals.bounded(value))
    if kind is bool or kind is float:
        return ir.Const(at, kind.__name__, value)
    return ir.Const(at, "None" if value is None else "Ellipsis" if value is ... else kind.__name__, None)


def _formatted(walk: Walk, node: Any) -> ir.Expr:
    at = walk.enter(node)
    return ir.FormattedString(at, tuple(_replacements(walk, node)))


def _replacements(walk: Walk, node: Any) -> Iterator[ir.Expr]:
    """The replacement expressions of an f-string or t-string, those inside format specs after their own."""
    for part in node.values:
        if not isinstance(part, ast.Constant):
            if isinstance(part, (ast.JoinedStr, *_TEMPLATE)):
                yield from _replacements(walk, part)
                continue
            yield expr(walk, part.value)
            if part.format_spec is not None:
                yield from _replacements(walk, part.format_spec)


def _call(walk: Walk, node: ast.Call) -> ir.Expr:
    at = walk.enter(node)
    func = _EXPRESSIONS[type(node.func)](walk, node.func)
    args, keywords = arguments(walk, node.args, node.keywords)
    return ir.Call(at, func, args, keywords)


def arguments(
    walk: Walk, positional: Sequence[ast.expr], named: Sequence[ast.keyword]
) -> tuple[tuple[ir.Expr, ...], tuple[ir.Keyword, ...]]:
    """The positional and keyword arguments of a call or class header. Ordinals are in source order (``f(a=1, *b)``)."""
    if not named:
        return tuple([_EXPRESSIONS[type(node)](walk, node) for node in positional]), ()
    if positional and _place(positional[-1]) > _place(named[0]):
        args: list[ir.Expr] = []
        keywords: list[ir.Keyword] = []
        both: list[ast.expr | ast.keyword] = [*positional, *named]
        for node in sorted(both, key=_place):
            if isinstance(node, ast.keyword):
                keywords.append(ir.Keyword(node.arg, expr(walk, node.value)))
            else:
                args.append(expr(walk, node))
        return tuple(args), tuple(keywords)
    return each(walk, positional), tuple([ir.Keyword(word.arg, expr(walk, word.value)) for word in named])


def _place(node: ast.expr | ast.keyword) -> tuple[int, int]:
    return node.lineno, node.col_offset


def _subscript(walk: Walk, node: ast.Subscript) -> ir.Expr:
    at = walk.enter(node)
    return ir.Subscript(at, expr(walk, node.value), expr(walk, node.slice))


def _slice(walk: Walk, node: ast.Slice) -> ir.Expr:
    at = walk.enter(node)
    return ir.Slice(at, optional(walk, node.lower), optional(walk, node.upper), optional(walk, node.step))


def _binary(walk: Walk, node: ast.BinOp) -> ir.Expr:
    at = walk.enter(node)
    return ir.Binary(at, OPERATORS[type(node.op)], expr(walk, node.left), expr(walk, node.right))


def _boolean(walk: Walk, node: ast.BoolOp) -> ir.Expr:
    """``a and b and c`` is one node of `ast`; in the IR it nests to the left."""
    op, count = OPERATORS[type(node.op)], len(node.values) - 1
    at = walk.enter(node)
    for last in reversed(node.values[1:-1]):
        walk.enter(node, last)
    found = expr(walk, node.values[0])
    for number, value in enumerate(node.values[1:], 1):
        found = ir.BoolOp(at + count - number, op, found, expr(walk, value))
    return found


def _unary(walk: Walk, node: ast.UnaryOp) -> ir.Expr:
    at = walk.enter(node)
    return ir.Unary(at, OPERATORS[type(node.op)], expr(walk, node.operand))


def _comparison(walk: Walk, node: ast.Compare) -> ir.Expr:
    at = walk.enter(node)
    left = expr(walk, node.left)
    return ir.Compare(at, left, tuple([OPERATORS[type(op)] for op in node.ops]), each(walk, node.comparators))


def _ifexp(walk: Walk, node: ast.IfExp) -> ir.Expr:
    at = walk.enter(node)
    body = expr(walk, node.body)
    return ir.IfExp(at, expr(walk, node.test), body, expr(walk, node.orelse))


def _display(kind: str) -> Callable[[Walk, Any], ir.Expr]:
    def handler(walk: Walk, node: ast.List | ast.Tuple | ast.Set) -> ir.Expr:
        at = walk.enter(node)
        return ir.Display(at, kind, each(walk, node.elts))

    return handler


def _dict(walk: Walk, node: ast.Dict) -> ir.Expr:
    at = walk.enter(node)
    keys: list[ir.Expr | None] = []
    values: list[ir.Expr] = []
    for key, value in zip(node.keys, node.values, strict=True):
        keys.append(optional(walk, key))
        values.append(expr(walk, value))
    return ir.DictDisplay(at, tuple(keys), tuple(values))


def _fors(walk: Walk, generators: Iterable[ast.comprehension]) -> tuple[ir.CompFor, ...]:
    return tuple(
        [
            ir.CompFor(expr(walk, part.target), expr(walk, part.iter), each(walk, part.ifs), bool(part.is_async))
            for part in generators
        ]
    )


def _comprehension(kind: str) -> Callable[[Walk, Any], ir.Expr]:
    def handler(walk: Walk, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> ir.Expr:
        at = walk.enter(node)
        element = expr(walk, node.elt)
        return ir.Comprehension(at, kind, element, None, _fors(walk, node.generators))

    return handler


def _dict_comprehension(walk: Walk, node: Any) -> ir.Expr:
    at = walk.enter(node)
    key = expr(walk, node.key)
    if node.value is None:  # {**d for d in ds} (PEP 798): the element is the mapping, without a key
        return ir.Comprehension(at, "dict", key, None, _fors(walk, node.generators))
    value = expr(walk, node.value)
    return ir.Comprehension(at, "dict", value, key, _fors(walk, node.generators))


def parameters(walk: Walk, node: ast.arguments) -> tuple[ir.Param, ...]:
    count = len(node.posonlyargs)
    before = [*node.posonlyargs, *node.args]
    defaults = [*[None] * (len(before) - len(node.defaults)), *node.defaults]
    found = [
        _param(walk, param, "positional-only" if number < count else "positional", defaults[number])
        for number, param in enumerate(before)
    ]
    if node.vararg is not None:
        found.append(_param(walk, node.vararg, "star", None))
    for param, default in zip(node.kwonlyargs, node.kw_defaults, strict=True):
        found.append(_param(walk, param, "keyword-only", default))
    if node.kwarg is not None:
        found.append(_param(walk, node.kwarg, "double-star", None))
    return tuple(found)


def _param(walk: Walk, node: ast.arg, kind: str, default: ast.expr | None) -> ir.Param:
    at = walk.enter(node)
    return ir.Param(at, node.arg, kind, optional(walk, node.annotation), optional(walk, default))


def _lambda(walk: Walk, node: ast.Lambda) -> ir.Expr:
    at = walk.enter(node)
    params = parameters(walk, node.args)
    yields = walk.yields
    body = expr(walk, node.body)
    walk.yields = yields
    return ir.Lambda(at, params, body)


def _walrus(walk: Walk, node: ast.NamedExpr) -> ir.Expr:
    at = walk.enter(node)
    return ir.Walrus(at, expr(walk, node.target), expr(walk, node.value))


def _starred(walk: Walk, node: ast.Starred) -> ir.Expr:
    at = walk.enter(node)
    return ir.Starred(at, expr(walk, node.value))


def _await(walk: Walk, node: ast.Await) -> ir.Expr:
    at = walk.enter(node)
    return ir.Await(at, expr(walk, node.value))


def _yield(walk: Walk, node: ast.Yield | ast.YieldFrom) -> ir.Expr:
    at = walk.enter(node)
    walk.yields = True
    return ir.Yield(at, optional(walk, node.value), isinstance(node, ast.YieldFrom))


#: the class of t-strings, if the running Python has them (3.14)
_TEMPLATE: tuple[type[Any], ...] = tuple([getattr(ast, "TemplateStr")] if hasattr(ast, "TemplateStr") else [])  # noqa: B009

_EXPRESSIONS = Handlers({
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Constant: constant,
    ast.JoinedStr: _formatted,
    **dict.fromkeys(_TEMPLATE, _formatted),
    ast.Call: _call,
    ast.Starred: _starred,
    ast.Subscript: _subscript,
    ast.Slice: _slice,
    ast.BinOp: _binary,
    ast.BoolOp: _boolean,
    ast.UnaryOp: _unary,
    ast.Compare: _comparison,
    ast.IfExp: _ifexp,
    ast.List: _display("list"),
    ast.Tuple: _display("tuple"),
    ast.Set: _display("set"),
    ast.Dict: _dict,
    ast.ListComp: _comprehension("list"),
    ast.SetComp: _comprehension("set"),
    ast.GeneratorExp: _comprehension("generator"),
    ast.DictComp: _dict_comprehension,
    ast.Lambda: _lambda,
    ast.NamedExpr: _walrus,
    ast.Await: _await,
    ast.Yield: _yield,
    ast.YieldFrom: _yield,
})  # fmt: skip
