"""The lines that allocated what a test keeps, with paths as pytest shows them."""

from __future__ import annotations

import functools
import math
import os
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from memlint.measure.growth import Growth, Where

#: the most lines of a test that are shown
_SHOWN = 5


def kept(growth: Growth, config: pytest.Config, test: Path) -> list[str]:
    """A row for each of the lines that allocated what stays, most first."""
    places: dict[str, float] = {}
    for stack, count in growth.kept:
        place = _place(stack, config, test)
        places[place] = places.get(place, 0) + count
    if not places:
        return ["  the place of the allocation is unknown"]
    rows = sorted(places.items(), key=lambda row: -row[1])
    said = [f"  {place} keeps {amount(count)} an iteration" for place, count in rows[:_SHOWN]]
    return said + [f"  ...and {len(rows) - _SHOWN} more"] * (len(rows) > _SHOWN)


def _place(stack: tuple[Where, ...], config: pytest.Config, test: Path) -> str:
    """The innermost line of a stack outside libraries, and the line of the test that called it."""
    own = [where for where in stack if not _is_library(where[0])] or list(stack)
    if not own:
        return "an unknown place"
    path, line, _ = own[0]
    said = f"{_shown(path, config)}:{line}"
    called = next((where for where in own if Path(where[0]) == test), None)
    if called is not None and called[0] != path:
        said += f" (from {_shown(called[0], config)}:{called[1]})"
    return said


@functools.cache
def _libraries() -> tuple[str, ...]:
    own = Path(__file__).resolve().parent.parent
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return (*(str(own / part) + os.sep for part in ("measure", "plugins")),
            *{sysconfig.get_paths()[name] + os.sep for name in names})  # fmt: skip


def _is_library(path: str) -> bool:
    return path.startswith((*_libraries(), "<")) or f"{os.sep}site-packages{os.sep}" in path


def _shown(path: str, config: pytest.Config) -> str:
    """A path relative to the folder in which pytest was started, if it is in there."""
    try:
        return str(Path(path).relative_to(config.invocation_params.dir))
    except ValueError:
        return path


def amount(count: float) -> str:
    return f"{math.ceil(count):,} B"
