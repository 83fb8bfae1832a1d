"""Functions of torch and its extensions that call, wrap or map their arguments, and distributions."""

from __future__ import annotations

from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.tensor_ops import cut, tensor_op
from memlint.analysis.domain.values import (
    CALLABLE,
    DATA_VALUE,
    EMPTY,
    MODULE,
    TREE,
    UNKNOWN,
    Ref,
    V,
)
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.transfer.heap import elements_of, make
from memlint.analysis.transfer.held_values import tensors_within
from memlint.ir import nodes as ir

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
