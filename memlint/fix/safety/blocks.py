"""Where a guard such as ``no_grad`` belongs: on a function, around a loop, or around some statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from memlint.analysis.demand.used_up_graphs import used_up
from memlint.analysis.domain.events import Guard, GuardPlace, Loop, ModelCall, Site
from memlint.analysis.domain.summary.effects import CallRecord
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Source
from memlint.analysis.index.programs import is_distributed
from memlint.analysis.index.roles_by_name import is_evaluation_name
from memlint.analysis.syntax.bindings import assigned_names
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import (
    bodies,
    dotted,
    last_name,
    parts_of,
    walk_expression,
    walk_statements,
)
from memlint.analysis.transfer.modules.inert_guards import last_ordinal
from memlint.fix.safety import casts
from memlint.fix.safety.followed import Followed
from memlint.fix.safety.survivors import noticed
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: calls that need a graph, or that train
_TRAINS = frozenset({"backward", "zero_grad", "requires_grad_", "grad", "jacobian", "hessian", "fit", "enable_grad"})
#: names of methods of any library that differentiate with respect to the input and would raise under a guard
_DIFFERENTIATES = lazy_pattern(
    r"attack|adversar|perturb|fgsm|pgd|deepfool|saliency|grad_?cam|attributor|attribution|explain"
)
#: decorators under which a guard has the same effect
_PLAIN = frozenset({"staticmethod", "classmethod", "abstractmethod", "override", "torch", "lru_cache", "wraps"})

#: how many levels of calls are searched for a backward
MAX_DEPTH = 6

Block = tuple[ir.Stmt, ...]


def guard_of(analyser: Analyser, summary: Summary, event: ModelCall) -> GuardPlace | None:
    """The place for the guard that a model call lacks; None if a guard would cut a graph that is needed."""
    function = summary.function
    if event.site.path != summary.module.key or event.site.unit != function.unit:
        return None
    chain = list(_chain(function.body, event.site.at))
    if not chain:
        return None
    frozen = event.owner == "no"
    if _is_evaluation(summary, event) and not _is_needed(analyser, summary, function.body, left=False):
        assert isinstance(function.node, ir.FunctionDef)
        doubt = _doubt(analyser, summary, function.body, event)
        return GuardPlace(function=summary.site(function.node.at), first=None, last=None, doubt=doubt)
    block, first = chain[-1]
    alone = _leaving(summary, block[first : first + 1])

    def takes_others(body: Block) -> bool:
        """Whether a guard would cut graphs that leave the function, may be needed, and are not what it is for."""
        return not alone and bool(_leaving(summary, body))

    for outer, position in chain:
        statement = (outer[position],)
        if (
            _is_loop_of(outer[position], event.loop)
            and not _is_needed(analyser, summary, statement)
            and not takes_others(statement)
        ):
            block, first = outer, position
            break
    last = first
    if event.loop is None or event.loop.kind == "calls":
        last = max(first, _last_run(summary, block))
    for end in (last, *(i for i in reversed(_runs(summary, block)) if first < i < last), first):
        guarded = block[first : end + 1]
        if not _is_needed(analyser, summary, guarded, frozen=frozen) and not takes_others(guarded):
            break
    else:
        return None
    if not frozen and casts.loses_gradients(summary, guarded, event.module):
        return None
    return GuardPlace(
        function=None,
        first=summary.site(guarded[0].at),
        last=summary.site(guarded[-1].at),
        doubt=_doubt(analyser, summary, guarded, event),
    )


def with_places(
    analyser: Analyser, summary: Summary, events: Iterable[Guard | ModelCall]
) -> Iterator[Guard | ModelCall]:
    """The events with the places of their missing guards."""
    for event in events:
        place = None
        if isinstance(event, ModelCall):
            beside = event.evaluation in ("cut", "beside") and event.owner != "no"
            trains = event.phase or beside
            if not event.guard and not trains and event.certainty != "low":
                place = guard_of(analyser, summary, event)
        elif event.kind in ("bare", "volatile"):
            rest = _rest_of_block(analyser, summary, event.site.at, itself=event.kind == "volatile")
            place = (
                GuardPlace(None, *rest, doubt="computations that were recorded until now no longer are")
                if rest
                else None
            )
        yield event if place is None else msgspec.structs.replace(event, place=place)


def _own_runs(summary: Summary) -> list[int]:
    """The ordinals of the model calls in the function itself."""
    own = (summary.module.key, summary.function.unit)
    return [run.site.at for run in summary.runs.values() if (run.site.path, run.site.unit) == own]


def _runs(summary: Summary, block: Block) -> list[int]:
    """The positions of a block's statements that run a model."""
    runs = set(_own_runs(summary))
    return [i for i, statement in enumerate(block) if not runs.isdisjoint(_ordinals(statement))]


def _last_run(summary: Summary, block: Block) -> int:
    """The position of a block's last statement that runs a model; -1 if none does."""
    return max(_runs(summary, block), default=-1)


def _rest_of_block(analyser: Analyser, summary: Summary, at: int, *, itself: bool) -> tuple[Site, Site] | None:
    """(first, last) of the statements after an ordinal in its block (``itself``: from its statement on) up to the last
    model run. None if there is none, or if a backward needs the graphs that they record."""
    chain = list(_chain(summary.function.body, at))
    if not chain:
        return None
    block, position = chain[-1]
    last = _last_run(summary, block)
    rest = block[position + (not itself) : last + 1]
    if last <= position or _is_needed(analyser, summary, rest):
        return None
    return summary.site(rest[0].at), summary.site(rest[-1].at)


def _is_evaluation(summary: Summary, event: ModelCall) -> bool:
    """Whether the whole function is an evaluation, so that a decorator is the best guard."""
    function = summary.function
    node = function.node
    if not isinstance(node, ir.FunctionDef) or node.is_async or function.enclosing is not None:
        return False
    if not is_evaluation_name(function) or summary.backwards or summary.notes.gradients or _trains(function.body):
        return False
    return not set(function.decorator_names) - _PLAIN and event.site.at > node.at


def _chain(body: Block, at: int) -> Iterator[tuple[Block, int]]:
    """The blocks around an ordinal from the outside in, each with the position of the statement that contains it."""
    for position, statement in enumerate(body):
        if isinstance(statement, ir.FunctionDef | ir.ClassDef) or not _holds(statement, at):
            continue
        yield body, position
        for inner in bodies(statement):
            yield from _chain(inner, at)
        return


def _holds(statement: ir.Stmt, at: int) -> bool:
    return at in _ordinals(statement)


@kept
def _ordinals(statement: ir.Stmt) -> frozenset[int]:
    """The ordinals in a statement, without those in nested definitions."""
    inner = walk_statements((statement,), into_definitions=False)
    return frozenset([*(one.at for one in inner), *(part.at for part in _parts((statement,)))])


def _is_loop_of(statement: ir.Stmt, loop: Loop | None) -> bool:
    return isinstance(statement, ir.For | ir.While) and loop is not None and loop.site.at == statement.at


def _recorded_in(summary: Summary, body: Block) -> frozenset[Source]:
    """The graph nodes that the statements record."""
    first, last = body[0].at, last_ordinal(body[-1])
    return frozenset(key for key, node in summary.graphs.nodes.items() if first <= node.at <= last and not node.leaf)


def _leaving(summary: Summary, body: Block) -> frozenset[Source]:
    """The graph nodes that the statements record and that leave the function."""
    kept = {source for value in (summary.exit.sym.values() if summary.exit is not None else ()) for source in value.src}
    return _recorded_in(summary, body) & (summary.graphs.closure(summary.notes.returned | kept) | summary.left)


def _is_needed(analyser: Analyser, summary: Summary, body: Block, *, frozen: bool = False, left: bool = True) -> bool:
    """Whether a guard around statements would cut a graph that a backward uses, in any specialisation of the function;
    or, with ``left``, would also hold in other code. ``frozen``: the model is not trained."""
    if _trains(body) or _trains_inside(analyser, summary, body) or (left and _is_left(body)):
        return True
    if _goes_back(summary.function.body, body):
        return True
    plain = analyser.summary(summary.function)  # not specialised
    summaries = [summary] if plain is None or plain is summary else [summary, plain]
    return any(_is_wanted(one, body, frozen=frozen) for one in summaries)


def _goes_back(whole: Block, body: Block) -> bool:
    """Whether a later backward starts from a variable that the statements bind, by the text: the value may come from a
    path that the analysis does not know."""
    names = assigned_names(body)[0]
    last = last_ordinal(body[-1])
    for call in _parts(whole):
        if not isinstance(call, ir.Call) or not isinstance(call.func, ir.Attr) or call.func.name != "backward":
            continue
        sent = {part.id for part in walk_expression(call) if isinstance(part, ir.Name)} & names
        before = (inner for block, position in _chain(whole, call.at) for inner in block[:position])
        later = tuple(statement for statement in before if statement.at > last and isinstance(statement, ir.Assign))
        if call.at > last and sent - assigned_names(later)[0]:
            return True
    return False


def _trains_inside(analyser: Analyser, summary: Summary, body: Block) -> bool:
    """Whether the statements call a function that runs a backward, specialised to that call."""
    first, last = body[0].at, last_ordinal(body[-1])
    calls = [record for record in summary.calls.values() if first <= record.at <= last]
    seen: set[int] = set()
    for _ in range(MAX_DEPTH):
        inner: list[CallRecord] = []
        for record in calls:
            function = analyser.function_at(record.callee)
            callee = analyser.summary(function, record.args, record.trains) if function is not None else None
            if callee is None or id(callee) in seen:
                continue  # each function is examined once, also in recursion
            if callee.backwards or callee.notes.blind_backward or callee.notes.gradients:
                return True
            seen.add(id(callee))
            inner += callee.calls.values()
        calls = inner
    return False


def _is_wanted(summary: Summary, body: Block, *, frozen: bool = False) -> bool:
    """Whether a backward reaches graph nodes that the statements record. ``frozen``: the model is not trained, so that
    only a graph that enters from elsewhere can be needed."""
    recorded = _recorded_in(summary, body)
    wanted = {item for reached, *_ in summary.backwards for item in recorded & reached}
    if not frozen:
        return bool(wanted)
    nodes = summary.graphs.nodes
    if any(item in nodes and not nodes[item].leaf for item in summary.graphs.closure(wanted) - recorded):
        return True
    if any(_ends_in(summary, reached, recorded) for reached, *_ in summary.backwards):
        return True
    return any(
        recorded & reached and not _is_trained_beside(summary, reached, recorded) for reached, *_ in summary.backwards
    )


def _ends_in(summary: Summary, reached: frozenset[Source], recorded: frozenset[Source]) -> bool:
    """Whether, on some path, a backward starts from a node that the statements record: without its graph, it raises."""
    nodes = summary.graphs.nodes
    parents = {parent for item in reached if item in nodes for parent in nodes[item].parents if parent != item}
    return bool((recorded & reached) - parents)


def _is_trained_beside(summary: Summary, reached: frozenset[Source], recorded: frozenset[Source]) -> bool:
    """Whether a backward reaches another graph than the recorded one. If it does not, it trains the recorded model,
    whatever its name, and would raise without that graph."""
    nodes = summary.graphs.nodes
    return any(
        item in nodes and not nodes[item].leaf and not summary.graphs.closure(frozenset({item})) & recorded
        for item in reached - recorded
    )


def _trains(body: Block) -> bool:
    """Whether the statements themselves contain a call that needs gradients."""
    calls = (part for part in _parts(body, into_definitions=True) if isinstance(part, ir.Call))
    return any(
        last_name(call.func) in _TRAINS
        or last_name(call.func).startswith("train_")
        or _DIFFERENTIATES.search(dotted(call.func).lower())
        for call in calls
    )


def _is_left(body: Block) -> bool:
    """Whether other code runs between the statements (at a yield or an await), in which a block's guard would hold
    too."""
    return any(isinstance(part, ir.Yield | ir.Await) for part in _parts(body)) or any(
        isinstance(statement, ir.For | ir.With) and statement.is_async
        for statement in walk_statements(body, into_definitions=False)
    )


def _doubt(analyser: Analyser, summary: Summary, guarded: Block, event: ModelCall) -> str:
    """The doubt about a guard, as a clause; "" if it is proven safe. Two proofs must agree: that of the abstract
    values, which covers every known graph, and that of the text, which assumes nothing."""
    leaving = _leaving(summary, guarded)
    if leaving and not used_up(analyser, summary, leaving):
        return f"a result leaves `{summary.function.name}` with its graph, which may be needed"
    if leaving and is_distributed(analyser.program, summary.module.key):
        return f"other projects may call `{summary.function.name}`, and may need the graph of its result"
    frozen = event.owner == "no" and event.consumed in ("detached", "dropped")
    for run in summary.runs.values() if not frozen else ():
        marks = {mark for mark in (run.node, *run.value.src) if mark in summary.graphs.nodes}
        if any(_holds(statement, run.site.at) for statement in guarded) and not used_up(analyser, summary, marks):
            return f"not every use of the output of `{run.text}` is resolved, and one may need its graph"
    if _is_left(guarded):
        return "yielded values then have no graph"
    if event.owner != "no" and (doubt := casts.doubt(analyser, summary.function, guarded)):
        return doubt
    followed = Followed(analyser, summary.function, guarded)
    return followed.doubt or noticed(analyser, summary.function, guarded, followed.entered.values())


def _parts(block: Block, *, into_definitions: bool = False) -> Iterator[ir.Expr]:
    for statement in walk_statements(block, into_definitions=into_definitions):
        yield from parts_of(statement)
