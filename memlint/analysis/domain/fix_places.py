"""What a judge asks of the fixes: it says that something is wrong, and they, a layer above, where a change belongs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from memlint.analysis.domain.events import Cut, Gather, Guard, ModelCall
    from memlint.analysis.domain.summary.effects import Store
    from memlint.analysis.domain.summary.summary import Summary
    from memlint.analysis.facts.analyser import Analyser


class FixPlaces(Protocol):
    """The functions of `memlint.fix.safety.places`. Each place comes with what keeps us from the proof that the change
    is safe."""

    def cut_of(self, analyser: Analyser, summary: Summary, store: Store) -> Cut | None:
        """The expressions of a store's statement whose graph it keeps; None where they cannot be told."""

    def gather_of(self, summary: Summary, at: int) -> Gather | None:
        """How a tensor that a loop concatenates becomes a list; None where the loop looks at it."""

    def with_places(
        self, analyser: Analyser, summary: Summary, events: Iterable[Guard | ModelCall]
    ) -> Iterator[Guard | ModelCall]:
        """The events, each told where the guard belongs that it misses."""
