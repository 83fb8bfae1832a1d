"""Where a guard against autograd belongs: over a function, around a loop, or around a few statements."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import msgspec

from memlint.analysis.demand.used_up_graphs import used_up
from memlint.analysis.domain.events import Guard, GuardPlace, Loop, ModelCall, Site
from memlint.analysis.domain.summary.effects import CallRecord
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Source
from memlint.analysis.index.roles_by_name import is_evaluation_name
from memlint.analysis.syntax.bindings import assigned_names
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import bodies, dotted, expressions, last_name, walk_expression, walk_statements
from memlint.analysis.transfer.modules.inert_guards import last_ordinal
from memlint.fix.safety import casts
from memlint.fix.safety.followed import Followed
from memlint.fix.safety.survivors import noticed
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: calls that need a graph, or train something that does
_TRAINS = frozenset({"backward", "zero_grad", "requires_grad_", "grad", "jacobian", "hessian", "fit", "enable_grad"})
#: names of what differentiates by the input, in whatever library it is: under a guard it would raise
_DIFFERENTIATES = lazy_pattern(
    r"attack|adversar|perturb|fgsm|pgd|deepfool|saliency|grad_?cam|attributor|attribution|explain"
)
#: decorators under which a guard works as it does on the plain function
_PLAIN = frozenset({"staticmethod", "classmethod", "abstractmethod", "override", "torch", "lru_cache", "wraps"})

#: how many calls deep a backward is looked for
MAX_DEPTH = 6

Block = tuple[ir.Stmt, ...]


def guard_of(analyser: Analyser, summary: Summary, event: ModelCall) -> GuardPlace | None:
    """Where the guard that the call lacks belongs; None where it would switch off what must be recorded."""
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
        """Whether it would cut what goes elsewhere, and may be wanted there, and is not what the guard is for."""
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
    """The events, each told where the guard belongs that it misses."""
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
    """The positions of the statements of a block that run a model."""
    runs = set(_own_runs(summary))
    return [i for i, statement in enumerate(block) if not runs.isdisjoint(_ordinals(statement))]


def _last_run(summary: Summary, block: Block) -> int:
    """The position of the last statement of a block that runs a model, -1 where none does."""
    return max(_runs(summary, block), default=-1)


def _rest_of_block(analyser: Analyser, summary: Summary, at: int, *, itself: bool) -> tuple[Site, Site] | None:
    """(first, last) of the statements that follow one in its block (``itself``: from that one on), as far as they run
    models; None for none, and where a backward wants what they record."""
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
    """Whether the whole function is the evaluation, so that a decorator says it best."""
    function = summary.function
    node = function.node
    if not isinstance(node, ir.FunctionDef) or node.is_async or function.enclosing is not None:
        return False
    if not is_evaluation_name(function) or summary.backwards or summary.notes.gradients or _trains(function.body):
        return False
    return not set(function.decorator_names) - _PLAIN and event.site.at > node.at


def _chain(body: Block, at: int) -> Iterator[tuple[Block, int]]:
    """The blocks around an ordinal from the outside in, each with the position of the statement that holds it."""
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
    """The ordinals of a statement and all that it holds, nested definitions left out."""
    inner = walk_statements((statement,), into_definitions=False)
    return frozenset([*(one.at for one in inner), *(part.at for part in _parts((statement,)))])


def _is_loop_of(statement: ir.Stmt, loop: Loop | None) -> bool:
    return isinstance(statement, ir.For | ir.While) and loop is not None and loop.site.at == statement.at


def _recorded_in(summary: Summary, body: Block) -> frozenset[Source]:
    """The graphs that statements record."""
    first, last = body[0].at, last_ordinal(body[-1])
    return frozenset(key for key, node in summary.graphs.nodes.items() if first <= node.at <= last and not node.leaf)


def _leaving(summary: Summary, body: Block) -> frozenset[Source]:
    """The graphs that statements record and that leave the function, or are in what does."""
    kept = {source for value in (summary.exit.sym.values() if summary.exit is not None else ()) for source in value.src}
    return _recorded_in(summary, body) & (summary.graphs.closure(summary.notes.returned | kept) | summary.left)


def _is_needed(analyser: Analyser, summary: Summary, body: Block, *, frozen: bool = False, left: bool = True) -> bool:
    """Whether a guard around statements would cut a graph that a backward goes through, whichever way the function is
    called; or, with ``left``, would hold in other code, too. ``frozen``: nobody trains what runs there."""
    if _trains(body) or _trains_inside(analyser, summary, body) or (left and _is_left(body)):
        return True
    if _goes_back(summary.function.body, body):
        return True
    plain = analyser.summary(summary.function)  # with whatever its flags are
    summaries = [summary] if plain is None or plain is summary else [summary, plain]
    return any(_is_wanted(one, body, frozen=frozen) for one in summaries)


def _goes_back(whole: Block, body: Block) -> bool:
    """Whether a variable that statements bind is sent into a backward behind them, as the text says: what a call gives
    on a path that nobody is seen to take is not known by its values."""
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
    """Whether statements call a function that calls a backward, as it is called there."""
    first, last = body[0].at, last_ordinal(body[-1])
    calls = [record for record in summary.calls.values() if first <= record.at <= last]
    seen: set[int] = set()
    for _ in range(MAX_DEPTH):
        inner: list[CallRecord] = []
        for record in calls:
            function = analyser.function_at(record.callee)
            callee = analyser.summary(function, record.args, record.trains) if function is not None else None
            if callee is None or id(callee) in seen:
                continue  # (functions that call one another are asked once)
            if callee.backwards or callee.notes.blind_backward or callee.notes.gradients:
                return True
            seen.add(id(callee))
            inner += callee.calls.values()
        calls = inner
    return False


def _is_wanted(summary: Summary, body: Block, *, frozen: bool = False) -> bool:
    """Whether a backward reaches what the statements record, whoever records it: under a guard it would be cut.

    ``frozen``: nobody trains what runs there, so that only a graph that comes in from elsewhere can be wanted.
    """
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
    """Whether what a backward is called on was recorded there, on some path: without its graph, it raises."""
    nodes = summary.graphs.nodes
    parents = {parent for item in reached if item in nodes for parent in nodes[item].parents if parent != item}
    return bool((recorded & reached) - parents)


def _is_trained_beside(summary: Summary, reached: frozenset[Source], recorded: frozenset[Source]) -> bool:
    """Whether a backward reaches a graph that has nothing of what was recorded: one that reaches nothing else trains
    just that, whatever its owner is called, and would raise without it."""
    nodes = summary.graphs.nodes
    return any(
        item in nodes and not nodes[item].leaf and not summary.graphs.closure(frozenset({item})) & recorded
        for item in reached - recorded
    )


def _trains(body: Block) -> bool:
    """Whether statements ask for gradients, in sight."""
    calls = (part for part in _parts(body, into_definitions=True) if isinstance(part, ir.Call))
    return any(
        last_name(call.func) in _TRAINS
        or last_name(call.func).startswith("train_")
        or _DIFFERENTIATES.search(dotted(call.func).lower())
        for call in calls
    )


def _is_left(body: Block) -> bool:
    """Whether other code runs before statements are through (whoever takes what is yielded, other tasks at an await):
    a block's guard would hold there, too, and end what these record."""
    return any(isinstance(part, ir.Yield | ir.Await) for part in _parts(body)) or any(
        isinstance(statement, ir.For | ir.With) and statement.is_async
        for statement in walk_statements(body, into_definitions=False)
    )


def _doubt(analyser: Analyser, summary: Summary, guarded: Block, event: ModelCall) -> str:
    """Two proofs must agree: that of the values, which sees every graph, and that of the text, which trusts nothing."""
    if _leaving(summary, guarded):
        return f"a result leaves `{summary.function.name}` with its graph, which may be needed"
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
        for expr in expressions(statement):
            yield from walk_expression(expr)
