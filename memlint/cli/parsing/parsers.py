"""Common parts of all commands' parsers."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import NoReturn

from memlint.config import ConfigError, nearest


class Parser(argparse.ArgumentParser):
    """A parser that raises ConfigError."""

    def error(self, message: str) -> NoReturn:
        message = re.sub(r"ignored explicit argument '.*'", "takes no value", message)
        raise ConfigError(message.removeprefix("argument "), f"try `{self.prog} --help`")


def rule_options(group: argparse._ArgumentGroup) -> None:
    codes = "codes, prefixes of codes or names, separated by commas"
    group.add_argument("--select", type=words, action="extend", metavar="RULES", help=f"run only these rules: {codes}")
    group.add_argument("--extend-select", type=words, action="extend", metavar="RULES", help="run these rules, too")
    group.add_argument("--ignore", type=words, action="extend", metavar="RULES", help="do not run these rules")
    group.add_argument("--preview", action="store_true", help="run preview rules, too")
    group.add_argument(
        "--min-confidence", type=OneOf("high", "medium", "low"), metavar="LEVEL",
        help="show findings of at least this confidence: high, medium (default) or low",
    )  # fmt: skip


def local_rules_option(group: argparse._ActionsContainer) -> None:
    group.add_argument(
        "--local-rules", action="store_true", help="run the project's own rules (rule-paths), which are programs"
    )


def words(text: str) -> list[str]:
    """The words between commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


class OneOf:
    """A type that accepts one of some words and returns it unchanged, as a plain value for other processes."""

    def __init__(self, *valid: str) -> None:
        self.words = valid

    def __call__(self, text: str) -> str:
        if text not in self.words:
            said = f"`{text}` is not one of {', '.join(self.words)}{nearest(text, self.words)}"
            raise argparse.ArgumentTypeError(said)
        return text


def at_least(least: int) -> Callable[[str], int]:
    """A type that accepts whole numbers from ``least`` on."""

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
