"""Calls that leave the project: builtins, the standard library, torch and its frameworks, by the knowledge tables."""

from __future__ import annotations

import msgspec

from memlint import knowledge
from memlint.flow import allocation, batches, inert
from memlint.flow.frame import Frame
from memlint.flow.guards import grad_of_reference, guard_value
from memlint.flow.heap import deep, element, elements_of, make, read_attribute, tuple_of
from memlint.flow.modes import freeze, frozen_of, mode_of
from memlint.flow.ops import device_named, reduced, tensor_op
from memlint.flow.owner import give_away, note_optimizer
from memlint.flow.state import OFF, State
from memlint.flow.syntax import dotted, text
from memlint.flow.values import (
    ACCELERATOR,
    ACTIVATION,
    CALLABLE,
    CPU,
    DATA,
    DATA_VALUE,
    EMPTY,
    LOADER,
    MODEL,
    MODULE,
    NONE,
    NONE_VALUE,
    NOTHING,
    OPTIMIZER,
    SAMPLE,
    SCALAR,
    SOME_SIZE,
    TENSOR,
    TENSORS,
    TREE,
    UNKNOWN,
    UNKNOWN_VALUE,
    Ref,
    V,
    join,
    join_all,
    ordered,
)
from memlint.ir import nodes as ir

_PASS_THROUGH = frozenset(
    {"tqdm", "trange", "track", "prefetch", "auto_tqdm", "notebook_tqdm", "progress_bar", "tqdm_notebook"}
)
#: what runs the module that it is given
_WRAPPERS = frozenset(
    {
        "torch.nn.DataParallel",
        "torch.nn.parallel.DataParallel",
        "torch.nn.parallel.DistributedDataParallel",
        "torch.nn.SyncBatchNorm.convert_sync_batchnorm",
        "torch.compile",
        "torch.jit.script",
        "apex.parallel.DistributedDataParallel",
        "apex.parallel.convert_syncbn_model",
        "torch.distributed.fsdp.FullyShardedDataParallel",
        "intel_extension_for_pytorch.optimize",
    }
)
_CONVERT = frozenset(
    {
        "float",
        "int",
        "str",
        "bool",
        "len",
        "print",
        "repr",
        "isinstance",
        "issubclass",
        "hasattr",
        "id",
        "hash",
        "round",
        "format",
        "type",
        "callable",
        "open",
        "input",
        "ord",
        "chr",
        "any",
        "all",
        "divmod",
        "vars",
        "dir",
        "exit",
        "bytes",
        "range",
        "complex",
        "ascii",
        "bin",
        "hex",
    }
)


def call_external(frame: Frame, state: State, name: str, args: list[V], words: dict[str, V], expr: ir.Call) -> V:
    """Call a function or class outside the project by its qualified name."""
    if name.startswith("builtins."):
        return _builtin(frame, state, name[9:], args, words, expr)
    last = name.rsplit(".", 1)[-1]
    if last in _PASS_THROUGH or name.startswith("tqdm."):
        return args[0] if args else words.get("iterable", DATA_VALUE)
    special = _standard(frame, state, name, last, args, words, expr)
    if special is not None:
        return special
    row = knowledge.function(name)
    if row is None:
        return _unknown_library(frame, state, name, args, words, expr)
    return _by_row(frame, state, name, row, args, words, expr)


def _unknown_library(frame: Frame, state: State, name: str, args: list[V], words: dict[str, V], expr: ir.Call) -> V:
    from memlint.flow.call import unknown_call

    return unknown_call(frame, state, expr, NOTHING, args, words)


# -------------------------------------------------------------------------------------- builtins, standard library


def _builtin(frame: Frame, state: State, name: str, args: list[V], words: dict[str, V], expr: ir.Call) -> V:
    if name in _CONVERT:
        for value in args:
            frame.used |= deep(frame, state, value).src
        return DATA_VALUE
    if name in ("list", "tuple", "set", "frozenset", "sorted", "reversed", "iter"):
        if not args:
            return make(frame, state, expr.at, "list" if name != "set" else "set", NOTHING)
        if name == "iter" or (name == "reversed" and args[0].kinds & MODULE):
            return args[0]
        return make(frame, state, expr.at, "list" if name != "set" else "set", element(frame, state, args[0], expr.at))
    if name == "dict":
        fields = {word: value for word, value in words.items() if not word.startswith("**")}
        for value in args:
            for key in ordered(value.objs):
                if key in state.heap:
                    fields.update(state.heap[key].fields)
        return make(frame, state, expr.at, "dict", NOTHING, fields)
    if name == "next" and args:
        draws(frame, args[0])
        return element(frame, state, args[0], expr.at)
    if name in ("enumerate", "zip") and args:
        given = [element(frame, state, value, expr.at) for value in (args if name == "zip" else args[:1])]
        pair = tuple_of(frame, state, expr.at, given if name == "zip" else [DATA_VALUE, *given])
        return make(frame, state, expr.at, "list", pair).but(refs=_over(args))
    if name == "sum" and args:
        return tensor_op(frame, state, expr.at, [elements_of(frame, state, args[0]), *args[1:]], text(expr))
    if name in ("max", "min") and args:
        inputs = [elements_of(frame, state, args[0])] if len(args) == 1 else args
        return join_all(inputs)
    if name in ("abs", "pow"):
        return tensor_op(frame, state, expr.at, args, text(expr))
    if name in ("map", "filter") and len(args) >= 2:
        from memlint.flow.call import call_value

        items = [element(frame, state, value, expr.at) for value in args[1:]]
        if name == "filter":
            return make(frame, state, expr.at, "list", items[0])
        inner = ir.Call(expr.at, expr.args[0] if expr.args else expr.func, (), ())
        return make(frame, state, (expr.at, "map"), "list", call_value(frame, state, args[0], items, {}, inner))
    if name == "getattr" and len(args) >= 2 and isinstance(args[1].const, str):
        found = read_attribute(frame, state, args[0], args[1].const, None)
        return join(found, args[2]) if len(args) > 2 and not args[2].is_only(NONE) else found
    if name == "setattr" and len(args) == 3 and isinstance(args[1].const, str):
        from memlint.flow.interpret import write_attribute

        write_attribute(frame, state, args[0], args[1].const, args[2])
        return NONE_VALUE
    if name == "super":
        return UNKNOWN_VALUE
    if name in (
        "Exception",
        "ValueError",
        "RuntimeError",
        "NotImplementedError",
        "KeyError",
        "slice",
        "object",
        "globals",
        "locals",
    ):
        return DATA_VALUE
    return DATA_VALUE if name[:1].isupper() else UNKNOWN_VALUE


def draws(frame: Frame, source: V) -> None:
    """The loop around takes a batch from ``source``: where that is a loader, the loop runs over batches."""
    frame.notes.drawn.update(source.syms)
    loop = frame.innermost(())
    if source.kinds & LOADER and loop is not None and loop.loop.over in ("unknown", "range"):
        loop.loop = msgspec.structs.replace(loop.loop, over="loader")


def _over(args: list[V]) -> frozenset[Ref]:
    if any(
        value.kinds & LOADER or any(ref.kind == "over" and ref.name == "loader" for ref in value.refs) for value in args
    ):
        return frozenset((Ref("over", "", "loader"),))
    if any(value.kinds & MODULE or any(ref.kind == "over" for ref in value.refs) for value in args):
        return frozenset((Ref("over", "", "modules"),))
    return EMPTY


def _standard(
    frame: Frame, state: State, name: str, last: str, args: list[V], words: dict[str, V], expr: ir.Call
) -> V | None:
    """The standard library's containers, iterators and wrappers; None for other names."""
    if name == "collections.deque":
        maxlen = words.get("maxlen") or (args[1] if len(args) > 1 else None)
        bounded = maxlen is not None and not maxlen.is_only(NONE)
        return make(
            frame,
            state,
            expr.at,
            "deque",
            element(frame, state, args[0], expr.at) if args else NOTHING,
            bounded=bounded,
        ).but(refs=frozenset((Ref("bounded", "", ""),)) if bounded else EMPTY)
    if name in ("collections.defaultdict", "collections.OrderedDict"):
        result = make(frame, state, expr.at, "dict", NOTHING)
        if last == "defaultdict" and args:
            from memlint.flow.call import call_value

            inner = (
                call_value(frame, state, args[0], [], {}, ir.Call(expr.at, expr.args[0], (), ()))
                if args[0].kinds & CALLABLE
                else NOTHING
            )
            for ref in ordered(args[0].refs):
                if ref.kind == "ext" and ref.name in ("builtins.list", "builtins.set", "collections.deque"):
                    inner = make(frame, state, (expr.at, "default"), "list", NOTHING)
            for key in ordered(result.objs):
                state.heap[key] = state.heap[key].with_elem(inner)
        return result
    if name in (
        "queue.Queue",
        "queue.LifoQueue",
        "queue.SimpleQueue",
        "multiprocessing.Queue",
        "torch.multiprocessing.Queue",
    ):
        bounded = bool(args or "maxsize" in words)
        return make(frame, state, expr.at, "queue", NOTHING, bounded=bounded)
    if name == "functools.partial" and args:
        return V(CALLABLE, refs=frozenset((Ref("partial", "", "", args[0], tuple(args[1:]), tuple(words.items())),)))
    if name == "copy.deepcopy" and args and args[0].kinds & (MODULE | UNKNOWN) and (args[0].syms or args[0].store):
        made = args[0].but(syms=EMPTY, store=frozenset((expr.at,)), src=EMPTY)
        same = args[0].but(refs=EMPTY)
        frozen, (mode, _) = frozen_of(frame.analyser, state, same, expr.args[0]), mode_of(state, same, expr.args[0])
        if frozen is not False:
            freeze(state, made, None, frozen)
        if mode is not None:
            state.modes["made", expr.at] = mode
        return made
    if name in _WRAPPERS and (args or "module" in words):
        wrapped = args[0] if args else words["module"]
        return (
            wrapped.but(kinds=wrapped.kinds & ~UNKNOWN | MODULE, src=EMPTY)
            if wrapped.kinds & (MODULE | UNKNOWN)
            else wrapped
        )
    if name in (
        "itertools.cycle",
        "itertools.islice",
        "copy.copy",
        "copy.deepcopy",
        "itertools.takewhile",
        "more_itertools.peekable",
    ):
        return args[0] if args else UNKNOWN_VALUE
    if name in ("itertools.chain", "itertools.product", "itertools.zip_longest", "itertools.starmap"):
        return make(
            frame, state, expr.at, "list", join_all(element(frame, state, value, expr.at) for value in args)
        ).but(refs=_over(args))
    if name == "itertools.count" or name.startswith("itertools."):
        return DATA_VALUE
    if name in ("contextlib.nullcontext", "contextlib.suppress", "contextlib.ExitStack", "contextlib.closing"):
        return args[0] if args and last in ("nullcontext", "closing") else DATA_VALUE
    if name in ("types.SimpleNamespace", "argparse.Namespace", "easydict.EasyDict"):
        return make(
            frame,
            state,
            expr.at,
            "dict",
            NOTHING,
            {word: value for word, value in words.items() if not word.startswith("**")},
        )
    if name in ("functools.reduce",) and len(args) >= 2:
        return tensor_op(frame, state, expr.at, [elements_of(frame, state, args[1]), *args[2:]], text(expr))
    return None


# -------------------------------------------------------------------------------------- by the tables


def _by_row(
    frame: Frame, state: State, name: str, row: knowledge.Row, args: list[V], words: dict[str, V], expr: ir.Call
) -> V:
    if row.context:
        grad = grad_of_reference(frame, state, V(CALLABLE, refs=frozenset((Ref("ext", "", name),))), expr)
        if row.context == "argument" and grad is not None and _is_statement(frame, expr):
            state.grad = grad
        if args and args[0].kinds & CALLABLE and row.context in ("off", "on"):
            return args[0]
        return guard_value(frame, state, OFF if grad is None else grad)
    inner = [deep(frame, state, value) for value in args] + [deep(frame, state, value) for value in words.values()]
    if row.graph == "backward":
        for value in inner:
            frame.backward(state, value, expr.at)
        return NONE_VALUE
    if row.graph == "grad":
        return _autograd_grad(frame, state, inner, words, expr)
    if row.graph == "alias" and (needs := words.get("requires_grad")) is not None and needs.const is True:
        src = frame.record(state, expr.at, expr.at, text(expr), EMPTY, definite=True)
        return (args[0] if args else V(TENSOR)).but(src=src, kinds=TENSOR)
    if row.graph == "alias":
        if "volatile" in words:
            inert.volatile(frame, state, expr, words["volatile"])
        if not args:
            return inner[0] if inner else UNKNOWN_VALUE
        return (
            args[0]
            if not name.endswith(("split", "chunk", "unbind"))
            else make(frame, state, expr.at, "tuple", inner[0])
        )
    if row.graph == "leaf":
        src = frame.record(state, expr.at, expr.at, text(expr), EMPTY, definite=True, leaf=True)
        return V(TENSOR, src, size=MODEL, device=_device_word(words))
    if row.returns == "none":
        return NONE_VALUE
    if row.returns == "data":
        for value in inner:
            frame.used |= value.src
        return V(DATA, size=SCALAR, device=_literal_device(name, args))
    if row.returns == "loader":
        if name.startswith("torch."):
            batches.loader_made(frame, expr)
        return V(LOADER)
    if row.returns == "optimizer":
        if "optim" in name and "lr_scheduler" not in name:
            note_optimizer(frame, state, next(iter(args), words.get("params")))
        return V(OPTIMIZER)
    if row.returns == "metric":
        return V(CALLABLE, refs=frozenset((Ref("extinstance", "", name),)))
    if row.returns in ("module", "plainmodule", "lossmodule"):
        give_away(frame, state, [*args, *words.values()])
        refs = (
            frozenset((Ref("extinstance", "", name),))
            if name.startswith("torch.nn.") or row.returns != "module"
            else EMPTY
        )
        return V(MODULE if row.returns == "module" else CALLABLE, refs=refs, store=frozenset((expr.at,)))
    if row.graph == "none":
        for value in inner:
            frame.used |= value.src
        if row.allocates:
            allocation.made(frame, state, name, expr, args, words)
        size = {"sample": SAMPLE, "scalar": SCALAR, "model": MODEL}.get(row.size, SOME_SIZE)
        if (
            name in ("torch.tensor", "torch.as_tensor", "torch.Tensor", "torch.FloatTensor")
            and args
            and args[0].is_only(DATA)
        ):
            size = SCALAR
        follows = args and "device" not in words and (name.endswith("_like") or not row.allocates)
        device = args[0].device if follows else _device_word(words)
        if name.startswith("torch.cuda."):
            device = ACCELERATOR
        return V(TENSOR if row.returns == "tensor" else TREE, size=size, device=device, store=frozenset((expr.at,)))
    return _operation(frame, state, row, inner, args, words, expr)


def _operation(
    frame: Frame, state: State, row: knowledge.Row, inner: list[V], args: list[V], words: dict[str, V], expr: ir.Call
) -> V:
    if row.returns == "values-indices":
        over = any(word in words for word in ("dim", "axis", "k", "keepdim")) or (
            len(args) > 1 and not args[1].may_be(TENSORS)
        )
        if over or (row.size == "sample" and dotted(expr.func).endswith(("topk", "sort"))):
            from memlint.flow.tensors import values_and_indices

            values = tensor_op(frame, state, expr.at, inner, text(expr), size=SAMPLE, certain=True)
            return values_and_indices(frame, state, expr, values)
        return tensor_op(frame, state, expr.at, inner, text(expr), size=SCALAR, certain=True)
    size: int | None = None
    if row.size == "reduced":
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
    result = tensor_op(frame, state, expr.at, inner, text(expr), what=text(expr), size=size, certain=True)
    if row.returns == "tree":
        return result.but(kinds=TREE)
    return result


def _autograd_grad(frame: Frame, state: State, inner: list[V], words: dict[str, V], expr: ir.Call) -> V:
    """autograd.grad: attached only with create_graph; it frees the graph unless told to keep it."""
    create, retain = words.get("create_graph"), words.get("retain_graph")
    keeps = (create is not None and create.const is not False) or (retain is not None and retain.const is not False)
    outputs = words.get("outputs") or (inner[0] if inner else NOTHING)
    frame.backward(state, deep(frame, state, outputs), expr.at, retain=keeps)
    frame.notes.gradients = True
    if create is not None and create.const is not False:
        src = frame.record(state, expr.at, expr.at, text(expr), outputs.src, definite=create.const is True)
        return V(TREE, src, size=MODEL)
    return V(TREE, size=MODEL)


def call_instance(
    frame: Frame, state: State, name: str, args: list[V], words: dict[str, V], expr: ir.Call, module: V = NOTHING
) -> V:
    """Call an instance of an external class: a loss, an activation, a layer."""
    row = knowledge.function(name)
    kind = row.returns if row is not None else ""
    inner = [deep(frame, state, value) for value in (*args, *words.values())]
    if kind == "lossmodule":
        return tensor_op(frame, state, expr.at, inner, text(expr), what=text(expr), size=SCALAR, certain=True)
    if kind == "metric":
        return V(TENSOR, size=SCALAR)
    if kind == "plainmodule":
        return tensor_op(frame, state, expr.at, inner, text(expr), what=text(expr), certain=True)
    from memlint.flow.call import module_expression, note_run
    from memlint.flow.modes import frozen_of
    from memlint.flow.placement import device_of

    frozen = frozen_of(frame.analyser, state, module, module_expression(expr, module)) is True
    parents = frozenset(source for value in inner for source in value.src)
    key = (expr.at, "run")
    src = frame.record(state, key, expr.at, text(expr.func), parents, definite=not frozen, model=not frozen)
    device = device_of(frame, state, inner)
    kinds = (
        TREE
        if name.rsplit(".", 1)[-1] in ("LSTM", "GRU", "RNN", "LSTMCell") or not name.startswith("torch.nn.")
        else TENSOR
    )
    result = V(kinds, src, size=ACTIVATION, device=device, store=frozenset((key,)))
    if src and not frozen:
        own = V(MODULE, refs=frozenset((Ref("extinstance", "", name),)), syms=module.syms, store=module.store)
        note_run(frame, state, expr, own, result, key, args)
    return result


def call_instance_method(
    frame: Frame, state: State, name: str, method: str, receiver: V, args: list[V], words: dict[str, V], expr: ir.Call
) -> V:
    """A method of an instance of an external class."""
    from memlint.flow.call import _module_method
    from memlint.flow.modes import set_mode

    if method in ("eval", "train") and receiver.kinds & MODULE and isinstance(expr.func, ir.Attr):
        set_mode(state, expr.func, receiver, method, args, words)
    if receiver.kinds & MODULE or method in ("to", "cuda", "eval", "train"):
        return _module_method(frame, state, expr, receiver, method, args, words)
    row = knowledge.function(name)
    if row is not None and row.returns == "metric":
        return _metric_method(receiver, method)
    if method == "forward":
        return call_instance(frame, state, name, args, words, expr, receiver)
    return UNKNOWN_VALUE


def _metric_method(receiver: V, method: str) -> V:
    """A metric object of a library keeps numbers, or copies without a graph, of what it is given."""
    if method in ("to", "cuda", "cpu", "clone"):
        return receiver
    return V(TENSOR, size=SCALAR) if method in ("compute", "forward", "__call__") else NONE_VALUE


def _is_statement(frame: Frame, expr: ir.Call) -> bool:
    return isinstance(frame.statement, ir.ExprStmt) and frame.statement.value is expr


def _device_word(words: dict[str, V]) -> int:
    device = words.get("device")
    if device is None:
        return CPU
    return (
        device_named(device.const) if device.const is not None else device.device & (CPU | ACCELERATOR) or ACCELERATOR
    )


def _literal_device(name: str, args: list[V]) -> int:
    """``torch.device("cuda" if … else "cpu")`` is meant for the accelerator."""
    if name != "torch.device" or not args:
        return 4
    return device_named(args[0].const) if args[0].const is not None else ACCELERATOR
