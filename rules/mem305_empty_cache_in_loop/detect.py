"""``torch.cuda.empty_cache()`` in every iteration of a loop over batches or training steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from memlint.sdk import Loop, Step, lazy_pattern
from memlint.sdk.project import Analyser, Function, Summary
from memlint.sdk.syntax import call_at, calls, calls_backward, ir, last_name, leaves, text, walk_statements
from memlint.sdk.values import EMPTIES, LoopState

from .per_batch import in_each_call
from .places import (
    OTHER_MODEL,
    Emptied,
    called_name,
    in_each_round,
    is_model_name,
    moves_model,
    only_empties,
    over_data,
    steps,
)
from .rule import EmptiedCache

#: libraries whose authors recommend it in every step, as their tensors differ in size
#: (https://github.com/NVIDIA/MinkowskiEngine/issues/150)
_ASKED_FOR_BY = ("MinkowskiEngine",)
#: calls that may iterate over all data
_GOES_THROUGH = lazy_pattern(
    r"^_?(train|fit|evaluate?|valid(ate)?|test|run|main|finetune|fine_tune|search|optimi[sz]e|learn|benchmark)"
    r"($|_(?!step|batch|iter|on_batch|one_(step|batch|iter)|micro))"
)
CALLS = EMPTIES


def detect(analyser: Analyser, summary: Summary) -> Iterator[EmptiedCache]:
    """The calls of one function that empty the cache repeatedly."""
    if any(_imports(analyser, library) for library in _ASKED_FOR_BY):
        return
    found: list[tuple[ir.Call, LoopState | None, bool]] = [
        (call.expr, call.loop, True) for _, call in sorted(summary.notes.outside.items()) if call.name in EMPTIES
    ]
    found += [(expr, _innermost(summary, expr), True) for expr in _of_accelerator(summary.function)]
    for record in summary.calls.values():
        loop = summary.notes.rounds.get(record.loops[-1]) if record.loops else None
        callee = analyser.function_at(record.callee) if loop is not None else None
        if loop is not None and callee is not None and only_empties(analyser, callee):
            expr = call_at(summary.function.body, record.at)
            if expr is not None:
                found.append((expr, loop, False))
    called: list[tuple[ir.Call, Emptied]] = []
    for expr, loop, itself in sorted(found, key=lambda item: item[0].at):
        emptied = _in_loop(analyser, summary, expr, loop) if loop is not None else None
        if emptied is not None:
            yield _event(summary, expr, emptied, itself=itself)
        elif itself and (each := in_each_call(analyser, summary, expr)) is not None:
            called.append((expr, each))
    if called:  # one finding for a function that runs repeatedly
        yield _event(summary, *called[0], others=[expr for expr, _ in called[1:]])


def _imports(analyser: Analyser, library: str) -> bool:
    """Whether a file of the project imports a library."""
    program = analyser.program
    imported = (item.module for key in program.words.files(library) for item in program.module(key).index.imports)
    return any(name.partition(".")[0] == library for name in imported)


def _event(
    summary: Summary, expr: ir.Call, emptied: Emptied, *, itself: bool = True, others: Sequence[ir.Call] = ()
) -> EmptiedCache:
    return EmptiedCache(
        site=summary.site(expr.at),
        function=summary.function.qual,
        text=text(expr),
        loop=emptied.loop,
        data=emptied.data,
        flag=emptied.place.flag,
        statement=summary.site(emptied.place.statement.at) if itself else None,
        alone=emptied.place.alone,
        trace=tuple(Step(summary.site(other.at), "and emptied again here") for other in others),
    )


def _in_loop(analyser: Analyser, summary: Summary, expr: ir.Call, loop: LoopState) -> Emptied | None:
    """How often a loop reaches the call, if it does in each iteration with the same model; None otherwise."""
    place = in_each_round(loop.body, expr)
    if place is None or leaves(loop.body) or not _goes_on(analyser, summary, loop):
        return None
    described = _described(summary, loop)
    if described is None:
        return None
    return Emptied(place, described, data=described.trains or over_data(described))


def _of_accelerator(function: Function) -> list[ir.Call]:
    """The calls of ``get_accelerator().empty_cache()``, DeepSpeed's form."""
    if "get_accelerator" not in function.names:
        return []
    return [call for call in calls(function.body) if _method_of_result(call) == "get_accelerator().empty_cache"]


def _method_of_result(call: ir.Call) -> str:
    """``get_accelerator().empty_cache``: the method of what another call gives; "" for any other callee."""
    func = call.func
    if not isinstance(func, ir.Attr) or not isinstance(func.value, ir.Call):
        return ""
    return f"{last_name(func.value.func)}().{func.name}"


def _innermost(summary: Summary, expr: ir.Call) -> LoopState | None:
    """The innermost loop over iterations around a call."""
    around = [loop for loop in summary.notes.rounds.values() if any(call.at == expr.at for call in calls(loop.body))]
    return max(around, key=lambda loop: loop.loop.site.at, default=None)


def _described(summary: Summary, loop: LoopState) -> Loop | None:
    """The loop, if it trains, iterates over a loader, or runs a model in each iteration."""
    trains = steps(loop.body)
    if not trains and not over_data(loop.loop):
        # an inner loop runs the model many times for each time that the cache is emptied
        inner_loops = (one for one in walk_statements(loop.body) if isinstance(one, ir.For | ir.While))
        inner = {call.at for one in inner_loops for call in calls((one,))}
        models = {call.at for call in calls(loop.body)} & set(summary.notes.models)
        if not models or models & inner:
            return None
    return msgspec.structs.replace(loop.loop, trains=trains)


def _goes_on(analyser: Analyser, summary: Summary, loop: LoopState) -> bool:
    """Whether the iterations are batches or steps with one model: none iterates over data itself, creates or holds
    another model, or moves a model away to make room for the next stage."""
    if loop.over_objects or loop.loop.every == "epoch" or loop.loop.over in ("epochs", "modules", "time", "rows"):
        return False
    if any(OTHER_MODEL.search(name.lower()) for name in loop.targets):
        return False
    if any(is_model_name(name) for name in loop.bound):
        return False
    certain = over_data(loop.loop)
    loops = [one for one in walk_statements(loop.body, into_definitions=False) if isinstance(one, ir.For | ir.While)]
    if moves_model(loop.body) or not all(_is_small(summary, one, certain) for one in loops):
        return False
    unsure = not certain and not calls_backward(loop.body)
    if unsure and any(_GOES_THROUGH.search(called_name(call)) for call in calls(loop.body)):
        return False
    inside = [record for record in summary.calls.values() if loop.id in record.loops]
    return not any(_goes_through_data(analyser, record.callee) for record in inside)


def _is_small(summary: Summary, statement: ir.For | ir.While, certain: bool) -> bool:
    """Whether an inner loop iterates over parts of one step: not over data, and without its own backward unless the
    outer loop is known to iterate over batches."""
    if not certain and (isinstance(statement, ir.While) or calls_backward(statement.body)):
        return False
    held = summary.notes.rounds.get(("loop", statement.at))
    if held is None:  # few iterations
        return "epoch" not in text(statement.target if isinstance(statement, ir.For) else statement.test).lower()
    known = held.loop
    return known.every != "epoch" and not over_data(known) and not known.names_data


def _goes_through_data(analyser: Analyser, key: tuple[str, str]) -> bool:
    """Whether a function of the project creates a model, or has its own loop over a loader or over epochs."""
    function = analyser.function_at(key)
    if function is None:
        return False
    if function.name == "__init__" and function.cls is not None and analyser.program.is_module(function.cls):
        return True
    known = analyser.summary(function)
    return known is None or any(one.loop.over == "epochs" or over_data(one.loop) for one in known.notes.rounds.values())
