"""Host memory beside tensors: what the C library has allocated, the resident memory of the process, and the memory of a
`DataLoader`'s workers."""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .halves import steady

#: bytes per iteration up to which growth is noise: allocators and libraries grow over dozens of iterations
NOISE = 2048
#: the same for other processes, whose memory is counted in pages
NOISE_OF_WORKERS = 64 * 1024
#: readings in each half from which a floor is judged: a buffer may be emptied after several runs only
_FEW_LOOKS = 4
#: with more workers, none is read: that takes a millisecond for each in every iteration
_MOST_WORKERS = 16

Read = Callable[[], "dict[str, int]"]

#: the fields of glibc's `struct mallinfo2`, in order
_MALLINFO = ("arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks", "keepcost")


class _Mallinfo(ctypes.Structure):
    _fields_ = [(name, ctypes.c_size_t) for name in _MALLINFO]


def host_meter() -> Callable[[], int] | None:
    """A function that reads the bytes that the C library has allocated, which include the C++ graph nodes that no
    Python tool sees. None if the C library does not report them (all but glibc 2.33 and newer)."""
    if not sys.platform.startswith("linux"):
        return None
    try:
        mallinfo2 = ctypes.CDLL(None).mallinfo2
    except (OSError, AttributeError):
        return None
    mallinfo2.restype = _Mallinfo

    def read() -> int:
        info = mallinfo2()
        return int(info.uordblks + info.hblkhd)

    return read


def resident() -> dict[str, int]:
    """``rss``: the resident bytes of this process. ``workers``: those of the processes that multiprocessing has
    started, where shared pages count in proportion (PSS); ``worker_count``: their number. Unknown values are left
    out."""
    found: dict[str, int] = {}
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            found["rss"] = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return found
    children = getattr(sys.modules.get("multiprocessing.process"), "_children", None) or ()
    pids = [child.pid for child in tuple(children) if child.pid is not None]
    if pids and len(pids) <= _MOST_WORKERS:
        shares = [_pss(pid) for pid in pids]
        if None not in shares:
            found["workers"] = sum(share or 0 for share in shares)
            found["worker_count"] = len(shares)
    return found


def _pss(pid: int) -> int | None:
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            rows = dict(line.split(":", 1) for line in file if ":" in line and line.startswith("Pss:"))
        return int(rows["Pss"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def beside_tensors(reading: Mapping[str, Any]) -> int | None:
    """The host memory of a reading without CPU tensors, in bytes; None if unknown."""
    host = reading.get("host")
    return None if host is None else int(host) - int(reading["requested"].get("cpu", 0))


def rises_on_host(readings: Sequence[Mapping[str, Any]], settled: int | None = None) -> bool:
    """Whether host memory beside tensors grows by more than noise. ``settled``: its value after the window."""
    held = [each for reading in readings if (each := beside_tensors(reading)) is not None]
    if len(held) < len(readings) or not held:
        return False
    if settled is not None and settled < held[-1]:
        held[-1] = settled
    return steady(held, NOISE)


def is_level(later: Sequence[tuple[int, int]]) -> bool:
    """Whether the floor of host memory rises by no more than noise an iteration. ``later``: ticks and bytes. False with
    too few readings."""
    half = len(later) // 2
    if half < _FEW_LOOKS:
        return False
    (earlier, low), (now, lowest) = (min(part, key=lambda one: one[1]) for part in (later[:half], later[half:]))
    return lowest - low < NOISE * (now - earlier)


def rises_in_workers(readings: Sequence[Mapping[str, Any]]) -> bool:
    """Whether the memory of the worker processes grows, while their number stays."""
    counts = {reading.get("worker_count") for reading in readings}
    return len(counts) == 1 and None not in counts and steady([r["workers"] for r in readings], NOISE_OF_WORKERS)
