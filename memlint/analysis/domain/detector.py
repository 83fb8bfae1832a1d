"""What a rule adds to the analysis: its own detection, which the engine asks the rule for and hands in."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from memlint.analysis.domain.events import Event

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
