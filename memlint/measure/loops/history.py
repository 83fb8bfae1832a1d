"""Where on an accelerator the memory comes from that no flagged place explains."""

from __future__ import annotations

from typing import Any

from ..memory.halves import rises
from ..retention.owners import Ask, Target
from ..stacks import HERE
from .loops import LoopWatch

Where = tuple[tuple[str, int, str], ...]
_DEPTH, _SHOWN = 24, 8
#: fewer times show no growth
_FEWEST = 4
#: short runs of a loop that are looked at
_TRIES = 3


class History:
    """Has the allocator note stacks for one window, and sees which of them hold ever more.

    It begins only where a loop has grown, so a program without growth pays nothing for it.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._held_at: list[dict[Where, int]] = []
        #: the addresses that were there at each time, by the stack
        self._addresses: list[dict[Where, dict[int, int]]] = []
        self.loop: int | None = None
        self.found: list[dict[str, Any]] = []
        self._tried: dict[int, int] = {}

    def begin(self, watch: LoopWatch) -> None:
        """Begin, unless a loop is looked at, or the program records for itself."""
        if self.loop is None and record(self._torch):
            self.loop = watch.number

    def begin_short(self, watch: LoopWatch) -> None:
        """Begin with a run that may be short, unless one of this loop has told already, or some have told nothing."""
        tried = self._tried[watch.number] = self._tried.get(watch.number, 0) + 1
        if tried <= _TRIES and all(row["loop"] != watch.number for row in self.found):
            self.begin(watch)
            if self.loop == watch.number:
                self.step()

    @property
    def tells(self) -> bool:
        """Whether it has seen enough to tell what grows."""
        return len(self._held_at) >= 2 * _FEWEST

    def step(self) -> None:
        """The loop has come to its top again."""
        now = blocks(self._torch)
        self._held_at.append({where: sum(sizes.values()) for where, sizes in now.items()})
        self._addresses = [*self._addresses[-_FEWEST:], now]

    def end(self, ask: Ask) -> None:
        """Stop, and keep the stacks that held more at each time of the second half than ever in the first. ``ask``:
        tells who keeps what was asked for there."""
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
                found.append({"loop": self.loop, "bytes_per_iteration": each, "frames": frames, "where": where})
        found = sorted(found, key=lambda row: -row["bytes_per_iteration"])[:_SHOWN]
        kept = ask({place: self._few(row["where"]) for place, row in enumerate(found)})
        for place, row in enumerate(found):
            del row["where"]
            row["holders"] = kept.get(place, [])
        self.found += found
        self.loop = None
        self._held_at = []
        self._addresses = []

    def _few(self, where: Where) -> list[Target]:
        """Some blocks that were asked for at a place and have been there for some iterations."""
        first, *later = (at.get(where, {}) for at in self._addresses)
        stayed = [address for address in first if all(address in each for each in later)] or list(later[-1])
        few = dict.fromkeys((stayed[0], stayed[len(stayed) // 2], stayed[-1]))
        return [Target(("address", address), later[-1][address]) for address in few]


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
    return {where: sum(sizes.values()) for where, sizes in blocks(torch, device).items()}


def blocks(torch: Any, device: int | None = None) -> dict[Where, dict[int, int]]:
    """The live blocks (of one device) by the stack that they were asked from: bytes by address."""
    try:
        segments = torch.cuda.memory_snapshot(include_traces=False)
    except TypeError:  # torch before 2.11
        segments = torch.cuda.memory_snapshot()
    found: dict[Where, dict[int, int]] = {}
    for segment in segments:
        if device is not None and segment["device"] != device:
            continue
        address = segment["address"]
        for block in segment["blocks"]:
            start = block.get("address", address)  # older torches leave it to the reader
            address = start + block["size"]
            frames = block.get("frames")
            if block["state"] != "active_allocated" or not frames:
                continue
            where = tuple(
                (frame["filename"], frame["line"], frame["name"])
                for frame in frames
                if not frame["filename"].startswith(HERE)
            )[:_DEPTH]
            found.setdefault(where, {})[start] = block.get("requested_size", block["size"])
    return found
