"""``memlint verify --rules``: run the rules' own probes and check their claims."""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from memlint.cli.output.reports import write_whole
from memlint.cli.parsing.parsers import OneOf, Parser, local_rules_option
from memlint.engine.run import local_rules
from memlint.json_text import indented
from memlint.verifier.rules import Case, Measured, default_output, measure, probed_rooms

_EPILOG = """\
Without codes all rules that have a probe.py are run, and in a checkout of memlint the result is kept in
benchmarks/results/rules-DEVICE.json. exit codes: 0 each claim is shown, 1 some are not, 2 it cannot be run as asked
"""


def parse_verify_rules(rest: Sequence[str]) -> argparse.Namespace:
    """The parsed command line. Raises ConfigError."""
    from memlint.cli.parsing.parsers import at_least, seconds

    parser = Parser(
        prog="memlint verify --rules",
        usage="memlint verify --rules [CODE…] [OPTIONS]",
        description="Run the bad and the good loop of each rule's probe.py and measure what the rule claims.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--rules", nargs="*", metavar="CODE", required=True, help="these rules (default: all)")
    parser.add_argument("--device", type=OneOf("auto", "cuda", "cpu"), default="auto", metavar="DEVICE",
                        help="where the probes run: cuda, cpu, or auto (default)")  # fmt: skip
    parser.add_argument("--warmup", type=at_least(1), default=3, metavar="N", help="iterations not judged (3)")
    parser.add_argument("--window", type=at_least(2), default=12, metavar="N", help="iterations that are (12)")
    parser.add_argument("--timeout", type=seconds, metavar="SECONDS", help="end a rule's probe after so long")
    parser.add_argument("--python", metavar="PATH", help="an interpreter that has torch (default: the active one)")
    parser.add_argument("-o", "--output-file", metavar="FILE", help="write the measurements to a JSON file")
    parser.add_argument("-q", "--quiet", action="store_true", help="no progress")
    local_rules_option(parser)
    parsed = parser.parse_args(rest)
    parsed.command = "verify-rules"
    parsed.words = list(rest)
    return parsed


def run_verify_rules(parsed: argparse.Namespace) -> int:
    """Measure, report and store the results. Raises ConfigError."""
    rooms = probed_rooms(parsed.rules, local_rules(Path.cwd(), asked=parsed.local_rules))
    live = not parsed.quiet and sys.stderr.isatty()

    def show(code: str) -> None:
        if live:
            sys.stderr.write(f"\r\x1b[Kmemlint: {code}")
            sys.stderr.flush()

    command = shlex.join(["memlint", "verify", *_without(parsed.words, "--python", "-o", "--output-file")])
    measured = measure(
        rooms,
        device=parsed.device,
        python=parsed.python,
        warmup=parsed.warmup,
        window=parsed.window,
        command=command,
        watch=show,
        timeout=parsed.timeout,
    )
    if live:
        sys.stderr.write("\r\x1b[K")
    output = parsed.output_file and Path(parsed.output_file)
    if output is None and not parsed.rules:
        output = default_output(measured)
    _print(measured)
    if output is not None:
        write_whole(output, indented(measured))
        print(f"written to {output}")
    return 0 if all(probed.shown for probed in measured.rules) else 1


def _without(words: Sequence[str], *options: str) -> list[str]:
    """The words without options that name paths on this machine."""
    kept, skip = [], False
    for word in words:
        if skip or word.partition("=")[0] in options:
            skip = not skip and "=" not in word
            continue
        kept.append(word)
    return kept


def _print(measured: Measured) -> None:
    machine = measured.machine
    print(
        f"{machine['hardware']} ({machine['device']}), torch {machine['torch']}, Python {machine['python']}: "
        f"{measured.iterations} iterations after {measured.warmup} of warm-up"
    )
    for probed in measured.rules:
        if probed.error:
            print(f"{probed.code} {probed.name}: the probe failed: {probed.error}")
        elif not probed.cases:
            print(f"{probed.code} {probed.name}: claims nothing on this device")
        for case in probed.cases:
            verdict = "shown" if case.shown else f"NOT shown: {case.reason}"
            print(f"{probed.code} {case.claim:<6} {_numbers(case)}: {verdict}")
            print(f"       bad: {case.bad['title']}; good: {case.good['title']}")
    wrong = [probed.code for probed in measured.rules if not probed.shown]
    print(f"not shown: {', '.join(wrong)}" if wrong else f"{len(measured.rules)} rules show what they claim")


def _numbers(case: Case) -> str:
    bad, good = case.bad, case.good
    if case.claim == "device":
        return f"{bad['bytes_per_iteration']['max']:,} B an iteration (good: {good['bytes_per_iteration']['max']:,} B)"
    if case.claim == "host":
        host = bad["host_bytes_per_iteration"]
        beside = "" if host is None else f", {host:,} B of host memory"
        nodes, least = bad["graph_nodes_per_iteration"]["max"], good["graph_nodes_per_iteration"]["max"]
        return f"{nodes:,} graph nodes{beside} an iteration (good: {least:,} nodes)"
    key = "peak_bytes" if case.claim == "peak" else "seconds_per_iteration"
    return f"{bad[key] / good[key]:.2f} times" if good[key] else "∞ times"
