"""``memlint verify``: run the program and report the real cost of each finding."""

from __future__ import annotations

import argparse
import io
import sys
from pathlib import Path
from typing import TextIO

from memlint.cli.output.live import Live
from memlint.cli.output.reports import check_writable, write_whole
from memlint.cli.parsing.options import options_of
from memlint.config import ConfigError
from memlint.evidence import dumps
from memlint.report.lines import Lines
from memlint.verifier.comparing.compare import compare_fix, compare_with
from memlint.verifier.evidence import document
from memlint.verifier.model import BAD, Report, Verdict
from memlint.verifier.processes.group import group
from memlint.verifier.run import Program, Wanted, locate, read, verify

NOTHING, CONFIRMED, FAILED, PROGRAM_FAILED, INTERRUPTED = 0, 1, 2, 3, 130


def run_verify(parsed: argparse.Namespace) -> int:
    """Run ``memlint verify`` and return its exit code. Raises ConfigError for what cannot be run."""
    cwd = Path.cwd()
    options = options_of(parsed, cwd)
    for option, file in (("--output-file", parsed.output_file), ("--evidence", parsed.evidence)):
        if file is not None:
            check_writable(cwd / file, option)
    if parsed.evidence is not None and parsed.evidence == parsed.output_file:
        raise ConfigError("--evidence and --output-file name the same file")
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
        all_output=parsed.all_output,
        picture=parsed.output_format == "html",
        trace_host=parsed.trace_host,
    )
    ranks = group()
    if ranks is not None:
        _refuse(parsed)
    target = locate(parsed.target, parsed.module, parsed.arguments, cwd, parsed.python)
    program = read(target, options)
    with Live(quiet=parsed.quiet or (ranks is not None and not ranks.leads)) as live:
        if parsed.compare_fix:
            report = compare_fix(program, options, wanted, live.show, live.say)
        elif parsed.compare_with is not None:
            other = read(locate(parsed.compare_with, False, parsed.arguments, cwd), options)
            report = compare_with(program, other, wanted, live.show, live.say)
        else:
            report = verify(program, wanted, live.show, ranks)
    code = exit_code(report, parsed.fail_on, parsed.limit)
    if ranks is not None and not ranks.leads:
        return ranks.code(code)
    if parsed.evidence is not None:
        proof = document(report, program.paths, program.hashes, cwd)
        write_whole(cwd / parsed.evidence, dumps(proof), "--evidence")
    _write(report, program, parsed, sys.stdout)
    if ranks is not None:
        sys.stdout.flush()
        ranks.finish(code)
    return code


def _refuse(parsed: argparse.Namespace) -> None:
    """Raises ConfigError for options that one rank of several, which were started outside, cannot have."""
    for option in ("--nproc-per-node", "--compare-fix", "--compare-with"):
        if getattr(parsed, option[2:].replace("-", "_")):
            raise ConfigError(
                f"{option} does not go with a launcher around memlint (RANK and WORLD_SIZE are set); let memlint start "
                "the ranks: `memlint verify --nproc-per-node N …`"
            )


def exit_code(report: Report, fail_on: str = "confirmed", limit: int = 0) -> int:
    """2 if memlint could not complete the run, 3 if the program itself failed; else 1 if something is confirmed, or
    grows unexplained with ``fail_on`` "growth", by at least ``limit`` bytes per iteration. A program that took too long
    has not failed."""
    if report.run.end == "interrupted":
        return INTERRUPTED
    if report.failures or report.run.end == "broken":
        return FAILED
    if report.run.end in ("failed", "killed"):
        return PROGRAM_FAILED
    if fail_on == "never":
        return NOTHING
    bad = any(one.verdict.verdict in BAD and _weighs(one.verdict, limit) for one in report.verified)
    grows = fail_on == "growth" and any(row.bytes_per_iteration >= limit for row in report.unattributed)
    return CONFIRMED if bad or grows else NOTHING


def _weighs(verdict: Verdict, limit: int) -> bool:
    """Whether a finding costs at least ``limit`` bytes per iteration, or an unknown number."""
    per = verdict.bytes_per_iteration
    known = [each for each in (None if per is None else per.mean, verdict.host_bytes_per_iteration) if each is not None]
    return not known or max(known) >= limit


def _write(report: Report, program: Program, parsed: argparse.Namespace, out: TextIO) -> None:
    if parsed.output_file is None:
        _write_to(report, program, parsed, out)
        return
    text = io.StringIO()
    _write_to(report, program, parsed, text)
    write_whole(Path(parsed.output_file), text.getvalue())
    from memlint.report import verify_text

    verify_text.write_short(report, out)
    out.write(f"Written to {parsed.output_file}.\n")


def _write_to(report: Report, program: Program, parsed: argparse.Namespace, out: TextIO) -> None:
    """Write the report in its format, and import only what that needs."""
    from memlint.report import verify_html, verify_json, verify_text

    if parsed.output_format == "html":
        named = f"-m {program.target.name}" if program.target.module else parsed.target
        verify_html.write(report, Lines(program.texts.get), out, named)
    else:
        (verify_json if parsed.output_format == "json" else verify_text).write(report, out)


def parse_bytes(text: str) -> int:
    """A number of bytes such as 8GiB, 500 MB or 1024. Raises ArgumentTypeError."""
    from memlint.amounts import bytes_in

    found = bytes_in(text)
    if found is None:
        raise argparse.ArgumentTypeError(f"`{text}` is no amount of memory, such as 8GiB")
    return found
