"""Backwards through a network whose gradients are thrown away."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memlint.sdk.project import Analyser, Summary, is_differentiated, is_small, is_test, is_touched
from memlint.sdk.syntax import call_at, ir, last_name, text
from memlint.sdk.values import Backward, ModelRun, Source

from .cuts import Cuts, at_the_run, at_the_use, is_kept_elsewhere, runs_behind
from .gradient_outcomes import GradientOutcomes, Way
from .gradient_walk import BACKWARD, Outcome
from .ownership import Ownership, frame_of, overlap
from .rule import DiscardedGradients
from .separation import Separation

#: names of what hands gradients on while a backward runs
_HOOKS = frozenset({
    "register_hook", "register_full_backward_hook", "register_backward_hook", "register_post_accumulate_grad_hook",
    "watch", "toggle_optimizer", "optimizer_idx",
})  # fmt: skip


class Candidate(NamedTuple):
    """``backward``: all backwards of one call, as one; ``run``: the network's run that it reaches; ``use``: the run of
    another network that gets the output; ``network``, ``reader``: the places of the two."""

    backward: Backward
    run: ModelRun
    use: ModelRun
    network: str
    reader: str


def detect(analyser: Analyser, summary: Summary) -> Iterator[DiscardedGradients]:
    """The uses of outputs in one function that lead a backward through a network in vain."""
    names = summary.module.names
    if len(summary.runs) < 2 or not summary.backwards or summary.cut_short or summary.last is None:
        return
    if not _HOOKS.isdisjoint(names) or is_test(summary.function):
        return
    search = Search(analyser, summary)
    reported: set[int] = set()
    for one in search.candidates():
        found = search.event(one)
        if found is not None and found.site.at not in reported:
            reported.add(found.site.at)
            yield found


class Search:
    """The search of one function, with the outcome of each backward for each network."""

    def __init__(self, analyser: Analyser, summary: Summary) -> None:
        self.analyser = analyser
        self.summary = summary
        self.frame = frame_of(summary.function)
        self.ownership = Ownership(analyser)
        self.backwards = _united(summary)
        self.places = {run.key: self._place(run) for run in summary.runs.values()}
        self.separation = Separation(self.ownership)
        self.outcomes = GradientOutcomes(analyser, self.ownership)

    def candidates(self) -> Iterator[Candidate]:
        """The runs whose output another network gets, and that a backward of the latter's output reaches."""
        summary = self.summary
        for use in summary.runs.values():
            reader = self.places[use.key]
            node = summary.graphs.nodes.get(use.node)
            reached_by = [one for one in self.backwards if use.marks & one.reached]
            if not reader or node is None or len(reached_by) != 1:
                continue  # several backwards need the way through this use
            given = summary.graphs.sure(node.parents)
            for run in summary.runs.values():
                network = self.places[run.key]
                if network and run.marks & given and not overlap(network, reader):
                    yield Candidate(reached_by[0], run, use, network, reader)

    def _place(self, run: ModelRun) -> str:
        """The place of the network that a run is of, or of a method of it; "" if it has no name."""
        if run.origin is not None:
            return self._place_of_symbol(run) if run.method == "forward" else ""
        network = self._network(run)
        return self.ownership.place(self.frame, network) if network is not None else ""

    def _network(self, run: ModelRun) -> ir.Expr | None:
        """The expression that names the network of a run of this function; None if it is unknown."""
        call = call_at(self.summary.function.body, run.site.at)
        if call is None or not isinstance(call.func, ir.Attr):
            return call.func if call is not None and run.method == "forward" else None
        name = call.func.name
        defined = any(self.analyser.program.method(cls, name) is not None for cls in self.analyser.classes(run.module))
        if defined or name in ("forward", run.method):
            return call.func.value
        return call.func if run.method == "forward" else None

    def _place_of_symbol(self, run: ModelRun) -> str:
        """The place of a network that a callee runs, if it is an attribute of this function's object."""
        (path,) = run.module.syms if len(run.module.syms) == 1 else (None,)
        function = self.summary.function
        if path is None or run.module.store or function.cls is None or path.root != f"p:{function.own_name}":
            return ""
        return self.ownership.attribute(function.cls, path.steps[0].lstrip(".")) if len(path.steps) == 1 else ""

    def outcome(self, network: str, reader: str, backward: Backward) -> Outcome | None:
        """What becomes of the gradients of a network, if they are surely thrown away; None otherwise."""
        if not self._is_plain(backward):
            return None
        return self.outcomes.lost(Way(self.summary.function, backward.site.at, network, reader))

    def _is_plain(self, backward: Backward) -> bool:
        """Whether it fills the gradients of all that it reaches: a backward, or the call of a function that runs one
        and differentiates nothing otherwise."""
        call = call_at(self.summary.function.body, backward.site.at)
        if call is None or any(word.name in ("inputs", None) for word in call.keywords):
            return False
        if last_name(call.func) in BACKWARD:
            return True
        records = self.summary.calls.values()
        return call.at not in self.summary.notes.gradient_calls and any(one.at == call.at for one in records)

    def _is_touched(self, run: ModelRun) -> bool:
        """Whether known code sets requires_grad of the network or of a part of it, or reads its gradients."""
        keys: set[Source] = {*run.module.syms, *(("made", item) for item in run.module.store), ("v", run.text)}
        methods = map(self.analyser.summary, self.analyser.program.methods(self.summary.function.cls))
        return any(is_touched(other, keys) for other in (self.summary, *methods) if other is not None)

    def event(self, one: Candidate) -> DiscardedGradients | None:
        """The event of a candidate whose gradients are surely lost; None for another one."""
        outcome = self.outcome(one.network, one.reader, one.backward)
        if outcome is None or not self.separation.is_apart(one.network, one.reader) or self._is_touched(one.run):
            return None
        behind, others, unknown = runs_behind(self.summary, self.summary.graphs.nodes[one.run.node].parents)
        if others or not all(self._is_lost(other, one) for other in behind):
            return None  # what is behind the network needs the way through it
        return self._described(one, outcome, unknown)

    def _is_lost(self, run: ModelRun, one: Candidate) -> bool:
        """Whether the gradients of a run's network are thrown away as well."""
        place = self.places[run.key]
        return bool(place) and self.outcome(place, one.reader, one.backward) is not None

    def _described(self, one: Candidate, outcome: Outcome, unknown: bool) -> DiscardedGradients:
        summary = self.summary
        through = [other for other in self.backwards if one.run.marks & other.reached]
        plain = [other for other in through if self._is_plain(other)]
        alone = all(self.outcome(one.network, one.reader, other) is not None for other in plain)
        differs = len(plain) < len(through) or is_differentiated(summary, one.run.marks)
        only = alone and not differs and one.run.origin is None and not is_kept_elsewhere(summary, one.run)
        cuts = at_the_run(self.analyser, summary, one.run) if only else Cuts() if differs else self._cuts(one)
        backward = call_at(summary.function.body, one.backward.site.at)
        cleared, clearing = min(outcome.cleared.items(), key=lambda item: (item[0].path, item[0].unit, item[0].at))
        place = one.run if only else one.use
        pair = (one.run, one.use)
        doubtful = next((run.text for run in pair if not run.resolved and not run.module.is_of_library()), "")
        return DiscardedGradients(
            site=place.site,
            function=summary.function.qual,
            certainty="medium" if doubtful or unknown else "high",
            kind="alone" if alone else "shared",
            network=self._named(one.run),
            run=self._shown(one.run),
            reader=self._named(one.use),
            use=self._shown(one.use),
            backward=text(backward) if backward is not None else "backward()",
            clearing=clearing,
            at=one.backward.site,
            ran=one.run.site,
            cleared=cleared,
            differentiated=differs,
            cuts=cuts.sites,
            guarded=cuts.guarded,
            loop=place.loop.loop if place.loop is not None else None,
            small=is_small(self.analyser, summary, one.run) and is_small(self.analyser, summary, one.use),
            doubt=f"`{doubtful}` is not resolved" if doubtful else "unresolved code takes part" if unknown else "",
        )

    def _cuts(self, one: Candidate) -> Cuts:
        """The cut at the use, unless it cuts off more than what is lost."""
        behind, others, _ = runs_behind(self.summary, self.summary.graphs.nodes[one.use.node].parents)
        if others or not all(self._is_lost(run, one) for run in behind):
            return Cuts()
        return at_the_use(self.summary, one.run, one.use)

    def _named(self, run: ModelRun) -> str:
        network = self._network(run) if run.origin is None else None
        return text(network) if network is not None else run.text

    def _shown(self, run: ModelRun) -> str:
        call = call_at(self.summary.function.body, run.site.at)
        return text(call) if call is not None else run.text


def _united(summary: Summary) -> list[Backward]:
    """The backwards of a function, those of one call as one."""
    found: dict[int, Backward] = {}
    for one in summary.backwards:
        known = found.get(one.site.at)
        found[one.site.at] = one if known is None else one._replace(reached=one.reached | known.reached)
    return list(found.values())
