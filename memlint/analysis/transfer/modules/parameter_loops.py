"""Loops over the parameters of networks, by the networks' names."""

from __future__ import annotations

from collections.abc import Callable

from memlint.analysis.syntax.bindings import names_bound_by, reads_any
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import dotted, parts, walk_statements
from memlint.ir import nodes as ir

_OF_PARAMETERS = frozenset({"parameters", "named_parameters"})


def of_other_networks(body: tuple[ir.Stmt, ...], model: str) -> frozenset[int]:
    """The mentions (by identity) of loop variables over the parameters of other networks than ``model``: ``p`` in
    ``for p in critic.parameters(): p.requires_grad = True``."""
    model = model.removesuffix(".forward")
    return _through(body, lambda network: _is_apart(body, network, model))


@kept
def of_networks(body: tuple[ir.Stmt, ...]) -> frozenset[int]:
    """The mentions of loop variables over the parameters of any network."""
    return _through(body, lambda _: True)


def _through(body: tuple[ir.Stmt, ...], is_meant: Callable[[str], bool]) -> frozenset[int]:
    found: set[int] = set()
    for loop in walk_statements(body):
        network = _goes_through(loop.iter) if isinstance(loop, ir.For) else ""
        if not isinstance(loop, ir.For) or not network or not is_meant(network):
            continue
        own = names_bound_by(loop)
        found.update(
            id(part) for part in parts(loop.body, into_definitions=True) if isinstance(part, ir.Name) and part.id in own
        )
    return frozenset(found)


def _goes_through(expr: ir.Expr) -> str:
    """``net`` for ``net.parameters()`` and ``net.named_parameters()``; "" for another expression."""
    if isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr) and expr.func.name in _OF_PARAMETERS:
        return dotted(expr.func.value)
    return ""


def _is_apart(body: tuple[ir.Stmt, ...], network: str, model: str) -> bool:
    """Whether two places hold different networks: neither is a part of the other, and the first is neither an alias
    nor made from the second."""
    if f"{network}.".startswith(f"{model}.") or f"{model}.".startswith(f"{network}."):
        return False
    root, other = network.partition(".")[0], model.partition(".")[0]
    binding = (one for one in walk_statements(body) if root in names_bound_by(one))
    return root == other or all(
        isinstance(one, ir.Assign) and isinstance(one.value, ir.Call) and not reads_any(one.value, {other})
        for one in binding
    )
