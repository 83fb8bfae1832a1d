"""The public function `lint`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

from memlint.config import ConfigError, patterns
from memlint.engine.options import Options
from memlint.engine.run import run
from memlint.engine.selection import Overrides
from memlint.finding import Confidence, Result


def lint(
    paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
    *,
    select: Iterable[str] | None = None,
    extend_select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    preview: bool = False,
    min_confidence: Confidence | None = None,
    exclude: Iterable[str] | None = None,
    extend_exclude: Iterable[str] = (),
    force_exclude: bool = False,
    config: str | os.PathLike[str] | None = None,
    isolated: bool = False,
    jobs: int = 0,
    screen: bool = True,
    evidence: Iterable[str | os.PathLike[str]] | str | os.PathLike[str] | None = None,
) -> Result:
    """Lint files and folders, as ``memlint check`` does; the parameters are its options.

    One path or word may come alone. Imports no torch and runs nothing of the linted code. Findings that a comment
    or evidence suppresses are in the result, with ``suppressed`` set. Raises `memlint.config.ConfigError` where an
    option or the configuration is wrong; files that cannot be read and rules that fail are in the result's
    ``failures``.
    """
    cwd = Path.cwd()
    if min_confidence is not None and min_confidence not in get_args(Confidence):
        raise ConfigError(f"min_confidence: `{min_confidence}` is not one of {', '.join(get_args(Confidence))}")
    if config is not None and isolated:
        raise ConfigError("config and isolated exclude each other")
    options = Options(
        cwd=cwd,
        overrides=Overrides(
            select=None if select is None else _words(select),
            extend_select=_words(extend_select),
            ignore=_words(ignore),
            preview=preview,
            min_confidence=min_confidence,
        ),
        config=None if config is None else cwd / config,
        isolated=isolated,
        exclude=None if exclude is None else patterns(cwd, _words(exclude), "exclude"),
        extend_exclude=patterns(cwd, _words(extend_exclude), "extend_exclude"),
        force_exclude=force_exclude,
        jobs=jobs,
        screen=screen,
        evidence=None if evidence is None else tuple(cwd / name for name in _paths(evidence)),
    )
    return run(_paths(paths), options).result


def _paths(paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str]) -> list[str]:
    """The paths, of which one may come alone."""
    return [os.fspath(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]


def _words(words: Iterable[str]) -> tuple[str, ...]:
    """The words, of which one alone may come as it is: its letters are not meant."""
    return (words,) if isinstance(words, str) else tuple(words)
