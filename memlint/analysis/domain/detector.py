"""A rule's own detection, which the engine gets from the rule and runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from memlint.analysis.domain.events import Event, Site

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.summary import Summary
    from memlint.analysis.facts.analyser import Analyser


class Detector(NamedTuple):
    """``code``: of the rule. ``detect``: returns the events of one function, and changes nothing. ``calls``: qualified
    names of external functions whose calls are recorded for it (`Observations.outside`); ``loader_calls``: the same,
    only for calls with a data loader as an argument. ``package``: the prefix of its modules' names."""

    code: str
    detect: Callable[[Analyser, Summary], Iterable[Event]]
    calls: frozenset[str] = frozenset()
    loader_calls: frozenset[str] = frozenset()
    package: str = ""

    def events(self, analyser: Analyser, summary: Summary) -> list[Event]:
        """The events that the rule finds in one function. A rule may raise anything, SystemExit included. Raises
        TypeError for a value that is no event, or an event outside the project."""
        found = list(self.detect(analyser, summary))
        for event in found:
            if not isinstance(event, Event):
                raise TypeError(f"`detect` gives {event!r}, which is no event")
            if not _is_place(analyser, event.site):
                raise TypeError(f"`detect` gives an event at {event.site!r}, which is no place of the project")
        return found


def _is_place(analyser: Analyser, site: object) -> bool:
    if not isinstance(site, Site) or type(site.path) is not str or {type(site.unit), type(site.at)} != {int}:
        return False
    if site.path not in analyser.program.project.sources:
        return False
    module = analyser.program.module(site.path)
    return 0 <= site.unit < len(module.index.units) and 0 <= site.at < module.lowered(site.unit).count
