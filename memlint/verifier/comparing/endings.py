"""How the runs of a comparison ended, where the later ones have to end, and the remarks on that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from memlint.verifier.comparing.versions import Version
from memlint.verifier.model import Report
from memlint.verifier.processes.child import Ran

_ENDS = {"failed": "failed", "timeout": "timed out", "killed": "was killed", "interrupted": "was interrupted"}


def in_words(end: str) -> str:
    """What the program did, as a verb."""
    return _ENDS.get(end, end)


def where_to_stop(first: Ran, version: Version) -> tuple[tuple[int, int] | None, int | None, bool]:
    """Where a version is to stop, as the first run did: the top of a loop, else a number of iterations; and whether it
    runs to its end."""
    one = first.measured[0]
    loops: Sequence[Mapping[str, Any]] = one["loops"]
    if one["end"]["kind"] == "stopped" and "at" in one["end"]:
        loop, top = one["end"]["at"]
    elif failed(first):  # out of memory: one more iteration shows that the fix helps
        busiest = max(loops, key=lambda each: (each["inner"], each["tops"]))
        loop, top = busiest["id"], busiest["tops"] + 1
    else:
        return None, None, True
    if (pair := version.pair(loop)) != 0:
        return (pair, top), None, False
    return None, max(1, top - 1), False


def failed(ran: Ran) -> bool:
    ends = {one["end"]["kind"] for one in ran.measured}
    return not ends or not ends <= {"finished", "stopped"} or ran.timed_out or ran.interrupted


def broke(ran: Ran) -> bool:
    """Whether the program itself failed, not for lack of memory."""
    return failed(ran) and not (ran.timed_out or ran.interrupted or out_of_memory(ran))


def out_of_memory(ran: Ran) -> bool:
    return any(one["end"].get("memory") for one in ran.measured)


def no_second(first: Ran, report: Report) -> str | None:
    """Why there is no second run, if the first one is enough."""
    if not first.measured:
        return "the program left no measurements, so it was not run again"
    if first.interrupted or first.timed_out or (failed(first) and not out_of_memory(first)):
        return f"the program as it is {in_words(report.run.end)}, so it was not run again"
    if not any(loop["tops"] for loop in first.measured[0]["loops"]) and failed(first):
        return "the program as it is ran out of memory before its first iteration, so it was not run again"
    return None


def said_of(first: Ran, second: Ran, report: Report, end: str) -> str:
    """The remarks on the two runs."""
    if failed(second):
        said = f"the second run {in_words(end)}"
        if out_of_memory(second):
            said += " out of memory"
        return said + (f" with exit code {second.exit}" if second.exit else "")
    if failed(first):
        return f"as it is, the program ran out of memory after {report.run.steps:,} steps; the second run went further"
    return ""
