"""The devices of models and their outputs: an output is on the device of the inputs, which is the model's."""

from __future__ import annotations

from memlint.analysis.domain.bound_names import argument
from memlint.analysis.domain.state import Obj, State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.tensor_ops import device_named, names_number, on_accelerator
from memlint.analysis.domain.values import (
    ACCELERATOR,
    ANYWHERE,
    CPU,
    DATA,
    MODULE,
    OUTPUT,
    OWN_DEVICE,
    SOME_SIZE,
    TENSORS,
    UNKNOWN,
    V,
    ordered,
)
from memlint.analysis.syntax.syntax import dotted
from memlint.analysis.transfer.held_values import tensors_within
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

#: objects whose ``device`` is the run's device; the ``device`` of another object may be any
_SETTINGS = lazy_pattern(
    r"(.*\.)?_?(self|args?|opts?|options?|cfg|conf|config|hparams|params|hps|flags|settings|accelerator|fabric|trainer|ctx|engine|env|state|model|net|module|pl_module|runner|learner|agent)"
)


def device_of(fn: FunctionState, state: State, inputs: list[V]) -> int:
    """The device of a result that is computed from the inputs (tensors, containers of them, modules)."""
    found = 0
    for value in inputs:
        for part in (value,) if value.kinds & MODULE else (value, *_members(state, value)):
            device = (part if part.kinds & MODULE else tensors_within(fn, state, part)).device
            if on_accelerator(device):
                return ACCELERATOR  # lengths and sizes may stay on the host
            found |= device & CPU
    return found or ANYWHERE


def _members(state: State, value: V) -> list[V]:
    """The members of the dicts, lists and tuples that a value may be."""
    objs = [obj for _, obj in state.objects(value)]
    held = (obj for obj in objs if obj.kind in ("dict", "list", "tuple"))
    return [part for obj in held for part in (obj.elem, *obj.fields.values()) if part.kinds]


def moved_module(state: State, expr: ir.Call, receiver: V, args: list[V], words: dict[str, V]) -> V:
    """The module after ``model.cuda()`` or ``model.to(device)``, which moves the module itself."""
    func = expr.func
    assert isinstance(func, ir.Attr)
    where = target_device(expr, args, words) if func.name == "to" else CPU if func.name == "cpu" else ACCELERATOR
    if where is None or where == ANYWHERE:
        return receiver
    result = receiver.but(device=where)
    if isinstance(func.value, ir.Name) and func.value.id in state.env:
        state.env[func.value.id] = result
    for path in ordered(receiver.syms):
        if path.steps and len(receiver.syms) == 1:
            state.sym[path] = result
    return result


def target_device(expr: ir.Call, args: list[V], words: dict[str, V]) -> int | None:
    """The device to which a call of ``to`` moves; None where it names none."""
    device = words.get("device") or (args[0] if args else None)
    return destination(device, argument(expr, 0, "device")) if device is not None else None


def as_output(state: State, value: V, device: int, shown: str, depth: int = 3) -> V:
    """A model's output: tensors whose size or device is unknown have the size of a batch and the model's device."""
    if depth == 0:
        return value
    for key, obj in state.objects(value):
        if obj.kind == "instance":
            continue
        fields = {name: as_output(state, part, device, name, depth - 1) for name, part in obj.fields.items()}
        elem = as_output(state, obj.elem, device, shown, depth - 1)
        state.heap[key] = Obj(obj.kind, elem, fields, obj.loops, obj.bounded, obj.cls, obj.text)
    if not value.kinds & TENSORS:
        return value
    size = OUTPUT if value.size == SOME_SIZE and not names_number(shown) else value.size
    return value.but(size=size, device=device if value.device == ANYWHERE else value.device)


def destination(device: V, expr: ir.Expr | None) -> int:
    """The device that the first argument of ``to`` names: a string, a number, a device, or a tensor on it."""
    if device.const is not None:
        return device_named(device.const)
    known = device.device & (CPU | ACCELERATOR) if device.kinds & (TENSORS | DATA | UNKNOWN) else 0
    if known == CPU | ACCELERATOR and not device.kinds & TENSORS:
        return ACCELERATOR  # chosen by the machine's hardware: the accelerator is meant
    if known:
        return known
    if OWN_DEVICE in device.refs and isinstance(expr, ir.Attr):
        return ANYWHERE  # the module's own device, which the program does not fix
    return ACCELERATOR if expr is not None and _names_device(expr) else ANYWHERE


#: names of variables and attributes for the device of the run
_DEVICE_NAMES = frozenset({
    "_device", "cuda", "cuda_device", "dev", "device", "device_id", "gpu", "gpu_device", "gpu_id", "local_rank", "rank",
    "torch_device",
})  # fmt: skip


def _names_device(expr: ir.Expr) -> bool:
    """Whether an expression is named like the device of the run: weak evidence, where its value is unknown."""
    if isinstance(expr, ir.Subscript) and isinstance(expr.index, ir.Const):
        return str(expr.index.value).lower() == "device"
    owner, _, name = dotted(expr).lower().rpartition(".")
    if name not in _DEVICE_NAMES:
        return False
    return not owner or _SETTINGS.fullmatch(owner) is not None
