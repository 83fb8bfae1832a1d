"""The counters of an accelerator's allocator, by a torch that is made of numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from memlint.measure.memory.meters import AcceleratorMeter, CudaMeter, _other_accelerator, meter_for


class Allocator:
    """One device's counters, and the ways in which a program may begin their peak anew."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.asked: list[int] = []
        cuda = SimpleNamespace(
            is_initialized=lambda: True,
            device_count=lambda: 2,
            mem_get_info=self.info,
            reset_peak_memory_stats=self.reset,
        )
        cuda.memory = SimpleNamespace(reset_peak_memory_stats=self.reset)
        accelerator = SimpleNamespace(reset_peak_memory_stats=self.reset)
        accelerator.memory = SimpleNamespace(reset_peak_memory_stats=self.reset)
        self.torch: Any = SimpleNamespace(
            cuda=cuda, accelerator=accelerator, _C=SimpleNamespace(_cuda_memoryStats=self.stats)
        )

    def reset(self, device: int | None = None) -> None:
        self.most = self.now

    def hold(self, count: int) -> None:
        self.now = count
        self.most = max(self.most, count)

    def stats(self, index: int) -> dict[str, Any]:
        if index:
            return {key: {"all": {"current": 0, "peak": 0}} for key in ("allocated_bytes", "reserved_bytes")}
        return {
            "allocated_bytes": {"all": {"current": self.now, "peak": self.most}},
            "reserved_bytes": {"all": {"current": 2 * self.now, "peak": 0}},
        }

    def info(self, index: int) -> tuple[int, int]:
        self.asked.append(index)
        return 1000, 2000


@pytest.mark.parametrize("module", ["cuda", "accelerator"])
def test_a_program_that_resets_its_peak_does_not_take_ours_with_it(module: str) -> None:
    allocator = Allocator()
    meter = CudaMeter(allocator.torch)
    allocator.hold(4096)
    allocator.hold(512)
    getattr(allocator.torch, module).reset_peak_memory_stats()
    assert allocator.most == 512, "the program sees what it asked for"
    assert meter.peak() == {"cuda:0": 4096, "cuda:1": 0}
    allocator.hold(8192)
    getattr(allocator.torch, module).memory.reset_peak_memory_stats(0)
    assert meter.peak() == {"cuda:0": 8192, "cuda:1": 0}


def test_an_older_torch_has_no_accelerator() -> None:
    allocator = Allocator()
    del allocator.torch.accelerator
    meter = CudaMeter(allocator.torch)
    allocator.hold(1024)
    allocator.hold(0)
    allocator.torch.cuda.reset_peak_memory_stats()
    assert meter.peak() == {"cuda:0": 1024, "cuda:1": 0}


def test_a_device_that_the_program_does_not_use_is_not_taken_into_use() -> None:
    allocator = Allocator()
    meter = CudaMeter(allocator.torch)
    allocator.hold(512)
    assert meter.free() == {"cuda:0": 1512}
    assert allocator.asked == [0], "asking a device what it has left takes some hundred MiB of it"


def accelerator(name: str, *, common: bool, own: dict[str, Any]) -> Any:
    """A torch with an accelerator that holds 100 B on its first device; ``common``: `torch.accelerator` knows it."""

    def missing(index: int) -> int:
        raise RuntimeError("this build has no such device")

    module = SimpleNamespace(**own)
    module.memory = module
    counters = SimpleNamespace(memory_allocated=lambda index: 100 * (index == 0) if common else missing(index),
                               max_memory_allocated=lambda index: 300 * (index == 0) if common else missing(index),
                               reset_peak_memory_stats=lambda device=None: None)  # fmt: skip
    counters.memory = counters
    cuda = SimpleNamespace(memory=SimpleNamespace())
    return SimpleNamespace(**{name: module, "accelerator": counters, "cuda": cuda})


XPU = {
    "is_initialized": lambda: True,
    "device_count": lambda: 2,
    "memory_allocated": lambda index: 100 * (index == 0),
    "max_memory_allocated": lambda index: 300 * (index == 0),
}


@pytest.mark.parametrize("common", [True, False])
def test_an_xpu_is_read_by_the_common_counters_or_its_own(common: bool) -> None:
    meter = AcceleratorMeter(accelerator("xpu", common=common, own=XPU), "xpu")
    assert meter.read() == {"xpu:0": 100, "xpu:1": 0}
    assert meter.peak() == {"xpu:0": 300, "xpu:1": 0}


def test_an_accelerator_that_is_not_begun_is_not_asked() -> None:
    own = {**XPU, "is_initialized": lambda: False, "memory_allocated": None}
    meter = AcceleratorMeter(accelerator("xpu", common=False, own=own), "xpu")
    assert meter.read() == {} == meter.peak()


def test_the_peak_of_one_without_a_peak_is_the_most_that_was_read() -> None:
    held = [500, 200, 100]
    own = {"current_allocated_memory": lambda: held.pop(0)}
    meter = AcceleratorMeter(accelerator("mps", common=False, own=own), "mps")
    assert [meter.read(), meter.read()] == [{"mps:0": 500}, {"mps:0": 200}]
    assert meter.peak() == {"mps:0": 500}


@pytest.mark.parametrize(("xpu", "mps", "name"), [(True, False, "xpu"), (False, True, "mps"), (False, False, None)])
def test_what_the_system_has_is_measured(xpu: bool, mps: bool, name: str | None) -> None:
    torch = accelerator(name or "xpu", common=True, own=XPU)
    torch.version = SimpleNamespace(cuda=None, hip=None)
    torch.xpu = SimpleNamespace(**XPU, _is_compiled=lambda: xpu, is_available=lambda: xpu)
    torch.backends = SimpleNamespace(mps=SimpleNamespace(is_built=lambda: mps, is_available=lambda: mps))
    assert _other_accelerator(torch) == name
    if name is not None:
        assert meter_for("auto", torch).name == name
