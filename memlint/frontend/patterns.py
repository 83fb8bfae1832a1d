"""Patterns of a match statement: what they bind and what they compare with."""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from memlint.frontend import literals
from memlint.frontend.expressions import Lowering
from memlint.ir import nodes as ir


def pattern(low: Lowering, node: cst.CSTNode) -> tuple[tuple[str, ...], tuple[ir.Expr, ...]]:
    """(names that ``node`` binds, values that it compares with), each in source order.

    Or-patterns bind the same names in each branch; a name is given once.
    """
    captures: dict[str, None] = {}
    values: list[ir.Expr] = []
    _collect(low, node, captures, values)
    return tuple(captures), tuple(values)


def _collect(low: Lowering, node: cst.CSTNode, captures: dict[str, None], values: list[ir.Expr]) -> None:
    if isinstance(node, (cst.MatchValue, cst.MatchSingleton)):
        values.append(low.expr(node.value))
    elif isinstance(node, cst.MatchClass):
        values.append(low.expr(node.cls))
        _collect_all(low, [*node.patterns, *node.kwds], captures, values)
    elif isinstance(node, cst.MatchMapping):
        _collect_all(low, node.elements, captures, values)
        _bind(node.rest, captures)
    elif isinstance(node, cst.MatchMappingElement):
        values.append(low.expr(node.key))
        _collect(low, node.pattern, captures, values)
    elif isinstance(node, cst.MatchAs):
        if node.pattern is not None:
            _collect(low, node.pattern, captures, values)
        _bind(node.name, captures)
    elif isinstance(node, cst.MatchStar):
        _bind(node.name, captures)
    elif isinstance(node, (cst.MatchList, cst.MatchTuple, cst.MatchOr)):
        _collect_all(low, node.patterns, captures, values)
    elif isinstance(node, cst.MatchSequenceElement):
        _collect(low, node.value, captures, values)
    elif isinstance(node, (cst.MatchOrElement, cst.MatchKeywordElement)):
        _collect(low, node.pattern, captures, values)


def _collect_all(low: Lowering, nodes: Sequence[cst.CSTNode], captures: dict[str, None], values: list[ir.Expr]) -> None:
    for node in nodes:
        _collect(low, node, captures, values)


def _bind(name: cst.Name | None, captures: dict[str, None]) -> None:
    if name is not None and name.value != "_":
        captures[literals.identifier(name.value)] = None
