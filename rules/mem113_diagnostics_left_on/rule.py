"""MEM113: what is made for a look at a few steps stays on for the whole run."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk import DiagnosticLeftOn, Facts, Growth, Meta, Report, Severity, each_round

META = Meta(
    code="MEM113",
    name="diagnostics-left-on",
    summary="Anomaly detection, memory history, a profiler or a metric's state goes on for the whole run.",
    severity="warning",
)

NO_GROWTH = Growth("none", "time")


def check(facts: Facts) -> Iterator[Report]:
    for event in facts.of(DiagnosticLeftOn):
        severity, message, advice, growth = REPORTS[event.kind](event)
        yield Report(
            site=event.site,
            message=message,
            advice=advice,
            severity=severity,
            confidence=event.certainty,
            growth=growth,
            trace=event.trace,
        )


Said = tuple[Severity, str, str, Growth]


def _anomaly(event: DiagnosticLeftOn) -> Said:
    where = f"in {each_round(event.loop)}" if event.loop is not None else "for the rest of the run"
    return (
        # (what it costs depends on how small the operations are)
        "note",
        f"`{event.text}` is on {where}: each operation records a stack trace, and each backward looks for NaN "
        "in every gradient, which waits for the device",
        "switch it on when a loss is no number, for the steps that show why",
        NO_GROWTH,
    )


def _history(event: DiagnosticLeftOn) -> Said:
    return (
        "note" if event.read else "warning",
        f"`{event.text}` is never switched off: each allocation and each free of the run is kept on the host, with its "
        "stack trace",
        "give it `max_entries`, or call `torch.cuda.memory._record_memory_history(enabled=None)` after the steps in "
        "question",
        Growth("host", "per-iteration"),
    )


def _profiler(event: DiagnosticLeftOn) -> Said:
    return (
        "warning",
        f"`{event.text}` without a schedule records all of `{event.loop.text if event.loop else ''}`: each operation "
        "stays on the host until the block ends",
        "give it `schedule=torch.profiler.schedule(...)` and call `step()` on it in each round, or leave the loop "
        "after a few rounds",
        Growth("host", "per-iteration"),
    )


def _metric(event: DiagnosticLeftOn) -> Said:
    assert event.loop is not None
    return (
        "warning",
        f"`{event.text}` is never reset: {event.name} keeps all that it was given since the run began, and grows on "
        f"the device with {each_round(event.loop)}",
        f"call `{event.text}.reset()` when an epoch ends (Lightning does so where `self.log` is given the metric "
        "itself, not what it returned)",
        Growth("device-tensor", "per-iteration"),
    )


REPORTS = {"anomaly": _anomaly, "history": _history, "profiler": _profiler, "metric": _metric}
