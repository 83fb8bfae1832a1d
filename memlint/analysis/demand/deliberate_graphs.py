"""Model calls that are unguarded on purpose: another branch of the same function guards the same call."""

from __future__ import annotations

from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.syntax.bindings import assigned_names
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import bodies, calls, is_false, last_name, parts, walk_expression, walk_statements
from memlint.analysis.transfer.modules.guards import is_guard
from memlint.ir import nodes as ir


def guarded_in_another_branch(summary: Summary, run: ModelRun) -> bool:
    """Whether the function has a guarded and an unguarded branch for the same call, and returns or passes on the
    output: ``if evaluate: with no_grad(): y = net(x)``, else ``y = net(x)``. Callers that select the unguarded branch
    want the graph."""
    marks = run.marks
    if not marks & (summary.notes.returned | summary.left):
        return False
    here = (run.site.path, run.site.unit) == (summary.module.key, summary.function.unit)
    return here and _in(summary, summary.function.body, run)


def _in(summary: Summary, body: tuple[ir.Stmt, ...], run: ModelRun) -> bool:
    for place, statement in enumerate(body):
        if isinstance(statement, ir.FunctionDef | ir.ClassDef):
            continue
        if isinstance(statement, ir.If) and _is_asked_for(summary, statement.test):
            for mine, other in ((statement.body, statement.orelse), (statement.orelse, statement.body)):
                if other and _holds(mine, run) and _guards(summary, other, run):
                    return True
            alone = not statement.orelse and _leaves(statement.body) and _guards(summary, statement.body, run)
            if alone and _holds(body[place + 1 :], run):
                return True
        if any(_in(summary, block, run) for block in bodies(statement)):
            return True
    return False


def _holds(body: tuple[ir.Stmt, ...], run: ModelRun) -> bool:
    return any(part.at == run.site.at for part in parts(body))


def _is_asked_for(summary: Summary, test: ir.Expr) -> bool:
    """Whether the caller, or the constructor's caller, decides: the test reads a parameter (``self`` included)."""
    params = {param.name for param in summary.function.params}
    return any(isinstance(part, ir.Name) and part.id in params for part in walk_expression(test))


def _guards(summary: Summary, body: tuple[ir.Stmt, ...], run: ModelRun) -> bool:
    if run.text.partition(".")[0] in assigned_names(body)[0]:
        return False  # the branch binds the name to another network
    return any(
        isinstance(statement, ir.With)
        and any(is_off(summary, item.context) for item in statement.items)
        and any(text(call.func) == run.text for call in calls(statement.body))
        for statement in walk_statements(body, into_definitions=False)
    )


def is_off(summary: Summary, context: ir.Expr) -> bool:
    """Whether a context manager turns grad mode off: ``no_grad()`` and its like, or ``set_grad_enabled(False)``."""
    if is_guard(summary, summary.function, context):
        return True
    if not isinstance(context, ir.Call) or last_name(context.func) != "set_grad_enabled":
        return False
    return any(map(is_false, context.args))


def _leaves(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a block ends with a return."""
    last = body[-1]
    return isinstance(last, ir.Return) or (isinstance(last, ir.With) and _leaves(last.body))
