"""Tensors that factories make: which calls make them, of how many elements, and which are moved at once."""

from __future__ import annotations

from dataclasses import dataclass

from memlint.flow.frame import Frame, LoopFrame
from memlint.flow.state import State
from memlint.flow.syntax import dotted, text
from memlint.flow.values import ACCELERATOR, V, ordered
from memlint.ir import nodes as ir

_SHAPED = frozenset({"zeros", "ones", "empty", "rand", "randn"})
CONSTANT = frozenset(
    {
        "zeros",
        "ones",
        "full",
        "arange",
        "eye",
        "linspace",
        "logspace",
        "hann_window",
        "hamming_window",
    }
)
_FACTORIES = _SHAPED | CONSTANT | {"randint", "randperm"}
_FLOATING = _SHAPED | {"linspace", "logspace", "eye", "hann_window", "hamming_window", "normal"}
_LIKE = frozenset({"zeros_like", "ones_like", "empty_like", "rand_like", "randn_like"})
#: methods between a factory and the move that change neither place nor contents for good
_BETWEEN = frozenset(
    {
        "float",
        "double",
        "half",
        "long",
        "int",
        "bool",
        "type",
        "unsqueeze",
        "view",
        "reshape",
        "expand",
        "fill_",
        "zero_",
        "normal_",
        "uniform_",
        "requires_grad_",
        "repeat",
        "t",
        "transpose",
        "flatten",
    }
)
_BYTES = {
    "float64": 8,
    "double": 8,
    "int64": 8,
    "long": 8,
    "float16": 2,
    "half": 2,
    "bfloat16": 2,
    "int16": 2,
    "uint8": 1,
    "int8": 1,
    "bool": 1,
}


@dataclass
class Made:
    """A factory's call. ``count``: its number of elements where literals tell, else -1."""

    expr: ir.Call
    factory: str
    loop: LoopFrame | None
    count: int
    width: int
    on_host: bool
    moved: str = ""
    #: the call that moves it and nothing else, and the device's source
    move: int | None = None
    device: str = ""


def made(frame: Frame, state: State, name: str, expr: ir.Call, args: list[V], words: dict[str, V]) -> None:
    """A factory of torch is called."""
    factory = name.removeprefix("torch.")
    count = _count(state, factory, args, words)
    dtype = next((dotted(word.value).rsplit(".", 1)[-1] for word in expr.keywords if word.name == "dtype"), "")
    floating = factory in _FLOATING | _LIKE and (not dtype or dtype.startswith(("float", "half", "double", "bfloat")))
    if any(word.name == "requires_grad" and getattr(word.value, "value", None) is not False for word in expr.keywords):
        floating = False  # a leaf: what is computed from it is recorded, and it is never updated in place
    integers = factory in (
        "arange",
        "randint",
        "randperm",
        "tensor",
        "as_tensor",
        "full",
        "LongTensor",
        "IntTensor",
        "ByteTensor",
    )
    if floating or integers or factory in _FLOATING:
        frame.notes.made[expr.at] = (factory, floating, count)
    if factory not in _FACTORIES:
        return
    host = not any(
        word.name in ("device", "generator", "pin_memory", "out") or word.name is None for word in expr.keywords
    )
    width = _BYTES.get(dtype, 8 if factory in ("randint", "randperm") and not dtype else 4)
    all_made = frame.notes.factories
    one = all_made[expr.at] = all_made.get(expr.at) or Made(expr, factory, None, count, width, host)
    one.loop, one.count, one.width, one.on_host = frame.innermost(()), count, width, host


def moved(frame: Frame, expr: ir.Call, result: V) -> None:
    """``torch.zeros(…).to(device)``: the receiver is a factory's call itself."""
    known = frame.notes.factories
    if not known or result.device != ACCELERATOR or not isinstance(expr.func, ir.Attr):
        return
    if expr.func.name not in ("to", "cuda", "xpu", "npu", "mps"):
        return
    root: ir.Expr = expr.func.value
    while isinstance(root, ir.Call) and root.at not in known:
        func = root.func
        if isinstance(func, ir.Attr) and func.name in _BETWEEN:
            root = func.value
        elif dotted(func).rsplit(".", 1)[-1] == "Variable" and root.args:
            root = root.args[0]
        else:
            return
    if isinstance(root, ir.Call) and known[root.at].on_host:
        args = ", ".join(
            [*(text(arg, 20) for arg in expr.args), *(f"{word.name}={text(word.value, 20)}" for word in expr.keywords)]
        )
        known[root.at].moved = f".{expr.func.name}({args})"
        device = _plain_device(expr)
        if root is expr.func.value and device:
            known[root.at].move, known[root.at].device = expr.at, device


def _plain_device(expr: ir.Call) -> str:
    """The device of ``.to(device)`` and ``.cuda()``, as its source; "" where the call does more, or it is not plain."""
    assert isinstance(expr.func, ir.Attr)
    if expr.keywords or len(expr.args) > 1:
        return ""
    if not expr.args:
        return f'"{expr.func.name}"' if expr.func.name != "to" else ""
    arg = expr.args[0]
    if expr.func.name != "to":
        return ""
    if isinstance(arg, ir.Const) and isinstance(arg.value, str):
        return f'"{arg.value}"'
    return text(arg, 200) if "device" in dotted(arg).rsplit(".", 1)[-1].lower() else ""


def _count(state: State, factory: str, args: list[V], words: dict[str, V]) -> int:
    """The number of elements, where all dimensions are known numbers; else -1."""
    if factory in _SHAPED:
        given = args or ([words["size"]] if "size" in words else [])
        if len(given) == 1 and given[0].objs:
            return _product(_members(state, given[0]))
        return _product(given)
    if factory == "full" and args:
        return _product(_members(state, args[0]) if args[0].objs else [args[0]])
    if factory in ("arange", "randperm", "hann_window", "hamming_window") and len(args) == 1:
        return _product(args)
    if factory == "eye" and args:
        return _product([args[0], args[1] if len(args) > 1 else args[0]])
    if factory in ("linspace", "logspace"):
        return _product([args[2]] if len(args) > 2 else [words["steps"]] if "steps" in words else [])
    return -1


def _members(state: State, value: V) -> list[V]:
    for key in ordered(value.objs):
        obj = state.heap.get(key)
        if obj is not None and obj.kind in ("tuple", "list") and obj.fields:
            return obj.ordered
    return []


def _product(sizes: list[V]) -> int:
    if not sizes:
        return -1
    total = 1
    for size in sizes:
        if not isinstance(size.const, int) or isinstance(size.const, bool):
            return -1
        total *= size.const
    return total
