"""Data loaders that are made, and models that run on something: what is noted of them."""

from __future__ import annotations

from memlint.analysis.domain.bound_names import argument
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import V
from memlint.ir import nodes as ir


def loader_made(frame: FunctionState, expr: ir.Call) -> None:
    """A DataLoader is made."""
    frame.notes.loaders[expr.at] = expr


def hold_one_sample(name: str, call: ir.Call, words: dict[str, V]) -> bool:
    """Whether the batches of a data loader that is made hold a single sample each, which is torch's default."""
    given = argument(call, 1, "batch_size")
    if given is not None:
        return (words["batch_size"].const if "batch_size" in words else getattr(given, "value", None)) == 1
    told = any(word.name in (None, "batch_sampler") for word in call.keywords) or len(call.args) > 1
    return name.endswith(".DataLoader") and not told


def model_called(frame: FunctionState, expr: ir.Call) -> None:
    """A model runs on something."""
    frame.notes.forwards.add(expr.at)
    if expr.args:
        frame.notes.models[expr.at] = expr
