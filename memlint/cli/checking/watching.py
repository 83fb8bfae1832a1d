"""``memlint check --watch``: lint again whenever a file changes."""

from __future__ import annotations

import gc
import importlib.util
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from memlint.cli.output.endings import tell
from memlint.config import OWN_FILE, PYPROJECT, ConfigError
from memlint.engine.run import absolute
from memlint.project import find_root
from memlint.project.listing import DEFAULT_EXCLUDES, SUFFIXES

#: milliseconds between two checks for changes
_PAUSE = 200
_CLEAR = "\x1b[2J\x1b[3J\x1b[H"


def check_watchable() -> None:
    """Raises ConfigError if watching is impossible."""
    if importlib.util.find_spec("watchfiles") is None:
        raise ConfigError("--watch needs watchfiles", "pip install 'torch-memlint[watch]' installs it")


def watch(paths: Sequence[str], cwd: Path, run: Callable[[], int]) -> int:
    """Call ``run`` now and after each change in the projects of ``paths``, until Ctrl-C; 130."""
    from watchfiles import watch as changes

    gc.enable()  # switched off for a single run
    roots = sorted({find_root(absolute(path, cwd), cwd) for path in paths})
    is_first = True
    for changed in changes(
        *roots,
        watch_filter=lambda change, path: _matters(Path(path), roots),
        # it watches from the first result on; changes during a run are reported after it
        rust_timeout=_PAUSE,
        yield_on_timeout=True,
        raise_interrupt=True,
    ):
        if changed and sys.stdout.isatty():
            print(_CLEAR, end="")
        if changed or is_first:
            _once(run)
        is_first = False
    return 130


def _once(run: Callable[[], int]) -> None:
    try:
        run()
    except ConfigError as error:  # an error while the configuration is edited
        tell(f"error: {error}")
    gc.collect()  # before the message that it waits, as a Ctrl-C in a finalizer is lost
    tell("watching for changes (Ctrl-C ends)")
    sys.stdout.flush()


def _matters(path: Path, roots: Sequence[Path]) -> bool:
    """Whether a change of a file may change the findings."""
    if path.name not in (PYPROJECT, OWN_FILE) and not path.name.endswith((*SUFFIXES, ".pyi")):
        return False
    inside = [path.relative_to(root).parts for root in roots if path.is_relative_to(root)]
    return not inside or any(DEFAULT_EXCLUDES.isdisjoint(parts) for parts in inside)
