"""Expressions of libcst's tree -> expressions of the IR."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import libcst as cst

from memlint.frontend import literals
from memlint.ir import nodes as ir


class Lowering:
    """The state of one walk: the next ordinal, and whether the current function contains a ``yield``."""

    __slots__ = ("at", "yields")

    def __init__(self) -> None:
        self.at = 0
        self.yields = False

    def enter(self, node: cst.CSTNode, end: cst.CSTNode | None = None) -> int:
        """The ordinal of the next record, which stands for ``node`` (for all from ``node`` to ``end``)."""
        at = self.at
        self.at = at + 1
        return at

    def expr(self, node: cst.CSTNode) -> ir.Expr:
        return _EXPRESSIONS[type(node)](self, node)

    def optional(self, node: cst.CSTNode | None) -> ir.Expr | None:
        return None if node is None else _EXPRESSIONS[type(node)](self, node)

    def each(self, nodes: Iterable[cst.CSTNode]) -> tuple[ir.Expr, ...]:
        return tuple([_EXPRESSIONS[type(node)](self, node) for node in nodes])


BINARY: dict[type[cst.CSTNode], str] = {
    cst.Add: "+", cst.Subtract: "-", cst.Multiply: "*", cst.Divide: "/", cst.FloorDivide: "//", cst.Modulo: "%",
    cst.Power: "**", cst.MatrixMultiply: "@", cst.BitAnd: "&", cst.BitOr: "|", cst.BitXor: "^", cst.LeftShift: "<<",
    cst.RightShift: ">>",
}  # fmt: skip
_UNARY: dict[type[cst.CSTNode], str] = {cst.Minus: "-", cst.Plus: "+", cst.BitInvert: "~", cst.Not: "not"}
_COMPARE: dict[type[cst.CSTNode], str] = {
    cst.Equal: "==", cst.NotEqual: "!=", cst.LessThan: "<", cst.LessThanEqual: "<=", cst.GreaterThan: ">",
    cst.GreaterThanEqual: ">=", cst.Is: "is", cst.IsNot: "is not", cst.In: "in", cst.NotIn: "not in",
}  # fmt: skip
_SINGLETONS: dict[str, tuple[str, bool | None]] = {
    "None": ("None", None), "True": ("bool", True), "False": ("bool", False),
}  # fmt: skip


def _name(low: Lowering, node: cst.Name) -> ir.Expr:
    text = node.value
    if text in _SINGLETONS:
        return ir.Const(low.enter(node), *_SINGLETONS[text])
    return ir.Name(low.enter(node), literals.identifier(text))


def _attribute(low: Lowering, node: cst.Attribute) -> ir.Expr:
    at = low.enter(node)
    return ir.Attr(at, low.expr(node.value), literals.identifier(node.attr.value))


def _integer(low: Lowering, node: cst.Integer) -> ir.Expr:
    return ir.Const(low.enter(node), "int", literals.integer(node.value))


def _float(low: Lowering, node: cst.Float) -> ir.Expr:
    return ir.Const(low.enter(node), "float", literals.floating(node.value))


def _imaginary(low: Lowering, node: cst.Imaginary) -> ir.Expr:
    return ir.Const(low.enter(node), "complex", None)


def _ellipsis(low: Lowering, node: cst.Ellipsis) -> ir.Expr:
    return ir.Const(low.enter(node), "Ellipsis", None)


def _string(low: Lowering, node: cst.SimpleString) -> ir.Expr:
    return ir.Const(low.enter(node), *literals.string(node.value))


def _strings(node: cst.ConcatenatedString) -> Iterator[cst.CSTNode]:
    """The strings of a concatenation, in source order. libcst nests them to the right."""
    rest: cst.CSTNode = node
    while isinstance(rest, cst.ConcatenatedString):
        yield rest.left
        rest = rest.right
    yield rest


def _concatenated(low: Lowering, node: cst.ConcatenatedString) -> ir.Expr:
    at = low.enter(node)
    strings = list(_strings(node))
    simple = [string.value for string in strings if isinstance(string, cst.SimpleString)]
    if len(simple) < len(strings):
        return ir.FormattedString(at, tuple([part for string in strings for part in _replacements(low, string)]))
    values = [literals.string(text) for text in simple]
    if values[0][0] == "bytes":
        return ir.Const(at, "bytes", None)
    return ir.Const(at, "str", "".join([value or "" for _, value in values])[: literals.MAX_STRING])


def _formatted(low: Lowering, node: cst.FormattedString | cst.TemplatedString) -> ir.Expr:
    at = low.enter(node)
    return ir.FormattedString(at, tuple(_replacements(low, node)))


def _replacements(low: Lowering, node: Any) -> Iterator[ir.Expr]:
    """The replacement expressions of an f-string or t-string, those inside format specs after their own."""
    for part in getattr(node, "parts", ()):
        if isinstance(part, (cst.FormattedStringExpression, cst.TemplatedStringExpression)):
            yield low.expr(part.expression)
            for nested in part.format_spec or ():
                yield from _replacements(low, _Spec((nested,)))


class _Spec:
    """The parts of a format spec, shaped like a string."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self.parts = parts


def _call(low: Lowering, node: cst.Call) -> ir.Expr:
    at = low.enter(node)
    func = low.expr(node.func)
    args, keywords = arguments(low, node.args)
    return ir.Call(at, func, args, keywords)


def arguments(low: Lowering, nodes: Iterable[cst.Arg]) -> tuple[tuple[ir.Expr, ...], tuple[ir.Keyword, ...]]:
    """The positional and keyword arguments of a call or class header."""
    args: list[ir.Expr] = []
    keywords: list[ir.Keyword] = []
    for node in nodes:
        if node.keyword is not None:
            keywords.append(ir.Keyword(literals.identifier(node.keyword.value), low.expr(node.value)))
        elif node.star == "**":
            keywords.append(ir.Keyword(None, low.expr(node.value)))
        elif node.star == "*":
            args.append(_starred(low, node))
        else:
            args.append(low.expr(node.value))
    return tuple(args), tuple(keywords)


def _starred(low: Lowering, node: cst.Arg | cst.StarredElement | cst.Index) -> ir.Expr:
    at = low.enter(node)
    return ir.Starred(at, low.expr(node.value))


def _element(low: Lowering, node: cst.Element) -> ir.Expr:
    return low.expr(node.value)


def _subscript(low: Lowering, node: cst.Subscript) -> ir.Expr:
    at = low.enter(node)
    value = low.expr(node.value)
    parts = node.slice
    if len(parts) == 1 and isinstance(parts[0].comma, cst.MaybeSentinel):
        only = parts[0].slice
        if not (isinstance(only, cst.Index) and only.star):
            return ir.Subscript(at, value, low.expr(only))
    tuple_at = low.enter(parts[0], parts[-1].slice)
    return ir.Subscript(at, value, ir.Display(tuple_at, "tuple", low.each([part.slice for part in parts])))


def _index(low: Lowering, node: cst.Index) -> ir.Expr:
    return _starred(low, node) if node.star else low.expr(node.value)


def _slice(low: Lowering, node: cst.Slice) -> ir.Expr:
    at = low.enter(node)
    return ir.Slice(at, low.optional(node.lower), low.optional(node.upper), low.optional(node.step))


def _binary(low: Lowering, node: cst.BinaryOperation) -> ir.Expr:
    at = low.enter(node)
    return ir.Binary(at, BINARY[type(node.operator)], low.expr(node.left), low.expr(node.right))


def _boolean(low: Lowering, node: cst.BooleanOperation) -> ir.Expr:
    at = low.enter(node)
    op = "and" if isinstance(node.operator, cst.And) else "or"
    return ir.BoolOp(at, op, low.expr(node.left), low.expr(node.right))


def _unary(low: Lowering, node: cst.UnaryOperation) -> ir.Expr:
    at = low.enter(node)
    return ir.Unary(at, _UNARY[type(node.operator)], low.expr(node.expression))


def _comparison(low: Lowering, node: cst.Comparison) -> ir.Expr:
    at = low.enter(node)
    left = low.expr(node.left)
    ops = tuple([_COMPARE[type(target.operator)] for target in node.comparisons])
    return ir.Compare(at, left, ops, low.each([target.comparator for target in node.comparisons]))


def _ifexp(low: Lowering, node: cst.IfExp) -> ir.Expr:
    at = low.enter(node)
    body = low.expr(node.body)
    return ir.IfExp(at, low.expr(node.test), body, low.expr(node.orelse))


def _display(kind: str) -> Callable[[Lowering, Any], ir.Expr]:
    def handler(low: Lowering, node: cst.List | cst.Tuple | cst.Set) -> ir.Expr:
        at = low.enter(node)
        return ir.Display(at, kind, low.each(node.elements))

    return handler


def _dict(low: Lowering, node: cst.Dict) -> ir.Expr:
    at = low.enter(node)
    keys: list[ir.Expr | None] = []
    values: list[ir.Expr] = []
    for element in node.elements:
        keys.append(low.expr(element.key) if isinstance(element, cst.DictElement) else None)
        values.append(low.expr(element.value))
    return ir.DictDisplay(at, tuple(keys), tuple(values))


def _fors(low: Lowering, node: cst.CompFor | None) -> tuple[ir.CompFor, ...]:
    fors: list[ir.CompFor] = []
    while node is not None:
        target, over = low.expr(node.target), low.expr(node.iter)
        ifs = low.each([condition.test for condition in node.ifs])
        fors.append(ir.CompFor(target, over, ifs, node.asynchronous is not None))
        node = node.inner_for_in
    return tuple(fors)


def _comprehension(kind: str) -> Callable[[Lowering, Any], ir.Expr]:
    def handler(low: Lowering, node: cst.ListComp | cst.SetComp | cst.GeneratorExp) -> ir.Expr:
        at = low.enter(node)
        element = low.expr(node.elt)
        return ir.Comprehension(at, kind, element, None, _fors(low, node.for_in))

    return handler


def _dict_comprehension(low: Lowering, node: cst.DictComp) -> ir.Expr:
    at = low.enter(node)
    key = low.expr(node.key)
    value = low.expr(node.value)
    return ir.Comprehension(at, "dict", value, key, _fors(low, node.for_in))


def _starred_dict_comprehension(low: Lowering, node: cst.StarredDictComp) -> ir.Expr:
    """``{**d for d in ds}`` (PEP 798): the element is the mapping, without a key."""
    at = low.enter(node)
    element = low.expr(node.value)
    return ir.Comprehension(at, "dict", element, None, _fors(low, node.for_in))


def parameters(low: Lowering, node: cst.Parameters) -> tuple[ir.Param, ...]:
    params = [_param(low, each, "positional-only") for each in node.posonly_params]
    params += [_param(low, each, "positional") for each in node.params]
    if isinstance(node.star_arg, cst.Param):
        params.append(_param(low, node.star_arg, "star"))
    params += [_param(low, each, "keyword-only") for each in node.kwonly_params]
    if node.star_kwarg is not None:
        params.append(_param(low, node.star_kwarg, "double-star"))
    return tuple(params)


def _param(low: Lowering, node: cst.Param, kind: str) -> ir.Param:
    at = low.enter(node)
    annotation = None if node.annotation is None else low.expr(node.annotation.annotation)
    return ir.Param(at, literals.identifier(node.name.value), kind, annotation, low.optional(node.default))


def _lambda(low: Lowering, node: cst.Lambda) -> ir.Expr:
    at = low.enter(node)
    params = parameters(low, node.params)
    yields = low.yields
    body = low.expr(node.body)
    low.yields = yields
    return ir.Lambda(at, params, body)


def _walrus(low: Lowering, node: cst.NamedExpr) -> ir.Expr:
    at = low.enter(node)
    return ir.Walrus(at, low.expr(node.target), low.expr(node.value))


def _await(low: Lowering, node: cst.Await) -> ir.Expr:
    at = low.enter(node)
    return ir.Await(at, low.expr(node.expression))


def _yield(low: Lowering, node: cst.Yield) -> ir.Expr:
    at = low.enter(node)
    low.yields = True
    if isinstance(node.value, cst.From):
        return ir.Yield(at, low.expr(node.value.item), True)
    return ir.Yield(at, low.optional(node.value), False)


_EXPRESSIONS: dict[type[cst.CSTNode], Callable[[Lowering, Any], ir.Expr]] = {
    cst.Name: _name,
    cst.Attribute: _attribute,
    cst.Integer: _integer,
    cst.Float: _float,
    cst.Imaginary: _imaginary,
    cst.Ellipsis: _ellipsis,
    cst.SimpleString: _string,
    cst.ConcatenatedString: _concatenated,
    cst.FormattedString: _formatted,
    cst.TemplatedString: _formatted,
    cst.Call: _call,
    cst.StarredElement: _starred,
    cst.Element: _element,
    cst.Subscript: _subscript,
    cst.Index: _index,
    cst.Slice: _slice,
    cst.BinaryOperation: _binary,
    cst.BooleanOperation: _boolean,
    cst.UnaryOperation: _unary,
    cst.Comparison: _comparison,
    cst.IfExp: _ifexp,
    cst.List: _display("list"),
    cst.Tuple: _display("tuple"),
    cst.Set: _display("set"),
    cst.Dict: _dict,
    cst.ListComp: _comprehension("list"),
    cst.SetComp: _comprehension("set"),
    cst.GeneratorExp: _comprehension("generator"),
    cst.DictComp: _dict_comprehension,
    cst.Lambda: _lambda,
    cst.NamedExpr: _walrus,
    cst.Await: _await,
    cst.Yield: _yield,
    cst.StarredDictComp: _starred_dict_comprehension,
}
