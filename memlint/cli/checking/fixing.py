"""``memlint check`` with --fix, --fix-only or --diff."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import msgspec

from memlint.amounts import plural
from memlint.cli.output.endings import CLEAN, FAILED, FINDINGS, exit_code, say, tell
from memlint.cli.output.reports import report
from memlint.engine.fixing.fixing import Fixed, Interrupted, run_and_fix
from memlint.engine.options import Options
from memlint.engine.run import STDIN
from memlint.finding import shown_place
from memlint.fix.diff import diffs
from memlint.printable import printable
from memlint.project import display_path
from memlint.report.summary import hidden_fixes


def fix(paths: Sequence[str], options: Options, parsed: argparse.Namespace) -> int:
    """Fix, report and return the exit code. Raises ConfigError for a wrong option or configuration."""
    from memlint.cli.output.progress import progress_bar

    try:
        with progress_bar(sys.stderr, quiet=parsed.quiet, verbose=parsed.verbose) as progress:
            done = run_and_fix(paths, options, write_files=not parsed.diff, progress=progress)
    except KeyboardInterrupt as stop:
        _say_interrupted(stop)
        raise
    for refusal in done.refused:
        one = refusal.finding
        tell(f"fix of {one.code} at {shown_place(one, column=False)} not applied: {refusal.reason}")
    if parsed.verbose:
        for one in done.fixed:
            title = "" if one.fix is None else f": {one.fix.title}"
            doubt = "" if one.fix is None or one.fix.doubt is None else f" (unsafe: {one.fix.doubt})"
            verb = "would fix" if parsed.diff else "fixed"
            tell(f"{verb} {one.code} at {shown_place(one, column=False)}{title}{doubt}")
    if parsed.diff:
        return _diff(done, parsed)
    return _fixed(done, paths, options, parsed)


def _say_interrupted(stop: KeyboardInterrupt) -> None:
    """Name the files that were written before the interrupt; no file is written partially."""
    written, unwritten = (stop.written, stop.unwritten) if isinstance(stop, Interrupted) else ((), ())
    for path in written:
        tell(f"{path}: fixed")
    for path in unwritten:
        tell(f"{path}: not fixed")
    if not written:
        tell("nothing was written")


def _diff(done: Fixed, parsed: argparse.Namespace) -> int:
    say(done.outcome, parsed, reported=False)
    shown = list(diffs(done.changes))
    changed = bool(shown)
    if sys.stdout.isatty():
        shown = [_for_terminal(diff) for diff in shown]
    elif os.environ.get("GITHUB_ACTIONS") == "true":
        shown = [_guarded(b"".join(shown))]  # programs that read a patch skip the text around the hunks
    for diff in shown:
        _write(diff)
    if not parsed.quiet:
        tell(f"{_would(done)}")
    if done.outcome.result.failures:
        return FAILED
    return FINDINGS if changed and not parsed.exit_zero else CLEAN


def _fixed(done: Fixed, paths: Sequence[str], options: Options, parsed: argparse.Namespace) -> int:
    out = sys.stdout
    if STDIN in paths:
        # standard input is passed on, fixed or not; the report goes beside it
        out, content = sys.stderr, options.stdin or b""
        name = display_path(options.stdin_path, options.cwd)
        content = next((change.after for change in done.changes if change.display == name), content)
        _write(content)
        options = msgspec.structs.replace(options, stdin=content)
    say(done.outcome, parsed, reported=not parsed.fix_only)
    result, whole = done.outcome.result, True
    if parsed.fix_only:
        if not parsed.quiet and result.fixed:
            print(f"Fixed {plural(result.fixed, 'finding')} in {plural(len(done.changes), 'file')}.", file=out)
    else:
        whole = report(done.outcome, options, parsed, out)
    if result.failures or not whole:
        return FAILED
    if parsed.exit_non_zero_on_fix and done.changes:
        return FINDINGS
    return CLEAN if parsed.fix_only else exit_code(result, exit_zero=parsed.exit_zero)


def _would(done: Fixed) -> str:
    """The numbers of findings that --fix and --unsafe-fixes would fix."""
    result = done.outcome.result
    hidden = hidden_fixes(result)
    more = f" ({hidden} more with --unsafe-fixes)" if hidden else ""
    if not result.fixed:
        return f"there is nothing to fix{more}"
    return f"would fix {plural(result.fixed, 'finding')} in {plural(len(done.changes), 'file')}{more}"


def _for_terminal(diff: bytes) -> bytes:
    """A diff for display on a terminal, without characters that control it."""
    lines = diff.decode("utf-8", "backslashreplace").split("\n")
    return "\n".join("\t".join(map(printable, line.split("\t"))) for line in lines).encode()


def _guarded(diff: bytes) -> bytes:
    """A diff in which the runner of a CI job takes no line for a command."""
    from memlint.report.github import guarded

    return guarded(diff.decode("latin-1")).encode("latin-1")


def _write(content: bytes) -> None:
    """Write bytes to standard output unchanged."""
    sys.stdout.flush()
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()
