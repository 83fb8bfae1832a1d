"""Reasons for which an evaluation has low confidence, and evidence that its output is not trained."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.demand.layered_calls import guards_a_way, may_be_any
from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.facts.common_arguments import left_out
from memlint.analysis.index.program import Function, in_tests
from memlint.analysis.index.uses import of_module
from memlint.analysis.judge.judged_runs import Verdict
from memlint.analysis.syntax.syntax import calls, last_name, parts
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


_SETS = frozenset({"requires_grad", "requires_grad_"})
#: names of files that measure how long things take
_BENCHMARK = lazy_pattern(r"(^|_)(bench|benchmarks?|benchmarking|profile|profiling|timing|timeit|speed)(_|\.|$)")


def doubt_of(analyser: Analyser, summary: Summary, one: Verdict, consumed: str) -> str:
    """The name of the first reason that applies (see `run_reasons`); "" for none. ``consumed``: see `consumed_as`."""
    run = one.run
    if run.origin is None and may_be_any(analyser, run) and analyser.facts.differentiates:
        return "may-be-any-model"
    if in_tests(summary.module.key) and summary.function.node is not None:
        return "library-test"
    if _freezes_itself(analyser, summary, run):
        return "freezes-itself"
    if guards_a_way(analyser, run):
        return "setting-decides"
    if left_out(analyser, summary, run.tests) or analyser.facts.is_skipped(summary.function):
        return "no-call-comes-here"
    if one.evaluation == "name" and of_module(analyser, summary.function):
        return "named-only"
    return "measures-time" if consumed == "dropped" and _times_training(summary) else ""


def _freezes_itself(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether ``train()`` of the model's class, or of the class that owns the model, sets ``requires_grad``, directly
    or in a method that it calls. With ``eval()``, nothing is then recorded."""
    for cls in (summary.function.cls, *analyser.classes(run.module)):
        train = analyser.program.method(cls, "train")
        if cls is None or train is None or [param.name for param in train.given] != ["mode"]:
            continue
        called = (analyser.program.method(cls, last_name(call.func)) for call in calls(train.body))
        bodies = [one.body for one in (train, *called) if one is not None]
        if any(isinstance(part, ir.Attr) and part.name in _SETS for body in bodies for part in parts(body)):
            return True
    return False


def _times_training(summary: Summary) -> bool:
    """Whether the file measures durations, by its name, and the function trains."""
    return bool(summary.backwards) and _BENCHMARK.search(summary.module.key.rpartition("/")[2].lower()) is not None


def tries(function: Function) -> bool:
    """Whether the function is a demonstration beside the network that it runs: ``_test_net()``."""
    return function.name.lstrip("_").startswith("test_")


def is_tried(run: ModelRun) -> bool:
    """Whether a new network runs on a made-up input."""
    return made_here(run) and (run.probes or run.drawn)


def made_here(run: ModelRun) -> bool:
    """Whether the function itself made the module that it runs."""
    return bool(run.module.store) and not run.module.syms


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
    """Whether the function neither returns the output of a run, but as the answer to a request, nor stores it at a
    symbolic place."""
    if summary.exit is None or (run.marks & summary.notes.returned and not summary.answers):
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
