"""Facts about the models that run inside a callee."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.summary.effects import ModelRun
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.summary import Summary
    from memlint.analysis.facts.analyser import Analyser


def may_be_any(analyser: Analyser, run: ModelRun) -> bool:
    """Whether the class of the module that runs, or of a part that its forward runs, is unknown."""
    if not run.resolved:
        return True
    methods = [analyser.program.method(cls, "forward") for cls in analyser.classes(run.module)]
    summaries = (analyser.summary(one) for one in methods if one is not None and run.method == "forward")
    return any(inner.resolved is False for one in summaries if one is not None for inner in one.runs.values())


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
