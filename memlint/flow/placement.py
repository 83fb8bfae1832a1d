"""Where models and what they return are: a model's output is on the device of its inputs, which is the model's."""

from __future__ import annotations

from memlint.flow.frame import Frame
from memlint.flow.heap import deep
from memlint.flow.ops import names_number, on_accelerator
from memlint.flow.state import Obj, State
from memlint.flow.tensors import destination
from memlint.flow.values import ACCELERATOR, ANYWHERE, CPU, MODULE, OUTPUT, SOME_SIZE, TENSORS, V, ordered
from memlint.ir import nodes as ir


def device_of(frame: Frame, state: State, inputs: list[V]) -> int:
    """The device of what is computed from the inputs (tensors, containers of them, modules)."""
    found = 0
    for value in inputs:
        for part in (value,) if value.kinds & MODULE else (value, *_members(state, value)):
            device = (part if part.kinds & MODULE else deep(frame, state, part)).device
            if on_accelerator(device):
                return ACCELERATOR  # (lengths and sizes may stay on the host beside the rest)
            found |= device & CPU
    return found or ANYWHERE


def _members(state: State, value: V) -> list[V]:
    """The members of a container, each by itself."""
    objs = [obj for key in ordered(value.objs) if (obj := state.heap.get(key)) is not None]
    held = (obj for obj in objs if obj.kind in ("dict", "list", "tuple"))
    return [part for obj in held for part in (obj.elem, *obj.fields.values()) if part.kinds]


def moved_module(state: State, expr: ir.Call, receiver: V, args: list[V], words: dict[str, V]) -> V:
    """``model.cuda()``, ``model.to(device)``: the very module is on the device from here on."""
    func = expr.func
    assert isinstance(func, ir.Attr)
    if func.name == "to":
        device = words.get("device") or (args[0] if args else None)
        shown = next(
            (word.value for word in expr.keywords if word.name == "device"), expr.args[0] if expr.args else None
        )
        where = destination(device, shown) if device is not None else ANYWHERE
    else:
        where = CPU if func.name == "cpu" else ACCELERATOR
    if where == ANYWHERE:
        return receiver
    result = receiver.but(device=where)
    if isinstance(func.value, ir.Name) and func.value.id in state.env:
        state.env[func.value.id] = result
    for path in ordered(receiver.syms):
        if path.steps and len(receiver.syms) == 1:
            state.sym[path] = result
    return result


def as_output(state: State, value: V, device: int, shown: str, depth: int = 3) -> V:
    """What a model returned: where its code does not say, the tensors are of batch size, on the model's device."""
    if depth == 0:
        return value
    for key in ordered(value.objs):
        obj = state.heap.get(key)
        if obj is None or obj.kind == "instance":
            continue
        fields = {name: as_output(state, part, device, name, depth - 1) for name, part in obj.fields.items()}
        elem = as_output(state, obj.elem, device, shown, depth - 1)
        state.heap[key] = Obj(obj.kind, elem, fields, obj.loops, obj.bounded, obj.cls, obj.text)
    if not value.kinds & TENSORS:
        return value
    size = OUTPUT if value.size == SOME_SIZE and not names_number(shown) else value.size
    return value.but(size=size, device=device if value.device == ANYWHERE else value.device)
