"""Names of the loops of a run: by position for the program's, by what ticks for libraries'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: by what ticks, and whether an optimizer steps meanwhile
_WHAT = {
    ("batches", True): "batches that a library draws to train",
    ("batches", False): "batches that a library draws",
    ("steps", True): "optimizer steps of a library",
    ("calls", False): "model calls of a library",
}


def names(run: Mapping[str, Any], places: Mapping[int, tuple[str, int]], shown: Mapping[str, str]) -> dict[int, str]:
    """The names of the loops of one process. ``places``: of the program's own; ``shown``: its files as reports show
    them."""
    found = {number: f"{path}:{line}" for number, (path, line) in places.items()}
    for loop in run["loops"]:
        clock = loop.get("clock")
        if clock is not None:
            path = shown.get(clock["path"], clock["path"])
            found[loop["id"]] = f"{path}:{clock['line']} ({_WHAT[clock['kind'], clock['trains']]})"
    return found


def unwatched(run: Mapping[str, Any], names: Mapping[int, str]) -> str:
    """The remark if no loop of the program itself ran."""
    if run["torch"] is None or any(loop["tops"] and "clock" not in loop for loop in run["loops"]):
        return ""
    ticking = dict.fromkeys(names[loop["id"]] for loop in run["loops"] if loop["tops"])
    if ticking:
        return f"no loop of the program's own was seen; iterations are {', '.join(ticking)}"
    return "no loop of the program's own was seen, nor one of a library's: no growth could be measured"
