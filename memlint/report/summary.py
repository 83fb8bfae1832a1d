"""The last line of a report, and the counts by code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from memlint.amounts import plural
from memlint.finding import HeldBack, Result, is_fixable
from memlint.report.facts import shown


def summary(result: Result) -> str:
    """For example ``Found 1 error in 42 files; 3 more in preview rules (--preview), 1 suppressed (1.2 s).``"""
    counts = result.summary
    parts = [
        plural(count, word)
        for count, word in ((counts.errors, "error"), (counts.warnings, "warning"), (counts.notes, "note"))
        if count
    ]
    extra = [
        *_held_back(counts.held_back),
        *(
            f"{count} {what}"
            for count, what in (
                (counts.suppressed, "suppressed"),
                (counts.silenced_by_evidence, "silenced by evidence"),
                (counts.baselined, "in the baseline (--no-baseline)"),
                (counts.skipped, "skipped"),
            )
            if count
        ),
    ]
    found = f"Found {_and(parts)}" if parts else "Found nothing"
    if result.fixed:
        remaining = counts.errors + counts.warnings + counts.notes
        remain = f"{remaining} remaining" + (f": {_and(parts)}" if parts else "")
        found = f"Found {plural(result.fixed + remaining, 'finding')} ({result.fixed} fixed, {remain})"
    after = f"; {', '.join(extra)}" if extra else ""
    return f"{found} in {plural(counts.files, 'file')}{after} ({counts.seconds:.1f} s)."


def _held_back(counts: HeldBack) -> list[str]:
    """The findings that are not shown, by reason, each with the option that shows them."""
    ways = (
        (counts.medium_confidence, "of medium confidence (--min-confidence medium)"),
        (counts.low_confidence, "of low confidence (--min-confidence low)"),
        (counts.preview, "in preview rules (--preview)"),
        (counts.unused_code, 'in unused code (unused-code = "report")'),
        (counts.unchanged_lines, "on unchanged lines (without --since)"),
    )
    there = [(count, what) for count, what in ways if count]
    return [f"{count} {what}" if number else f"{count} more {what}" for number, (count, what) in enumerate(there)]


def offer(result: Result) -> str:
    """How many findings --fix can fix, as a sentence; "" if none."""
    now = [one for one in result.findings if result.is_fixable(one)]
    more = hidden_fixes(result)
    if not now:
        return f"{more} fixable with --fix --unsafe-fixes." if more else ""
    # with `unsafe-fixes` in the configuration, --fix alone applies them
    unsafe = result.asked_unsafe and not all(is_fixable(one, False) for one in now)
    option = "--fix --unsafe-fixes" if unsafe else "--fix"
    return f"{len(now)} fixable with {option}" + (f" ({more} more with --unsafe-fixes)." if more else ".")


def hidden_fixes(result: Result) -> int:
    """The number of findings that only --unsafe-fixes would fix."""
    return sum(is_fixable(one, True) and not result.is_fixable(one) for one in result.findings)


def statistics(result: Result) -> Iterator[str]:
    """One line for each rule with findings, the most frequent first: number, code and name."""
    counts = Counter((one.code, one.name) for one in shown(result))
    width = len(str(max(counts.values(), default=0)))
    for (code, name), count in sorted(counts.items(), key=lambda row: (-row[1], row[0])):
        yield f"{count:>{width}}  {code}  {name}"


def _and(parts: list[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
