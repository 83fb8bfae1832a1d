"""The host's syntax tree (`ast` of the running Python) -> statements of the IR.

It gives the same records and ordinals as the walk over libcst's tree (`memlint.frontend.statements`), at a tenth of the
cost. A test compares the two.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from memlint.frontend.host_expressions import (
    OPERATORS,
    Handlers,
    UnknownNodeError,
    Walk,
    arguments,
    constant,
    each,
    expr,
    optional,
    parameters,
)
from memlint.ir import nodes as ir


def lower_statements(body: Sequence[ast.stmt], walk: Walk | None = None) -> tuple[tuple[ir.Stmt, ...], int]:
    """The statements, and the number of ordinals used. ``walk``: counts the ordinals. Raises UnknownNodeError."""
    walk = walk or Walk()
    return _block(walk, body), walk.at


def _block(walk: Walk, body: Sequence[ast.stmt]) -> tuple[ir.Stmt, ...]:
    return tuple([_STATEMENTS[type(node)](walk, node) for node in body])


def _assign(walk: Walk, node: ast.Assign) -> ir.Stmt:
    at = walk.enter(node)
    return ir.Assign(at, each(walk, node.targets), expr(walk, node.value))


def _type_alias(walk: Walk, node: Any) -> ir.Stmt:
    at = walk.enter(node)
    return ir.Assign(at, (expr(walk, node.name),), expr(walk, node.value))


def _aug_assign(walk: Walk, node: ast.AugAssign) -> ir.Stmt:
    at = walk.enter(node)
    return ir.AugAssign(at, expr(walk, node.target), OPERATORS[type(node.op)], expr(walk, node.value))


def _ann_assign(walk: Walk, node: ast.AnnAssign) -> ir.Stmt:
    at = walk.enter(node)
    target, annotation = expr(walk, node.target), expr(walk, node.annotation)
    return ir.AnnAssign(at, target, annotation, optional(walk, node.value))


def _expression(walk: Walk, node: ast.Expr) -> ir.Stmt:
    at = walk.enter(node)
    return ir.ExprStmt(at, expr(walk, node.value))


def _return(walk: Walk, node: ast.Return) -> ir.Stmt:
    at = walk.enter(node)
    return ir.Return(at, optional(walk, node.value))


def _raise(walk: Walk, node: ast.Raise) -> ir.Stmt:
    at = walk.enter(node)
    return ir.Raise(at, optional(walk, node.exc), optional(walk, node.cause))


def _delete(walk: Walk, node: ast.Delete) -> ir.Stmt:
    at = walk.enter(node)
    only = node.targets[0]
    # `del (a, b)` deletes both, as `del a, b` does
    if len(node.targets) == 1 and isinstance(only, (ast.Tuple, ast.List)):
        if _end(only) != _end(node):
            raise UnknownNodeError  # more brackets or a comma follow; the tree has neither
        return ir.Delete(at, each(walk, only.elts))
    return ir.Delete(at, each(walk, node.targets))


def _end(node: ast.stmt | ast.expr) -> tuple[int | None, int | None]:
    return node.end_lineno, node.end_col_offset


def _assert(walk: Walk, node: ast.Assert) -> ir.Stmt:
    at = walk.enter(node)
    return ir.Assert(at, expr(walk, node.test), optional(walk, node.msg))


def _jump(kind: str) -> Callable[[Walk, Any], ir.Stmt]:
    return lambda walk, node: ir.Jump(walk.enter(node), kind)


def _scope(kind: str) -> Callable[[Walk, Any], ir.Stmt]:
    return lambda walk, node: ir.Scope(walk.enter(node), kind, tuple(node.names))


def _aliases(node: ast.Import | ast.ImportFrom) -> tuple[ir.Alias, ...]:
    return tuple([ir.Alias(alias.name, alias.asname) for alias in node.names])


def _import(walk: Walk, node: ast.Import) -> ir.Stmt:
    return ir.Import(walk.enter(node), _aliases(node))


def _import_from(walk: Walk, node: ast.ImportFrom) -> ir.Stmt:
    return ir.ImportFrom(walk.enter(node), node.module or "", node.level, _aliases(node))


def _tested(kind: type[ir.If] | type[ir.While]) -> Callable[[Walk, Any], ir.Stmt]:
    def read(walk: Walk, node: ast.If | ast.While) -> ir.Stmt:
        at = walk.enter(node)
        test = expr(walk, node.test)
        body = _block(walk, node.body)
        return kind(at, test, body, _block(walk, node.orelse))

    return read


def _for(walk: Walk, node: ast.For | ast.AsyncFor) -> ir.Stmt:
    at = walk.enter(node)
    target, over = expr(walk, node.target), expr(walk, node.iter)
    body = _block(walk, node.body)
    return ir.For(at, target, over, body, _block(walk, node.orelse), isinstance(node, ast.AsyncFor))


def _with(walk: Walk, node: ast.With | ast.AsyncWith) -> ir.Stmt:
    at = walk.enter(node)
    items = tuple(
        [ir.WithItem(expr(walk, item.context_expr), optional(walk, item.optional_vars)) for item in node.items]
    )
    return ir.With(at, items, _block(walk, node.body), isinstance(node, ast.AsyncWith))


def _try(walk: Walk, node: Any) -> ir.Stmt:
    at = walk.enter(node)
    body = _block(walk, node.body)
    handlers = tuple([_handler(walk, handler) for handler in node.handlers])
    orelse = _block(walk, node.orelse)
    return ir.Try(at, body, handlers, orelse, _block(walk, node.finalbody))


def _handler(walk: Walk, node: ast.ExceptHandler) -> ir.Handler:
    at = walk.enter(node)
    return ir.Handler(at, optional(walk, node.type), node.name, _block(walk, node.body))


def _match(walk: Walk, node: ast.Match) -> ir.Stmt:
    at = walk.enter(node)
    subject = expr(walk, node.subject)
    return ir.Match(at, subject, tuple([_case(walk, case) for case in node.cases]))


def _case(walk: Walk, node: ast.match_case) -> ir.Case:
    captures: dict[str, None] = {}
    values: list[ir.Expr] = []
    _pattern(walk, node.pattern, captures, values)
    guard = optional(walk, node.guard)
    return ir.Case(tuple(captures), tuple(values), guard, _block(walk, node.body))


def _pattern(walk: Walk, node: ast.pattern, captures: dict[str, None], values: list[ir.Expr]) -> None:
    """Collect the names that a pattern binds and the values that it compares with, in source order."""
    if isinstance(node, ast.MatchValue):
        values.append(expr(walk, node.value))
    elif isinstance(node, ast.MatchSingleton):
        values.append(constant(walk, ast.copy_location(ast.Constant(node.value), node)))
    elif isinstance(node, ast.MatchClass):
        values.append(expr(walk, node.cls))
        for inner in (*node.patterns, *node.kwd_patterns):
            _pattern(walk, inner, captures, values)
    elif isinstance(node, ast.MatchMapping):
        for key, inner in zip(node.keys, node.patterns, strict=True):
            values.append(expr(walk, key))
            _pattern(walk, inner, captures, values)
        if node.rest is not None:
            captures[node.rest] = None
    elif isinstance(node, ast.MatchAs | ast.MatchStar):
        if isinstance(node, ast.MatchAs) and node.pattern is not None:
            _pattern(walk, node.pattern, captures, values)
        if node.name is not None:
            captures[node.name] = None
    elif isinstance(node, ast.MatchSequence | ast.MatchOr):
        for inner in node.patterns:
            _pattern(walk, inner, captures, values)
    else:
        raise UnknownNodeError(type(node).__name__)


def _function(walk: Walk, node: ast.FunctionDef | ast.AsyncFunctionDef) -> ir.Stmt:
    at = walk.enter(node)
    decorators = each(walk, node.decorator_list)
    params = parameters(walk, node.args)
    returns = optional(walk, node.returns)
    outer, walk.yields = walk.yields, False
    body = _block(walk, node.body)
    is_generator, walk.yields = walk.yields, outer
    is_async = isinstance(node, ast.AsyncFunctionDef)
    return ir.FunctionDef(at, node.name, params, decorators, returns, body, is_async, is_generator)


def _class(walk: Walk, node: ast.ClassDef) -> ir.Stmt:
    at = walk.enter(node)
    decorators = each(walk, node.decorator_list)
    bases, keywords = arguments(walk, node.bases, node.keywords)
    return ir.ClassDef(at, node.name, bases, keywords, decorators, _block(walk, node.body))


_STATEMENTS = Handlers({
    ast.Assign: _assign,
    ast.AugAssign: _aug_assign,
    ast.AnnAssign: _ann_assign,
    ast.Expr: _expression,
    ast.Return: _return,
    ast.Raise: _raise,
    ast.Delete: _delete,
    ast.Assert: _assert,
    ast.Break: _jump("break"),
    ast.Continue: _jump("continue"),
    ast.Pass: _jump("pass"),
    ast.Global: _scope("global"),
    ast.Nonlocal: _scope("nonlocal"),
    ast.Import: _import,
    ast.ImportFrom: _import_from,
    ast.If: _tested(ir.If),
    ast.For: _for,
    ast.AsyncFor: _for,
    ast.While: _tested(ir.While),
    ast.With: _with,
    ast.AsyncWith: _with,
    ast.Try: _try,
    ast.Match: _match,
    ast.FunctionDef: _function,
    ast.AsyncFunctionDef: _function,
    ast.ClassDef: _class,
    # Python 3.11 and 3.12
    **{getattr(ast, name): handler for name, handler in (("TryStar", _try), ("TypeAlias", _type_alias))
       if hasattr(ast, name)},
})  # fmt: skip
