"""Which operations keep a sum of losses linear. The lists are closed: what is in none of them may be anything."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

#: how a value depends on the losses: not at all; as a number, without their graphs; linearly; in another or an unknown
#: way
Form = Literal["", "read", "linear", "other"]

_ORDER: tuple[Form, ...] = ("", "read", "linear", "other")

#: functions and methods that add their arguments, or hand them on
LINEAR = frozenset(
    {
        *("add", "sub", "sum", "nansum", "mean", "nanmean", "neg", "reduce_mean"),
        *("cat", "concat", "hstack", "stack", "vstack", "flatten", "reshape", "squeeze", "unsqueeze", "view"),
        *("as_tensor", "clone", "contiguous", "requires_grad_", "float", "double", "half", "bfloat16"),
        *("to", "cpu", "cuda", "all_reduce", "gather", "scale", "scale_loss"),
        *("list", "tuple", "dict", "reversed", "enumerate", "zip", "get", "items", "values", "pop"),
    }
)
#: the same of one argument, if no other depends on the losses
SCALES = frozenset({"mul", "div", "divide", "true_divide", "multiply", "dot", "inner", "matmul", "mv"})
#: functions and methods that give the number of a value, without its graph
READS = frozenset(
    {
        *("detach", "item", "tolist", "numpy", "tensor", "any", "all", "bool", "int", "round"),
        *("repr", "str", "format", "fsum"),
    }
)
#: those that tell nothing of how large a loss is: a step that is left out for a loss that is not finite
SHAPES = frozenset(
    {
        *("len", "size", "dim", "numel", "isinstance", "is_tensor", "type", "id", "print", "hasattr", "range", "keys"),
        *("isfinite", "isinf", "isnan"),
    }
)
#: attributes without a graph
SHAPE = frozenset({"shape", "dtype", "device", "requires_grad", "grad_fn", "ndim", "grad"})
#: methods that put their argument into a collection
PUTS = frozenset({"append", "extend", "insert", "add", "update", "setdefault"})
#: methods that move a tensor to a device
MOVES = frozenset({"cuda", "to"})
BACKWARD = frozenset({"backward", "manual_backward"})


def worst(forms: Iterable[Form]) -> Form:
    """The form of what is made of several values, such as their sum or a list of them."""
    return max(forms, key=_ORDER.index, default="")


def combined(op: str, one: Form, other: Form) -> Form:
    """The form of a binary operation."""
    if op in ("+", "-") or not (one or other):
        return worst((one, other))
    both = {one, other}
    if "linear" not in both:
        return worst(both)
    scales = "" in both and (op == "*" or (op == "/" and not other))
    return "linear" if scales else "other"


def called(name: str, forms: Iterable[Form]) -> Form:
    """The form of what a function gives that is no function of the project."""
    given = [form for form in forms if form]
    if not given or name in SHAPES:
        return ""
    if name in READS or set(given) == {"read"}:
        return "read"
    name = name.rstrip("_")
    keeps = set(given) == {"linear"} and (name in LINEAR or (name in SCALES and len(given) == 1))
    return "linear" if keeps else "other"
