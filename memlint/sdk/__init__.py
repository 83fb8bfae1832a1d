"""The API for rules: this module for rule.py, and the other modules of the package for detect.py.

A rule is a folder ``memNNN_some_name`` with ``rule.py``, ``README.md`` and, where it does not report events of the
analysis, ``detect.py``. ``rule.py`` defines ``META`` and ``check(facts)``::

    META = Meta(code="MEM101", name="loss-accumulation", summary="…", severity="error")

    def check(facts: Facts) -> Iterator[Report]:
        for event in facts.of(Carry):
            if …:
                yield Report(event.site, "…", …)

``detect.py`` defines ``detect(analyser, summary)``, which yields the rule's own events of one function. It is loaded
when files are analysed. ``rule.py`` is loaded by every command, so it imports this module alone.
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
    Drop,
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
    "Drop",
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
    """The description of a rule. ``severity``: the highest that it reports. ``preview``: it runs with ``--preview``
    only. ``summary``: one line. ``fix_rank``: fixes of lower ranks are applied first, so a rule whose fix removes the
    findings of other rules has a lower rank than they. ``of_grad_mode``: it advises a guard of grad mode, which torch
    before 0.4 does not have; in files written for such a version, its findings are notes."""

    code: str
    name: str
    summary: str
    severity: Severity
    preview: bool = False
    fix_rank: int = 1
    of_grad_mode: bool = False


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """A finding about one event, in words that a PyTorch user knows. ``message``: the fact, the memory and how it
    grows, in one sentence; names in backticks are shortened if it is too long. ``help``: what to do. ``trace``: the
    steps from the cause to the site. ``fix``: None if unknown; ``alternatives``: other fixes, which are shown and never
    applied."""

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
    """A condition under which a rule does not report an event of a kind, with a name and one line of ``text``, in which
    ``{event.…}`` is replaced by attributes of the event. The name is "" for events that another rule reports. A rule
    lists its conditions as ``SILENT = (Silent(…), …)``, in order (see `silent`); ``memlint explain`` shows them."""

    kind: type[Event]
    name: str
    text: str
    applies: Callable[[Any], bool]


def needed_graph(kind: type[Event]) -> Silent:
    """The condition that the event's graph is needed."""
    text = (
        "the graph that `{event.place.text}` keeps is needed: a later backward() runs through it, or it leaves to code "
        "that cannot be followed"
    )
    return Silent(kind, "graph-needed", text, lambda event: event.needed)


def without_graph(kind: type[Event]) -> Silent:
    """The condition that the event's value has no graph."""
    text = "`{event.value.text}` has no autograd graph here"
    return Silent(kind, "no-graph", text, lambda event: event.value.attached not in ("yes", "some"))


def silent(event: Event, reasons: Iterable[Silent]) -> Silent | None:
    """The first condition that applies to an event; None if none does."""
    return next((one for one in reasons if isinstance(event, one.kind) and one.applies(event)), None)


class Facts:
    """The events of one linted file, and the settings that rules use."""

    def __init__(
        self,
        events: Iterable[Event],
        device_memory: int | None = None,
        scalar_fix: Literal["detach", "item"] = "detach",
    ) -> None:
        self._events = tuple(events)
        #: `device-memory` of the configuration in bytes; None if not set
        self.device_memory = device_memory
        #: `scalar-fix` of the configuration
        self.scalar_fix = scalar_fix

    def of(self, kind: type[E]) -> Iterator[E]:
        """The events of one kind, in source order."""
        return (event for event in self._events if isinstance(event, kind))
