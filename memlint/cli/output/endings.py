"""Final messages and exit codes of the commands."""

from __future__ import annotations

import argparse
import sys

from memlint.amounts import plural
from memlint.cli.output.reports import is_read
from memlint.engine.run import Outcome
from memlint.finding import Result
from memlint.printable import printable

_SKIPS_SHOWN = 10
#: the most functions that are named because their analysis was cut short
_CUTS_SHOWN = 3
CLEAN, FINDINGS, FAILED = 0, 1, 2


def exit_code(result: Result, *, exit_zero: bool) -> int:
    """2 if anything failed, which ``exit_zero`` does not hide; 1 for errors and warnings; else 0."""
    if result.failures:
        return FAILED
    return FINDINGS if result.summary.errors + result.summary.warnings and not exit_zero else CLEAN


def tell(text: str) -> None:
    """One line on standard error."""
    print(f"memlint: {printable(text)}", file=sys.stderr)


def say(outcome: Outcome, parsed: argparse.Namespace, *, reported: bool = True) -> None:
    """Print to standard error: failures, if no report shows them to a user, and what was not analysed."""
    result = outcome.result
    if not reported or not is_read(parsed):
        for failure in result.failures:
            tell(f"error: {failure.path}: {failure.reason}")
    if parsed.quiet:
        return
    for notice in outcome.notices:
        tell(f"warning: {notice}")
    for row in outcome.said:
        tell(f"skipped {row.path}: {row.reason}")
    if result.cut_short and not parsed.verbose:
        named = ", ".join(result.cut_short[:_CUTS_SHOWN])
        more = len(result.cut_short) - _CUTS_SHOWN
        tell(
            f"{plural(len(result.cut_short), 'function')} too large to follow to the end: {named}"
            + (f" and {more} more (--verbose names all)" if more > 0 else "")
        )
    if parsed.verbose or not result.summary.files:
        rows = [row for row in result.skipped if row not in outcome.said]
        shown = rows if parsed.verbose else rows[:_SKIPS_SHOWN]
        for row in shown:
            tell(f"skipped {row.path}: {row.reason}")
        if len(shown) < len(rows):
            tell(f"skipped {plural(len(rows) - len(shown), 'more path')} (--verbose shows all)")
    if parsed.verbose:
        for remark in result.remarks:
            tell(f"{remark}")
