"""Guards on another path than a run's: in another branch of the function, or inside a callee's models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from memlint.analysis.domain.state import OFF
from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.index.program import Class, Function
from memlint.analysis.syntax.bindings import assigned_names, names_bound_by, names_read
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import (
    bodies,
    calls,
    dotted,
    is_false,
    last_name,
    parts,
    walk_expression,
    walk_statements,
)
from memlint.analysis.transfer.modules.guards import is_guard
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.summary import Summary
    from memlint.analysis.facts.analyser import Analyser


def may_be_any(analyser: Analyser, run: ModelRun) -> bool:
    """Whether the class of the module that runs, or of a part that its forward runs, is unknown."""
    if not run.resolved:
        return True
    summaries = (analyser.summary(forward) for _, forward in _forwards(analyser, run))
    return any(inner.resolved is False for one in summaries if one is not None for inner in one.runs.values())


def guards_a_way(analyser: Analyser, run: ModelRun) -> bool:
    """Whether a forward returns, on one of its paths, the result of a method that turns grad mode off (``if not
    self.trainable: return self.infer(x)``), or of a block that does (``if self.frozen: with torch.no_grad(): return
    self.net(x)``)."""
    return any(
        any(_is_guarded(analyser, cls, one) for one in _returned_methods(forward))
        or _guards_a_branch(analyser, forward)
        for cls, forward in _forwards(analyser, run)
    )


def _guards_a_branch(analyser: Analyser, forward: Function) -> bool:
    """Whether a setting of the object (``self.frozen``) selects whether the result is computed with grad mode off: the
    forward makes the same calls elsewhere under the ambient grad mode."""
    summary, own = analyser.summary(forward), forward.own_name
    tests = [
        one
        for one in walk_statements(forward.body, into_definitions=False)
        if isinstance(one, ir.If) and own in names_read(one.test)
    ]
    if summary is None or not tests:
        return False
    returned = frozenset(
        name
        for one in walk_statements(forward.body, into_definitions=False)
        if isinstance(one, ir.Return) and one.value is not None
        for name in names_read(one.value)
    )
    every = Counter(_own_calls(calls(forward.body), own))
    for one in (one for test in tests for one in (*test.body, *test.orelse)):
        if isinstance(one, ir.With) and any(is_off(summary, item.context) for item in one.items):
            here = Counter(_own_calls(calls(one.body), own))
            results = (part for expr in _results(one.body, returned) for part in walk_expression(expr))
            if any(every[name] > here[name] for name in _own_calls(results, own)):
                return True
    return False


def _results(body: tuple[ir.Stmt, ...], names: frozenset[str]) -> Iterator[ir.Expr]:
    """The expressions that a block returns or assigns to one of the names."""
    for one in walk_statements(body, into_definitions=False):
        gives = isinstance(one, ir.Return) or not names.isdisjoint(names_bound_by(one))
        if gives and isinstance(one, ir.Return | ir.Assign) and one.value is not None:
            yield one.value


def _own_calls(among: Iterable[ir.Expr], own: str) -> Iterator[str]:
    """The layers and methods of the object that the expressions call, one entry for each call."""
    called = (part.func for part in among if isinstance(part, ir.Call))
    return (text(func) for func in called if dotted(func).startswith(f"{own}."))


def _forwards(analyser: Analyser, run: ModelRun) -> Iterator[tuple[Class, Function]]:
    if run.method != "forward":
        return
    for cls in analyser.classes(run.module):
        forward = analyser.program.method(cls, "forward")
        if forward is not None:
            yield cls, forward


def _returned_methods(forward: Function) -> Iterator[str]:
    """The methods of ``self`` whose result the forward returns unchanged."""
    own = forward.own_name
    for statement in walk_statements(forward.body, into_definitions=False):
        call = statement.value if isinstance(statement, ir.Return) else None
        func = call.func if isinstance(call, ir.Call) else None
        if isinstance(func, ir.Attr) and isinstance(func.value, ir.Name) and func.value.id == own:
            yield func.name


def _is_guarded(analyser: Analyser, cls: Class, name: str) -> bool:
    summary = analyser.summary(analyser.program.method(cls, name))
    return summary is not None and summary.entry == OFF


def runs_model(analyser: Analyser, summary: Summary, call: ir.Call, depth: int) -> bool:
    """Whether a call runs a model, directly or through callees up to a bounded depth."""
    if call.at in summary.notes.models:
        return True
    return any(
        leads_to_model(analyser, record.callee, depth - 1)
        for record in summary.calls_at(call.at)
        if record.callee != summary.function.key
    )


def leads_to_model(analyser: Analyser, key: tuple[str, str], depth: int) -> bool:
    """Whether a function runs a model, directly or through callees up to a bounded depth."""
    function = analyser.function_at(key)
    known = analyser.summary(function) if function is not None and function.name != "__init__" else None
    if known is None or known.notes.models or depth <= 0:
        return known is not None and bool(known.notes.models)
    return any(leads_to_model(analyser, record.callee, depth - 1) for record in known.calls.values())


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
