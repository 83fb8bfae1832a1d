"""What one run is asked to do."""

from __future__ import annotations

import os.path
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

import msgspec

from memlint.engine.rules.selection import Overrides
from memlint.project import Patterns

#: called with what is being done, how much of it is done and how much there is (0: not known)
Progress = Callable[[str, int, int], None]


def no_progress(stage: str, done: int, total: int) -> None:
    """Tell nobody."""


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """``cwd``: what paths are relative to. ``config``: a file that is used in place of the closest one.
    ``unsafe_fixes``: whether these are among the fixes that can be made, where it is not the configuration that
    says so. ``exclude`` replaces what the configuration excludes, ``extend_exclude`` adds to it. ``jobs``: worker
    processes, 0 for one a core; ``executor``: other machines in their place (``dask://HOST:PORT``). ``stdin``: what
    ``-`` means, ``stdin_filename`` the path that it stands for. ``parsed``: the caller knows that the linted files
    parse, so that they are read no further where nothing imports torch. ``each``: the paths are files, and each
    gets what it would get alone, also where others in the run are gitignored. ``evidence``: files of evidence in
    place of the configured ones. ``cache``: whether what earlier runs found in the same contents is taken, and what
    this one finds is kept. ``local_rules``: the rules of the project, which are programs, are loaded. ``baseline``: a
    file in place of the configured one; ``with_baseline``: whether one holds back what is in it; ``new_baseline``: it
    is about to be written, so it holds back all, and may not be there yet. ``since``: report on lines alone that have
    changed since this revision; True: since this branch left the default branch. ``unsaved``: what files (absolute
    paths) hold in place of what is on the disk. ``trusting``: the user's own settings may allow the project's rules
    where ``local_rules`` does not; else they never run."""

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
