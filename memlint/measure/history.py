"""Where on an accelerator the memory comes from that no flagged place explains."""

from __future__ import annotations

import os
from typing import Any

from .halves import rises
from .loops import LoopWatch

Where = tuple[tuple[str, int, str], ...]
_DEPTH, _SHOWN = 24, 8
#: fewer times show no growth
_FEWEST = 4


class History:
    """Has the allocator note stacks for one window, and sees which of them hold ever more.

    It begins only where a loop has grown, so a program without growth pays nothing for it.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._held_at: list[dict[Where, int]] = []
        self.loop: int | None = None
        self.found: list[dict[str, Any]] = []

    def begin(self, watch: LoopWatch) -> None:
        """Begin, unless another loop is looked at, or the program records for itself."""
        if self.loop is None and record(self._torch):
            self.loop = watch.number

    def step(self) -> None:
        """The loop has come to its top again."""
        self._held_at.append(held(self._torch))

    def end(self) -> None:
        """Stop, and keep the stacks that held more at each time of the second half than ever in the first."""
        if self.loop is None:
            return
        self._torch.cuda.memory._record_memory_history(None)
        times = self._held_at
        found: list[dict[str, Any]] = []
        for where in times[-1] if len(times) >= _FEWEST else ():
            held = [at.get(where, 0) for at in times]
            if rises(held):
                frames = [{"path": path, "line": line, "function": name} for path, line, name in where]
                each = (held[-1] - held[0]) // (len(held) - 1)
                found.append({"loop": self.loop, "bytes_per_iteration": each, "frames": frames})
        self.found += sorted(found, key=lambda row: -row["bytes_per_iteration"])[:_SHOWN]
        self.loop = None
        self._held_at = []


def record(torch: Any) -> bool:
    """Have the allocator note stacks. Whether it does; not where the program has it do so already."""
    enabled = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    if enabled is not None and enabled():
        return False
    try:
        torch.cuda.memory._record_memory_history("state", context="state", stacks="python")
    except (RuntimeError, TypeError, AttributeError):  # an older torch, a system without the unwinder
        return False
    return True


def held(torch: Any, device: int | None = None) -> dict[Where, int]:
    """The bytes that live blocks (of one device) asked for, by the stack that they were asked from."""
    try:
        segments = torch.cuda.memory_snapshot(include_traces=False)
    except TypeError:  # torch before 2.11
        segments = torch.cuda.memory_snapshot()
    found: dict[Where, int] = {}
    own = os.path.dirname(__file__)
    for segment in segments:
        if device is not None and segment["device"] != device:
            continue
        for block in segment["blocks"]:
            frames = block.get("frames")
            if block["state"] != "active_allocated" or not frames:
                continue
            where = tuple(
                (frame["filename"], frame["line"], frame["name"])
                for frame in frames
                if not frame["filename"].startswith(own)
            )[:_DEPTH]
            found[where] = found.get(where, 0) + block.get("requested_size", block["size"])
    return found
