"""Containers that are cut back where they grow: a window over the last rounds."""

from __future__ import annotations

from memlint.flow.kept import kept
from memlint.flow.syntax import text, walk_statements
from memlint.ir import nodes as ir


@kept
def windows(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """The places of which a body drops the oldest members, or all but some: ``kept = kept[-n:]``, ``del kept[0]``."""
    found: set[str] = set()
    for statement in walk_statements(body, into_definitions=False):
        if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Subscript):
            part = statement.value
            if _cuts(part.index):
                shown = text(part.value, 200)
                found.update(shown for target in statement.targets if text(target, 200) == shown)
        elif isinstance(statement, ir.Delete):
            found.update(
                text(target.value, 200)
                for target in statement.targets
                if isinstance(target, ir.Subscript) and (_cuts(target.index) or _is_zero(target.index))
            )
        elif isinstance(statement, ir.ExprStmt) and isinstance(statement.value, ir.Call):
            call = statement.value
            if isinstance(call.func, ir.Attr) and call.func.name == "pop" and len(call.args) == 1:
                found.update((text(call.func.value, 200),) if _is_zero(call.args[0]) else ())
    return frozenset(found)


def _cuts(index: ir.Expr) -> bool:
    """``[1:]``, ``[-n:]``, ``[:n]``: not ``[:]`` and not ``[0:]``."""
    return (
        isinstance(index, ir.Slice)
        and index.step is None
        and (index.upper is not None or not (index.lower is None or _is_zero(index.lower)))
    )


def _is_zero(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Const) and expr.value == 0


__all__ = ["windows"]
