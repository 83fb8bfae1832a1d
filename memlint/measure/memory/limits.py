"""Runs the program as on a device with less memory."""

from __future__ import annotations

from typing import Any


def limit_devices(torch: Any, most: int) -> None:
    """Limit the allocator to ``most`` bytes on each device, once CUDA is initialised."""

    def limit() -> None:
        for index in range(torch.cuda.device_count()):
            total = torch.cuda.get_device_properties(index).total_memory
            torch.cuda.set_per_process_memory_fraction(min(1.0, most / total), index)

    torch.cuda._lazy_call(limit)
