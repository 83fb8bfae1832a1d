"""Python's garbage collection, while trees and summaries grow."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Trees and summaries live as long as the run: looking for cycles in them finds nothing, a quarter of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
