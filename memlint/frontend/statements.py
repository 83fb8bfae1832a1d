"""Statements of libcst's tree -> statements of the IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import libcst as cst

from memlint.frontend import literals
from memlint.frontend.expressions import BINARY, Lowering, arguments, parameters
from memlint.frontend.patterns import pattern
from memlint.ir import nodes as ir


def statements(low: Lowering, body: Sequence[cst.CSTNode]) -> tuple[ir.Stmt, ...]:
    """The statements of a body; small ones joined by semicolons become one each."""
    lowered: list[ir.Stmt] = []
    for node in body:
        if isinstance(node, cst.SimpleStatementLine):
            lowered.extend([_STATEMENTS[type(small)](low, small) for small in node.body])
        else:
            lowered.append(_STATEMENTS[type(node)](low, node))
    return tuple(lowered)


def _suite(low: Lowering, node: cst.BaseSuite) -> tuple[ir.Stmt, ...]:
    return statements(low, node.body)


def _orelse(low: Lowering, node: cst.If | cst.Else | cst.Finally | None) -> tuple[ir.Stmt, ...]:
    if node is None:
        return ()
    if isinstance(node, cst.If):
        return (_if(low, node),)
    return _suite(low, node.body)


def _assign(low: Lowering, node: cst.Assign) -> ir.Stmt:
    at = low.enter(node)
    targets = low.each([target.target for target in node.targets])
    return ir.Assign(at, targets, low.expr(node.value))


def _type_alias(low: Lowering, node: cst.TypeAlias) -> ir.Stmt:
    at = low.enter(node)
    return ir.Assign(at, (low.expr(node.name),), low.expr(node.value))


_AUGMENTED: dict[type[cst.CSTNode], str] = {
    getattr(cst, f"{kind.__name__}Assign"): text for kind, text in BINARY.items()
}


def _aug_assign(low: Lowering, node: cst.AugAssign) -> ir.Stmt:
    at = low.enter(node)
    return ir.AugAssign(at, low.expr(node.target), _AUGMENTED[type(node.operator)], low.expr(node.value))


def _ann_assign(low: Lowering, node: cst.AnnAssign) -> ir.Stmt:
    at = low.enter(node)
    target, annotation = low.expr(node.target), low.expr(node.annotation.annotation)
    return ir.AnnAssign(at, target, annotation, low.optional(node.value))


def _expr(low: Lowering, node: cst.Expr) -> ir.Stmt:
    at = low.enter(node)
    return ir.ExprStmt(at, low.expr(node.value))


def _return(low: Lowering, node: cst.Return) -> ir.Stmt:
    at = low.enter(node)
    return ir.Return(at, low.optional(node.value))


def _raise(low: Lowering, node: cst.Raise) -> ir.Stmt:
    at = low.enter(node)
    exc = low.optional(node.exc)
    return ir.Raise(at, exc, None if node.cause is None else low.expr(node.cause.item))


def _delete(low: Lowering, node: cst.Del) -> ir.Stmt:
    at = low.enter(node)
    target = node.target
    if isinstance(target, (cst.Tuple, cst.List)):
        return ir.Delete(at, low.each(target.elements))
    return ir.Delete(at, (low.expr(target),))


def _assert(low: Lowering, node: cst.Assert) -> ir.Stmt:
    at = low.enter(node)
    return ir.Assert(at, low.expr(node.test), low.optional(node.msg))


def _jump(kind: str) -> Callable[[Lowering, Any], ir.Stmt]:
    def handler(low: Lowering, node: cst.CSTNode) -> ir.Stmt:
        return ir.Jump(low.enter(node), kind)

    return handler


def _scope(kind: str) -> Callable[[Lowering, Any], ir.Stmt]:
    def handler(low: Lowering, node: cst.Global | cst.Nonlocal) -> ir.Stmt:
        names = tuple([literals.identifier(item.name.value) for item in node.names])
        return ir.Scope(low.enter(node), kind, names)

    return handler


def dotted(node: cst.CSTNode | None) -> str:
    """The text of a dotted name; "" for None."""
    parts: list[str] = []
    while isinstance(node, cst.Attribute):
        parts.append(node.attr.value)
        node = node.value
    if isinstance(node, cst.Name):
        parts.append(node.value)
    return literals.identifier(".".join(reversed(parts)))


def _alias(node: cst.ImportAlias) -> ir.Alias:
    return ir.Alias(dotted(node.name), None if node.asname is None else dotted(node.asname.name))


def _import(low: Lowering, node: cst.Import) -> ir.Stmt:
    return ir.Import(low.enter(node), tuple([_alias(name) for name in node.names]))


def _import_from(low: Lowering, node: cst.ImportFrom) -> ir.Stmt:
    at = low.enter(node)
    names = node.names
    aliases = (ir.Alias("*", None),) if isinstance(names, cst.ImportStar) else tuple([_alias(name) for name in names])
    return ir.ImportFrom(at, dotted(node.module), len(node.relative), aliases)


def _tested(kind: type[ir.If] | type[ir.While]) -> Callable[[Lowering, Any], ir.Stmt]:
    def handler(low: Lowering, node: cst.If | cst.While) -> ir.Stmt:
        at = low.enter(node)
        test = low.expr(node.test)
        body = _suite(low, node.body)
        return kind(at, test, body, _orelse(low, node.orelse))

    return handler


_if = _tested(ir.If)


def _for(low: Lowering, node: cst.For) -> ir.Stmt:
    at = low.enter(node)
    target, over = low.expr(node.target), low.expr(node.iter)
    body = _suite(low, node.body)
    return ir.For(at, target, over, body, _orelse(low, node.orelse), node.asynchronous is not None)


def _with(low: Lowering, node: cst.With) -> ir.Stmt:
    at = low.enter(node)
    items = tuple([_with_item(low, item) for item in node.items])
    return ir.With(at, items, _suite(low, node.body), node.asynchronous is not None)


def _with_item(low: Lowering, node: cst.WithItem) -> ir.WithItem:
    context = low.expr(node.item)
    return ir.WithItem(context, None if node.asname is None else low.expr(node.asname.name))


def _try(low: Lowering, node: cst.Try | cst.TryStar) -> ir.Stmt:
    at = low.enter(node)
    body = _suite(low, node.body)
    handlers = tuple([_handler(low, handler) for handler in node.handlers])
    orelse = _orelse(low, node.orelse)
    return ir.Try(at, body, handlers, orelse, _orelse(low, node.finalbody))


def _handler(low: Lowering, node: cst.ExceptHandler | cst.ExceptStarHandler) -> ir.Handler:
    at = low.enter(node)
    caught = low.optional(node.type)
    name = None if node.name is None else dotted(node.name.name)
    return ir.Handler(at, caught, name, _suite(low, node.body))


def _match(low: Lowering, node: cst.Match) -> ir.Stmt:
    at = low.enter(node)
    subject = low.expr(node.subject)
    return ir.Match(at, subject, tuple([_case(low, case) for case in node.cases]))


def _case(low: Lowering, node: cst.MatchCase) -> ir.Case:
    captures, values = pattern(low, node.pattern)
    guard = low.optional(node.guard)
    return ir.Case(captures, values, guard, _suite(low, node.body))


def _function(low: Lowering, node: cst.FunctionDef) -> ir.Stmt:
    at = low.enter(node)
    decorators = low.each([decorator.decorator for decorator in node.decorators])
    params = parameters(low, node.params)
    returns = None if node.returns is None else low.expr(node.returns.annotation)
    outer, low.yields = low.yields, False
    body = _suite(low, node.body)
    is_generator, low.yields = low.yields, outer
    is_async = node.asynchronous is not None
    name = literals.identifier(node.name.value)
    return ir.FunctionDef(at, name, params, decorators, returns, body, is_async, is_generator)


def _class(low: Lowering, node: cst.ClassDef) -> ir.Stmt:
    at = low.enter(node)
    decorators = low.each([decorator.decorator for decorator in node.decorators])
    # libcst keeps arguments in two lists, so `class A(metaclass=M, *bases)` has its star in the second.
    bases, keywords = arguments(low, [*node.bases, *node.keywords])
    name = literals.identifier(node.name.value)
    return ir.ClassDef(at, name, bases, keywords, decorators, _suite(low, node.body))


_STATEMENTS: dict[type[cst.CSTNode], Callable[[Lowering, Any], ir.Stmt]] = {
    cst.Assign: _assign,
    cst.TypeAlias: _type_alias,
    cst.AugAssign: _aug_assign,
    cst.AnnAssign: _ann_assign,
    cst.Expr: _expr,
    cst.Return: _return,
    cst.Raise: _raise,
    cst.Del: _delete,
    cst.Assert: _assert,
    cst.Break: _jump("break"),
    cst.Continue: _jump("continue"),
    cst.Pass: _jump("pass"),
    cst.Global: _scope("global"),
    cst.Nonlocal: _scope("nonlocal"),
    cst.Import: _import,
    cst.ImportFrom: _import_from,
    cst.If: _if,
    cst.For: _for,
    cst.While: _tested(ir.While),
    cst.With: _with,
    cst.Try: _try,
    cst.TryStar: _try,
    cst.Match: _match,
    cst.FunctionDef: _function,
    cst.ClassDef: _class,
    # Lazy imports (Python 3.15) bind the same names.
    cst.LazyImport: _import,
    cst.LazyImportFrom: _import_from,
}
