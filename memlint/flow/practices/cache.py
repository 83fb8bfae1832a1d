"""``torch.cuda.empty_cache()`` in every round of a loop over batches or training steps."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from memlint.flow.events import Loop
from memlint.flow.frame import Frame, LoopFrame
from memlint.flow.kept import kept
from memlint.flow.practice_events import EmptiedCache
from memlint.flow.practices.outside import EMPTIES
from memlint.flow.program import Function
from memlint.flow.syntax import bodies, calls, calls_backward, dotted, text, walk_expression, walk_statements
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser

#: a helper that releases is this short
_SHORT = 6
#: names of what is another model in each round of a loop that binds them, or of what makes one
_OTHER_MODEL = re.compile(
    r"model|(^|_)(nets?|networks?|layers?|blocks?|experts?|folds?|configs?|cfgs?|seeds?|runs?|trials?|tasks?|loaders?"
    r"|data_?sets?|ckpts?|checkpoints?|weights|adapters?|methods?|pipe(line)?s?|shards?|learners?|agents?|clients?"
    r"|stages?|phases?|splits?|epochs?|params?|repeats?|experiments?|variants?|args|opts?|arch(itecture)?s?)$"
)
_MODEL = re.compile(
    r"(^|_)(models?|nets?|networks?|pipe(line)?s?|layers?|blocks?|experts?|encoders?|decoders?|unet|vae)$"
)
_LOADER = re.compile(r"loader\b")
_MAKES_MODEL = re.compile(
    r"^(from_pretrained|load_state_dict|load_model|load_checkpoint|(build|create|make|get|init|setup|load|new)_?\w*"
    r"(model|net|network|pipeline|pipe|agent|learner|trainer))$|^torch\.load$"
)
#: calls that may go through all data by themselves
_GOES_THROUGH = re.compile(
    r"^_?(train|fit|evaluate?|valid(ate)?|test|run|main|finetune|fine_tune|search|optimi[sz]e|learn|benchmark)"
    r"($|_(?!step|batch|iter|on_batch|one_(step|batch|iter)|micro))"
)


@dataclass(slots=True)
class _Place:
    """A call of a loop that always runs: its statement, and whether nothing else stands in its block."""

    statement: ir.ExprStmt
    alone: bool


def events(analyser: Analyser, frame: Frame) -> Iterator[EmptiedCache]:
    """The caches that one function empties again and again."""
    found: list[tuple[ir.Call, LoopFrame, bool]] = [
        (call.expr, call.loop, True)
        for _, call in sorted(frame.notes.outside.items())
        if call.loop is not None and call.name in EMPTIES
    ]
    for record in frame.calls.values():
        loop = frame.notes.rounds.get(record.loops[-1]) if record.loops else None
        callee = analyser.function_at(record.callee) if loop is not None else None
        if loop is not None and callee is not None and _only_empties(analyser, callee):
            expr = next((call for call in calls(frame.function.body) if call.at == record.at), None)
            if expr is not None:
                found.append((expr, loop, False))
    for expr, loop, itself in sorted(found, key=lambda item: item[0].at):
        place = _in_each_round(loop.body, expr)
        if place is None or _leaves(loop.body) or not _goes_on(analyser, frame, loop):
            continue
        described = _described(frame, loop)
        if described is None:
            continue
        yield EmptiedCache(
            site=frame.site(expr.at),
            function=frame.function.qual,
            text=text(expr),
            loop=described,
            data=described.trains or _over_data(described),
            statement=frame.site(place.statement.at) if itself else None,
            alone=place.alone,
        )


def _described(frame: Frame, loop: LoopFrame) -> Loop | None:
    """The loop, where it trains, runs over a loader, or runs a model in each round."""
    trains = _steps(loop.body)
    if not trains and not _over_data(loop.loop):
        # what has a loop of its own runs the model many times for each time that the cache is emptied
        inner = {call.at for one in walk_statements(loop.body) if _repeats(one) for call in calls((one,))}
        models = {call.at for call in calls(loop.body)} & set(frame.notes.models)
        if not models or models & inner:
            return None
    return msgspec.structs.replace(loop.loop, trains=trains)


def _repeats(statement: ir.Stmt) -> bool:
    return isinstance(statement, ir.For | ir.While)


def _over_data(loop: Loop) -> bool:
    """Whether the rounds are batches of a loader for all that is known of what the loop runs over."""
    if loop.over == "unknown" and loop.kind == "for":
        return _LOADER.search(loop.text.partition(" in ")[2].lower()) is not None
    return loop.over == "loader" and (not loop.assumed or loop.names_data)


@kept
def _only_empties_body(body: tuple[ir.Stmt, ...]) -> tuple[ir.Call, ...]:
    """The calls of a short body that all run, whatever it is told."""
    statements = [one for one in body if not (isinstance(one, ir.ExprStmt) and isinstance(one.value, ir.Const))]
    if len(statements) > _SHORT or any(isinstance(one, ir.Return) for one in statements[:-1]):
        return ()
    return tuple([one.value for one in statements if isinstance(one, ir.ExprStmt) and isinstance(one.value, ir.Call)])


def _only_empties(analyser: Analyser, function: Function) -> bool:
    """Whether a small helper empties the cache whenever it is called."""
    return any(
        call.args == () and analyser.program.outside(function.module, call.func, function) in EMPTIES
        for call in _only_empties_body(function.body)
    )


def _in_each_round(body: tuple[ir.Stmt, ...], expr: ir.Call) -> _Place | None:
    """Where the call stands as a statement that every round of the loop comes to."""
    for statement in body:
        if isinstance(statement, ir.ExprStmt) and statement.value.at == expr.at:
            return _Place(statement, all(_empties_by_name(one) for one in body))
        if isinstance(statement, ir.With):
            inner: tuple[ir.Stmt, ...] = statement.body
        elif isinstance(statement, ir.Try):
            inner = (*statement.body, *statement.orelse)
        else:
            if _skips(statement):
                return None
            continue
        if _leaves(inner):
            return None
        place = _in_each_round(inner, expr)
        if place is not None:
            return place
    return None


def _skips(statement: ir.Stmt) -> bool:
    """``if step % 10: continue``: what follows runs every few rounds only, or where a round has failed."""
    if not isinstance(statement, ir.If):
        return False
    periodic = any(isinstance(part, ir.Binary) and part.op == "%" for part in walk_expression(statement.test))
    goes_on = any(isinstance(one, ir.Jump) and one.kind == "continue" for one in walk_statements((statement,)))
    return goes_on and (periodic or calls_backward(statement.body))


def _leaves(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a block ends the round, or the loop."""
    last = body[-1] if body else None
    return isinstance(last, ir.Return | ir.Raise) or (isinstance(last, ir.Jump) and last.kind != "pass")


def _empties_by_name(statement: ir.Stmt) -> bool:
    return (
        isinstance(statement, ir.ExprStmt)
        and isinstance(statement.value, ir.Call)
        and dotted(statement.value.func).endswith("empty_cache")
    )


def _goes_on(analyser: Analyser, frame: Frame, loop: LoopFrame) -> bool:
    """Whether the loop's rounds are batches or steps with one model: none that go through data themselves, that make
    or hold another model, or that put a model aside for the next stage to have room."""
    if loop.over_objects or loop.loop.every == "epoch" or loop.loop.over in ("epochs", "modules", "time", "rows"):
        return False
    if any(_OTHER_MODEL.search(name.lower()) for name in loop.targets):
        return False
    if any(_MODEL.search(name.lower()) for name in loop.bound):
        return False
    certain = _over_data(loop.loop)
    for statement in walk_statements(loop.body, into_definitions=False):
        if isinstance(statement, ir.For | ir.While) and not _is_small(frame, statement, certain):
            return False
        if isinstance(statement, ir.Delete) and any(_names_model(target) for target in statement.targets):
            return False
    for call in calls(loop.body):
        last = dotted(call.func).rsplit(".", 1)[-1]
        if not last and isinstance(call.func, ir.Attr):
            last = call.func.name
        if _MAKES_MODEL.search(last) or _MAKES_MODEL.search(dotted(call.func)):
            return False
        if isinstance(call.func, ir.Attr) and last in ("cpu", "to", "cuda") and _names_model(call.func.value):
            return False  # it comes and goes with the stages of a round
        if not certain and _GOES_THROUGH.search(last) and not calls_backward(loop.body):
            return False
    inside = [record for record in frame.calls.values() if loop.id in record.loops]
    return not any(_goes_through_data(analyser, record.callee) for record in inside)


def _is_small(frame: Frame, statement: ir.For | ir.While, certain: bool) -> bool:
    """An inner loop over parts of what a round has: not over data, and without a backward of its own where nothing
    else tells that the outer one runs over batches."""
    if not certain and (isinstance(statement, ir.While) or calls_backward(statement.body)):
        return False
    held = frame.notes.rounds.get(("loop", statement.at))
    if held is None:  # a handful of rounds
        return "epoch" not in text(statement.target if isinstance(statement, ir.For) else statement.test).lower()
    known = held.loop
    return known.every != "epoch" and not _over_data(known) and not known.names_data


def _goes_through_data(analyser: Analyser, key: tuple[str, str]) -> bool:
    """Whether a function of the project makes a model, or has a loop over a loader or over epochs of its own."""
    function = analyser.function_at(key)
    if function is None:
        return False
    if function.name == "__init__" and function.cls is not None and analyser.program.is_module(function.cls):
        return True
    known = analyser.summary(function)
    return known is None or any(
        one.loop.over == "epochs" or _over_data(one.loop) for one in known.notes.rounds.values()
    )


def _names_model(expr: ir.Expr) -> bool:
    while isinstance(expr, ir.Subscript):
        expr = expr.value
    return _MODEL.search(dotted(expr).rsplit(".", 1)[-1].lower()) is not None


@kept
def _steps(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a backward runs in each round, and in no loop of its own."""
    for statement in body:
        if isinstance(statement, ir.For | ir.While | ir.FunctionDef | ir.ClassDef):
            continue
        if any(_steps(block) for block in bodies(statement)):
            return True
        if not bodies(statement) and calls_backward((statement,)):
            return True
    return False
