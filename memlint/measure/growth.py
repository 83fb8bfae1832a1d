"""The memory that a piece of code keeps each time that it runs, for the pytest plugin.

Unlike in `memlint verify`, the peak statistics of a device may be reset here: they are the test's alone.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from .loops.history import held, record
from .memory.host import NOISE, host_meter
from .memory.meters import allocator_reason, read_before_resets
from .memory.tracker import Frame, Ledger, lines, tracker

#: a place on a stack: path, line, function
Where = tuple[str, int, str]
#: live bytes by the stack that allocated them, innermost frame first
Held = dict[tuple[Where, ...], int]
#: the most frames of a stack: a test's own are between those of its runner and of its model
_DEPTH = 120


class UnmeasurableError(Exception):
    """Why a device cannot be measured here."""


class Gauge:
    """Reads the memory of one device between `start` and `stop`, in bytes."""

    device: str

    def start(self) -> None:
        raise NotImplementedError

    def stop(self) -> None:
        raise NotImplementedError

    def read(self) -> int:
        """The live bytes."""
        raise NotImplementedError

    def peak(self) -> int:
        """The most live bytes since the start, above those at the start."""
        raise NotImplementedError

    def step(self, number: int) -> None:
        """What is allocated from now on belongs to iteration ``number``."""

    def survivors(self, first: int, last: int) -> int | None:
        """The live bytes that iterations ``first`` to ``last``, both included, have allocated; None if unknown."""
        return None

    def held(self) -> Held:
        """The live bytes by stack, as far as stacks are known."""
        return {}


class CpuGauge(Gauge):
    """CPU tensors that operations make while it runs, exactly."""

    device = "cpu"

    def __init__(self, torch: Any) -> None:
        self._ledger = Ledger(_DEPTH)
        self._ledger.stacks = True
        self._mode = tracker(self._ledger, torch)

    def start(self) -> None:
        with contextlib.suppress(Exception):
            importlib.import_module("torch._dynamo")  # else the first operation under the mode imports it
        self._mode.__enter__()

    def stop(self) -> None:
        self._mode.__exit__(None, None, None)

    def step(self, number: int) -> None:
        self._ledger.tick = number

    def read(self) -> int:
        return self._ledger.total

    def peak(self) -> int:
        return self._ledger.peak

    def survivors(self, first: int, last: int) -> int | None:
        return sum(born.nbytes for born in self._ledger.alive.values() if first <= born.tick <= last)

    def held(self) -> Held:
        found: dict[tuple[Frame, ...], int] = {}
        for born in list(self._ledger.alive.values()):
            found[born.stack] = found.get(born.stack, 0) + born.nbytes
        return {
            tuple((frame[0].co_filename, lines(frame), frame[0].co_name) for frame in stack): count
            for stack, count in found.items()
        }


class HostGauge(Gauge):
    """Memory that the C library has allocated, without that of CPU tensors."""

    device = "host"

    def __init__(self, torch: Any, read: Callable[[], int]) -> None:
        self._tensors = CpuGauge(torch)
        self._read = read
        self._most = 0
        self._before = 0

    def start(self) -> None:
        self._before = self.read()
        self._tensors.start()

    def stop(self) -> None:
        self._tensors.stop()

    def read(self) -> int:
        held = self._read() - self._tensors.read()
        self._most = max(self._most, held)
        return held

    def peak(self) -> int:
        return max(0, self._most - self._before)


class CudaGauge(Gauge):
    """One CUDA device, by the counters of torch's caching allocator."""

    def __init__(self, torch: Any, index: int) -> None:
        self.device = f"cuda:{index}"
        self._torch = torch
        self._index = index
        self._before = 0
        self._peak = 0
        self._recording = False
        self._put_back: Callable[[], None] | None = None

    def start(self) -> None:
        cuda = self._torch.cuda
        cuda.init()
        self._before = self._stat("allocated_bytes", "current")
        cuda.reset_peak_memory_stats(self._index)
        self._put_back = read_before_resets(self._torch, self.peak)
        self._recording = record(self._torch)

    def stop(self) -> None:
        self.peak()
        if self._put_back is not None:
            self._put_back()
        if self._recording:
            self._torch.cuda.memory._record_memory_history(None)
            self._recording = False

    def read(self) -> int:
        return self._stat("requested_bytes", "current")

    def peak(self) -> int:
        self._peak = max(self._peak, self._stat("allocated_bytes", "peak"))
        return self._peak - self._before

    def held(self) -> Held:
        return held(self._torch, self._index)

    def _stat(self, key: str, which: str) -> int:
        return int(self._torch._C._cuda_memoryStats(self._index)[key]["all"][which])


def gauges(device: str | None, torch: Any) -> list[Gauge]:
    """The gauges of a device: "cpu", "cuda:1", "cuda" (every CUDA device), "host", or None (CPU tensors and every CUDA
    device). Raises UnmeasurableError."""
    if device == "host":
        read = host_meter()
        if read is None:
            raise UnmeasurableError("the C library does not report its allocations (glibc 2.33 and newer does)")
        return [HostGauge(torch, read)]
    if device == "cpu":
        return [CpuGauge(torch)]
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if device is None:
        usable = count if count and allocator_reason(torch) is None else 0
        return [CpuGauge(torch), *(CudaGauge(torch, index) for index in range(usable))]
    if not count:
        raise UnmeasurableError("torch finds no CUDA device")
    if (reason := allocator_reason(torch)) is not None:
        raise UnmeasurableError(reason)
    if device == "cuda":
        return [CudaGauge(torch, index) for index in range(count)]
    index = int(device.partition(":")[2])
    if index >= count:
        raise UnmeasurableError(f"there is no {device}: torch finds {count} CUDA device{'s' * (count > 1)}")
    return [CudaGauge(torch, index)]


@dataclass(frozen=True)
class Growth:
    """What an iteration leaves on a device. ``per_iteration``: bytes; ``kept``: stacks that hold more than after the
    warm-up, with their bytes per iteration, most first."""

    device: str
    per_iteration: float
    kept: tuple[tuple[tuple[Where, ...], float], ...]


class Watch:
    """Reads gauges after each iteration and a garbage collection. A context manager.

    ``freezes``: exclude the objects that exist at the start from these collections, which saves a tenth of a second
    each. Those that the iterations release are then collected at the end only.
    """

    def __init__(self, watched: Iterable[Gauge], warmups: int, *, freezes: bool = True) -> None:
        self._gauges = list(watched)
        self._warmups = warmups
        self._freezes = freezes
        self._readings: dict[str, list[int]] = {gauge.device: [] for gauge in self._gauges}
        self._base: dict[str, Held] = {}
        self._last: dict[str, Held] = {}
        self._survivors: dict[str, int | None] = {}
        self._froze = False

    def __enter__(self) -> Watch:
        if not all(isinstance(gauge, CpuGauge) for gauge in self._gauges):
            gc.collect()  # their counters include garbage that exists already
        started: list[Gauge] = []
        try:
            for gauge in self._gauges:
                gauge.start()
                started.append(gauge)
            if self._freezes and not gc.get_freeze_count():  # else unfreezing would undo the program's own freeze
                gc.freeze()
                self._froze = True
            self.mark()
        except BaseException:
            self._thaw()
            for gauge in reversed(started):
                gauge.stop()
            raise
        return self

    def _thaw(self) -> None:
        if self._froze:
            gc.unfreeze()

    def __exit__(self, *_: object) -> None:
        self._thaw()
        if self._froze and self._grew():
            gc.collect()
        for gauge in self._gauges:
            readings = self._readings[gauge.device]
            readings[-1] = min(readings[-1], gauge.read())
            self._last[gauge.device] = gauge.held() if self.iterations > 0 else {}
            self._survivors[gauge.device] = gauge.survivors(*self._first_half())
        for gauge in reversed(self._gauges):
            gauge.stop()

    def _grew(self) -> bool:
        """Whether there is more than after the warm-up. Only then can a full collection, which is slow, change the
        result."""
        return any(readings[-1] > readings[: self._warmups + 1][-1] for readings in self._readings.values())

    def mark(self) -> None:
        """An iteration has ended."""
        if any(gauge.read() for gauge in self._gauges):  # with no bytes, none are garbage
            gc.collect()
        for gauge in self._gauges:
            readings = self._readings[gauge.device]
            readings.append(gauge.read())
            gauge.step(len(readings))
            if len(readings) == self._warmups + 1:
                self._base[gauge.device] = gauge.held()

    @property
    def iterations(self) -> int:
        """The number of iterations after the warm-up."""
        return max(0, min(len(readings) for readings in self._readings.values()) - 1 - self._warmups)

    def peaks(self) -> dict[str, int]:
        """The peak by device, in bytes above the start."""
        return {gauge.device: gauge.peak() for gauge in self._gauges}

    def kept(self) -> dict[str, int]:
        """After the end: the bytes gained since the start that are still live, by device."""
        found = {}
        for gauge in self._gauges:
            readings = self._readings[gauge.device]
            found[gauge.device] = max(0, min(readings[-1], gauge.read()) - readings[0])
        return found

    def growth(self) -> list[Growth]:
        """After the end, with at least two iterations: what an iteration leaves on each device."""
        return [self._growth(gauge.device) for gauge in self._gauges]

    def _first_half(self) -> tuple[int, int]:
        return self._warmups + 1, self._warmups + self.iterations // 2

    def _growth(self, device: str) -> Growth:
        """The least of the growth in each half of the iterations and of what the first half has left: a cache that
        fills once grows in one half only, and batches of different sizes leave nothing."""
        readings = self._readings[device][self._warmups :]
        whole = len(readings) - 1
        half = whole // 2
        rates = [(readings[half] - readings[0]) / half, (readings[-1] - readings[half]) / (whole - half)]
        left = self._survivors[device]
        if left is not None:
            rates.append(left / half)
        base = self._base[device]
        more = {stack: count - base.get(stack, 0) for stack, count in self._last[device].items()}
        kept = sorted(((stack, count / whole) for stack, count in more.items() if count > 0), key=lambda row: -row[1])
        least = min(rates)
        if device == HostGauge.device and least <= NOISE:
            least = 0.0
        return Growth(device, max(0.0, least), tuple(kept))
