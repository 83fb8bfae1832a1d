"""``memlint check --add-ignore``: write a suppression at each finding, before the run that reports the rest."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from memlint.amounts import plural
from memlint.cli.output.endings import tell
from memlint.cli.output.progress import progress_bar
from memlint.engine.comments.ignoring import add_ignores, check_reason
from memlint.engine.options import Options
from memlint.engine.run import run


def add(paths: Sequence[str], options: Options, parsed: argparse.Namespace) -> None:
    """Lint, write the comments, and name the findings without one. Raises ConfigError."""
    reason = parsed.add_ignore.strip()
    check_reason(reason)
    with progress_bar(sys.stderr, quiet=parsed.quiet, verbose=parsed.verbose) as progress:
        outcome = run(paths, options, progress=progress)
    done = add_ignores(outcome, reason)
    for refusal in done.left:
        one = refusal.finding
        tell(f"{one.code} at {one.path}:{one.line} not suppressed: {refusal.reason}")
    if not parsed.quiet:
        tell(f"suppressed {plural(len(done.added), 'finding')} in {plural(len(done.changes), 'file')}")
