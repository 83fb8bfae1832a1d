"""What a rule adds to the analysis: its own detection, which the engine asks the rule for and hands in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from memlint.analysis.domain.events import Event, Site

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.summary import Summary
    from memlint.analysis.facts.analyser import Analyser


class Detector(NamedTuple):
    """``code``: of the rule. ``detect``: gives the events of one function, and changes nothing. ``calls``: functions
    outside the project, by qualified name, whose calls are noted for it (`Observations.outside`), and ``loader_calls``:
    those whose calls are where they are given a data loader. ``package``: what the names of its modules begin with."""

    code: str
    detect: Callable[[Analyser, Summary], Iterable[Event]]
    calls: frozenset[str] = frozenset()
    loader_calls: frozenset[str] = frozenset()
    package: str = ""

    def events(self, analyser: Analyser, summary: Summary) -> list[Event]:
        """What it finds in one function. A rule is a program, and may fail in any way, SystemExit included; TypeError
        for what is no event, or not one at a place of the project."""
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
