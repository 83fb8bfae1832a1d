"""The environment of a run, and whether it runs code that probes do not see."""

from __future__ import annotations

import sys
import weakref
from typing import Any

from ..memory.meters import Meter, allocator_variable

#: modules that multiprocessing imports when it starts a process
_STARTERS = tuple(f"multiprocessing.popen_{way}" for way in ("fork", "spawn_posix", "spawn_win32", "forkserver"))


def environment(torch: Any, meter: Meter) -> dict[str, Any]:
    """The versions, the device, and whether compiled code or other processes ran, as JSON. ``torch``: None if not
    imported."""
    return {
        "python": sys.version.split()[0],
        "torch": None if torch is None else str(torch.__version__),
        "meter": meter.name,
        "allocator_variable": None if torch is None else allocator_variable(torch),
        "device": _device(torch, meter),
        "compiled": _has_compiled(),
        "processes": any(name in sys.modules for name in _STARTERS),
    }


def _device(torch: Any, meter: Meter) -> str | None:
    if torch is None:
        return None
    if meter.name != "cuda":
        return meter.name
    return str(torch.cuda.get_device_name(0)) if torch.cuda.is_initialized() else None


def _has_compiled() -> bool:
    """Whether torch.compile has compiled something, in which no probe runs."""
    dynamo = sys.modules.get("torch._dynamo.utils")
    counters: Any = getattr(dynamo, "counters", None) or {}
    return bool(counters.get("stats", {}).get("unique_graphs"))


def why_not(torch: Any, device: str) -> str | None:
    """Why nothing can be measured with this torch; None if something can."""
    if device == "cuda" and not torch.cuda.is_available():
        return f"torch {torch.__version__} sees no CUDA device here"
    tensor = torch.empty(1)
    if weakref.ref(tensor.untyped_storage())() is None:
        return (
            f"torch {torch.__version__} makes a new object for a storage at each access, so storages cannot be "
            "followed: measuring needs torch 2.2 or newer"
        )
    return None
