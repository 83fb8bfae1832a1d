"""The options for rules and configuration, which every linting command has."""

from __future__ import annotations

import argparse
from pathlib import Path

from memlint.config import ConfigError
from memlint.engine.options import Options
from memlint.engine.rules.selection import Overrides


def options_of(parsed: argparse.Namespace, cwd: Path) -> Options:
    """The rules and their configuration by a command line. Raises ConfigError for a contradiction."""
    if parsed.config is not None and parsed.isolated:
        raise ConfigError("--config and --isolated exclude each other")
    if parsed.config is not None and not (cwd / parsed.config).is_file():
        raise ConfigError(f"--config: there is no file {parsed.config}")
    return Options(
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
        local_rules=parsed.local_rules,
        with_baseline=False,
    )
