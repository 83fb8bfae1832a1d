"""The public function `lint`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from memlint.config import patterns
from memlint.engine.options import Options
from memlint.engine.run import run
from memlint.engine.selection import Overrides
from memlint.finding import Confidence, Result


def lint(
    paths: Iterable[str | os.PathLike[str]],
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
) -> Result:
    """Lint files and folders, as ``memlint check`` does; the parameters are its options.

    Imports no torch and runs nothing of the linted code. Findings that a comment suppresses are in the result, with
    ``suppressed`` set. Raises `memlint.config.ConfigError` where an option or the configuration is wrong;
    files that cannot be read and rules that fail are in the result's ``failures``.
    """
    cwd = Path.cwd()
    options = Options(
        cwd=cwd,
        overrides=Overrides(
            select=None if select is None else tuple(select),
            extend_select=tuple(extend_select),
            ignore=tuple(ignore),
            preview=preview,
            min_confidence=min_confidence,
        ),
        config=None if config is None else cwd / config,
        isolated=isolated,
        exclude=None if exclude is None else patterns(cwd, tuple(exclude), "exclude"),
        extend_exclude=patterns(cwd, tuple(extend_exclude), "extend_exclude"),
        force_exclude=force_exclude,
        jobs=jobs,
        screen=screen,
    )
    return run([os.fspath(path) for path in paths], options).result
