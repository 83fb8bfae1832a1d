"""Practices that cost memory or time wherever they stand, whatever graphs there are: one room for each.

A room has ``events(analyser, frame)``, which looks at one function; what it needs of the calls that leave the project
stands in ``frame.notes.outside`` (see `outside.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.flow.events import Event
from memlint.flow.frame import Frame
from memlint.flow.practices import (
    apis,
    cache,
    cached_batches,
    cached_calls,
    context,
    datasets,
    diagnostics,
    freed_names,
    gradients,
    hooks,
    kept_rounds,
    live_graphs,
    loads,
    parallel,
    readings,
    recorded_gradients,
    recovery,
    retained_graphs,
    snapshots,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from memlint.flow.analyser import Analyser

#: in the order of their codes
_ROOMS: tuple[Callable[[Analyser, Frame], Iterator[Event]], ...] = (
    hooks.events,
    context.events,
    cached_batches.events,
    recovery.events,
    cached_calls.events,
    freed_names.events,
    snapshots.events,
    retained_graphs.events,
    kept_rounds.events,
    recorded_gradients.events,
    diagnostics.events,
    live_graphs.events,
    cache.events,
    gradients.events,
    datasets.events,
    loads.events,
    parallel.events,
    apis.events,
    readings.events,
)


def events(analyser: Analyser, frame: Frame) -> Iterator[Event]:
    """What all rooms see in one function."""
    for room in _ROOMS:
        yield from room(analyser, frame)
