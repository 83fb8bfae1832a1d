"""Backwards of a loss that is an argument: whether its graph is needed again is known only in the callers."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from memlint.sdk.project import Analyser, Summary, has_known_callers
from memlint.sdk.values import Backward, Path, places_with

#: the most callers that are examined
_MAX_CALLERS = 8

#: whether a backward, run for a caller, surely keeps its graph in vain; None if the graph may be needed
Ask = Callable[["Analyser", Summary, Backward], bool | None]


def united(backwards: Sequence[Backward]) -> Backward:
    """The backwards at one site, on all paths to it, as one."""
    return backwards[-1]._replace(reached=frozenset().union(*(one.reached for one in backwards)))


def given_for_nothing(
    analyser: Analyser, summary: Summary, last: Backward, left: frozenset[object], ask: Ask
) -> bool | None:
    """Whether a backward of a parameter surely keeps the graph in vain, by all callers; None if it is unknown: an
    unknown caller may run its own backward."""
    function = summary.function
    (loss,) = last.reached if len(last.reached) == 1 else (None,)
    if not isinstance(loss, Path) or loss.steps or not loss.root.startswith("p:") or last.loops:
        return None
    if _is_used_again(summary, loss, last, left) or not has_known_callers(analyser, function):
        return None
    calls = analyser.facts.calls_of(function)
    if not 0 < len(calls) <= _MAX_CALLERS:
        return None
    sure = True
    for caller, record in calls:
        if caller.cut_short or caller.exit is None or any(other >= record.at for other in caller.notes.blind_at):
            return None
        here = [one for one in caller.backwards if one.site == caller.site(record.at)]
        found = ask(analyser, caller, united(here)) if here else None
        if found is None:
            return None
        sure = sure and found
    return sure


def _is_used_again(summary: Summary, loss: Path, last: Backward, left: frozenset[object]) -> bool:
    """Whether the function itself uses the loss elsewhere: in another backward, in unknown code, in a place that
    outlives the call, in its result."""
    others = [one for one in summary.backwards if one.site != last.site]
    if any(loss in one.reached for one in others) or loss in summary.left - left - summary.notes.logged:
        return True
    if loss in summary.notes.returned or summary.yields or summary.exit is None:
        return True
    return any(path != loss for path in places_with(summary, summary.exit, frozenset((loss,))))
