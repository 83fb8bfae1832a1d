"""What a piece of code keeps each time that it runs: the gauges of a test, which has no flagged places.

Unlike in a measured program, nobody else reads the counters here: a test's own peak may be begun anew.
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
#: bytes that are alive, by the stack that they were made on, innermost first
Held = dict[tuple[Where, ...], int]
#: a test's frames lie below those of its runner, and those of its model's modules above
_DEPTH = 120


class UnmeasurableError(Exception):
    """Why a device cannot be measured here."""


class CpuGauge:
    """CPU tensors that operations make while it runs, to the byte."""

    device = "cpu"

    def __init__(self, torch: Any) -> None:
        self._ledger = Ledger(_DEPTH)
        self._ledger.stacks = True
        self._mode = tracker(self._ledger, torch)

    def start(self) -> None:
        with contextlib.suppress(Exception):
            importlib.import_module("torch._dynamo")  # the first operation that a mode follows would do so, in the test
        self._mode.__enter__()

    def stop(self) -> None:
        self._mode.__exit__(None, None, None)

    def step(self, number: int) -> None:
        """What is made from now on belongs to iteration ``number``."""
        self._ledger.tick = number

    def read(self) -> int:
        return self._ledger.total

    def peak(self) -> int:
        """The most bytes that were alive at once, of those made since the start."""
        return self._ledger.peak

    def survivors(self, first: int, last: int) -> int | None:
        """The bytes that iterations ``first`` to ``last``, both included, made and that are alive; None: unknown."""
        return sum(born.nbytes for born in self._ledger.alive.values() if first <= born.tick <= last)

    def held(self) -> Held:
        found: dict[tuple[Frame, ...], int] = {}
        for born in list(self._ledger.alive.values()):
            found[born.stack] = found.get(born.stack, 0) + born.nbytes
        return {
            tuple((frame[0].co_filename, lines(frame), frame[0].co_name) for frame in stack): count
            for stack, count in found.items()
        }


class HostGauge:
    """What the C library has handed out beside CPU tensors."""

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

    def step(self, number: int) -> None:
        pass

    def read(self) -> int:
        held = self._read() - self._tensors.read()
        self._most = max(self._most, held)
        return held

    def peak(self) -> int:
        """The most that was read, above what there was at the start."""
        return max(0, self._most - self._before)

    def survivors(self, first: int, last: int) -> int | None:
        return None

    def held(self) -> Held:
        return {}


class CudaGauge:
    """One device's bytes by the counters of torch's caching allocator."""

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

    def step(self, number: int) -> None:
        pass

    def read(self) -> int:
        return self._stat("requested_bytes", "current")

    def peak(self) -> int:
        """The most bytes that the allocator had given out at once, above what it had at the start."""
        self._peak = max(self._peak, self._stat("allocated_bytes", "peak"))
        return self._peak - self._before

    def survivors(self, first: int, last: int) -> int | None:
        return None

    def held(self) -> Held:
        return held(self._torch, self._index)

    def _stat(self, key: str, which: str) -> int:
        return int(self._torch._C._cuda_memoryStats(self._index)[key]["all"][which])


Gauge = CpuGauge | CudaGauge | HostGauge


def gauges(device: str | None, torch: Any) -> list[Gauge]:
    """The gauges of a device ("cpu", "cuda" for all of them, "cuda:1", "host"); None: of all that have tensors. Raises
    UnmeasurableError."""
    if device == "host":
        read = host_meter()
        if read is None:
            raise UnmeasurableError("the C library does not say what it has handed out (glibc 2.33 and newer does)")
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
    """What an iteration leaves on a device. ``per_iteration``: bytes; ``kept``: by stack, innermost first, those that
    keep more than they did after the warm-up, most first."""

    device: str
    per_iteration: float
    kept: tuple[tuple[tuple[Where, ...], float], ...]


class Watch:
    """Reads gauges after each iteration, once the garbage collector has run. A context manager.

    ``freezes``: what is there at the start is not looked through after each iteration, as torch's objects would take a
    tenth of a second each time. What the iterations let go of it is collected at the end only.
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
            gc.collect()  # counters of all memory have the garbage in them that is there already
        started: list[Gauge] = []
        try:
            for gauge in self._gauges:
                gauge.start()
                started.append(gauge)
            if self._freezes and not gc.get_freeze_count():  # else somebody's own freeze would be taken back
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
        """Whether there is more than after the warm-up: a collection of all, which takes long, can change the result
        only then."""
        return any(readings[-1] > readings[: self._warmups + 1][-1] for readings in self._readings.values())

    def mark(self) -> None:
        """An iteration has ended."""
        if any(gauge.read() for gauge in self._gauges):  # where no byte is counted, none is garbage
            gc.collect()
        for gauge in self._gauges:
            readings = self._readings[gauge.device]
            readings.append(gauge.read())
            gauge.step(len(readings))
            if len(readings) == self._warmups + 1:
                self._base[gauge.device] = gauge.held()

    @property
    def iterations(self) -> int:
        """How many iterations are judged so far."""
        return max(0, min(len(readings) for readings in self._readings.values()) - 1 - self._warmups)

    def peaks(self) -> dict[str, int]:
        """The most bytes above those of the start, by device."""
        return {gauge.device: gauge.peak() for gauge in self._gauges}

    def kept(self) -> dict[str, int]:
        """The bytes that are still there of what has come since the start, by device, once it is over."""
        found = {}
        for gauge in self._gauges:
            readings = self._readings[gauge.device]
            found[gauge.device] = max(0, min(readings[-1], gauge.read()) - readings[0])
        return found

    def growth(self) -> list[Growth]:
        """What an iteration leaves, by device; there must be two iterations or more, and the watch be over."""
        return [self._growth(gauge.device) for gauge in self._gauges]

    def _first_half(self) -> tuple[int, int]:
        return self._warmups + 1, self._warmups + self.iterations // 2

    def _growth(self, device: str) -> Growth:
        """A cache that fills once grows in one half of the iterations only, and is no growth an iteration. Nor are
        batches of different sizes: of those made in the first half, none is left."""
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
