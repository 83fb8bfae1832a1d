"""Python's garbage collection during the analysis."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def no_collection() -> Iterator[None]:
    """Switch the collector off: trees and summaries live as long as the run, and a quarter of the time would be spent
    on searching cycles in them."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()
