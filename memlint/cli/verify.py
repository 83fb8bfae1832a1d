"""``memlint verify``: run the program and report what each finding really costs."""

from __future__ import annotations

import argparse
import io
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

from memlint.cli.check import write_whole
from memlint.config import ConfigError
from memlint.engine.options import Options
from memlint.engine.selection import Overrides
from memlint.verifier.model import BAD, Report
from memlint.verifier.planning import Probes
from memlint.verifier.run import Wanted, locate, read, verify

NOTHING, CONFIRMED, FAILED, PROGRAM_FAILED, INTERRUPTED = 0, 1, 2, 3, 130


def run_verify(parsed: argparse.Namespace) -> int:
    """Run ``memlint verify`` and return its exit code. Raises ConfigError for what cannot be run."""
    cwd = Path.cwd()
    options = Options(
        cwd=cwd,
        overrides=Overrides(
            select=None if parsed.select is None else tuple(parsed.select),
            extend_select=tuple(parsed.extend_select or ()),
            ignore=tuple(parsed.ignore or ()),
            preview=parsed.preview,
            min_confidence=parsed.min_confidence,
        ),
        config=None if parsed.config is None else cwd / parsed.config,
        isolated=parsed.isolated,
    )
    to_standard_output = parsed.output_file is None and parsed.output_format in ("json", "html")
    wanted = Wanted(
        device=parsed.device,
        warmup=parsed.warmup,
        window=parsed.window,
        max_steps=parsed.max_steps,
        full=parsed.full,
        timeout=parsed.timeout,
        gpu_memory=parsed.gpu_memory,
        python=parsed.python,
        ranks=parsed.nproc_per_node,
        program_to_stderr=to_standard_output,
    )
    _check_output(parsed.output_file)
    target = locate(parsed.target, parsed.module, parsed.arguments, cwd)
    program = read(target, options)
    with _Live(quiet=parsed.quiet) as live:
        report = verify(program, wanted, live.show)
    _write(report, parsed, sys.stdout)
    return exit_code(report)


def _check_output(name: str | None) -> None:
    """A report that cannot be written is said before a program runs for hours. Raises ConfigError."""
    if name is None:
        return
    folder = Path(name).parent
    if not folder.is_dir():
        raise ConfigError(f"--output-file: {name} cannot be written: there is no folder {folder}")
    if Path(name).is_dir():
        raise ConfigError(f"--output-file: {name} is a folder")


def exit_code(report: Report) -> int:
    """3 where the program itself failed, whatever was found; 1 where something is confirmed."""
    if report.run.end == "interrupted":
        return INTERRUPTED
    if report.failures:
        return FAILED
    if report.run.end in ("failed", "killed", "timeout"):
        return PROGRAM_FAILED
    return CONFIRMED if any(one.verdict.verdict in BAD for one in report.verified) else NOTHING


def _write(report: Report, parsed: argparse.Namespace, out: TextIO) -> None:
    from memlint.report import verify_json, verify_text

    write = verify_json.write if parsed.output_format == "json" else verify_text.write
    if parsed.output_file is None:
        write(report, out)
        return
    text = io.StringIO()
    write(report, text)
    write_whole(Path(parsed.output_file), text.getvalue())


class _Live:
    """A line of progress on a terminal while the program runs; nothing elsewhere."""

    def __init__(self, *, quiet: bool) -> None:
        self._on = not quiet and sys.stderr is not None and sys.stderr.isatty()
        self._shown = False

    def __enter__(self) -> _Live:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            sys.stderr.write("\r\x1b[K")

    def show(self, put_in: Probes, measured: Sequence[Mapping[str, Any]]) -> None:
        if not self._on or not measured:
            return
        sites = measured[0]["sites"]
        done = sum(any(check["when"] == "window" for check in site["checks"]) for site in sites)
        steps = max((loop["tops"] for loop in measured[0]["loops"]), default=0)
        sys.stderr.write(f"\r\x1b[Kmemlint: step {steps:,}, {done} of {len(sites)} findings measured")
        sys.stderr.flush()
        self._shown = True


def parse_bytes(text: str) -> int:
    """A number of bytes such as 8GiB, 500 MB or 1024. Raises ArgumentTypeError."""
    import re

    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?)B?\s*", text, re.IGNORECASE)
    if match is None:
        raise argparse.ArgumentTypeError(f"`{text}` is no amount of memory, such as 8GiB")
    base = 1024 if match[3] else 1000
    return int(float(match[1]) * base ** " KMGT".index(match[2].upper() or " "))
