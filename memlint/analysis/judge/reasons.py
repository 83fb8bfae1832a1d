"""Named reasons against a finding: each is a condition with one line of text.

A judgement goes through a table of reasons in order, and the first that applies decides. The analyser's `Observer` gets
each decision, for ``memlint explain``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, Protocol, TypeVar

from memlint.analysis.domain.events import Loop, Site

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.effects import ModelRun, Store
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


#: in the order in which `memlint.analysis.judge.judged_runs` and then `memlint.analysis.judge.evaluation` decide
TEXTS: dict[str, str] = {
    "layer-code": "{function} is a forward or a part of one: it runs under the grad mode of its caller, where the "
    "guard belongs",
    "not-recorded": "it is not certain that autograd records here: every known caller of {function} turns grad mode "
    "off, or some do and none is known to leave it on",
    "gives-no-graph": "the program uses what {model} gives in a way that raises for a tensor with a graph",
    "only-some-callers": "some callers of {function} turn grad mode off, and the one that evaluates may be one of them",
    "frozen": "{model} is frozen (its parameters require no gradient), or another branch guards the same run",
    "reported-inside": "the function that holds the call reports it itself",
    "spent-inside": "the function that holds the call tells by itself that nobody needs its gradients",
    "left-to-callers": "{function} returns what {model} gives: its callers put the model into eval mode, and the guard "
    "belongs there",
    "gradients-wanted": "gradients of this run are wanted: {wanted}",
    "no-evaluation": "nothing says that this run of {model} is an evaluation: it is not known to be in eval mode, "
    "not every use of the output cuts its graph, and the name of {function} does not say so",
    "same-guard": "another run of the same loop or function is reported, and the guard that it needs serves this one",
    "may-be-any-model": "what runs may be a model whose forward needs its graph",
    "library-test": "{function} is a test of a library: how much memory it takes does not matter",
    "freezes-itself": "what puts the model into eval mode decides whether its parameters require gradients as well",
    "setting-decides": "a setting of the model decides whether it guards this run itself",
    "no-call-comes-here": "no known call of {function} comes to this line",
    "named-only": "only the name of {function}, a method of the module itself, says that this is an evaluation",
    "measures-time": "{function} measures how long a step takes, training included",
    "trial": "{function} is a trial or a test that runs once",
    "asks-for-shape": "the run is there for the shape of what layers give, or nothing uses its output",
    "new-model-runs-once": "a new model runs once, and nothing trains or loads it: a trial",
    "may-be-trained-by": "it is not certain that no backward() comes for the graph that is kept",
}


def report_run_reason(
    analyser: Analyser, summary: Summary, run: ModelRun, effect: Literal["dropped", "low"], name: str, wanted: str = ""
) -> None:
    """Report to the observer, if there is one, why a run is no finding."""
    if analyser.observer is not None:
        words = {"function": f"`{summary.function.name}`", "model": f"`{run.text}`", "wanted": wanted}
        text = TEXTS[name].format(**words)
        analyser.observer.judged(Judged(run.site, summary.function.qual, ("run", ""), effect, name, text))
