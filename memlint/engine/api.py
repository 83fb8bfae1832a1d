"""The public functions `lint` and `apply_fixes`."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import get_args

import msgspec

from memlint.config import ConfigError, patterns
from memlint.engine.fixing.fixing import run_and_fix
from memlint.engine.options import Options
from memlint.engine.rules.selection import Overrides
from memlint.engine.run import STDIN, run
from memlint.finding import Confidence, FixResult, Result
from memlint.fix.diff import diffs


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
    local_rules: bool = False,
    evidence: Iterable[str | os.PathLike[str]] | str | os.PathLike[str] | None = None,
) -> Result:
    """Lint files and folders, as ``memlint check`` does; the parameters are its options.

    One path or word may come alone. Imports no torch and runs nothing of the linted code, but for the project's own
    rules with ``local_rules``. Findings that a comment
    or evidence suppresses are in the result, with ``suppressed`` set. Raises `memlint.config.ConfigError` where an
    option or the configuration is wrong; files that cannot be read and rules that fail are in the result's
    ``failures``.
    """
    options = _options(
        select=select,
        extend_select=extend_select,
        ignore=ignore,
        preview=preview,
        min_confidence=min_confidence,
        exclude=exclude,
        extend_exclude=extend_exclude,
        force_exclude=force_exclude,
        config=config,
        isolated=isolated,
        jobs=jobs,
        screen=screen,
        local_rules=local_rules,
        evidence=evidence,
    )
    done = run(_named(paths), options)
    return msgspec.structs.replace(done.result, remarks=(*done.notices, *done.result.remarks))


def apply_fixes(
    paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str],
    *,
    unsafe: bool | None = None,
    write: bool = True,
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
    local_rules: bool = False,
) -> FixResult:
    """Apply fixes to files and folders, as ``memlint check --fix`` does; the parameters not named here are those of
    `lint`.

    ``unsafe``: whether to apply fixes that may change what the code computes; None: as configured (``unsafe-fixes``, by
    default no). ``write``: False changes no file, and gives the same result and diff.

    Raises `memlint.config.ConfigError` as `lint` does, and for standard input (``-``). Files that cannot be written are
    in the result's ``failures``, and are unchanged. Ctrl-C raises a KeyboardInterrupt whose ``written`` and
    ``unwritten`` name files, once there are any to be written.
    """
    options = _options(
        select=select,
        extend_select=extend_select,
        ignore=ignore,
        preview=preview,
        min_confidence=min_confidence,
        exclude=exclude,
        extend_exclude=extend_exclude,
        force_exclude=force_exclude,
        config=config,
        isolated=isolated,
        jobs=jobs,
        screen=screen,
        local_rules=local_rules,
        unsafe=unsafe,
    )
    named = _named(paths)
    if STDIN in named:
        raise ConfigError("fix takes files and folders, not standard input")
    done = run_and_fix(named, options, write_files=write)
    return FixResult(
        result=done.outcome.result,
        fixed=done.fixed,
        refused=done.refused,
        changed=tuple(change.display for change in done.changes),
        diff=b"".join(diffs(done.changes)),
    )


def _options(
    *,
    select: Iterable[str] | None,
    extend_select: Iterable[str],
    ignore: Iterable[str],
    preview: bool,
    min_confidence: Confidence | None,
    exclude: Iterable[str] | None,
    extend_exclude: Iterable[str],
    force_exclude: bool,
    config: str | os.PathLike[str] | None,
    isolated: bool,
    jobs: int,
    screen: bool,
    local_rules: bool,
    unsafe: bool | None = None,
    evidence: Iterable[str | os.PathLike[str]] | str | os.PathLike[str] | None = None,
) -> Options:
    cwd = Path.cwd()
    if min_confidence is not None and min_confidence not in get_args(Confidence):
        raise ConfigError(f"min_confidence: `{min_confidence}` is not one of {', '.join(get_args(Confidence))}")
    if config is not None and isolated:
        raise ConfigError("config and isolated exclude each other")
    return Options(
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
        local_rules=local_rules,
        unsafe_fixes=unsafe,
        evidence=None if evidence is None else tuple(cwd / name for name in _named(evidence)),
    )


def _named(paths: Iterable[str | os.PathLike[str]] | str | os.PathLike[str]) -> list[str]:
    """The paths; a single one need not be in a list."""
    return [os.fspath(path) for path in ([paths] if isinstance(paths, (str, os.PathLike)) else paths)]


def _words(words: Iterable[str]) -> tuple[str, ...]:
    """The words; a single one need not be in a list."""
    return (words,) if isinstance(words, str) else tuple(words)
