"""What a process has allocated, read without touching the program's own statistics."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .tracker import Ledger, tracker

#: bytes by device, as torch names it ("cuda:0", "cpu")
Bytes = dict[str, int]


class Meter:
    """Tensor memory. `read` gives the bytes that live tensors asked for, `peak` the most that there were, `free` what
    a device can still give; ``fragments`` what the allocator holds beside them, and the most that was given out. Empty
    where nothing is to be read."""

    name = "none"

    def read(self) -> Bytes:
        return {}

    def peak(self) -> Bytes:
        return {}

    def free(self) -> Bytes:
        return {}

    def fragments(self) -> dict[str, dict[str, int]]:
        return {}

    def reason(self) -> str | None:
        """Why nothing can be measured, where nothing can."""
        return None

    def close(self) -> None:
        """Leave the process as it was, in which nothing more is measured."""


class CudaMeter(Meter):
    """The counters of torch's caching allocator, on every device of the process (ROCm has the same names).

    They are counted on the host when memory is asked for, so reading waits for no kernel.
    """

    name = "cuda"

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._peaks: Bytes = {}
        self.close = read_before_resets(torch, self.peak)  # type: ignore[method-assign]

    def _stats(self) -> dict[str, Any]:
        cuda = self._torch.cuda
        if not cuda.is_initialized():
            return {}
        # the public functions flatten and sort all counters: 3,000 times slower
        return {f"cuda:{index}": self._torch._C._cuda_memoryStats(index) for index in range(cuda.device_count())}

    def read(self) -> Bytes:
        return {device: _current(stats, "requested_bytes") for device, stats in self._stats().items()}

    def peak(self) -> Bytes:
        now = {device: stats["allocated_bytes"]["all"]["peak"] for device, stats in self._stats().items()}
        for device, most in now.items():
            self._peaks[device] = max(most, self._peaks.get(device, 0))
        return dict(self._peaks)

    def free(self) -> Bytes:
        cuda = self._torch.cuda
        return {
            device: cuda.mem_get_info(index)[0] + reserved - _current(stats, "allocated_bytes")
            for index, (device, stats) in enumerate(self._stats().items())
            # the question alone makes a context on the device, of some hundred MiB
            if (reserved := _current(stats, "reserved_bytes"))
        }

    def fragments(self) -> dict[str, dict[str, int]]:
        names = {"reserved": "reserved_bytes", "allocated": "allocated_bytes", "split": "inactive_split_bytes"}
        peaks = self.peak()
        return {
            device: {"peak": peaks[device], **{name: _current(stats, key) for name, key in names.items()}}
            for device, stats in self._stats().items()
        }

    def reason(self) -> str | None:
        return allocator_reason(self._torch) if self._torch.cuda.is_initialized() else None


class AcceleratorMeter(Meter):
    """The counters of an accelerator by what all of them have in common (`torch.accelerator`, since torch 2.9), else by
    the module of its own (XPU's has the names of CUDA's; that of Apple's GPU says what is allocated now, and no peak:
    then the peak is the most of what was read)."""

    def __init__(self, torch: Any, name: str) -> None:
        self.name = name
        self._own = getattr(torch, name)
        self._common = getattr(torch, "accelerator", None)
        self._peaks: Bytes = {}
        self.close = read_before_resets(torch, self.peak, getattr(self._own, "memory", None))  # type: ignore[method-assign]

    def _each(self, name: str) -> Bytes | None:
        """A counter on each device; None where there is no such."""
        started = getattr(self._own, "is_initialized", None)
        if started is not None and not started():
            return {}
        count = self._own.device_count() if hasattr(self._own, "device_count") else 1
        for module in (self._common, self._own):
            read = getattr(module, name, None)
            if read is not None:
                try:
                    return {f"{self.name}:{index}": int(read(index)) for index in range(count)}
                except (RuntimeError, NotImplementedError, TypeError):  # not of this device
                    continue
        return None

    def read(self) -> Bytes:
        held = self._each("memory_allocated")
        if held is None:
            held = {f"{self.name}:0": int(self._own.current_allocated_memory())}
        for device, count in held.items():
            self._peaks[device] = max(count, self._peaks.get(device, 0))
        return held

    def peak(self) -> Bytes:
        most = self._each("max_memory_allocated")
        for device, count in (self.read() if most is None else most).items():
            self._peaks[device] = max(count, self._peaks.get(device, 0))
        return dict(self._peaks)


def read_before_resets(torch: Any, read: Callable[[], object], *more: Any) -> Callable[[], None]:
    """A program that resets its peak must not take ours with it: ``read`` is called first. Gives what puts torch's
    functions back as they were."""
    name = "reset_peak_memory_stats"  # `reset_max_memory_allocated` calls it
    accelerator = getattr(torch, "accelerator", None)
    put_back: list[Callable[[], None]] = []
    for module in (torch.cuda, torch.cuda.memory, accelerator, getattr(accelerator, "memory", None), *more):
        reset = getattr(module, name, None)
        if reset is not None:
            setattr(module, name, _reading_first(reset, read))
            put_back.append(functools.partial(setattr, module, name, reset))

    def undo() -> None:
        for each in put_back:
            each()

    return undo


def _reading_first(reset: Callable[..., Any], read: Callable[[], object]) -> Callable[..., Any]:
    @functools.wraps(reset)
    def read_and_reset(*arguments: Any, **options: Any) -> Any:
        read()
        return reset(*arguments, **options)

    return read_and_reset


def allocator_reason(torch: Any) -> str | None:
    """Why the counters of the allocator say nothing, where they do not."""
    backend = torch.cuda.get_allocator_backend()
    return None if backend == "native" else f"the allocator is {backend}, whose counters stay zero"


def allocator_variable(torch: Any) -> str:
    """The environment variable that the torch in use reads the settings of its allocator from."""
    general = hasattr(torch._C, "_accelerator_setAllocatorSettings")  # torch 2.9
    return "PYTORCH_ALLOC_CONF" if general else "PYTORCH_CUDA_ALLOC_CONF"


def _current(stats: Any, key: str) -> int:
    return int(stats[key]["all"]["current"])


class CpuMeter(Meter):
    """Live CPU tensors, to the byte. A dispatch mode of the main thread, from when torch is imported to the end."""

    name = "cpu"

    def __init__(self, torch: Any) -> None:
        self.ledger = Ledger()
        self._torch = torch
        self._mode: Any = None
        self.open()

    def open(self) -> None:
        """See what is made from now on."""
        self._mode = tracker(self.ledger, self._torch)
        self._mode.__enter__()

    def open_if_outermost(self) -> None:
        """Open it again, unless the program has put a mode of its own around what runs now."""
        from torch.utils._python_dispatch import _get_current_dispatch_mode

        if self.closed and _get_current_dispatch_mode() is None:
            self.open()

    @property
    def closed(self) -> bool:
        """Whether it no longer sees what is made."""
        return self._mode is None

    def read(self) -> Bytes:
        return {"cpu": self.ledger.total}

    def peak(self) -> Bytes:
        return {"cpu": self.ledger.peak}

    def close(self) -> None:
        if self._mode is not None:
            self._mode.__exit__(None, None, None)
            self._mode = None

    def close_if_outermost(self) -> None:
        """Close it, unless the program has put a mode of its own around what runs now."""
        from torch.utils._python_dispatch import _get_current_dispatch_mode

        if _get_current_dispatch_mode() is self._mode:
            self.close()

    def free(self) -> Bytes:
        left = _available()
        return {} if left is None else {"cpu": left}


def _available() -> int | None:
    """Bytes of main memory that are left, where the system says so."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            rows = dict(line.split(":", 1) for line in file)
        return int(rows["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def meter_for(device: str, torch: Any) -> Meter:
    """The meter of a device: cuda, cpu, or what the program can use at all (auto). Called when torch has come."""
    if device == "cuda" or (device == "auto" and _has_accelerator(torch)):
        return CudaMeter(torch)
    if device == "auto" and (name := _other_accelerator(torch)) is not None:
        return AcceleratorMeter(torch, name)
    return CpuMeter(torch)


def _other_accelerator(torch: Any) -> str | None:
    """An accelerator that is not CUDA's, where torch was built for one and the system has it."""
    xpu = getattr(torch, "xpu", None)
    if xpu is not None and getattr(xpu, "_is_compiled", bool)() and xpu.is_available():
        return "xpu"
    mps = getattr(torch.backends, "mps", None)
    return "mps" if mps is not None and mps.is_built() and mps.is_available() else None


def _has_accelerator(torch: Any) -> bool:
    """Whether the program may use one; asks the system and not torch, which would begin to use it."""
    import os

    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return False
    return os.environ.get("CUDA_VISIBLE_DEVICES") != "" and any(
        os.path.exists(path) for path in ("/dev/nvidiactl", "/dev/nvidia0", "/dev/kfd", "/dev/dxg")
    )
