"""The options of ``memlint verify``."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from memlint.cli.arguments import OneOf, Parser, local_rules_option, words
from memlint.cli.verify import parse_bytes
from memlint.config import nearest

_EPILOG = """\
`memlint verify --rules` measures the rules themselves (`memlint verify --rules --help`).
Everything after `--` is passed to the program. Exit codes: 0 nothing confirmed, 1 something confirmed, 2 it cannot be
run as asked, 3 the program itself failed
"""
_FORMATS = ("text", "json", "html")


def parse_verify(rest: Sequence[str]) -> argparse.Namespace:
    """The parsed command line. Raises ConfigError for what cannot be meant."""
    parser = verify_parser()
    words_before = list(rest)
    arguments: list[str] = []
    if "--" in words_before:
        cut = words_before.index("--")
        words_before, arguments = words_before[:cut], words_before[cut + 1 :]
    if "--rules" in words_before:
        from memlint.cli.verify_rules import parse_verify_rules

        return parse_verify_rules(rest)
    parsed, unknown = parser.parse_known_intermixed_args(words_before)
    if unknown:
        word = unknown[0].partition("=")[0]
        options = [option for action in parser._actions for option in action.option_strings if word.startswith("--")]
        if word.startswith("-"):
            hint = nearest(word, options)
            parser.error(f"unknown option `{word}`{hint or '; options of the program follow `--`'}")
        parser.error(f"unexpected `{word}`; arguments of the program follow `--`")
    if (parsed.script is None) == (parsed.module is None):
        parser.error("name one script, or a module by -m")
    parsed.target, parsed.module = (parsed.script or parsed.module), parsed.module is not None
    parsed.arguments = arguments
    parsed.command = "verify"
    return parsed


def verify_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="memlint verify",
        usage="memlint verify [OPTIONS] SCRIPT|-m MODULE [-- ARGUMENTS…]",
        description="Run a program, measure the memory at each of its findings, and give verdicts in bytes.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("script", nargs="?", metavar="SCRIPT", help="the program")
    parser.add_argument("-m", dest="module", metavar="MODULE", help="run a module, as `python -m` does")
    measure = parser.add_argument_group("measuring")
    measure.add_argument("--device", type=OneOf("auto", "cuda", "cpu"), default="auto", metavar="DEVICE",
                         help="what to measure: cuda, cpu, or auto (default)")  # fmt: skip
    measure.add_argument(
        "--warmup", type=at_least(0), default=3, metavar="N", help="iterations that are not judged (default: 3)"
    )
    measure.add_argument(
        "--window", type=at_least(4), default=12, metavar="N", help="iterations that are judged (default: 12)"
    )
    measure.add_argument("--max-steps", type=at_least(1), metavar="N", help="stop after N iterations of a loop")
    measure.add_argument("--full", action="store_true", help="let the program run to its end")
    measure.add_argument("--timeout", type=seconds, metavar="SECONDS", help="end the program after this time")
    measure.add_argument(
        "--gpu-memory", type=parse_bytes, metavar="BYTES", help="run as on a smaller card, such as 8GiB"
    )
    measure.add_argument("--nproc-per-node", type=at_least(1), metavar="N", help="run N ranks by torchrun")
    measure.add_argument("--python", metavar="PATH", help="the program's interpreter (default: the active one)")
    compare = parser.add_mutually_exclusive_group()
    compare.add_argument("--compare-fix", action="store_true",
                         help="run it again with all fixes, applied in memory, and compare")  # fmt: skip
    compare.add_argument("--compare-with", metavar="SCRIPT", help="run another script, too, and compare")
    _rule_options(parser.add_argument_group("rules"))
    output = parser.add_argument_group("output")
    output.add_argument("--output-format", type=OneOf(*_FORMATS), default="text", metavar="FORMAT",
                        help=f"{', '.join(_FORMATS)} (default: text)")  # fmt: skip
    output.add_argument("--evidence", metavar="FILE", help="write what was measured, for `memlint check --evidence`")
    output.add_argument("-o", "--output-file", metavar="FILE", help="write the report to a file")
    output.add_argument("-q", "--quiet", action="store_true", help="no progress")
    return parser


def _rule_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--select", type=words, action="extend", metavar="RULES", help="verify only these rules")
    group.add_argument("--extend-select", type=words, action="extend", metavar="RULES", help="verify these rules, too")
    group.add_argument("--ignore", type=words, action="extend", metavar="RULES", help="do not verify these rules")
    group.add_argument("--preview", action="store_true", help="verify preview rules, too")
    group.add_argument("--min-confidence", type=OneOf("high", "medium", "low"), metavar="LEVEL",
                       help="verify findings of at least this confidence: high, medium (default) or low")  # fmt: skip
    group.add_argument("--config", metavar="FILE", help="use this configuration instead of the closest one")
    group.add_argument("--isolated", action="store_true", help="ignore all configuration")
    local_rules_option(group)


def at_least(least: int) -> Callable[[str], int]:
    """A type that takes whole numbers from ``least`` on."""

    def count(text: str) -> int:
        if not text.isdigit() or int(text) < least:
            raise argparse.ArgumentTypeError(f"`{text}` is not a whole number of at least {least}")
        return int(text)

    return count


def seconds(text: str) -> float:
    """A time. Raises ArgumentTypeError."""
    try:
        found = float(text)
    except ValueError:
        found = 0.0
    if not 0 < found < float("inf"):
        raise argparse.ArgumentTypeError(f"`{text}` is not a time in seconds")
    return found
