"""Evidence that an output of an evaluation is not trained: the functions beside it, and its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


#: prefixes of names of functions that score a model on a whole data set, and do not train
_SCORES = ("test", "valid", "eval", "predict", "infer")


def collects_scores(summary: Summary, run: ModelRun) -> bool:
    """Whether a function that is named like an evaluation collects the outputs of all batches of a loader in a local
    list: a training step over a whole data set would keep all its graphs."""
    if run.loop is None or run.loop.loop.over != "loader" or not summary.function.name.lstrip("_").startswith(_SCORES):
        return False
    return any(
        store.local
        and store.kind == "retain"
        and store.loop is not None
        and store.loop.id == run.loop.id
        and run.node in summary.graphs.closure(store.value.src)
        for store in summary.stores.values()
    )


def is_only_passed_on(summary: Summary, run: ModelRun) -> bool:
    """Whether the function neither returns the output of a run nor stores it at a symbolic place."""
    if summary.exit is None or run.marks & summary.notes.returned:
        return False
    return not any(run.marks & summary.graphs.closure(value.src) for value in summary.exit.sym.values())


def is_beside_training(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether another function of the class or file trains the model of this run, while this function returns and
    stores nothing of the output and runs no backward. The code to which it passes outputs then only scores, logs or
    shows them."""
    if summary.backwards or summary.notes.blind_backward or not is_only_passed_on(summary, run):
        return False
    cls = summary.function.cls
    others = cls.methods.values() if cls is not None else list(summary.module.functions.values())
    for other in others:
        known = analyser.summary(other) if other is not summary.function and other.cls is cls else None
        if known is None or not known.backwards:
            continue
        # runs that are lifted from a callee do not count, as the callee may be this function
        if any(one.text == run.text and one.origin is None for one in known.runs.values()):
            return True
    return False
