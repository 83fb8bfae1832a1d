"""Meters of tensor memory, which leave the program's own statistics as they are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from .tracker import Ledger, tracker

#: bytes by device, as torch names it ("cuda:0", "cpu")
Bytes = dict[str, int]


class Meter:
    """Tensor memory by device, in bytes. `read`: requested by live tensors; `peak`: the most allocated so far; `free`:
    what a device can still allocate; `fragments`: counters of the allocator. Unknown devices are left out."""

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
        """Why nothing can be measured; None if something can."""
        return None

    def close(self) -> None:
        """End the measurement, and undo its changes to the process."""


class CudaMeter(Meter):
    """The counters of torch's caching allocator, on every device of the process (also of ROCm, under the same names).

    The host counts when memory is requested, so reading does not wait for kernels.
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
        # the public functions flatten and sort all counters, which is 3,000 times slower
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
            # on an unused device, the question would create a context of some hundred MiB
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
    """The counters of another accelerator, by `torch.accelerator` (torch 2.9 or newer), else by its own module. XPU's
    has the names of CUDA's. MPS reports no peak, so the peak is the most that was read."""

    def __init__(self, torch: Any, name: str) -> None:
        self.name = name
        self._own = getattr(torch, name)
        self._common = getattr(torch, "accelerator", None)
        self._peaks: Bytes = {}
        self.close = read_before_resets(torch, self.peak, getattr(self._own, "memory", None))  # type: ignore[method-assign]

    def _each(self, name: str) -> Bytes | None:
        """A counter on each device; None if there is no such counter."""
        started = getattr(self._own, "is_initialized", None)
        if started is not None and not started():
            return {}
        count = self._own.device_count() if hasattr(self._own, "device_count") else 1
        for module in (self._common, self._own):
            read = getattr(module, name, None)
            if read is not None:
                try:
                    return {f"{self.name}:{index}": int(read(index)) for index in range(count)}
                except (RuntimeError, NotImplementedError, TypeError):  # not supported by this device
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
    """Call ``read`` before the program resets its peak statistics. Returns a function that undoes the change."""
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
    """Why the counters of the allocator cannot be used; None if they can."""
    backend = torch.cuda.get_allocator_backend()
    return None if backend == "native" else f"the allocator is {backend}, whose counters stay zero"


def allocator_variable(torch: Any) -> str:
    """The environment variable with the settings of this torch's allocator."""
    general = hasattr(torch._C, "_accelerator_setAllocatorSettings")  # torch 2.9
    return "PYTORCH_ALLOC_CONF" if general else "PYTORCH_CUDA_ALLOC_CONF"


def _current(stats: Any, key: str) -> int:
    return int(stats[key]["all"]["current"])


class CpuMeter(Meter):
    """Live CPU tensors, exactly. It uses a dispatch mode of the main thread from the import of torch to the end."""

    name = "cpu"

    def __init__(self, torch: Any) -> None:
        self.ledger = Ledger()
        self._torch = torch
        self._mode: Any = None
        self.open()

    def open(self) -> None:
        """Count storages from now on."""
        self._mode = tracker(self.ledger, self._torch)
        self._mode.__enter__()

    def open_if_outermost(self) -> None:
        """Open it again, unless the program has put a mode of its own around what runs now."""
        from torch.utils._python_dispatch import _get_current_dispatch_mode

        if self.closed and _get_current_dispatch_mode() is None:
            self.open()

    @property
    def closed(self) -> bool:
        """Whether it does not count new storages."""
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
    """The available main memory in bytes; None if unknown."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            rows = dict(line.split(":", 1) for line in file)
        return int(rows["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return None


def meter_for(device: str, torch: Any) -> Meter:
    """The meter of a device: cuda, cpu, or auto, the device that the program can use. Called once torch is imported."""
    if device == "cuda" or (device == "auto" and _has_accelerator(torch)):
        return CudaMeter(torch)
    if device == "auto" and (name := _other_accelerator(torch)) is not None:
        return AcceleratorMeter(torch, name)
    return CpuMeter(torch)


def _other_accelerator(torch: Any) -> str | None:
    """The name of an accelerator other than CUDA that torch supports and the system has; None without one."""
    xpu = getattr(torch, "xpu", None)
    if xpu is not None and getattr(xpu, "_is_compiled", bool)() and xpu.is_available():
        return "xpu"
    mps = getattr(torch.backends, "mps", None)
    return "mps" if mps is not None and mps.is_built() and mps.is_available() else None


def _has_accelerator(torch: Any) -> bool:
    """Whether the program may use CUDA or ROCm. Asks the system, as asking torch would initialise the device."""
    import os

    if torch.version.cuda is None and getattr(torch.version, "hip", None) is None:
        return False
    return os.environ.get("CUDA_VISIBLE_DEVICES") != "" and any(
        os.path.exists(path) for path in ("/dev/nvidiactl", "/dev/nvidia0", "/dev/kfd", "/dev/dxg")
    )
