"""Calls that leave the project: builtins, the standard library, torch and its frameworks, by the knowledge tables."""

from __future__ import annotations

import itertools
from typing import Any, NamedTuple

from memlint import knowledge
from memlint.analysis.domain.extents.extents import Extent
from memlint.analysis.domain.parts_taken import CONTAINED
from memlint.analysis.domain.state import OFF, State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.tensor_ops import cut, on_accelerator, reduced, tensor_op
from memlint.analysis.domain.values import (
    ACCELERATOR,
    ACTIVATION,
    ANYWHERE,
    CALLABLE,
    CPU,
    DATA,
    DATA_VALUE,
    ELSEWHERE,
    EMPTY,
    LOADER,
    MODEL,
    MODULE,
    NONE_VALUE,
    NOTHING,
    OPTIMIZER,
    OWN_DEVICE,
    SAMPLE,
    SCALAR,
    SOME_SIZE,
    TENSOR,
    TENSORS,
    TREE,
    UNKNOWN_VALUE,
    Ref,
    V,
)
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import dotted, last_name
from memlint.analysis.transfer.heap import make, note_compared
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.library import batches, chains, extent_ops, factories, instances, layer_extents, threads
from memlint.analysis.transfer.library.noted_runs import is_statement, note_call
from memlint.analysis.transfer.library.placement import destination
from memlint.analysis.transfer.library.standard_library import builtin, literal_device, standard
from memlint.analysis.transfer.library.tensors import RETURN_INDICES, gives_indices, names_integers, values_and_indices
from memlint.analysis.transfer.modules import inert_guards
from memlint.analysis.transfer.modules.contained import contained_modules
from memlint.analysis.transfer.modules.freezing import note_frozen_members
from memlint.analysis.transfer.modules.guards import grad_of_reference, guard_value
from memlint.analysis.transfer.modules.made_leaves import as_leaf
from memlint.analysis.transfer.modules.modes import MODULE_CONTAINERS
from memlint.analysis.transfer.modules.optimizer_parameters import note_escaped_modules, note_optimizer
from memlint.analysis.transfer.stores.class_places import note_made
from memlint.analysis.transfer.unresolved import unknown_call
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

_PASS_THROUGH = frozenset(
    {"tqdm", "trange", "track", "prefetch", "auto_tqdm", "notebook_tqdm", "progress_bar", "tqdm_notebook"}
)


def call_external(fn: FunctionState, state: State, name: str, args: list[V], words: dict[str, V], expr: ir.Call) -> V:
    """The value of a call of a function or class outside the project, by its qualified name."""
    note_call(fn, name, expr, args, words)
    if name.startswith("builtins."):
        return builtin(fn, state, name[9:], args, words, expr)
    last = name.rsplit(".", 1)[-1]
    if name == "threading.Thread":
        threads.thread(fn, state, expr, words)
    if last in _PASS_THROUGH or name.startswith("tqdm."):
        return args[0] if args else words.get("iterable", DATA_VALUE)
    special = standard(fn, state, name, last, args, words, expr)
    if special is not None:
        return special
    row = knowledge.function(name)
    if row is None or row.returns == "unknown":
        return _unknown_library(fn, state, name, args, words, expr)
    made = _by_row(fn, state, name, row, args, words, expr)
    return made.but(extent=_extent(state, name, args, words, expr)) if made.kinds & TENSORS else made


def _extent(state: State, name: str, args: list[V], words: dict[str, V], expr: ir.Call) -> Extent | None:
    """The extent of the result of a function of torch; None for unknown."""
    first = args[0] if args else words.get("tensors", NOTHING)
    objs = [obj for _, obj in state.objects(first)]
    parts = [part for obj in objs for part in obj.members if part.kinds]
    return extent_ops.of_function(name, args, words, expr, parts)


def _unknown_library(
    fn: FunctionState, state: State, name: str, args: list[V], words: dict[str, V], expr: ir.Call
) -> V:
    made = unknown_call(fn, state, expr, NOTHING, args, words)
    return made.but(refs=frozenset((Ref("foreign", "", name),))) if instances.names_class(name) else made


# -------------------------------------------------------------------------------------- by the tables


#: functions of numpy that call `numpy()` on a tensor, which raises for a tensor with a graph
_ARRAYS = frozenset({"numpy.array", "numpy.asarray"})


class _Call(NamedTuple):
    """A call of a function of the knowledge tables. ``inner``: the tensors within each argument."""

    name: str
    row: knowledge.Row
    args: list[V]
    words: dict[str, V]
    expr: ir.Call
    inner: list[V]


def _by_row(
    fn: FunctionState, state: State, name: str, row: knowledge.Row, args: list[V], words: dict[str, V], expr: ir.Call
) -> V:
    if row.context:
        grad = grad_of_reference(fn, state, V(CALLABLE, refs=frozenset((Ref("ext", "", name),))), expr)
        if row.context == "argument" and grad is not None and is_statement(fn, expr):
            state.grad = grad
        if args and args[0].kinds & CALLABLE and row.context in ("off", "on"):
            return args[0]
        return guard_value(OFF if grad is None else grad)
    inner = [tensors_within(fn, state, value) for value in (*args, *words.values())]
    call = _Call(name, row, args, words, expr, inner)
    if row.graph in ("backward", "grad", "alias", "cut", "leaf"):
        return _by_graph(fn, state, call)
    if row.returns == "none":
        return NONE_VALUE
    if row.returns in ("data", "loader", "optimizer", "metric"):
        return _by_result(fn, state, call)
    if row.returns in ("module", "plainmodule", "lossmodule"):
        return _module_made(fn, state, call)
    if row.returns in ("module-transform", "module-transform-transform"):
        parts = {str(at): V(CALLABLE) for at in range(row.returns.count("-") + 1)}
        parts["0"] = V(MODULE, refs=frozenset((Ref("foreign", "", name),)), store=frozenset((expr.at,)))
        return make(fn, state, expr.at, "tuple", NOTHING, parts)
    if row.graph in ("none", "given"):
        return _without_graph(fn, state, call)
    return _operation(fn, state, call)


def _by_graph(fn: FunctionState, state: State, call: _Call) -> V:
    """The value of a function that runs a backward, returns its argument, or makes a leaf."""
    name, row, args, words, expr, inner = call
    if row.graph == "backward":
        for value in inner:
            fn.backward(state, value, expr.at)
        return NONE_VALUE
    if row.graph == "grad":
        return _autograd_grad(fn, state, inner, words, expr)
    if row.graph == "alias":
        if not args:
            return inner[0] if inner else UNKNOWN_VALUE
        return (
            args[0] if not name.endswith(("split", "chunk", "unbind")) else make(fn, state, expr.at, "tuple", inner[0])
        )
    if row.graph == "cut":
        return _variable(fn, state, call)
    needs = words.get("requires_grad", args[1] if len(args) > 1 else None)
    # a parameter that is made on the host moves to the device with its module
    device = ACCELERATOR if args and on_accelerator(args[0].device) else ANYWHERE
    if needs is not None and needs.const is False:
        return V(TENSOR, size=MODEL, device=device)
    src = fn.record(state, expr.at, expr.at, text(expr), EMPTY, definite=True, leaf=True)
    return V(TENSOR, src, size=MODEL, device=device)


def _variable(fn: FunctionState, state: State, call: _Call) -> V:
    """The leaf that ``Variable(x)`` makes: it shares the storage of ``x``, and not its graph."""
    _, _, args, words, expr, inner = call
    if "volatile" in words:
        inert_guards.note_volatile(fn, state, expr, words["volatile"])
    given = args[0] if args else words.get("data", V(TENSOR))
    fn.used = fn.used.union(*(value.src for value in inner))
    needs = words.get("requires_grad", args[1] if len(args) > 1 else None)
    if needs is not None and needs.const is True:
        src = fn.record(state, expr.at, expr.at, text(expr), EMPTY, definite=True, leaf=True)
        return given.but(src=src, kinds=TENSOR)
    return cut(given, TENSOR)


def _by_result(fn: FunctionState, state: State, call: _Call) -> V:
    """The value of a function that returns data, a loader, an optimizer or a metric."""
    name, row, args, words, expr, inner = call
    if row.returns == "data":
        if name in _ARRAYS and args and args[0].is_only(TENSOR) and args[0].src and not fn.handlers:
            fn.notes.arrays.append((args[0].src, tuple(fn.tests), args[0].bare))
        for value in inner:
            fn.used |= value.src
        extent = batches.of_tensors(args) if name == batches.TENSORS else None
        return V(DATA, size=SCALAR, device=literal_device(name, args), extent=extent)
    if row.returns == "loader":
        if name.startswith("torch."):
            batches.note_loader(fn, expr)
        size = SAMPLE if batches.hold_one_sample(name, expr, words) else SOME_SIZE
        return V(LOADER, size=size, extent=batches.of_loader(fn, name, args, words, expr))
    if row.returns == "optimizer":
        if "optim" in name and "lr_scheduler" not in name:
            note_optimizer(fn, state, next(iter(args), words.get("params")))
        return V(OPTIMIZER)
    return V(CALLABLE, refs=frozenset((Ref("extinstance", "", name),)))


def _module_made(fn: FunctionState, state: State, call: _Call) -> V:
    """The module that a library's class makes."""
    name, row, args, words, expr = call.name, call.row, call.args, call.words, call.expr
    note_escaped_modules(fn, state, [*args, *words.values()])
    layer = _layer(fn, name, args, words, expr)
    chain = instances.members(name, args, expr.args)
    if chain:
        note_made(fn, expr)
    # the list holds the members of a starred argument separately
    whole = [
        fn.spread.get(shown.at, value) if isinstance(shown, ir.Starred) else value
        for shown, value in itertools.zip_longest(expr.args[: len(args)], args)
    ]
    contained = contained_modules(fn, state, whole) if name in MODULE_CONTAINERS else None
    refs = (
        frozenset((Ref("extinstance", "", name, args=chain, keywords=_made_with(layer, words, contained)),))
        if name.startswith("torch.nn.") or row.returns != "module"
        else frozenset((Ref("foreign", "", name),))
    )
    made = V(MODULE if row.returns == "module" else CALLABLE, refs=refs, store=frozenset((expr.at,)))
    note_frozen_members(fn, state, name, whole, made)
    if row.evaluates:
        state.modes["made", expr.at] = True
    if row.starts_evaluating:
        state.modes["starts", ("made", expr.at)] = True
    return made


def _layer(
    fn: FunctionState, name: str, args: list[V], words: dict[str, V], expr: ir.Call
) -> layer_extents.Layer | None:
    """What is known of a layer of torch that is made; None for another module."""
    function = fn.function
    known = layer_extents.layer_of(name, args, words, expr, lambda size: fn.analyser.facts.number(size, function))
    if known is None and name == "torch.nn.Sequential":
        last = chains.last_layer(fn, expr)
        # nothing is known of the layers in front of it
        return layer_extents.Layer("Sequential", (), (None, last)) if last is not None else None
    return known


def _without_graph(fn: FunctionState, state: State, call: _Call) -> V:
    """The value of a function whose result has no graph, or that of the tensors that it is given."""
    name, row, args, words, expr, inner = call
    for value in inner:
        fn.used |= value.src
    keeps = row.graph == "given" and not names_integers(expr)
    graphs = [value.src for value in args if value.is_only(TENSORS)] if keeps else []
    if row.allocates:
        factories.note_factory(fn, state, name, expr, args, words)
    size = {"sample": SAMPLE, "scalar": SCALAR, "model": MODEL}.get(row.size, SOME_SIZE)
    if (
        name in ("torch.tensor", "torch.as_tensor", "torch.Tensor", "torch.FloatTensor")
        and args
        and args[0].is_only(DATA)
    ):
        size = SCALAR
    follows = args and "device" not in words and (name.endswith("_like") or not row.allocates)
    device = args[0].device if follows else _device_word(words, expr)
    if name.startswith("torch.cuda."):
        device = ACCELERATOR
    store = frozenset((expr.at, ELSEWHERE)) if row.shares else frozenset((expr.at,))
    src = EMPTY.union(*graphs)
    made = V(TENSOR if row.returns == "tensor" else TREE, src, size=size, device=device, store=store)
    needs = words.get("requires_grad")
    return as_leaf(fn, state, made, expr.at) if needs is not None and needs.const is True else made


def _made_with(
    layer: layer_extents.Layer | None, words: dict[str, V], contained: V | None
) -> tuple[tuple[str, Any], ...]:
    """The facts about a module from its constructor call: the sizes of a layer, whether it returns indices beside
    values, and the first modules of a container."""
    found: list[tuple[str, Any]] = [("layer", layer)] if layer is not None else []
    found += [(word, value) for word, value in words.items() if word == RETURN_INDICES]
    return (*found, (CONTAINED, contained)) if contained is not None else tuple(found)


#: functions that return the pair for any arguments, by their last name
_GIVES_PAIRS = lazy_pattern(r"topk|sort|mode|cummax|cummin|\w+_with_indices")


def _operation(fn: FunctionState, state: State, call: _Call) -> V:
    row, args, words, expr, inner = call.row, call.args, call.words, call.expr, call.inner
    if row.returns == "values-indices" or gives_indices(words):
        over = any(word in words for word in ("dim", "axis", "k", "keepdim")) or (
            len(args) > 1 and not args[1].may_be(TENSORS)
        )
        if over or gives_indices(words) or _GIVES_PAIRS.fullmatch(last_name(expr.func)):
            of_sample = SAMPLE if row.size == "sample" else None
            values = tensor_op(fn, state, expr.at, inner, text(expr), size=of_sample, certain=True)
            extent = extent_ops.of_function(dotted(expr.func), args, words, expr, [])
            return values_and_indices(fn, state, expr, values.but(extent=extent), of_sample or ACTIVATION)
        return tensor_op(fn, state, expr.at, inner, text(expr), size=SCALAR, certain=True)
    size: int | None = None
    if row.size == "reduced":
        if args and expr.args:
            note_compared(fn, args[0], text(expr.args[0]))
        reduction = words.get("reduction")
        size = SCALAR if reduction is None or reduction.const in ("mean", "sum", None) else SAMPLE
        reduce = words.get("reduce")
        if reduce is not None and reduce.const is False:
            size = SAMPLE
    elif row.size == "reduction":
        whole = len(args) == 1 and "dim" not in words and "axis" not in words
        size = (
            SCALAR
            if whole
            else reduced(max((value.size for value in inner if value.kinds & TENSORS), default=SOME_SIZE))
        )
    elif row.size == "sample":
        size = SAMPLE
    result = tensor_op(fn, state, expr.at, inner, text(expr), what=text(expr), size=size, certain=True)
    if row.shares:
        result = result.but(store=result.store | {ELSEWHERE})
    if row.returns == "tree":
        return result.but(kinds=TREE)
    return result.but(kinds=args[0].kinds) if row.returns == "same" and args else result


def _autograd_grad(fn: FunctionState, state: State, inner: list[V], words: dict[str, V], expr: ir.Call) -> V:
    """The value of autograd.grad: it has a graph only with create_graph. The call frees the differentiated graph
    unless it is retained."""
    create, retain = words.get("create_graph"), words.get("retain_graph")
    keeps = (create is not None and create.const is not False) or (retain is not None and retain.const is not False)
    outputs = words.get("outputs") or (inner[0] if inner else NOTHING)
    differentiated = tensors_within(fn, state, outputs)
    fn.backward(state, differentiated, expr.at, retain=keeps)
    if retain is not None and retain.const is True:
        fn.notes.retained.setdefault(expr.at, (expr, frozenset(fn.left)))
    fn.notes.gradients = True
    open_ended = len(expr.args) > 3 or any(word.name is None for word in expr.keywords)
    fn.notes.keeps_gradients |= keeps or open_ended
    fn.notes.unknown_gradients |= not differentiated.src
    if create is not None and create.const is not False:
        src = fn.record(state, expr.at, expr.at, text(expr), outputs.src, definite=create.const is True)
        return V(TREE, src, size=MODEL)
    return V(TREE, size=MODEL)


def _device_word(words: dict[str, V], expr: ir.Call) -> int:
    device = words.get("device")
    if device is None:
        return CPU
    if OWN_DEVICE in device.refs:
        return device.device
    return destination(device, next((word.value for word in expr.keywords if word.name == "device"), None))
