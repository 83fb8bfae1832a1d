"""Losses and differences of a column of predictions and a row of targets, which broadcasting makes a square of both."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from memlint.flow.bound_names import argument
from memlint.flow.frame import Frame
from memlint.flow.practice_events import Broadcast
from memlint.flow.practices.layers import Scope, maker, outside_name
from memlint.flow.practices.shapes import Shapes
from memlint.flow.shape_words import Shape, meets_apart
from memlint.flow.syntax import calls, last_name, parts, text
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser

#: losses that broadcast what they are given (others raise), by qualified name
_FUNCTIONS = frozenset(
    f"torch.nn.functional.{name}" for name in ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss")
)
_CLASSES = frozenset(
    f"torch.nn.{place}{name}"
    for name in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss")
    for place in ("", "modules.loss.")
)
#: names of what may be such a loss
_LOSS = lazy_pattern(r"loss|crit|mse|l1|mae|huber|objective|cost")
#: what is done to a difference to make a loss of it
_OF_DIFFERENCES = frozenset({"abs", "square", "pow"})
#: layers and choices that give each sample one number
_ONE_NUMBER = frozenset({"Linear", "LazyLinear", "gather"})


class _Pair(NamedTuple):
    first: ir.Expr
    second: ir.Expr
    what: str
    at: int


def events(analyser: Analyser, frame: Frame) -> Iterator[Broadcast]:
    """The losses of one function whose predictions and targets are proven to meet so."""
    if not (_squares(frame.module.text) or _may_compare(frame.module.names)):
        return
    if not any(analyser.program.words.files(name) for name in _ONE_NUMBER):
        return
    pairs = sorted(_pairs(analyser, frame), key=lambda pair: pair.at)
    shapes, scope = Shapes(analyser), Scope(frame.function)
    for pair in pairs:
        first = shapes.of(pair.first, scope)
        second = shapes.of(pair.second, scope) if first is not None else None
        if first is None or second is None:
            continue
        if meets_apart(first, second):
            column, row = (pair.first, first), (pair.second, second)
        elif meets_apart(second, first):
            column, row = (pair.second, second), (pair.first, first)
        else:
            continue
        if not column[1].by_layer:
            continue  # a view that was asked for: all pairs may be meant
        yield Broadcast(
            site=frame.site(pair.at),
            function=frame.function.qual,
            certainty="medium" if row[1].at_least else "high",
            column=text(column[0], 40),
            row=text(row[0], 40),
            operation=pair.what,
            bytes=_bytes(column[1], row[1]),
            expression=frame.site(column[0].at),
        )


@functools.lru_cache(maxsize=256)
def _squares(source: str) -> bool:
    return "**" in source


@functools.lru_cache(maxsize=256)
def _may_compare(names: frozenset[str]) -> bool:
    """Whether a file that mentions these names may have a loss, or reduce a difference."""
    return any(name in _OF_DIFFERENCES or _LOSS.search(name.lower()) for name in names)


def _pairs(analyser: Analyser, frame: Frame) -> Iterator[_Pair]:
    """What may be predictions and targets that meet."""
    body = frame.function.body
    for call in calls(body):
        name = last_name(call.func)
        if name in _OF_DIFFERENCES:
            inside = call.args[0] if call.args else None
            if isinstance(call.func, ir.Attr) and isinstance(call.func.value, ir.Binary):
                inside = call.func.value
            if isinstance(inside, ir.Binary) and inside.op == "-":
                yield _Pair(inside.left, inside.right, "the difference", inside.at)
            continue
        if not _is_loss(analyser, frame, call, name):
            continue
        first, second = argument(call, 0, "input"), argument(call, 1, "target")
        if first is not None and second is not None:
            yield _Pair(first, second, f"`{text(call.func, 40)}`", call.at)
    for part in parts(body) if _squares(frame.module.text) else ():
        if isinstance(part, ir.Binary) and part.op == "**" and isinstance(part.left, ir.Binary) and part.left.op == "-":
            yield _Pair(part.left.left, part.left.right, "the difference", part.left.at)


def _is_loss(analyser: Analyser, frame: Frame, call: ir.Call, name: str) -> bool:
    if len(call.args) + len(call.keywords) < 2:
        return False
    if isinstance(call.func, ir.Call):
        return outside_name(analyser, call.func, Scope(frame.function)) in _CLASSES  # nn.MSELoss()(a, b)
    if not _LOSS.search(name.lower()):
        return False
    if analyser.program.outside(frame.module, call.func, frame.function) in _FUNCTIONS:
        return True
    made = maker(analyser, call.func, Scope(frame.function))
    return (
        made is not None
        and isinstance(made.expr, ir.Call)
        and outside_name(analyser, made.expr, made.scope) in _CLASSES
    )


def _bytes(column: Shape, row: Shape) -> int | None:
    """Of the result, in float32."""
    first, second = column.dims[0], row.dims[-1]
    return first * second * 4 if isinstance(first, int) and isinstance(second, int) else None
