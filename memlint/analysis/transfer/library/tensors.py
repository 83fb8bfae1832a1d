"""Methods of tensors, and of unknown values where the name is a tensor's method."""

from __future__ import annotations

from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple

from memlint import knowledge
from memlint.analysis.domain.events import PlaceKind
from memlint.analysis.domain.state import OFF, Obj, State
from memlint.analysis.domain.summary.effects import Spot
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.tensor_ops import cut, moved, reduced, tensor_op
from memlint.analysis.domain.values import (
    ACCELERATOR,
    ANYWHERE,
    CONTAINER,
    CPU,
    DATA,
    DATA_VALUE,
    NOTHING,
    SAMPLE,
    SCALAR,
    TENSOR,
    TENSORS,
    TREE,
    UNKNOWN,
    Path,
    Source,
    Sources,
    V,
    join,
    ordered,
)
from memlint.analysis.syntax.bindings import mentions, names_bound_by, unpacked_beside
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import calls, dotted, statement_at
from memlint.analysis.transfer.heap import make, member_of_output
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.library import extent_ops
from memlint.analysis.transfer.library.placement import target_device
from memlint.analysis.transfer.modules.touched_parameters import note_detached
from memlint.analysis.transfer.narrowing import no_batch
from memlint.analysis.transfer.stores.carry import classify
from memlint.analysis.transfer.stores.loop_updates import write_into_view
from memlint.analysis.transfer.stores.stores import kind_of, note_carry
from memlint.analysis.transfer.unresolved import unknown_call
from memlint.ir import nodes as ir

_INTEGERS = frozenset(
    {"int64", "int32", "int16", "int8", "uint8", "long", "int", "bool", "LongTensor", "IntTensor", "ByteTensor"}
)


#: methods that return members of a batch or a model's output unchanged
_MEMBERS = frozenset({"get", "items", "keys", "pop", "setdefault", "to_tuple", "values", "copy", "__getitem__"})


#: those of them that return a given default for a missing member
_OR_ELSE = frozenset({"get", "pop", "setdefault"})


def _is_brought(fn: FunctionState, expr: ir.Call) -> bool:
    """Whether a call's result, or the variable that it is assigned to, is moved to a device."""
    statement = statement_at(fn.function.body, expr.at)
    names = names_bound_by(statement) if isinstance(statement, ir.Assign) else frozenset[str]()
    return any(
        isinstance(call.func, ir.Attr)
        and call.func.name in ("to", "cuda")
        and (call.func.value is expr or (isinstance(call.func.value, ir.Name) and call.func.value.id in names))
        for call in calls(fn.function.body)
    )


def _is_no_tensor(value: V) -> bool:
    return isinstance(value.const, str) or (value.may_be(CONTAINER) and not value.may_be(TENSORS | UNKNOWN))


def _of_known_methods(expr: ir.Call) -> bool:
    """Whether all earlier methods in the chain are tensors' methods."""
    part = expr.func.value if isinstance(expr.func, ir.Attr) else None
    while isinstance(part, ir.Call) and isinstance(part.func, ir.Attr):
        if not knowledge.methods().knows(part.func.name) and not dotted(part.func).startswith(("torch.", "F.")):
            return False
        part = part.func.value
    return True


class _Method(NamedTuple):
    """A call of a tensor's method."""

    expr: ir.Call
    receiver: V
    name: str
    args: list[V]
    words: dict[str, V]


def call(
    fn: FunctionState, state: State, expr: ir.Call, receiver: V, name: str, args: list[V], words: dict[str, V]
) -> V:
    """The value of ``tensor.name(…)``."""
    result = _call(fn, state, expr, receiver, name, args, words)
    if not result.kinds & TENSORS:
        return result
    extent = extent_ops.of_method(name, receiver, args, words, expr)
    return result if result.extent == extent else result.but(extent=extent)


def _call(
    fn: FunctionState, state: State, expr: ir.Call, receiver: V, name: str, args: list[V], words: dict[str, V]
) -> V:
    table = knowledge.methods()
    if name in table.data or name in table.arrays:
        fn.used |= receiver.src
        # not in a try block, where the exception may be caught, nor after an unknown method, whose result may have no
        # graph
        raises = name == "numpy" and not ("force" in words and words["force"].const is not False)
        if raises and receiver.src and not fn.handlers and _of_known_methods(expr):
            fn.notes.arrays.append((receiver.src, tuple(fn.tests), receiver.bare))
        return V(DATA, size=SCALAR) if name != "tolist" else make(fn, state, expr.at, "list", DATA_VALUE)
    if name == "detach_":
        note_detached(fn, receiver, expr.func.value if isinstance(expr.func, ir.Attr) else expr)
        fn.notes.cut_off |= receiver.src
        place = expr.func.value if isinstance(expr.func, ir.Attr) else expr
        cut_everywhere(state, receiver, unpacked_beside(fn.function.body, place, expr.at))
        _cut_here(fn, state, expr)
    if name in table.cut:
        fn.used |= receiver.src
        size = SAMPLE if name in ("argmax", "argmin", "argsort", "eq", "ne", "unique") else None
        return cut(
            receiver,
            TENSOR if name.startswith(("detach", "new_")) else None,
            size=None
            if size is None
            else min(size, receiver.size)
            if args or words or name not in ("argmax", "argmin", "all", "any")
            else SCALAR,
        )
    integers = (name == "view" or name in table.move) and names_integers(expr)
    if integers:
        fn.used |= receiver.src
    if integers and name == "view":
        return cut(receiver)  # the bits are read as integers
    if name in table.move:
        return _move(receiver, name, expr, args, words, integers)
    if name in table.alias:
        return receiver if name not in ("chunk", "split", "unbind") else make(fn, state, expr.at, "tuple", receiver)
    if name in table.inplace or (name.endswith("_") and not name.startswith("_") and not name.endswith("__")):
        return _in_place(fn, state, expr, receiver, name, args, words)
    inputs = [receiver, *(tensors_within(fn, state, value) for value in args)]
    if name in table.reduce:
        return _reduce(fn, state, _Method(expr, receiver, name, args, words), inputs)
    if name in ("topk", "sort", "kthvalue", "mode", "cummax", "cummin", "nanmedian"):
        values = tensor_op(fn, state, expr.at, inputs, text(expr), size=receiver.size)
        extent = extent_ops.of_method(name, receiver, args, words, expr)
        return values_and_indices(fn, state, expr, values.but(extent=extent))
    if name in table.op:
        certain = receiver.may_be(TENSORS)
        return tensor_op(fn, state, expr.at, inputs, text(expr), what=text(expr), certain=certain)
    if receiver.kinds & TREE:
        return _of_tree(fn, state, _Method(expr, receiver, name, args, words), inputs)
    return unknown_call(fn, state, expr, receiver, args, words)


def _of_tree(fn: FunctionState, state: State, method: _Method, inputs: list[V]) -> V:
    """The value of a method of a distribution, or of a container of tensors. ``inputs``: the receiver and the
    arguments."""
    expr, receiver, name, args, words = method
    if name in ("log_prob", "cdf", "icdf"):
        return tensor_op(fn, state, expr.at, inputs, text(expr))  # of a distribution
    if name == "entropy" and receiver.is_only(TREE) and any(ref.kind == "shape" for ref in receiver.refs):
        shapes = [ref.self_ for ref in ordered(receiver.refs) if ref.kind == "shape"]
        return tensor_op(fn, state, expr.at, shapes, text(expr))
    if name == "sample":
        fn.used |= receiver.src
        drawn = cut(receiver)  # a sample of a distribution has no graph (that of rsample() has one)
        one_a_row = not args and not words and {ref.name for ref in receiver.refs} == {"Categorical"}
        return drawn.but(size=SAMPLE) if one_a_row else drawn  # a class's number
    if name in _OR_ELSE and args and isinstance(args[0].const, str):
        receiver = member_of_output(fn, receiver, args[0].const)
    # a batch or a model's output: a method returns tensors like the others, possibly on another device
    device = receiver.device if name in _MEMBERS else ANYWHERE
    # computed from arguments in no_grad mode, it has no graph: a solver that a model's class made
    src = receiver.src if state.grad != OFF or name in _MEMBERS or not (args or words) else frozenset[Source]()
    found = V(receiver.kinds & TENSORS, src, bare=receiver.bare, size=receiver.size, device=device)
    # the default for a missing member is a list or a text
    is_default = name in _OR_ELSE and len(args) > 1 and _is_no_tensor(args[1]) and not _is_brought(fn, expr)
    return no_batch(found) if is_default else found


def cut_everywhere(state: State, value: V, others: AbstractSet[str]) -> None:
    """``detach_()`` cuts the tensor itself from its graph, in all variables and containers. ``others``: the variables
    that hold other tensors, as the outputs of one call share their graph and not more."""
    mark_free = frozenset(
        source for source in value.src if not (isinstance(source, tuple) and source and source[0] in ("prev", "elem"))
    )
    if not mark_free:
        return

    def without(item: V) -> V:
        # the tensor of an earlier round in the same places is cut as well
        return item.but(src=frozenset()) if item.src & mark_free or (item.src and item.src <= value.src) else item

    state.env = {name: item if name in others else without(item) for name, item in state.env.items()}
    state.sym = {path: without(item) for path, item in state.sym.items()}
    for path in ordered(value.syms):
        # for a caller, too, the place no longer has its old graph
        state.sym[path] = value.but(kinds=value.kinds & TENSORS or TENSOR, src=frozenset(), syms=frozenset())
    for key, obj in state.heap.items():
        if any(item.src & value.src for item in (obj.elem, *obj.fields.values())):
            fields = {name: without(item) for name, item in obj.fields.items()}
            state.heap[key] = Obj(obj.kind, without(obj.elem), fields, obj.loops, obj.bounded, obj.cls, obj.text)


def _cut_here(fn: FunctionState, state: State, expr: ir.Call) -> None:
    """The variable, or the container's member, on which ``detach_()`` is called loses its graph."""
    place = expr.func.value if isinstance(expr.func, ir.Attr) else None
    if isinstance(place, ir.Name) and place.id in state.env:
        state.env[place.id] = state.env[place.id].but(src=frozenset())
    elif isinstance(place, ir.Subscript) and isinstance(place.index, ir.Const):
        for key in fn.interpreter.evaluate(fn, state, place.value).objs:
            obj = state.heap.get(key)
            if obj is not None and str(place.index.value) in obj.fields:
                name = str(place.index.value)
                state.heap[key] = obj.with_field(name, obj.fields[name].but(src=frozenset()))


def _move(receiver: V, name: str, expr: ir.Call, args: list[V], words: dict[str, V], integers: bool) -> V:
    """The tensor on a new device or with a new dtype: the graph stays, but integers have none."""
    if name in ("cuda", "xpu", "npu", "mps"):
        return moved(receiver, ACCELERATOR)
    if name == "cpu":
        return moved(receiver, CPU)
    if integers:
        return cut(receiver)
    if name in ("type", "type_as") and args:
        return moved(receiver, args[0].device) if args[0].device & (CPU | ACCELERATOR) else receiver
    if name != "to":
        return receiver
    device = target_device(expr, args, words)
    return receiver if device is None else moved(receiver, device)


def names_integers(expr: ir.Call) -> bool:
    """Whether a call names an integer dtype, whose tensors have no graph."""
    given = expr.passed
    return any(dotted(item).rsplit(".", 1)[-1] in _INTEGERS for item in given)


def values_and_indices(fn: FunctionState, state: State, expr: ir.Call, values: V, size: int = SAMPLE) -> V:
    """The pair that max(dim), topk, sort and pooling return: the values have the graph, the indices have none."""
    fn.used |= values.src
    store = frozenset(((expr.at, "indices"),))
    indices = V(
        TENSOR, store=store, size=size, device=values.device, extent=values.extent and values.extent._replace(item=8)
    )
    members = {"0": values, "1": indices, "values": values, "indices": indices}
    return make(fn, state, (expr.at, "pair"), "tuple", NOTHING, members)


#: the keyword by which pooling returns the indices of the maxima as well
RETURN_INDICES = "return_indices"


def gives_indices(words: Mapping[str, Any]) -> bool:
    """Whether the keywords of a pooling layer or call ask for indices beside values."""
    indices = words.get(RETURN_INDICES)
    return indices is not None and indices.const is True


def _reduce(fn: FunctionState, state: State, method: _Method, inputs: list[V]) -> V:
    """The value of a reduction: of ``max(dim)`` and the like, the pair of values and indices."""
    expr, receiver, name, args, words = method
    # the first argument of ``norm`` is its order
    over = len(args) > (name == "norm") or any(word in ("dim", "axis", "keepdim") for word in words)
    if name in ("max", "min", "median") and over and not (args and args[0].may_be(TENSORS)):
        values = tensor_op(fn, state, expr.at, inputs, text(expr), size=min(SAMPLE, receiver.size))
        extent = extent_ops.of_method(name, receiver, args, words, expr)
        return values_and_indices(fn, state, expr, values.but(extent=extent))
    size = SCALAR if not over or name == "dist" else reduced(receiver.size)
    certain = receiver.may_be(TENSORS)
    return tensor_op(fn, state, expr.at, inputs, text(expr), what=text(expr), size=size, certain=certain)


#: in-place operations whose first arguments are the axis and the positions
_AT_PLACES = frozenset(
    {"index_add_", "index_copy_", "index_fill_", "index_reduce_", "scatter_", "scatter_add_", "scatter_reduce_"}
)


def _in_place(
    fn: FunctionState, state: State, expr: ir.Call, receiver: V, name: str, args: list[V], words: dict[str, V]
) -> V:
    """The value of ``place.mul_(m).add_(value)``: the place takes over the graphs of the arguments."""
    func = expr.func
    assert isinstance(func, ir.Attr)
    incoming = NOTHING
    # the axis and the positions come first: integers have no graph
    given = args[2:] if name in _AT_PLACES and len(args) > 2 else args
    for value in (*given, *words.values()):
        inner = tensors_within(fn, state, value)
        if inner.src:
            incoming = join(incoming, inner)
    if name in ("zero_", "fill_", "normal_", "uniform_", "random_", "bernoulli_") and not incoming.src:
        return receiver
    if not incoming.src or state.grad == OFF:
        return receiver
    base: ir.Expr = func.value
    averaged = name in ("lerp_", "mul_")
    while isinstance(base, ir.Call) and isinstance(base.func, ir.Attr) and base.func.name.endswith("_"):
        averaged = averaged or base.func.name in ("mul_", "lerp_")
        base = base.func.value
    result = receiver.but(src=receiver.src | incoming.src, bare=receiver.bare or not receiver.src)
    if isinstance(base, ir.Attr) and base.name == "data":
        return receiver
    how = "average" if averaged else "add" if name in ("add_", "sub_") else "update"
    anew = name == "copy_" and not _blends(fn, expr, base, receiver, incoming)
    if name == "copy_" and not anew:  # a mean with the old value carries it on
        how, _ = classify(fn, state, expr.args[0], text(base, 200), incoming)
    _overwrite(fn, state, expr, base, receiver, result, incoming, how, anew=anew)
    return result


def _blends(fn: FunctionState, expr: ir.Call, base: ir.Expr, receiver: V, incoming: V) -> bool:
    """Whether what a place takes over is a mean with its old value: the graph shows it, since the text may read
    no more of the place than its shape or device. A variable's graph also has that of the last round, so that its
    text counts too."""
    if receiver.src.isdisjoint(fn.graphs.closure(incoming.src)):
        return False
    if receiver.syms:
        return not receiver.syms.isdisjoint(fn.graphs.closure(incoming.src))
    return any(mentions(arg, text(base)) for arg in expr.args)


def _overwrite(
    fn: FunctionState,
    state: State,
    expr: ir.Call,
    base: ir.Expr,
    receiver: V,
    result: V,
    incoming: V,
    how: str,
    *,
    anew: bool,
) -> None:
    """The place that an in-place operation changed now holds ``result``; the carry is recorded, unless the operation
    replaces all of the old value."""
    shown = text(base)
    argument = text(expr.args[0]) if expr.args else text(expr)

    def carried(place: Source, kind: PlaceKind, previous: Sources) -> None:
        src = result.src | previous
        note_carry(fn, state, how, Spot(place, kind, shown), result.but(src=src), incoming, expr.at, argument)

    for path in sorted(receiver.syms):
        state.sym[path] = result.but(syms=frozenset())
        if not anew:
            is_buffer = len(path.steps) == 1 and fn.analyser.is_buffer(fn.function, path)
            carried(path, "buffer" if is_buffer else kind_of(path), frozenset((path,)))
        return
    if isinstance(base, ir.Name) and base.id in state.env:
        old = state.env[base.id]
        state.env[base.id] = result
        loop = fn.innermost(())
        if loop is not None and base.id not in loop.bound:
            # the body does not rebind the name, so it has the last round's value
            old = old.marked(("prev", loop.id, base.id))
        if not anew:
            carried(("var", base.id), "local", old.src)
    write_into_view(fn, state, base, receiver, incoming)
    if isinstance(base, ir.Call) and fn.loops and _looks_up(base):
        place = Path(f"x:{shown}")
        carried(place, "foreign", frozenset((place,)))


def _looks_up(call: ir.Call) -> bool:
    """Whether a method finds an existing member by a literal key: ``stats.get("loss")``."""
    literal = all(isinstance(arg, ir.Const) for arg in call.args) and bool(call.args)
    return literal and isinstance(call.func, ir.Attr) and not knowledge.methods().knows(call.func.name)
