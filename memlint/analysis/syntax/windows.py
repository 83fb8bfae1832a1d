"""Containers that are truncated while they grow: a window over the last iterations."""

from __future__ import annotations

from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import calls, last_name, walk_statements
from memlint.ir import nodes as ir


@kept
def windows(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """The texts of the containers whose oldest members (or all but some) a body drops: ``kept = kept[-n:]``, ``del
    kept[0]``, ``heappop(kept)``."""
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
    for call in calls(body):
        name = last_name(call.func)
        if name == "pop" and isinstance(call.func, ir.Attr) and len(call.args) == 1 and _is_zero(call.args[0]):
            found.add(text(call.func.value, 200))
        elif name in ("heappop", "heapreplace", "heappushpop") and call.args:
            found.add(text(call.args[0], 200))
    return frozenset(found)


def _cuts(index: ir.Expr) -> bool:
    """Whether a slice drops members: ``[1:]``, ``[-n:]``, ``[:n]``, but not ``[:]`` or ``[0:]``."""
    return (
        isinstance(index, ir.Slice)
        and index.step is None
        and (index.upper is not None or not (index.lower is None or _is_zero(index.lower)))
    )


def _is_zero(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Const) and expr.value == 0
