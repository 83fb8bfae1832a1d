"""Named reasons against a finding, each a condition with one line of text. Judging goes through tables of them in
order; the first that applies decides. For ``memlint explain``, an `Observer` in the analyser is told of each
decision."""

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
    """``text``: a clause for people, in which ``{…}`` stands for a name of what is judged. ``applies``: whether it
    holds for that."""

    name: str
    text: str
    applies: Callable[[C], bool]


class Judged(NamedTuple):
    """What was decided of a candidate: a store or a model run at ``site``. ``what``: the candidate's kind and how it
    is one (``("carry", "add")``). ``effect``: whether it is dropped, or kept with low confidence."""

    site: Site
    function: str
    what: tuple[str, str]
    effect: Literal["dropped", "low"]
    name: str
    text: str


class Observer(Protocol):
    """Who is told what the analysis does."""

    def judged(self, one: Judged) -> None:
        """A reason has decided over a candidate."""

    def finish(self, analysis: Any) -> None:
        """The analysis is done, and can be asked still."""


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
