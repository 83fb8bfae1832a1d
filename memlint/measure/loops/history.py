"""The stacks that allocate growing memory on an accelerator, for growth that no site explains."""

from __future__ import annotations

from typing import Any

from ..memory.halves import rises
from ..retention.owners import Ask, Target
from ..stacks import HERE
from .loops import LoopWatch

Where = tuple[tuple[str, int, str], ...]
_DEPTH, _SHOWN = 24, 8
#: readings from which growth is judged
_FEWEST = 4
#: the most short runs of a loop that are recorded
_TRIES = 3


class History:
    """Lets the allocator record stacks for one window, and finds those whose memory grows.

    It begins only when a loop has grown, so other programs have no cost.
    """

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._held_at: list[dict[Where, int]] = []
        #: the live addresses at the last readings, by stack
        self._addresses: list[dict[Where, dict[int, int]]] = []
        self.loop: int | None = None
        self.found: list[dict[str, Any]] = []
        self._tried: dict[int, int] = {}

    def begin(self, watch: LoopWatch) -> None:
        """Begin, unless another loop is recorded, or the program itself records."""
        if self.loop is None and record(self._torch):
            self.loop = watch.number

    def begin_short(self, watch: LoopWatch) -> None:
        """Begin in a short run, unless this loop has results already, or too many runs gave none."""
        tried = self._tried[watch.number] = self._tried.get(watch.number, 0) + 1
        if tried <= _TRIES and all(row["loop"] != watch.number for row in self.found):
            self.begin(watch)
            if self.loop == watch.number:
                self.step()

    @property
    def tells(self) -> bool:
        """Whether there are enough readings."""
        return len(self._held_at) >= 2 * _FEWEST

    def step(self) -> None:
        """The loop is at its top: take a reading."""
        now = blocks(self._torch)
        self._held_at.append({where: sum(sizes.values()) for where, sizes in now.items()})
        self._addresses = [*self._addresses[-_FEWEST:], now]

    def end(self, ask: Ask) -> None:
        """Stop, and keep the growing stacks (see `rises`) with their holders. ``ask``: searches the holders."""
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
        """A few blocks of a stack that have been live for some iterations."""
        first, *later = (at.get(where, {}) for at in self._addresses)
        stayed = [address for address in first if all(address in each for each in later)] or list(later[-1])
        few = dict.fromkeys((stayed[0], stayed[len(stayed) // 2], stayed[-1]))
        return [Target(("address", address), later[-1][address]) for address in few]


def record(torch: Any) -> bool:
    """Let the allocator record stacks. Returns whether it does; False if the program itself records."""
    enabled = getattr(torch._C, "_cuda_isHistoryEnabled", None)
    if enabled is not None and enabled():
        return False
    try:
        torch.cuda.memory._record_memory_history("state", context="state", stacks="python")
    except (RuntimeError, TypeError, AttributeError):  # an older torch, a system without the unwinder
        return False
    return True


def held(torch: Any, device: int | None = None) -> dict[Where, int]:
    """The requested bytes of live blocks (of one device), by the stack that allocated them."""
    return {where: sum(sizes.values()) for where, sizes in blocks(torch, device).items()}


def blocks(torch: Any, device: int | None = None) -> dict[Where, dict[int, int]]:
    """The requested bytes of live blocks (of one device) by address, by the stack that allocated them."""
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
            start = block.get("address", address)  # older versions of torch do not give it
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
