"""The counters of an accelerator's allocator, by a torch that is made of numbers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from memlint.measure.meters import CudaMeter


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
