"""Networks that a function takes as a parameter, and that no caller trains with an optimizer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.recorded_modes import outward, whole_of
from memlint.analysis.domain.summary.effects import CallRecord, ModelRun
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import MODULE, Path, Source, V
from memlint.analysis.transfer.modules.optimizer_parameters import ANY, is_touched

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: with more callers than this, none is analysed
_MAX_CALLERS = 8
#: through how many callers a parameter is followed
_DEPTH = 3


def parameter_of(summary: Summary, run: ModelRun) -> str:
    """The parameter that is the run's module itself; "" if the module is anything else."""
    (path,) = run.module.syms if len(run.module.syms) == 1 else (None,)
    if path is None or path.steps or not path.root.startswith("p:") or run.module.store:
        return ""
    name = path.root[2:]
    return name if name == run.text != summary.function.own_name else ""


def is_trained_by_nobody(analyser: Analyser, summary: Summary, name: str) -> bool:
    """Whether no known optimizer takes the parameters of the network that a function gets as a parameter. All callers
    have to be known and to pass a network that they make themselves, one of them has to make an optimizer for another
    network, and nothing unresolved may have any of the parameters."""
    seen: list[bool] = []
    return _is_untrained_in_callers(analyser, summary, name, seen, _DEPTH) and any(seen)


def _is_untrained_in_callers(analyser: Analyser, summary: Summary, name: str, seen: list[bool], depth: int) -> bool:
    """Whether all callers leave the parameter's network untrained. ``seen``: collects, for each function on the way up,
    whether it makes an optimizer."""
    own: set[Source] = {Path(f"p:{name}")}
    if not _leaves_untrained(summary, own, seen) or analyser.facts.is_handed_on(summary.function):
        return False
    calls = analyser.facts.calls_of(summary.function)
    if not 0 < len(calls) <= _MAX_CALLERS:
        return False
    return all(_is_made(analyser, caller, record, name, seen, depth) for caller, record in calls)


def _is_made(analyser: Analyser, caller: Summary, record: CallRecord, name: str, seen: list[bool], depth: int) -> bool:
    value = record.args.get(name)
    if value is None or value.kinds != MODULE or any(whole_of(item) is not None for item in value.store):
        return False
    if len(value.syms) == 1 and not value.store:
        (path,) = value.syms
        handed = path.root.startswith("p:") and not path.steps
        return handed and depth > 0 and _is_untrained_in_callers(analyser, caller, path.root[2:], seen, depth - 1)
    keys: set[Source] = {("made", item) for item in value.store}
    if len(keys) != 1 or value.syms or not _leaves_untrained(caller, keys, seen):
        return False
    return not any(_may_train(analyser, other, value) for other in caller.calls.values())


def _may_train(analyser: Analyser, record: CallRecord, network: V) -> bool:
    """Whether another callee that gets the network makes an optimizer for it, or is unknown."""
    names = [name for name, value in record.args.items() if value.store & network.store]
    if not names:
        return False
    summary = analyser.summary(analyser.function_at(record.callee))
    return summary is None or any(not _leaves_untrained(summary, {Path(f"p:{name}")}, []) for name in names)


def _leaves_untrained(summary: Summary, keys: set[Source], seen: list[bool]) -> bool:
    """Whether a function does not pass the network on, change it, or give it to an optimizer of its own."""
    notes = summary.notes
    if summary.cut_short or summary.exit is None or None in notes.owned or ANY in notes.given:
        return False
    mine = {outer for key in keys for outer in outward(key)} | keys
    for entry in notes.owned:
        if any(key in mine or keys & set(outward(key)) for key in entry or ()):
            return False
    if notes.given & (mine | {key for entry in notes.owned for key in entry or ()}) or is_touched(summary, mine):
        return False
    seen.append(any(notes.owned))
    return True
