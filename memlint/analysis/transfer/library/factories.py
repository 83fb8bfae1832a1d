"""Tensors that factories make: which calls make them, and how many elements they have."""

from __future__ import annotations

from memlint.analysis.domain.extents.extents import BYTES
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import V
from memlint.analysis.syntax.syntax import dotted
from memlint.ir import nodes as ir

_SHAPED = frozenset({"zeros", "ones", "empty", "rand", "randn"})
_FACTORIES = _SHAPED | {
    "full", "arange", "eye", "linspace", "logspace", "hann_window", "hamming_window", "randint", "randperm",
}  # fmt: skip
_FLOATING = _SHAPED | {"linspace", "logspace", "eye", "hann_window", "hamming_window", "normal"}
_INTEGERS = frozenset(
    {"ByteTensor", "IntTensor", "LongTensor", "arange", "as_tensor", "full", "randint", "randperm", "tensor"}
)
_LIKE = frozenset({"zeros_like", "ones_like", "empty_like", "rand_like", "randn_like"})
#: bytes from which a tensor of a literal shape is reported
_OVERSIZED = 1 << 28


def note_factory(fn: FunctionState, state: State, name: str, expr: ir.Call, args: list[V], words: dict[str, V]) -> None:
    """Record a call of a torch factory."""
    factory = name.removeprefix("torch.")
    count = _count(state, factory, args, words)
    dtype = next((dotted(word.value).rsplit(".", 1)[-1] for word in expr.keywords if word.name == "dtype"), "")
    floating = factory in _FLOATING | _LIKE and (not dtype or dtype.startswith(("float", "half", "double", "bfloat")))
    if any(word.name == "requires_grad" and getattr(word.value, "value", None) is not False for word in expr.keywords):
        floating = False  # operations on a leaf are recorded, and it must not be updated in place
    if floating or factory in _FLOATING | _INTEGERS:
        fn.notes.made[expr.at] = (factory, floating, count)
    if factory not in _FACTORIES:
        return
    width = BYTES.get(dtype, 8 if factory in ("randint", "randperm") and not dtype else 4)
    fn.notes.oversized.pop(expr.at, None)  # in a loop, each pass replaces the record of the last one
    if count * width > _OVERSIZED:
        fn.notes.oversized[expr.at] = (expr, count * width)


def _count(state: State, factory: str, args: list[V], words: dict[str, V]) -> int:
    """The number of elements, where all dimensions are known numbers; else -1."""
    if factory in _SHAPED:
        sizes = args or ([words["size"]] if "size" in words else [])
        if len(sizes) == 1 and sizes[0].objs:
            return _product(_members(state, sizes[0]))
        return _product(sizes or None)
    if factory == "full" and args:
        return _product(_members(state, args[0]) if args[0].objs else [args[0]])
    if factory in ("arange", "randperm", "hann_window", "hamming_window") and len(args) == 1:
        return _product(args)
    if factory == "eye" and args:
        return _product([args[0], args[1] if len(args) > 1 else args[0]])
    if factory in ("linspace", "logspace"):
        return _product([args[2]] if len(args) > 2 else [words["steps"]] if "steps" in words else None)
    return -1


def _members(state: State, value: V) -> list[V] | None:
    """The members of a shape, none for that of a single number; None where they are not known."""
    for _, obj in state.objects(value):
        if obj.kind in ("tuple", "list") and (obj.fields or not obj.elem.kinds):
            return obj.ordered
    return None


def _product(sizes: list[V] | None) -> int:
    if sizes is None:
        return -1
    total = 1
    for size in sizes:
        if not isinstance(size.const, int) or isinstance(size.const, bool):
            return -1
        total *= size.const
    return total
