"""What a rule is written with: here, what rule.py imports; in the modules beside, what detect.py imports as well.

A rule is a folder ``memNNN_some_name`` with ``rule.py``, ``README.md`` and, where it does not report events of the
analysis, ``detect.py``. ``rule.py`` defines ``META`` and ``check(facts)``::

    META = Meta(code="MEM101", name="loss-accumulation", summary="…", severity="error")

    def check(facts: Facts) -> Iterator[Report]:
        for event in facts.of(Carry):
            if …:
                yield Report(event.site, "…", …)

``detect.py`` defines ``detect(analyser, summary)``, which gives the rule's own events of one function. It is loaded
when there is something to analyse. ``rule.py`` is loaded by every command, so it imports nothing of the modules beside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, TypeVar

import msgspec

from memlint.analysis.domain.events import (
    CandidateKind,
    Carry,
    Cut,
    Event,
    Fact,
    Guard,
    GuardPlace,
    Loop,
    ModelCall,
    Place,
    Retain,
    Site,
    Size,
    Step,
    Value,
)
from memlint.analysis.domain.extents.extents import Weight
from memlint.finding import Confidence, Growth, GrowthKind, Memory, Severity, weakest
from memlint.fix.plan import (
    After,
    Argument,
    Around,
    Change,
    Decorate,
    Line,
    Plan,
    Remove,
    Replace,
    Top,
    cut_plan,
    guard_plan,
    inference_plans,
)
from memlint.fix.plan import Guard as Under
from memlint.lasting import cause, each_round, kind_of_growth, leaves_graph, weight
from memlint.patterns import lazy_pattern
from memlint.wording import as_number, detached, grouped

__all__ = [
    "After",
    "Argument",
    "Around",
    "CandidateKind",
    "Carry",
    "Change",
    "Confidence",
    "Cut",
    "Decorate",
    "Event",
    "Fact",
    "Facts",
    "Growth",
    "GrowthKind",
    "Guard",
    "GuardPlace",
    "Line",
    "Loop",
    "Memory",
    "Meta",
    "ModelCall",
    "Place",
    "Plan",
    "Remove",
    "Replace",
    "Report",
    "Retain",
    "Severity",
    "Silent",
    "Site",
    "Size",
    "Step",
    "Top",
    "Under",
    "Value",
    "Weight",
    "as_number",
    "cause",
    "cut_plan",
    "detached",
    "each_round",
    "grouped",
    "guard_plan",
    "inference_plans",
    "kind_of_growth",
    "lazy_pattern",
    "leaves_graph",
    "needed_graph",
    "silent",
    "weakest",
    "weight",
    "without_graph",
]

E = TypeVar("E", bound=Event)


class Meta(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule is. ``severity`` is the highest that it reports; ``preview`` rules run with ``--preview`` only.
    ``summary`` is one line. ``fix_rank``: the fixes of rules of the lowest rank are made before any other, so a rule
    whose fix takes away what others find has a lower one than they. ``of_grad_mode``: its advice is a guard of grad
    mode, which a torch before 0.4 does not know: in files that are written for one, its findings are notes."""

    code: str
    name: str
    summary: str
    severity: Severity
    preview: bool = False
    fix_rank: int = 1
    of_grad_mode: bool = False


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """What a rule says of one event, in words that a PyTorch user knows. ``message``: the fact, the memory and how it
    grows, one sentence; names in backticks are shortened where it is too long. ``help``: what to do. ``trace``: why,
    from the cause to the site. ``fix``: what fixes it, where that is known; ``alternatives``: other fixes, which are
    shown and never applied."""

    site: Site
    message: str
    help: str
    severity: Severity
    confidence: Confidence
    growth: Growth
    trace: tuple[Step, ...] = ()
    fix: Plan | None = None
    alternatives: tuple[Plan, ...] = ()


class Silent(msgspec.Struct, frozen=True):
    """Why a rule says nothing of an event of a kind: a condition with a name and one line of ``text``, in which
    ``{event.…}`` stands for what the event has. Without a name, it is another rule's event. ``SILENT = (Silent(…), …)``
    in a rule is asked in order (`silent`), and read by ``memlint explain``."""

    kind: type[Event]
    name: str
    text: str
    applies: Callable[[Any], bool]


def needed_graph(kind: type[Event]) -> Silent:
    """What an event is about is a graph that somebody needs."""
    text = (
        "the graph that `{event.place.text}` keeps is needed: a later backward() runs through it, or it leaves to code "
        "that cannot be followed"
    )
    return Silent(kind, "graph-needed", text, lambda event: event.needed)


def without_graph(kind: type[Event]) -> Silent:
    """What an event is about has no graph."""
    text = "`{event.value.text}` has no autograd graph here"
    return Silent(kind, "no-graph", text, lambda event: event.value.attached not in ("yes", "some"))


def silent(event: Event, reasons: Iterable[Silent]) -> Silent | None:
    """The first reason that applies to an event."""
    return next((one for one in reasons if isinstance(event, one.kind) and one.applies(event)), None)


class Facts:
    """The events of one linted file, and what a rule may ask of its configuration."""

    def __init__(
        self,
        events: Iterable[Event],
        device_memory: int | None = None,
        scalar_fix: Literal["detach", "item"] = "detach",
    ) -> None:
        self._events = tuple(events)
        #: bytes of the device that the code is meant for, from the configuration
        self.device_memory = device_memory
        #: what a fix writes for a number that is only reported, from the configuration
        self.scalar_fix = scalar_fix

    def of(self, kind: type[E]) -> Iterator[E]:
        """The events of one kind, in source order."""
        return (event for event in self._events if isinstance(event, kind))
