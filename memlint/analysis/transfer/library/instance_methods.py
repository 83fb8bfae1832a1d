"""Methods of instances of classes that torch and other libraries define."""

from __future__ import annotations

from memlint import knowledge
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import MODULE, UNKNOWN_VALUE, V
from memlint.analysis.transfer.library.instances import call_instance, use_metric
from memlint.analysis.transfer.library.module_methods import module_method
from memlint.analysis.transfer.modules.modes import set_mode
from memlint.ir import nodes as ir


def call_instance_method(
    fn: FunctionState,
    state: State,
    name: str,
    method: str,
    receiver: V,
    args: list[V],
    words: dict[str, V],
    expr: ir.Call,
) -> V:
    """The value of a method of an instance of an external class."""
    if method in ("eval", "train") and receiver.kinds & MODULE and isinstance(expr.func, ir.Attr):
        set_mode(state, expr.func, receiver, method, args, words)
    if receiver.kinds & MODULE or method in ("to", "cuda", "eval", "train"):
        return module_method(fn, state, expr, receiver, method, args, words)
    row = knowledge.function(name)
    if row is not None and row.returns == "metric":
        return use_metric(fn, name, method, receiver, expr)
    if method == "forward":
        return call_instance(fn, state, name, args, words, expr, receiver)
    return UNKNOWN_VALUE
