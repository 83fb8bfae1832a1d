"""The options of every command."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence

from memlint import __version__
from memlint.cli import COMMANDS
from memlint.cli.parsing.parsers import OneOf, Parser, local_rules_option, rule_options, words
from memlint.config import ConfigError, nearest
from memlint.report import FORMATS

_EPILOG = """\
commands:
  check PATHS          lint files and folders; the default, so `memlint PATHS` is the same
  explain FILE:LINE    say what the analysis knows of a line, and why a rule fired there or did not
  verify SCRIPT        run a program and measure what its findings cost
  rule [CODE|NAME]     print a rule's page, or list all rules
  new-rule CODE NAME   create the folder of a new rule
  clean [PATHS]        remove the cache (.memlint_cache)
  config [PATH]        print the settings in force, and where each comes from
  init [FOLDER]        write a configuration, a pre-commit hook and a workflow, where there are none
  lsp                  serve an editor (language server)

exit codes: 0 clean or notes only, 1 errors or warnings (with --diff: there is something to change), 2 the run itself
failed
"""


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """The parsed command line; ``command`` is one of COMMANDS. Raises ConfigError for invalid input."""
    command, rest = ("check", list(arguments))
    if arguments and arguments[0] in COMMANDS:
        command, rest = arguments[0], list(arguments[1:])
    elif (
        arguments
        and not arguments[0].startswith("-")
        and (hint := nearest(arguments[0], COMMANDS))
        and not os.path.lexists(arguments[0])
    ):
        raise ConfigError(f"there is no file or command `{arguments[0]}`{hint}")
    if command == "verify":
        from memlint.cli.parsing.verify_arguments import parse_verify

        return parse_verify(rest)
    if command == "lsp":
        from memlint.cli.commands.lsp import parse_lsp

        return parse_lsp(rest)
    if command in ("check", "clean", "config") and "--" not in rest:
        _refuse_files_like_options(rest)
    parser = _MAKERS[command]()
    if command in ("check", "config"):
        # options may be between paths; after `--` everything is a path
        end = rest.index("--") if "--" in rest else len(rest)
        # the next word is a path; its reason follows `=`
        rest[:end] = ["--add-ignore=" if word == "--add-ignore" else word for word in rest[:end]]
        parsed, unknown = parser.parse_known_intermixed_args(rest[:end])
        parsed.paths += rest[end + 1 :]
    else:
        parsed, unknown = parser.parse_known_args(rest)
    if unknown:
        word = unknown[0].partition("=")[0]
        options = [option for action in parser._actions for option in action.option_strings if word.startswith("--")]
        parser.error(
            f"unknown option `{word}`{nearest(word, options)}" if word.startswith("-") else f"unexpected `{word}`"
        )
    parsed.command = command
    return parsed


def _refuse_files_like_options(words: Sequence[str]) -> None:
    """Raises ConfigError for an option that is also the name of a file: a hook or `*` may have meant the file, which
    would then be overwritten by the report."""
    for word in words:
        if word.startswith("-") and word != "-" and os.path.lexists(word):
            raise ConfigError(
                f"`{word}` is an option and the name of a file; end the options by `--` before file names"
            )


def _check_parser() -> argparse.ArgumentParser:
    return _linting_parser(
        "memlint", "memlint [check] [OPTIONS] [PATHS…]", "Find PyTorch code that leaks or wastes memory.", _EPILOG
    )


def _linting_parser(prog: str, usage: str, description: str, epilog: str = "") -> argparse.ArgumentParser:
    parser = Parser(
        prog=prog,
        usage=usage,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument(
        "paths", nargs="*", metavar="PATHS", help="files and folders; `-` reads standard input (default: .)"
    )
    parser.add_argument("-V", "--version", action="version", version=f"memlint {__version__}")
    parser.add_argument(
        "--print-completion", metavar="SHELL", help="print a script for completion: bash, zsh or tcsh", default=None
    )
    rules = parser.add_argument_group("rules")
    rule_options(rules)
    _evidence_option(rules)
    _file_options(parser.add_argument_group("files"))
    _baseline_options(parser.add_argument_group("baseline"))
    _fix_options(parser.add_argument_group("fixes"))
    _output_options(parser.add_argument_group("output"))
    _run_options(parser.add_argument_group("run"))
    return parser


def _evidence_option(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--evidence",
        action="append",
        metavar="FILE",
        help="results of `memlint verify --evidence FILE`: show measured bytes, and do not report what was refuted",
    )


def _file_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--exclude",
        type=words,
        action="extend",
        metavar="PATTERNS",
        help="skip these (gitignore syntax); replaces the configured ones",
    )
    group.add_argument("--extend-exclude", type=words, action="extend", metavar="PATTERNS", help="skip these, too")
    group.add_argument("--force-exclude", action="store_true", help="skip excluded files even if they are named")
    group.add_argument(
        "--since", nargs="?", const=True, metavar="REVISION",
        help="report only on lines that changed since a git revision (default: where this branch began)",
    )  # fmt: skip
    group.add_argument("--stdin-filename", metavar="PATH", help="the path under which standard input is linted")


def _baseline_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--baseline", metavar="FILE", help="do not report the findings that this file holds")
    group.add_argument("--no-baseline", action="store_true", help="report what is in the configured baseline, too")
    group.add_argument("--write-baseline", metavar="FILE", help="write all findings to a baseline")
    group.add_argument("--prune-baseline", action="store_true", help="remove stale entries from the baseline")
    group.add_argument("--error-stale", action="store_true", help="exit with 1 if the baseline has stale entries")
    group.add_argument(
        "--add-ignore",
        nargs="?",
        const="",
        metavar="=REASON",
        help="write a comment at each finding that suppresses it",
    )


def _fix_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--fix", action="store_true", help="apply safe fixes, and report what remains")
    group.add_argument(
        "--unsafe-fixes",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="apply (or show) unsafe fixes, too, which may change what the code computes",
    )
    group.add_argument("--diff", action="store_true", help="print the changes of --fix, and write nothing")
    group.add_argument("--fix-only", action="store_true", help="apply fixes, and do not report what remains")
    group.add_argument("--exit-non-zero-on-fix", action="store_true", help="exit with 1 if anything was fixed")


def _output_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--output-format",
        type=OneOf(*FORMATS),
        metavar="FORMAT",
        help=f"{', '.join(FORMATS)} (default: text)",
    )
    group.add_argument("-o", "--output-file", metavar="FILE", help="write the report to a file")
    group.add_argument(
        "--output",
        type=_output,
        action="append",
        metavar="FORMAT[:FILE]",
        help="write one more report, for example sarif:memlint.sarif; to standard output without a file",
    )
    group.add_argument(
        "--no-annotations",
        dest="annotations",
        action="store_false",
        help="in a job of GitHub Actions, print no annotations after the text report",
    )
    group.add_argument("--statistics", action="store_true", help="count the findings of each rule")
    group.add_argument("--exit-zero", action="store_true", help="exit with 0 even if there are findings")
    group.add_argument("-q", "--quiet", action="store_true", help="print findings and failures only")
    group.add_argument("-v", "--verbose", action="store_true", help="report skipped files and limits that were reached")


def _run_options(group: argparse._ArgumentGroup) -> None:
    group.add_argument("--config", metavar="FILE", help="use this configuration instead of the closest one")
    group.add_argument("--isolated", action="store_true", help="ignore all configuration")
    local_rules_option(group)
    group.add_argument("--watch", action="store_true", help="lint again whenever a file changes, until Ctrl-C")
    group.add_argument(
        "-j", "--jobs", type=_count, default=0, metavar="N", help="number of worker processes (default: one per core)"
    )
    group.add_argument(
        "--executor", metavar="ADDRESS", help="lint large projects on the workers of a Dask cluster: dask://HOST:PORT"
    )
    group.add_argument("--no-cache", action="store_true", help="do not read or write the cache")
    group.add_argument(
        "--no-screen", action="store_true", help="analyse every definition, even if it cannot have findings"
    )


def _rule_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="memlint rule", description="Print a rule's page, or list all rules.", allow_abbrev=False)
    parser.add_argument("rule", nargs="?", metavar="CODE|NAME", help="for example MEM101 or loss-accumulation")
    parser.add_argument("--all", action="store_true", help="print every page")
    parser.add_argument("--test", action="store_true", help="run the programs of the page, and compare with its marks")
    local_rules_option(parser)
    parser.add_argument(
        "--output-format", type=OneOf("text", "json"), default="text", metavar="FORMAT", help="text (default) or json"
    )
    return parser


def _explain_parser() -> argparse.ArgumentParser:
    from memlint.cli.commands.explain import explain_parser

    return explain_parser()


def _new_rule_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="memlint new-rule",
        description="Create the folder of a new rule: in the first of rule-paths, or in memlint's own checkout.",
        allow_abbrev=False,
    )
    parser.add_argument("code", metavar="CODE", help="MEM and three digits")
    parser.add_argument("name", metavar="NAME", help="lower-case words joined by dashes, such as growing-cat")
    return parser


def _config_parser() -> argparse.ArgumentParser:
    about = "Print the settings in force and where each comes from, as text or json. Takes the options of check."
    parser = _linting_parser("memlint config", "memlint config [OPTIONS] [PATH]", about)
    parser.add_argument("--schema", action="store_true", help="print the JSON schema of the configuration")
    return parser


def _init_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="memlint init",
        description="Write a configuration, a pre-commit hook and a CI workflow, where there are none.",
        allow_abbrev=False,
    )
    parser.add_argument("folder", nargs="?", default=".", metavar="FOLDER", help="of the project (default: .)")
    parser.add_argument("--dry-run", action="store_true", help="print what would be written, and write nothing")
    return parser


def _clean_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="memlint clean",
        description="Remove memlint's caches of the projects of these paths.",
        allow_abbrev=False,
    )
    parser.add_argument("paths", nargs="*", metavar="PATHS", help="files and folders (default: .)")
    return parser


_MAKERS = {
    "check": _check_parser,
    "explain": _explain_parser,
    "rule": _rule_parser,
    "new-rule": _new_rule_parser,
    "clean": _clean_parser,
    "config": _config_parser,
    "init": _init_parser,
}


def parsers() -> dict[str, argparse.ArgumentParser]:
    """The parser of each command."""
    from memlint.cli.commands.lsp import lsp_parser
    from memlint.cli.parsing.verify_arguments import verify_parser

    made = {name: make() for name, make in _MAKERS.items()} | {"verify": verify_parser(), "lsp": lsp_parser()}
    return {name: made[name] for name in COMMANDS}


def _output(text: str) -> tuple[str, str | None]:
    """The format and the file of ``FORMAT:FILE``; no file, or ``-``, is standard output."""
    name, _, file = text.partition(":")
    return OneOf(*FORMATS)(name), None if file in ("", "-") else file


def _count(text: str) -> int:
    if not text.isdigit():
        raise argparse.ArgumentTypeError(f"`{text}` is not a number of processes")
    return int(text)
