"""Practices that cost memory or time wherever they stand, whatever graphs there are: a detector for each.

A detector has ``events(analyser, frame)``, which looks at one function; what it needs of the calls that leave the
project stands in ``frame.notes.outside`` (see `memlint.analysis.transfer.library.noted_calls`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.analysis.detectors.apis import diagnostics, readings, renamed_apis
from memlint.analysis.detectors.backward import gradients, kept_rounds, live_graphs, recorded_gradients, retained_graphs
from memlint.analysis.detectors.cache import emptied_cache
from memlint.analysis.detectors.checkpoints import loads, snapshots
from memlint.analysis.detectors.contexts import ctx_attributes
from memlint.analysis.detectors.data import cached_batches, cached_calls, datasets, parallel
from memlint.analysis.detectors.hooks import keeping_hooks
from memlint.analysis.detectors.names import freed_names, recovery
from memlint.analysis.domain.events import Event
from memlint.analysis.domain.summary.frame import Frame

if TYPE_CHECKING:
    from collections.abc import Callable

    from memlint.analysis.facts.analyser import Analyser

#: in the order of their codes
ROOMS: tuple[Callable[[Analyser, Frame], Iterator[Event]], ...] = (
    keeping_hooks.events,
    ctx_attributes.events,
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
    emptied_cache.events,
    gradients.events,
    datasets.events,
    loads.events,
    parallel.events,
    renamed_apis.events,
    readings.events,
)


def events(analyser: Analyser, frame: Frame) -> Iterator[Event]:
    """What all rooms see in one function."""
    for room in ROOMS:
        yield from room(analyser, frame)
