"""The baseline after a run: it is written or pruned, or its stale entries are named."""

from __future__ import annotations

import argparse
from pathlib import Path

from memlint.amounts import plural
from memlint.cli.output.endings import CLEAN, FAILED, FINDINGS, tell
from memlint.cli.output.reports import write_whole
from memlint.config import ConfigError
from memlint.engine.filters.baseline import Ledger, ledgers
from memlint.engine.run import Outcome
from memlint.project import display_path


def keep_up(outcome: Outcome, parsed: argparse.Namespace) -> int:
    """Update the baselines of a run as the command line says; returns an exit code. Raises ConfigError."""
    found = ledgers(outcome.parts)
    if not found and not outcome.result.failures:
        option = "--prune-baseline" if parsed.prune_baseline else "--error-stale"
        raise ConfigError(f"{option} needs a baseline: --baseline FILE, or `baseline` in the configuration")
    codes = [_write(ledger, outcome, parsed) if parsed.write_baseline else _tend(ledger, parsed) for ledger in found]
    return max(codes, default=CLEAN)


def _write(ledger: Ledger, outcome: Outcome, parsed: argparse.Namespace) -> int:
    if outcome.result.failures:
        tell(f"{parsed.write_baseline} was not written: not all files could be checked")
        return FAILED
    write_whole(ledger.baseline.file, ledger.text, "--write-baseline")
    if not parsed.quiet:
        count = outcome.result.summary.baselined
        tell(f"wrote {plural(count, 'finding')} to {parsed.write_baseline}")
    return CLEAN


def _tend(ledger: Ledger, parsed: argparse.Namespace) -> int:
    """Remove stale entries if the command line says so, else name them."""
    if not ledger.stale:
        return CLEAN
    file = display_path(ledger.baseline.file, Path.cwd())
    if parsed.verbose:
        for entry in ledger.stale:
            tell(f"stale: {entry.path}: {entry.code} in {entry.function or 'the file'}: {entry.source}")
    entries = plural(len(ledger.stale), "stale entry")
    if parsed.prune_baseline:
        write_whole(ledger.baseline.file, ledger.text, "--prune-baseline")
        if not parsed.quiet:
            tell(f"removed {entries} from {file}")
        return CLEAN
    if parsed.error_stale or not parsed.quiet:
        tell(f"{file} has {entries} (--prune-baseline removes them)")
    return FINDINGS if parsed.error_stale else CLEAN
