"""Iterations of a training loop that end without a backward, so that their graph is alive while the model runs in the
next one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from memlint.sdk import lazy_pattern
from memlint.sdk.project import Analyser, Summary
from memlint.sdk.syntax import (
    binds,
    dotted,
    ir,
    loops_around,
    names_bound_by,
    names_read,
    parts_of,
    text,
    walk_statements,
)
from memlint.sdk.values import (
    NOTHING,
    OFF,
    Backward,
    LoopState,
    ModelRun,
    Path,
    Source,
    Sources,
    V,
    join_all,
    narrow,
    tensors_within,
)

from .rule import LiveGraph

#: tests of the phase of a whole loop: without a backward it evaluates
_PHASE = lazy_pattern(r"train|phase|mode|val|test|eval|is_?grad|requires_grad|backward|optim|scaler|amp|fp16|apex")


def detect(analyser: Analyser, summary: Summary) -> Iterator[LiveGraph]:
    """The iterations of one function that leave a graph alive, the first for each model."""
    if (
        not summary.runs
        or not summary.backwards
        or summary.cut_short
        or summary.exit is None
        or summary.notes.gradients
    ):
        return
    reported: set[str] = set()
    for run in sorted(summary.runs.values(), key=lambda one: one.site):
        loop = summary.notes.rounds.get(run.loops[-1]) if run.loops else None
        if loop is None or not loop.counts or run.grad & OFF or run.probes or run.text in reported:
            continue
        marks = frozenset({run.node, *run.value.src})
        own = [one for one in summary.backwards if marks & one.reached and one.loops == run.loops]
        if not own or any(_carried(summary, one, marks) for one in own) or _is_stored(summary, marks):
            continue
        found = _left(summary, loop, run, marks, own)
        if found is None and not marks & summary.left:  # otherwise other code may run the backward
            found = _left_out(summary, loop, run, marks, own)
        if found is None:
            continue
        reported.add(run.text)
        at, names, test, skips = found
        yield LiveGraph(
            site=summary.site(at),
            function=summary.function.qual,
            certainty="high" if run.resolved else "medium",
            names=names,
            model=run.text,
            test=test,
            loop=summary.seen(loop),
            skips=skips,
        )


_Found = tuple[int, tuple[str, ...], str, bool]


def _left(summary: Summary, loop: LoopState, run: ModelRun, marks: Sources, own: list[Backward]) -> _Found | None:
    """The first ``continue`` between the model and the backwards of its result; None if there is none."""
    first = min(one.site.at for one in own)
    handlers = _in_handlers(loop.body)
    for at, left in sorted(summary.notes.left_rounds.items()):
        if left.loop != loop.id or not run.site.at < at < first or at in handlers:
            continue
        if left.test is None or not _varies(loop, left.test):
            continue
        held = {
            name: sources
            for name, sources in left.held.items()
            if marks & (reached := summary.graphs.closure(sources)) and not marks & reached & left.freed
        }
        alive = _through_the_model(summary, loop, run, held, at)
        if alive:
            return at, alive, text(left.test), True
    return None


def _left_out(summary: Summary, loop: LoopState, run: ModelRun, marks: Sources, own: list[Backward]) -> _Found | None:
    """The ``if`` around all backwards of the model's result, but not around the model; None if there is none."""
    assert summary.exit is not None
    inner = [one.tests[len(run.tests) :] for one in own if one.tests[: len(run.tests)] == run.tests]
    if len(inner) != len(own) or not all(inner):
        return None
    test = inner[0][0]
    statement = next((one for one in walk_statements(loop.body) if isinstance(one, ir.If) and one.test is test), None)
    if statement is None or statement.orelse or any(tests[0] is not test for tests in inner):
        return None
    if _PHASE.search(text(test, 200).lower()) or not _varies(loop, test) or _holds_in_each(summary, loop, statement):
        return None
    dropped = _dropped(loop.body)
    skipped = summary.exit.copy()
    narrow(summary, skipped, test, truth=False)
    if any(
        marks & summary.graphs.closure(value.src - skipped.env[name].src) for name, value in summary.exit.env.items()
    ):
        return None  # ``if loss is not None``: without a loss there is no graph
    held = {
        name: value.src
        for name, value in summary.exit.env.items()
        if marks & summary.graphs.closure(value.src) and name not in dropped and not binds(statement, name)
    }
    alive = _through_the_model(summary, loop, run, held, statement.at)
    return (statement.at, alive, text(test), False) if alive else None


def _holds_in_each(summary: Summary, loop: LoopState, statement: ir.If) -> bool:
    """Whether the test of an ``if`` is true in each iteration with a next one: it is that of the while loop, or
    compares the target of ``range(n)`` with ``n``."""
    around = next((one for one in loops_around(summary.function.body, statement.at) if one.body == loop.body), None)
    names = names_read(statement.test)
    if isinstance(around, ir.While):
        later = {name for one in walk_statements(loop.body) if one.at > statement.at for name in names_bound_by(one)}
        return text(around.test, 200) == text(statement.test, 200) and not names & later
    if not isinstance(around, ir.For) or not isinstance(around.iter, ir.Call) or dotted(around.iter.func) != "range":
        return False
    bound = {name for one in walk_statements(loop.body) for name in names_bound_by(one)}
    stop = around.iter.args[-1] if len(around.iter.args) < 3 else None
    counter, test = around.target, statement.test
    if stop is None or not isinstance(test, ir.Compare) or not isinstance(counter, ir.Name) or names & bound:
        return False
    return dotted(test.left) == counter.id and test.ops in (("<",), ("!=",)) and text(test.rights[0]) == text(stop)


def _carried(summary: Summary, backward: Backward, marks: Sources) -> bool:
    """Whether a backward uses values of earlier iterations in a place that stores this graph too: a later backward then
    needs it."""
    return any(
        isinstance(item, tuple) and item[:1] in (("prev",), ("elem",)) and _keeps(summary, item, marks)
        for item in backward.reached
    )


def _is_stored(summary: Summary, marks: Sources) -> bool:
    """Whether a place that outlives the iterations stores the graph, which other rules report."""
    return any(
        marks & summary.graphs.closure(store.entering.src | store.value.src)
        for store in summary.stores.values()
        if store.loop is not None and store.ended
    )


def _keeps(summary: Summary, item: Source, marks: Sources) -> bool:
    """Whether the place from which an earlier iteration's value was read holds a graph at the end."""
    assert summary.exit is not None
    place = item[-1]
    value: V | None
    if item[0] == "elem":
        held = summary.exit.heap.get(place)
        value = join_all((held.elem, *held.fields.values())) if held is not None else None
    elif isinstance(place, str):
        value = summary.exit.env.get(place)
    elif isinstance(place, Path):
        value = summary.exit.sym.get(place, NOTHING)
    else:
        held = summary.exit.heap.get(place[0]) if isinstance(place, tuple) and len(place) == 2 else None
        value = held.fields.get(place[1], held.elem) if held is not None else None
    return value is None or bool(marks & summary.graphs.closure(tensors_within(summary, summary.exit, value).src))


def _varies(loop: LoopState, test: ir.Expr) -> bool:
    """Whether the value of a test may differ between iterations."""
    names = names_read(test)
    bound = {name for statement in walk_statements(loop.body) for name in names_bound_by(statement)}
    return bool(names & (loop.counters | loop.targets | bound))


def _through_the_model(
    summary: Summary, loop: LoopState, run: ModelRun, held: Mapping[str, Sources], end: int
) -> tuple[str, ...]:
    """The names that this iteration binds, between the model and ``end``, to values with the graph, and that nothing
    rebinds before the model has run in the next iteration; the last one bound first."""
    at = run.site.at
    begun: set[str] = set(loop.targets)
    bound: dict[str, int] = {}
    for statement in walk_statements(loop.body, into_definitions=False):
        if statement.at > end:
            break
        if statement.at > at or any(part.at == at for part in parts_of(statement)):
            bound.update(dict.fromkeys(names_bound_by(statement), statement.at))
        else:
            begun |= names_bound_by(statement) | _deleted(statement)
    alive = [name for name in held if name in bound and name not in begun]
    sure = [name for name in alive if summary.graphs.attached(held[name])[0] == "yes"]
    return tuple(sorted(sure, key=lambda name: (-bound[name], name)))


def _deleted(statement: ir.Stmt) -> set[str]:
    targets = statement.targets if isinstance(statement, ir.Delete) else ()
    return {target.id for target in targets if isinstance(target, ir.Name)}


def _dropped(body: tuple[ir.Stmt, ...]) -> set[str]:
    """The names that a body deletes, or sets to None."""
    found: set[str] = set()
    for statement in walk_statements(body):
        found |= _deleted(statement)
        if isinstance(statement, ir.Assign) and isinstance(statement.value, ir.Const):
            found |= names_bound_by(statement)
    return found


def _in_handlers(body: tuple[ir.Stmt, ...]) -> set[int]:
    """The statements of except clauses, by identity; graphs that an exception keeps alive are reported elsewhere."""
    return {
        inner.at
        for statement in walk_statements(body)
        if isinstance(statement, ir.Try)
        for handler in statement.handlers
        for inner in walk_statements(handler.body)
    }
