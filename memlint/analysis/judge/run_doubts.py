"""Why a model run that looks like an evaluation has low confidence."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.demand.layered_calls import guards_a_way, may_be_any
from memlint.analysis.domain.summary.frame import Frame
from memlint.analysis.facts.common_arguments import left_out
from memlint.analysis.index.program import in_tests
from memlint.analysis.index.uses import of_module
from memlint.analysis.judge.judged_runs import Verdict
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: names of files that measure how long things take
_BENCHMARK = lazy_pattern(r"(^|_)(bench|benchmarks?|benchmarking|profile|profiling|timing|timeit|speed)(_|\.|$)")


def doubt_of(analyser: Analyser, frame: Frame, one: Verdict, consumed: str) -> str:
    """The name of the first doubt that applies (see `run_reasons`), "" for none. ``consumed``: what becomes of the
    output."""
    run = one.run
    if run.origin is None and may_be_any(analyser, run) and analyser.facts.differentiates:
        return "may-be-any-model"
    if in_tests(frame.module.key) and frame.function.node is not None:
        return "library-test"
    if guards_a_way(analyser, run):
        return "setting-decides"
    if left_out(analyser, frame, run.tests) or analyser.facts.is_skipped(frame.function):
        return "no-call-comes-here"
    if one.evaluation == "name" and of_module(analyser, frame.function):
        return "named-only"
    return "measures-time" if consumed == "dropped" and _times_training(frame) else ""


def _times_training(frame: Frame) -> bool:
    """Whether a file measures how long things take, and this function trains."""
    return bool(frame.backwards) and _BENCHMARK.search(frame.module.key.rpartition("/")[2].lower()) is not None
