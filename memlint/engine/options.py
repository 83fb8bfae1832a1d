"""The options of one run."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from memlint.engine.rules.selection import Overrides
from memlint.project import Patterns

#: called with a stage, the work done and the total (0: unknown)
Progress = Callable[[str, int, int], None]


def no_progress(stage: str, done: int, total: int) -> None:
    """Ignore the progress."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """``cwd``: what paths are relative to. ``config``: a file that is used in place of the closest one.
    ``unsafe_fixes``: whether unsafe fixes can be applied, if not by the configuration. ``exclude`` replaces the
    configured excludes, ``extend_exclude`` adds to them. ``jobs``: worker processes, 0 for one per core; ``executor``:
    other machines in their place (``dask://HOST:PORT``). ``stdin``: the content of ``-``, ``stdin_filename`` the path
    that it stands for. ``parsed``: the linted files are known to parse, so that they are read no further if nothing
    imports torch. ``each``: the paths are files, and each gets the result that it would get alone, even if other files
    of the run are gitignored. ``evidence``: files of evidence in place of the configured ones. ``cache``: whether
    results of earlier runs are used, and those of this one stored. ``local_rules``: the rules of the project, which are
    programs, are loaded. ``baseline``: a file in place of the configured one; ``with_baseline``: whether it holds
    findings back; ``new_baseline``: it is about to be written, so that it holds back everything, and may not exist yet.
    ``since``: report only lines that have changed since this revision; True: since this branch left the default branch.
    ``unsaved``: contents of files (absolute paths) in place of those on the disk. ``trusting``: the user's own settings
    may allow the project's rules if ``local_rules`` does not; otherwise they never run."""

    cwd: Path
    overrides: Overrides = Overrides()
    config: Path | None = None
    isolated: bool = False
    exclude: Patterns | None = None
    extend_exclude: Patterns | None = None
    force_exclude: bool = False
    jobs: int = 0
    executor: str | None = None
    screen: bool = True
    unsafe_fixes: bool | None = None
    stdin: bytes | None = None
    stdin_filename: str | None = None
    parsed: bool = False
    each: bool = False
    evidence: tuple[Path, ...] | None = None
    more_evidence: tuple[Path, ...] = ()
    cache: bool = False
    local_rules: bool = False
    baseline: Path | None = None
    with_baseline: bool = True
    new_baseline: bool = False
    since: str | Literal[True] | None = None
    unsaved: Mapping[Path, bytes] = {}
    trusting: bool = True

    @property
    def stdin_path(self) -> Path:
        """The path that standard input stands for, absolute and without ``.`` and ``..``."""
        return Path(os.path.normpath(self.cwd / (self.stdin_filename or "<stdin>")))
