"""The options of ``memlint verify``."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Sequence

from memlint.cli.commands.verify import parse_bytes
from memlint.cli.parsing.parsers import OneOf, Parser, at_least, local_rules_option, seconds, words
from memlint.config import nearest

_EPILOG = """\
`memlint verify --rules` measures the rules themselves (`memlint verify --rules --help`).
After the program's name, options that memlint does not have are passed to the program, and so is everything after `--`.
Exit codes: 0 nothing confirmed, 1 something confirmed (--fail-on), 2 it cannot be run as asked, 3 the program failed
"""
#: the conditions for exit code 1
FAIL_ON = ("confirmed", "growth", "never")
#: the similarity from which a word after the program's name is taken for a misspelt option
_ALIKE = 0.85
_FORMATS = ("text", "json", "html")


def parse_verify(rest: Sequence[str]) -> argparse.Namespace:
    """The parsed command line. Raises ConfigError for invalid input."""
    parser = verify_parser()
    words_before = list(rest)
    arguments: list[str] = []
    if "--" in words_before:
        cut = words_before.index("--")
        words_before, arguments = words_before[:cut], words_before[cut + 1 :]
    if "--rules" in words_before:
        from memlint.cli.commands.verify_rules import parse_verify_rules

        return parse_verify_rules(rest)
    words_before, own = _split(parser, words_before)
    arguments = own + arguments
    parsed, unknown = parser.parse_known_intermixed_args(words_before)
    if unknown:
        word = unknown[0].partition("=")[0]
        hint = nearest(word, _options(parser)) if word.startswith("--") else None
        parser.error(f"unknown option `{word}`{hint or '; options of the program follow its name'}")
    if (parsed.script is None) == (parsed.module is None):
        parser.error("name one script, or a module by -m")
    if parsed.gpu_memory is not None and parsed.device == "cpu":
        parser.error("--gpu-memory needs a GPU, and --device cpu measures none")
    parsed.target, parsed.module = (parsed.script or parsed.module), parsed.module is not None
    parsed.arguments = arguments
    parsed.command = "verify"
    return parsed


def _split(parser: argparse.ArgumentParser, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words for memlint, and those after the program's name that can only be the program's own. Raises ConfigError
    for a word that may be a misspelt option of memlint."""
    actions = {option: action for action in parser._actions for option in action.option_strings}
    mine: list[str] = []
    own: list[str] = []
    named = False
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        name, sign, _ = word.partition("=")
        # after the program's name, ``-opt`` is one option, not ``-o pt``
        short = word[:2] if not named and not word.startswith("--") else name
        action = actions.get(name) or actions.get(short)
        if action is not None and word.startswith("-") and not (named and action.dest == "module"):
            mine.append(word)
            glued = sign or (not word.startswith("--") and len(word) > 2)
            if action.nargs != 0 and not glued and waiting:
                mine.append(waiting.pop(0))
            named = named or action.dest == "module"
        elif not named:
            mine.append(word)
            named = not word.startswith("-")
        elif word.startswith("--") and (near := difflib.get_close_matches(name, _options(parser), 1, _ALIKE)):
            parser.error(
                f"unknown option `{name}` (did you mean `{near[0]}`? If it is the program's own, it follows `--`)"
            )
        else:
            own.append(word)
    return mine, own


def _options(parser: argparse.ArgumentParser) -> list[str]:
    return [option for action in parser._actions for option in action.option_strings if option.startswith("--")]


def verify_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="memlint verify",
        usage="memlint verify [OPTIONS] SCRIPT|-m MODULE [ARGUMENTS…]",
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
        "--warmup", type=at_least(0), default=3, metavar="N", help="iterations to run before judging (default: 3)"
    )
    measure.add_argument(
        "--window", type=at_least(4), default=12, metavar="N", help="iterations to judge (default: 12)"
    )
    measure.add_argument("--max-steps", type=at_least(1), metavar="N", help="stop after N iterations of a loop")
    measure.add_argument("--full", action="store_true", help="let the program run to its end")
    measure.add_argument("--timeout", type=seconds, metavar="SECONDS", help="end the program after this time")
    measure.add_argument(
        "--gpu-memory", type=parse_bytes, metavar="BYTES", help="run as on a smaller card, such as 8GiB"
    )
    measure.add_argument(
        "--trace-host",
        action="store_true",
        help="find the lines of Python that allocate growing host memory; slower for one window of a loop that grows",
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
    output.add_argument("--fail-on", type=OneOf(*FAIL_ON), default="confirmed", metavar="WHAT",
                        help="exit 1 for a confirmed finding (default: confirmed), for growth that no finding explains "
                        "as well (growth), or never")  # fmt: skip
    output.add_argument("--limit", type=parse_bytes, default=0, metavar="BYTES",
                        help="less than this an iteration, such as 1KiB, does not fail the run")  # fmt: skip
    output.add_argument("--all-output", action="store_true", help="show what the program prints in each compared run")
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
