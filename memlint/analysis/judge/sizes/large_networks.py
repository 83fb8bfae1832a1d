"""Facts about a network by the library function that made it: pretrained transformers, autoencoders and detectors are
large, and some of them start in eval mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from memlint import knowledge
from memlint.analysis.demand.given_networks import parameter_of
from memlint.analysis.domain.summary.effects import ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import V
from memlint.analysis.facts.module_facts import context_mode
from memlint.analysis.syntax.syntax import calls
from memlint.knowledge.sizes import is_large

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


def runs_a_large_network(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether a known library function that makes large networks made the model, here or in a caller."""
    return _is_made_by(analyser, summary, run, is_large)


def starts_evaluating(analyser: Analyser, summary: Summary, run: ModelRun) -> bool:
    """Whether the function that made the network puts it into eval mode, as `from_pretrained` does. Training code need
    not switch it back, so this alone is no evidence of an evaluation."""
    if _is_made_by(analyser, summary, run, _is_made_for_evaluation):
        return True
    return bool(run.module.syms) and context_mode(analyser, summary, run.module, "starts") is True


def _is_made_for_evaluation(name: str) -> bool:
    row = knowledge.function(name)
    return row is not None and row.starts_evaluating


def _is_made_by(analyser: Analyser, summary: Summary, run: ModelRun, says: Callable[[str], bool]) -> bool:
    """Whether library functions for which ``says`` holds made the network, here or in all known callers."""
    if _is_of(analyser, run.module, says):
        return True
    name = parameter_of(summary, run)
    passed = [record.args.get(name) for _, record in analyser.facts.calls_of(summary.function)] if name else []
    return bool(passed) and all(value is not None and _is_of(analyser, value, says) for value in passed)


def _is_of(analyser: Analyser, module: V, says: Callable[[str], bool]) -> bool:
    """Whether a library function for which ``says`` holds made the module, or a part of it in its constructor."""
    for ref in module.refs:
        if ref.kind == "foreign" and says(ref.name):
            return True
        cls = analyser.cls(ref) if ref.kind == "instance" else None
        init = cls.methods.get("__init__") if cls is not None else None
        if init is not None and any(
            says(analyser.program.outside(init.module, call.func, init)) for call in calls(init.body)
        ):
            return True
    return False
