"""Which lines of Python allocate the host memory that a loop keeps: by `tracemalloc`, for one window of it."""

from __future__ import annotations

import os
import tracemalloc
from typing import Any

from ..stacks import HERE

_DEPTH, _SHOWN = 16, 5
#: less an iteration is not shown
_LEAST = 256


class Traced:
    """Begins only where host memory has grown, so that a program without such growth pays nothing."""

    def __init__(self) -> None:
        self.loop: int | None = None
        self.found: list[dict[str, Any]] = []

    def begin(self, loop: int) -> None:
        """Begin, unless another loop is looked at, or the program traces for itself."""
        if self.loop is None and not tracemalloc.is_tracing():
            tracemalloc.start(_DEPTH)
            self.loop = loop

    def end(self, loop: int, iterations: int) -> None:
        """Stop, and keep what was allocated meanwhile and is there."""
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
