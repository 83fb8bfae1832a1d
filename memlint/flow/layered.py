"""What code that is called tells of the models that run in it: parts that are not known, ways that record nothing."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.flow.frame import ModelRun
from memlint.flow.program import Class, Function
from memlint.flow.state import OFF
from memlint.flow.syntax import walk_statements
from memlint.flow.values import ordered
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser


def may_be_any(analyser: Analyser, run: ModelRun) -> bool:
    """Whether it is not known of which class the module is that runs, or a part that its forward runs."""
    if not run.resolved:
        return True
    summaries = (analyser.summary(forward) for _, forward in _forwards(analyser, run))
    return any(inner.resolved is False for one in summaries if one is not None for inner in one.runs.values())


def guards_a_way(analyser: Analyser, run: ModelRun) -> bool:
    """Whether a forward returns, on one of its ways, what a method of its own gives that turns grad mode off: ``if not
    self.trainable: return self.infer(x)``."""
    return any(_is_guarded(analyser, cls, one) for cls, forward in _forwards(analyser, run) for one in _given(forward))


def _forwards(analyser: Analyser, run: ModelRun) -> Iterator[tuple[Class, Function]]:
    if run.method != "forward":
        return
    for ref in ordered(run.module.refs):
        cls = analyser.program.module(ref.key).cls(ref.name) if ref.kind == "instance" else None
        forward = analyser.program.method(cls, "forward") if cls is not None else None
        if cls is not None and forward is not None:
            yield cls, forward


def _given(forward: Function) -> Iterator[str]:
    """The methods of ``self`` whose result is returned as it is."""
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


def leads_to_model(analyser: Analyser, key: tuple[str, str], depth: int) -> bool:
    """Whether a function runs a model, by itself or so many calls down."""
    function = analyser.function_at(key)
    known = analyser.summary(function) if function is not None and function.name != "__init__" else None
    if known is None or known.notes.models or depth <= 0:
        return known is not None and bool(known.notes.models)
    return any(leads_to_model(analyser, record.callee, depth - 1) for record in known.calls.values())
