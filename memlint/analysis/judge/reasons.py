"""Named reasons against a finding: each is a condition with one line of text.

A judgement goes through a table of reasons in order, and the first that applies decides. The analyser's `Observer` gets
each decision, for ``memlint explain``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from memlint.analysis.domain.events import Loop, Site

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.effects import Store
    from memlint.analysis.domain.summary.summary import Summary
    from memlint.analysis.facts.analyser import Analyser

C = TypeVar("C")


class Reason(NamedTuple, Generic[C]):
    """``text``: a clause for the user, in which ``{…}`` is replaced by names of the candidate. ``applies``: whether the
    reason holds for the candidate."""

    name: str
    text: str
    applies: Callable[[C], bool]


class Judged(NamedTuple):
    """A decision about a candidate: a store or a model run at ``site``.

    ``what``: the kind of the candidate, in two words: ``("carry", "add")``. ``effect``: whether it is dropped, or kept
    with low confidence.
    """

    site: Site
    function: str
    what: tuple[str, str]
    effect: Literal["dropped", "low"]
    name: str
    text: str


class Observer(Protocol):
    """Receives the decisions of the analysis."""

    def judged(self, one: Judged) -> None:
        """A reason has decided about a candidate."""

    def finish(self, analysis: Any) -> None:
        """The analysis is complete, and can still be queried."""


def first(table: Sequence[Reason[C]], candidate: C) -> Reason[C] | None:
    """The first reason of a table that applies."""
    return next((reason for reason in table if reason.applies(candidate)), None)


def report_store_reason(
    analyser: Analyser,
    summary: Summary,
    store: Store,
    loop: Loop | None,
    effect: Literal["dropped", "low"],
    reason: Reason[Any],
) -> None:
    """Report to the observer, if there is one, why a store is no finding."""
    if analyser.observer is not None:
        text = reason.text.format(
            place=f"`{store.place_text}`",
            value=f"`{store.text}`",
            loop=f"`{loop.text}`" if loop is not None else "the loop",
            function=f"`{summary.function.name}`",
        )
        what = (store.kind, store.how)
        analyser.observer.judged(Judged(store.site, summary.function.qual, what, effect, reason.name, text))
