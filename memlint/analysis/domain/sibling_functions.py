"""What the functions beside one do with the model that it runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


def is_beside_training(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether another function of the class, or of the file, trains what this one runs, which neither returns nor keeps
    what it gets and runs no backward: what it hands its outputs on to scores, logs and shows them."""
    marks = {run.node, *run.value.src}
    if summary.exit is None or summary.backwards or summary.notes.blind_backward or marks & summary.notes.returned:
        return False
    if any(marks & summary.graphs.closure(value.src) for value in summary.exit.sym.values()):
        return False
    cls = summary.function.cls
    others = cls.methods.values() if cls is not None else list(summary.module.functions.values())
    for other in others:
        known = analyser.summary(other) if other is not summary.function and other.cls is cls else None
        if known is None or not known.backwards:
            continue
        # (what a callee runs, this very one perhaps, is told of its callers as well)
        if any(one.text == run.text and one.origin is None for one in known.runs.values()):
            return True
    return False
