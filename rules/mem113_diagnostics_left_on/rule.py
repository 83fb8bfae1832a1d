"""MEM113: a diagnostic for a few steps stays on for the whole run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from memlint.sdk import Event, Facts, Growth, Loop, Meta, Report, Severity, each_round

META = Meta(
    code="MEM113",
    name="diagnostics-left-on",
    summary="Anomaly detection, memory history, a profiler or a metric's state stays on for the whole run.",
    severity="warning",
)

#: the kind of diagnostic
Diagnostic = Literal["anomaly", "history", "profiler", "metric"]


class DiagnosticLeftOn(Event, frozen=True, gc=False, kw_only=True):
    """A diagnostic for a few steps stays on for the whole run. ``text``: what switches it on, or the metric object;
    ``name``: the metric's class; ``loop``: the loop that it records, None for the whole run; ``read``: its record is
    written somewhere."""

    kind: Diagnostic
    text: str
    loop: Loop | None
    name: str = ""
    read: bool = False


NO_GROWTH = Growth("none", "time")


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(DiagnosticLeftOn):
        severity, message, advice, growth = REPORTS[event.kind](event)
        yield Report(
            site=event.site,
            message=message,
            help=advice,
            severity=severity,
            confidence=event.certainty,
            growth=growth,
            trace=event.trace,
        )


Said = tuple[Severity, str, str, Growth]


def _anomaly(event: DiagnosticLeftOn) -> Said:
    where = f"in {each_round(event.loop)}" if event.loop is not None else "for the rest of the run"
    return (
        "warning",
        f"`{event.text}` is on {where}: each operation stores a stack trace on the host, and each backward() checks "
        "every gradient for NaN, which waits for the device",
        "enable it only for the steps in which a loss becomes NaN",
        NO_GROWTH,
    )


def _history(event: DiagnosticLeftOn) -> Said:
    return (
        "note" if event.read else "warning",
        f"`{event.text}` is never switched off: host memory grows by a stack trace with each allocation and each free",
        "pass `max_entries`, or call `torch.cuda.memory._record_memory_history(enabled=None)` after the steps of "
        "interest",
        Growth("host", "per-iteration"),
    )


def _profiler(event: DiagnosticLeftOn) -> Said:
    return (
        "warning",
        f"`{event.text}` has no schedule and records all of `{event.loop.text if event.loop else ''}`: host memory "
        "grows with each operation until the block ends",
        "pass `schedule=torch.profiler.schedule(...)` and call `step()` on it in each iteration, or profile a few "
        "iterations only",
        Growth("host", "per-iteration"),
    )


def _metric(event: DiagnosticLeftOn) -> Said:
    assert event.loop is not None
    return (
        "warning",
        f"`{event.text}` is never reset: {event.name} keeps all its inputs, and device memory grows with "
        f"{each_round(event.loop)}",
        f"call `{event.text}.reset()` at the end of each epoch (Lightning does so if `self.log` is given the metric "
        "object, not its value)",
        Growth("device-tensor", "per-iteration"),
    )


REPORTS = {"anomaly": _anomaly, "history": _history, "profiler": _profiler, "metric": _metric}
