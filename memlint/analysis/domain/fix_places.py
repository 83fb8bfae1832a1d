"""What judges ask of the layer of fixes above them: the place of a change."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from memlint.analysis.domain.events import Cut, Gather, Guard, ModelCall
    from memlint.analysis.domain.summary.effects import Store
    from memlint.analysis.domain.summary.summary import Summary
    from memlint.analysis.facts.analyser import Analyser


class FixPlaces(Protocol):
    """The functions of `memlint.fix.safety.places`. Each place comes with the reason why the change is not proved
    safe."""

    def cut_of(self, analyser: Analyser, summary: Summary, store: Store) -> Cut | None:
        """The expressions of a store's statement that bring the graph in; None if they are unknown."""

    def gather_of(self, summary: Summary, at: int) -> Gather | None:
        """How a tensor that a loop concatenates becomes a list; None if the loop reads the tensor."""

    def with_places(
        self, analyser: Analyser, summary: Summary, events: Iterable[Guard | ModelCall]
    ) -> Iterator[Guard | ModelCall]:
        """The events, each with the place of the guard that it lacks."""
