"""The lines of Python that allocate the host memory that a loop keeps, by `tracemalloc` during one window."""

from __future__ import annotations

import os
import tracemalloc
from typing import Any

from ..stacks import HERE

_DEPTH, _SHOWN = 16, 5
#: the least bytes per iteration that are shown
_LEAST = 256


class Traced:
    """Traces a loop whose host memory has grown; other programs have no cost."""

    def __init__(self) -> None:
        self.loop: int | None = None
        self.found: list[dict[str, Any]] = []

    def begin(self, loop: int) -> None:
        """Begin, unless another loop is traced, or the program itself uses `tracemalloc`."""
        if self.loop is None and not tracemalloc.is_tracing():
            tracemalloc.start(_DEPTH)
            self.loop = loop

    def end(self, loop: int, iterations: int) -> None:
        """Stop, and keep the places that allocated most of what is still live."""
        if self.loop != loop:
            return
        self.loop = None
        if not tracemalloc.is_tracing():
            return  # the program has stopped it
        ignored = [tracemalloc.Filter(False, f"{HERE}*"), tracemalloc.Filter(False, tracemalloc.__file__)]
        rows = tracemalloc.take_snapshot().filter_traces(ignored).statistics("traceback")
        tracemalloc.stop()
        for row in rows[:_SHOWN]:
            if row.size < _LEAST * iterations:
                break
            frames = [
                {"path": frame.filename, "line": frame.lineno, "function": ""}
                for frame in reversed(row.traceback)
                if not os.path.abspath(frame.filename).startswith(HERE)
            ]
            self.found.append({"loop": loop, "bytes_per_iteration": row.size // iterations, "frames": frames})
