"""``memlint explain``: the facts of the analysis about a line, and why a rule reported it or not."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

import msgspec

from memlint.cli.parsing.options import options_of
from memlint.cli.parsing.parsers import OneOf, Parser, local_rules_option, rule_options
from memlint.config import ConfigError
from memlint.engine.explaining import Asked
from memlint.engine.explaining import explain as explained
from memlint.json_text import indented
from memlint.report.explain_text import write

_PLACE = re.compile(r"(?P<path>.+?):(?:cell ?(?P<cell>\d+):)?(?P<line>\d+)(?::(?P<column>\d+))?", re.DOTALL)
#: a place in a notebook, whose lines always count from a cell
_IN_NOTEBOOK = re.compile(
    r"(?P<path>.+?\.ipynb):(?:cell ?)?(?P<cell>\d+):(?P<line>\d+)(?::(?P<column>\d+))?", re.DOTALL
)


def explain_parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="memlint explain",
        description="Say what the analysis knows of the values on a line, and why a rule fired there or did not.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "place", metavar="FILE:LINE[:COLUMN]", help="for example train.py:14, or 'train.ipynb:cell 3:7'"
    )
    parser.add_argument(
        "--rule", metavar="CODE|NAME", help="explain this rule (default: all that have something to say of the line)"
    )
    parser.add_argument(
        "--output-format", type=OneOf("text", "json"), default="text", metavar="FORMAT", help="text (default) or json"
    )
    group = parser.add_argument_group("rules")
    rule_options(group)
    group.add_argument("--config", metavar="FILE", help="use this configuration instead of the closest one")
    group.add_argument("--isolated", action="store_true", help="ignore all configuration")
    local_rules_option(group)
    return parser


def explain(parsed: argparse.Namespace) -> int:
    """Explain one line. Raises ConfigError for an invalid line, and for an unknown rule."""
    asked = asked_of(parsed.place, parsed.rule)
    options = msgspec.structs.replace(options_of(parsed, Path.cwd()), with_baseline=True)
    found = explained(asked, options)
    if parsed.output_format == "json":
        print(indented(found), end="")
    else:
        write(found, sys.stdout)
    return 0


def asked_of(place: str, rule: str | None) -> Asked:
    """The file, line and column of ``FILE:LINE[:COLUMN]`` or ``FILE:cell CELL:LINE[:COLUMN]``. Raises ConfigError."""
    found = _IN_NOTEBOOK.fullmatch(place) or _PLACE.fullmatch(place)
    if found is None:
        raise ConfigError(
            f"`{place}` is not of the form FILE:LINE or FILE:LINE:COLUMN, for example train.py:14; a line of a "
            "notebook is `train.ipynb:cell 3:7`"
        )
    line, column = int(found["line"]), found["column"]
    if not line or column == "0":
        raise ConfigError(f"`{place}`: lines and columns count from 1")
    cell = None if found["cell"] is None else int(found["cell"])
    return Asked(found["path"], line, None if column is None else int(column), rule, cell)
