"""Functions of the standard library and builtins."""

from __future__ import annotations

import msgspec

from memlint.analysis.domain.declared_values import as_declared
from memlint.analysis.domain.recorded_modes import freeze, mode_of
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.tensor_ops import cut, device_named, tensor_op
from memlint.analysis.domain.values import (
    ACCELERATOR,
    ANYWHERE,
    CALLABLE,
    DATA_VALUE,
    EMPTY,
    LOADER,
    MODULE,
    NONE,
    NONE_VALUE,
    NOTHING,
    OF_MODULES,
    OVER_LOADER,
    PER_BATCH,
    TREE,
    UNKNOWN,
    UNKNOWN_VALUE,
    Args,
    Ref,
    Source,
    V,
    Words,
    join,
    join_all,
    ordered,
)
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.transfer import containers, function_tables, records, user_containers
from memlint.analysis.transfer.assignment import assign_attribute
from memlint.analysis.transfer.comprehensions import comprehension, members_of
from memlint.analysis.transfer.heap import element, elements_of, make, tuple_of
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.loops import over_loader
from memlint.analysis.transfer.modules.modes import frozen_of
from memlint.analysis.transfer.modules.touched_parameters import note_disabled
from memlint.analysis.transfer.reading import read_attribute
from memlint.analysis.transfer.stores.class_places import class_of
from memlint.ir import nodes as ir

_CONVERT = frozenset({
    "float", "int", "str", "bool", "len", "print", "repr", "isinstance", "issubclass", "hasattr", "id", "hash", "round",
    "format", "type", "callable", "open", "input", "ord", "chr", "any", "all", "divmod", "vars", "dir", "exit", "bytes",
    "range", "complex", "ascii", "bin", "hex",
})  # fmt: skip


#: functions that equal arithmetic operators
_OPERATORS = frozenset(f"operator.{name}" for name in ("add", "sub", "mul", "truediv", "iadd", "isub", "imul"))
#: a class that stands for any class of a library's module
_ANY_OF = {"torch.nn": "Module", "torch.optim": "Optimizer", "torchvision.models": "resnet18"}


def _called(fn: FunctionState, state: State, callee: V, args: list[V], words: dict[str, V], expr: ir.Call) -> V:
    """The value of a callable that a library's function calls."""
    return fn.interpreter.call_value(fn, state, callee, args, words, expr)


def builtin(fn: FunctionState, state: State, name: str, args: list[V], words: dict[str, V], expr: ir.Call) -> V:
    if name == "type" and len(args) == 1 and (cls := class_of(args[0])) is not None:
        return cls
    if name in _CONVERT:
        for value in args:
            fn.used |= tensors_within(fn, state, value).src
        return DATA_VALUE
    if name in ("list", "tuple", "set", "sorted", "sum") and args and PER_BATCH in args[0].refs and len(expr.args) == 1:
        args = [comprehension(fn, state, members_of(expr.args[0]))]
    if name in ("list", "tuple", "set", "frozenset", "sorted", "reversed", "iter"):
        if args and (name == "iter" or (name == "reversed" and args[0].kinds & MODULE)):
            return args[0]
        held = element(fn, state, args[0]) if args else NOTHING
        return make(fn, state, expr.at, "list" if name != "set" else "set", held)
    if name == "dict":
        return _dict_of(fn, state, expr.at, args, words)
    if name == "next" and args:
        note_drawn(fn, args[0])
        return element(fn, state, args[0])
    if name in ("enumerate", "zip") and args:
        parts = [element(fn, state, value) for value in (args if name == "zip" else args[:1])]
        pair = tuple_of(fn, state, expr.at, parts if name == "zip" else [DATA_VALUE, *parts])
        return make(fn, state, expr.at, "list", pair).but(refs=_over(args))
    if name == "sum" and args:
        return tensor_op(fn, state, expr.at, [elements_of(fn, state, args[0]), *args[1:]], text(expr))
    if name in ("max", "min") and args:
        inputs = [elements_of(fn, state, args[0])] if len(args) == 1 else args
        return join_all(inputs)
    if name in ("abs", "pow"):
        return tensor_op(fn, state, expr.at, args, text(expr))
    if name in ("map", "filter") and len(args) >= 2:
        items = [element(fn, state, value) for value in args[1:]]
        if name == "filter":
            return make(fn, state, expr.at, "list", items[0])
        inner = ir.Call(expr.at, expr.args[0] if expr.args else expr.func, (), ())
        return make(fn, state, (expr.at, "map"), "list", _called(fn, state, args[0], items, {}, inner))
    if name == "getattr" and len(args) >= 2:
        return _attribute_by_name(fn, state, args)
    if name == "setattr" and len(args) == 3:
        return _set_by_name(fn, state, expr, args)
    plain = name[:1].isupper() or name in ("slice", "object", "globals", "locals")  # exceptions among them
    return DATA_VALUE if plain else UNKNOWN_VALUE


def _set_by_name(fn: FunctionState, state: State, expr: ir.Call, args: list[V]) -> V:
    """``setattr(x, name, value)``; under an unknown name, any code may read the value again."""
    owner, name, value = args
    if not isinstance(name.const, str) or len(expr.args) != 3:
        fn.leave(fn.graphs.closure(tensors_within(fn, state, value).src))
        return NONE_VALUE
    if name.const == "requires_grad" and value.const is not True:
        note_disabled(fn, owner)
    assign_attribute(fn, state, expr, (expr.args[0], owner), name.const, (expr.args[2], value))
    return NONE_VALUE


def _attribute_by_name(fn: FunctionState, state: State, args: list[V]) -> V:
    """The value of ``getattr(x, name)``, with or without a default."""
    if isinstance(args[1].const, str):
        found = read_attribute(fn, state, args[0], args[1].const)
        return join(found, args[2]) if len(args) > 2 and not args[2].is_only(NONE) else found
    if len(args) > 2:
        return UNKNOWN_VALUE
    if any(ref.kind == "ext" for ref in args[0].refs):
        # ``getattr(nn.functional, name)``: one of those, whichever it is
        some = frozenset(Ref("ext", "", f"{ref.name}.{_ANY_OF.get(ref.name, 'any')}") for ref in args[0].refs)
        return V(CALLABLE, refs=some)
    if (networks := function_tables.of_module(fn, args[0])).kinds:
        return networks
    if args[0].kinds & MODULE and args[0].syms:
        parts = frozenset(path.then(".*") for path in args[0].syms)  # the part that a run of it determines
        return V(UNKNOWN, parts, syms=parts)
    return UNKNOWN_VALUE


def bound_to(function: V, args: Args, words: Words) -> V:
    """A partial function with these arguments."""
    return V(CALLABLE, refs=frozenset((Ref("partial", "", "", function, tuple(args), tuple(words.items())),)))


def _dict_of(fn: FunctionState, state: State, at: Source, args: list[V], words: dict[str, V]) -> V:
    """The value of ``dict(a=x)``, ``dict(other)``, ``dict((name, x) for …)``."""
    fields, rest = user_containers.dict_content(fn, state, args, words)
    return make(fn, state, at, "dict", rest, fields)


def note_drawn(fn: FunctionState, source: V) -> None:
    """The loop around takes a batch from ``source``: it runs over batches, where that is a loader."""
    fn.notes.drawn.update(source.syms)
    loop = fn.innermost(())
    if source.kinds & LOADER and loop is not None and loop.loop.over in ("unknown", "range"):
        loop.loop = msgspec.structs.replace(loop.loop, over="loader")


def _over(args: list[V]) -> frozenset[Ref]:
    if any(map(over_loader, args)):
        return frozenset((OVER_LOADER,))
    if any(value.kinds & MODULE or any(ref.kind == "over" for ref in value.refs) for value in args):
        return frozenset((OF_MODULES,))
    return EMPTY


def standard(
    fn: FunctionState, state: State, name: str, last: str, args: list[V], words: dict[str, V], expr: ir.Call
) -> V | None:
    """The value of a standard library's container, iterator or wrapper; None for another name."""
    if last in ("namedtuple", "NamedTuple"):
        return records.factory(name, expr)
    for kind in (_collection, of_torch, _copied, _iterator):
        found = kind(fn, state, name, last, args, words, expr)
        if found is not None:
            return found
    if name in ("functools.partial", "types.MethodType") and args:
        return bound_to(args[0], args[1:], words)
    if name in ("typing.cast", "typing_extensions.cast", "typing.assert_type", "typing_extensions.assert_type"):
        given = args[last == "cast"] if len(args) == 2 else words.get("val", UNKNOWN_VALUE)
        said = expr.args[last != "cast"] if len(expr.args) == 2 else None
        return as_declared(fn, given, fn.analyser.annotated(fn.module, said) if said is not None else None)
    if name in ("contextlib.nullcontext", "contextlib.suppress", "contextlib.ExitStack", "contextlib.closing"):
        return args[0] if args and last in ("nullcontext", "closing") else DATA_VALUE
    if name in ("types.SimpleNamespace", "argparse.Namespace", "easydict.EasyDict"):
        return make(fn, state, expr.at, "dict", NOTHING, records.named(words))
    if records.is_model_output(name):
        return records.model_output(fn, state, words, expr)
    if name in _OPERATORS and len(args) == 2:
        return tensor_op(fn, state, expr.at, args, text(expr))
    if name.startswith("heapq.") and args:
        return containers.heap_function(fn, state, last, args, expr)
    if name == "functools.reduce" and len(args) >= 2:
        return _reduced(fn, state, expr, args)
    return None


def _collection(
    fn: FunctionState, state: State, name: str, last: str, args: list[V], words: dict[str, V], expr: ir.Call
) -> V | None:
    """The value of a deque, a dictionary with defaults, or a queue; None for another name."""
    if name == "collections.deque":
        maxlen = words.get("maxlen") or (args[1] if len(args) > 1 else None)
        bounded = maxlen is not None and not maxlen.is_only(NONE)
        return make(
            fn,
            state,
            expr.at,
            "deque",
            element(fn, state, args[0]) if args else NOTHING,
            bounded=bounded,
        ).but(refs=frozenset((Ref("bounded", "", ""),)) if bounded else EMPTY)
    if name in ("collections.defaultdict", "collections.OrderedDict", "collections.Counter"):
        contents = args[1:] if last == "defaultdict" else args
        result = _dict_of(fn, state, (expr.at, "dict"), contents, words)
        if last == "Counter":
            for key in ordered(result.objs):
                state.heap[key] = state.heap[key].with_elem(join(state.heap[key].elem, DATA_VALUE))
        if last == "defaultdict" and args:
            inner = (
                _called(fn, state, args[0], [], {}, ir.Call(expr.at, expr.args[0], (), ()))
                if args[0].kinds & CALLABLE
                else NOTHING
            )
            for ref in ordered(args[0].refs):
                if ref.kind == "ext" and ref.name in ("builtins.list", "builtins.set", "collections.deque"):
                    inner = make(fn, state, (expr.at, "default"), "list", NOTHING)
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
        return make(fn, state, expr.at, "queue", NOTHING, bounded=bounded)
    return None


def _copied(
    fn: FunctionState, state: State, name: str, last: str, args: list[V], words: dict[str, V], expr: ir.Call
) -> V | None:
    """The copy of a network, with its mode and frozenness; None for another value."""
    if name == "copy.deepcopy" and args and args[0].kinds & (MODULE | UNKNOWN) and (args[0].syms or args[0].store):
        made = args[0].but(syms=EMPTY, store=frozenset((expr.at,)), src=EMPTY)
        same = args[0].but(refs=EMPTY)
        frozen, (mode, _) = frozen_of(fn, state, same, expr.args[0]), mode_of(state, same, expr.args[0])
        if frozen is not False:
            freeze(state, made, None, frozen)
        if mode is not None:
            state.modes["made", expr.at] = mode
        return made
    return None


def _iterator(
    fn: FunctionState, state: State, name: str, last: str, args: list[V], words: dict[str, V], expr: ir.Call
) -> V | None:
    """The value of a function that iterates over its arguments; None for another name."""
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
        return make(fn, state, expr.at, "list", join_all(element(fn, state, value) for value in args)).but(
            refs=_over(args)
        )
    if name == "itertools.accumulate" and args:
        return make(fn, state, expr.at, "list", elements_of(fn, state, args[0]))
    return DATA_VALUE if name.startswith("itertools.") else None


def _reduced(fn: FunctionState, state: State, expr: ir.Call, args: list[V]) -> V:
    """The value of ``reduce(lambda x, layer: layer(x), self.layers, x)``: the function runs once for a member. For a
    function that is unresolved, the value is computed from all members."""
    member = elements_of(fn, state, args[1])
    if not any(ref.kind == "func" for ref in args[0].refs):
        return tensor_op(fn, state, expr.at, [member, *args[2:]], text(expr))
    step = ir.Call(expr.at, expr.args[0], (), ())
    return _called(fn, state, args[0], [args[2] if len(args) > 2 else member, member], {}, step)


def literal_device(name: str, args: list[V]) -> int:
    """The device of ``torch.device(…)``; ``"cuda" if … else "cpu"`` means the accelerator."""
    if name == "torch.cuda.current_device":
        return ACCELERATOR
    if name != "torch.device" or not args:
        return ANYWHERE
    return device_named(args[0].const) if args[0].const is not None else ACCELERATOR


#: classes and functions that wrap a module
_WRAPPERS = frozenset({
    "torch.nn.DataParallel", "torch.nn.parallel.DataParallel", "torch.nn.parallel.DistributedDataParallel",
    "torch.nn.SyncBatchNorm.convert_sync_batchnorm", "torch.compile", "torch.jit.script",
    "apex.parallel.DistributedDataParallel", "apex.parallel.convert_syncbn_model",
    "torch.distributed.fsdp.FullyShardedDataParallel", "intel_extension_for_pytorch.optimize",
})  # fmt: skip
#: keywords of checkpoint itself
_OF_CHECKPOINT = frozenset({"use_reentrant", "preserve_rng_state", "context_fn", "determinism_check", "debug"})
#: methods that are called through their class or as functions
_UNBOUND = frozenset({"torch.detach", "torch.Tensor.detach", "torch.Tensor.item", "torch.Tensor.tolist"})
#: distributions whose entropy depends on the scale alone, not on the location
_OF_LOCATION = frozenset({"Normal", "Laplace", "Cauchy", "Gumbel"})


def of_torch(
    fn: FunctionState, state: State, name: str, last: str, args: list[V], words: dict[str, V], expr: ir.Call
) -> V | None:
    """The value of such a function's call; None for another name."""
    if name in ("torch.utils.checkpoint.checkpoint", "torch.func.functional_call") and args:
        inputs = args[1:] if last == "checkpoint" else [elements_of(fn, state, value) for value in args[2:]]
        own = {word: value for word, value in words.items() if word not in _OF_CHECKPOINT}
        shown = expr.args[0] if expr.args else expr.func
        return fn.interpreter.call_value(fn, state, args[0], inputs, own, ir.Call(expr.at, shown, (), ()))
    if name in _UNBOUND and args:
        fn.used |= tensors_within(fn, state, args[0]).src
        return cut(args[0]) if last == "detach" else DATA_VALUE
    if (
        last in ("tree_map", "tree_map_only")
        and name.startswith("torch.utils.")
        and len(args) > (last == "tree_map_only") + 1
    ):
        at = 1 if last == "tree_map_only" else 0
        leaf = tensors_within(fn, state, args[at + 1])
        of_leaf = ir.Call(expr.at, expr.args[at] if len(expr.args) > at else expr.func, (), ())
        made = fn.interpreter.call_value(fn, state, args[at], [leaf], {}, of_leaf)
        return make(fn, state, (expr.at, "tree"), "list", made)
    if name.startswith("torch.distributions.") and last[:1].isupper():
        inputs = [tensors_within(fn, state, value) for value in (*args, *words.values())]
        made = tensor_op(fn, state, expr.at, inputs, text(expr)).but(kinds=TREE)
        shaping = words.get("scale", args[1] if len(args) > 1 else None) if last in _OF_LOCATION else None
        return made.but(
            refs=frozenset((Ref("shape", "", last, made if shaping is None else tensors_within(fn, state, shaping)),))
        )
    if name in _WRAPPERS and (args or "module" in words):
        wrapped = args[0] if args else words["module"]
        if name.endswith("DataParallel") and not wrapped.kinds & (MODULE | CALLABLE):
            return wrapped.but(kinds=MODULE, src=EMPTY)  # for example a part of a loaded object
        return (
            wrapped.but(kinds=wrapped.kinds & ~UNKNOWN | MODULE, src=EMPTY)
            if wrapped.kinds & (MODULE | UNKNOWN)
            else wrapped
        )
    return None
