"""Effects of a parameter other than through ``if``: on a context manager, a conditional expression, or itself."""

from __future__ import annotations

from memlint.analysis.syntax.bindings import names_bound_by, reads_any
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import calls, dotted, walk_expression, walk_statements
from memlint.ir import nodes as ir

#: context managers that do not set the grad mode
_OTHERS = frozenset({"tqdm", "trange", "autocast", "open", "record_function", "Progress", "alive_bar"})
#: calls that enter a context manager
_ENTERS = frozenset({"enter_context", "__enter__", "_set_grad_enabled"})


def is_guarded(body: tuple[ir.Stmt, ...], name: str, model: str) -> bool:
    """Whether a parameter may affect how ``model`` runs other than by a test: the function assigns it (``optimizer =
    optimizer or SGD(..)``), it selects the context manager of a ``with`` (``with cm():``), or the call is an arm of a
    conditional expression that reads it."""
    statements = [*walk_statements(body, into_definitions=False)]
    if any(name in names_bound_by(statement) for statement in statements):
        return True
    chosen = {name}
    while True:
        more = _chosen(body, chosen)
        if more <= chosen:
            break
        chosen |= more
    for statement in statements:
        if isinstance(statement, ir.With) and any(_asks(item.context, chosen) for item in statement.items):
            return True
    if any(dotted(call.func).rsplit(".", 1)[-1] in _ENTERS for call in calls(body)):
        return True
    return any(_runs_on_a_side(statement, chosen, model) for statement in statements)


def _chosen(body: tuple[ir.Stmt, ...], names: set[str]) -> set[str]:
    """The names that are assigned from ``names``, or under a test that reads them."""
    found: set[str] = set()
    for statement in walk_statements(body, into_definitions=False):
        if isinstance(statement, ir.Assign | ir.AnnAssign | ir.AugAssign):
            bound = set(names_bound_by(statement))
            if statement.value is not None and (bound & names or reads_any(statement.value, names)):
                found |= bound
        elif isinstance(statement, ir.If) and reads_any(statement.test, names):
            for inner in walk_statements((*statement.body, *statement.orelse), into_definitions=False):
                found |= set(names_bound_by(inner))
    return found


def _asks(expr: ir.Expr, names: set[str]) -> bool:
    other = isinstance(expr, ir.Call) and dotted(expr.func).rsplit(".", 1)[-1] in _OTHERS
    return not other and reads_any(expr, names)


def _runs_on_a_side(statement: ir.Stmt, names: set[str], model: str) -> bool:
    value = getattr(statement, "value", None)
    if not isinstance(value, ir.Expr):
        return False
    return any(
        isinstance(part, ir.IfExp)
        and reads_any(part.test, names)
        and any(
            isinstance(call, ir.Call) and text(call.func, 200) == model
            for side in (part.body, part.orelse)
            for call in walk_expression(side)
        )
        for part in walk_expression(value)
    )
