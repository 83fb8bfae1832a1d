"""Facts about the models that run inside a callee: parts of unknown class, and paths that record no graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from memlint.analysis.demand.deliberate_graphs import is_off
from memlint.analysis.domain.state import OFF
from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.index.program import Class, Function
from memlint.analysis.syntax.bindings import names_bound_by, names_read
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import calls, dotted, walk_expression, walk_statements
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
    method = analyser.program.method(cls, name)
    summary = analyser.summary(method) if method is not None else None
    return summary is not None and summary.entry == OFF


def runs_model(analyser: Analyser, summary: Summary, call: ir.Call, depth: int) -> bool:
    """Whether a call runs a model, directly or through callees up to a bounded depth."""
    if call.at in summary.notes.models:
        return True
    return any(
        leads_to_model(analyser, record.callee, depth - 1)
        for record in summary.calls.values()
        if record.at == call.at and record.callee != summary.function.key
    )


def leads_to_model(analyser: Analyser, key: tuple[str, str], depth: int) -> bool:
    """Whether a function runs a model, directly or through callees up to a bounded depth."""
    function = analyser.function_at(key)
    known = analyser.summary(function) if function is not None and function.name != "__init__" else None
    if known is None or known.notes.models or depth <= 0:
        return known is not None and bool(known.notes.models)
    return any(leads_to_model(analyser, record.callee, depth - 1) for record in known.calls.values())
