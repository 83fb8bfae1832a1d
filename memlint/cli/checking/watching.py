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

#: milliseconds between two looks at whether anything has changed
_PAUSE = 200
_CLEAR = "\x1b[2J\x1b[3J\x1b[H"


def check_watchable() -> None:
    """Raises ConfigError where nothing can be watched."""
    if importlib.util.find_spec("watchfiles") is None:
        raise ConfigError("--watch needs watchfiles", "pip install 'torch-memlint[watch]' installs it")


def watch(paths: Sequence[str], cwd: Path, run: Callable[[], int]) -> int:
    """Call ``run`` now and after each change in the projects of ``paths``, until Ctrl-C; 130."""
    from watchfiles import watch as changes

    gc.enable()  # which a single run does without
    roots = sorted({find_root(absolute(path, cwd), cwd) for path in paths})
    is_first = True
    for changed in changes(
        *roots,
        watch_filter=lambda change, path: _matters(Path(path), roots),
        # it watches from the first answer on, so that is waited for; what changes during a run is told after it
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
    except ConfigError as error:  # the configuration is being edited
        tell(f"error: {error}")
    gc.collect()  # before it says that it waits: a Ctrl-C in what this finalizes is lost
    tell("watching for changes (Ctrl-C ends)")
    sys.stdout.flush()


def _matters(path: Path, roots: Sequence[Path]) -> bool:
    """Whether a change of a file may change what is found."""
    if path.name not in (PYPROJECT, OWN_FILE) and not path.name.endswith((*SUFFIXES, ".pyi")):
        return False
    inside = [path.relative_to(root).parts for root in roots if path.is_relative_to(root)]
    return not inside or any(DEFAULT_EXCLUDES.isdisjoint(parts) for parts in inside)
