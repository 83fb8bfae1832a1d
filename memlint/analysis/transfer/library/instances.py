"""Instances of classes that torch and other libraries define: losses, layers, metrics."""

from __future__ import annotations

from memlint import knowledge
from memlint.analysis.domain.call_arity import GIVE_SEVERAL
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.tensor_ops import tensor_op
from memlint.analysis.domain.values import ACTIVATION, MODULE, NONE_VALUE, NOTHING, SCALAR, TENSOR, TREE, Ref, V
from memlint.analysis.index.program import Function, Program
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.transfer.heap import note_compared
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.library import layer_extents
from memlint.analysis.transfer.library.noted_runs import module_expression, note_metric, note_run
from memlint.analysis.transfer.library.placement import device_of
from memlint.analysis.transfer.library.tensors import gives_indices, values_and_indices
from memlint.analysis.transfer.modules.modes import frozen_of
from memlint.ir import nodes as ir

#: most modules of a chain that are followed
MAX_CHAINED = 6


def names_class(name: str) -> bool:
    """Whether a qualified name is capitalised like a class, so that calling it makes an instance."""
    last = name.rsplit(".", 1)[-1].lstrip("_")
    return last[:1].isupper() and not last.isupper()


def may_be_of(program: Program, receiver: V, method: Function) -> bool:
    """Whether a method that was found by its name may be the receiver's. An instance of a library's class has no
    method of the project, unless the project's class of that name was imported in an unresolved way."""
    made_by = {ref.name.rsplit(".", 1)[-1] for ref in receiver.refs if ref.kind == "foreign"}
    if not made_by or method.cls is None:
        return not made_by
    order, _ = program.ancestors(method.cls)
    return any(cls.node.name in made_by for cls in order)


def members(name: str, args: list[V], shown: tuple[ir.Expr, ...]) -> tuple[V, ...]:
    """The modules of a new ``nn.Sequential`` in order, where one of them is the project's; else empty. Empty also for a
    starred list of several classes (``nn.Sequential(*layers)``): which of them run, and in which order, is unknown.
    ``shown``: the expressions of the arguments."""
    if name != "torch.nn.Sequential" or not 0 < len(args) <= MAX_CHAINED:
        return ()
    if not all(value.refs and all(ref.kind in ("instance", "extinstance") for ref in value.refs) for value in args):
        return ()
    classes = {ref for value in args for ref in value.refs}
    if len(classes) > 1 and any(isinstance(expr, ir.Starred) for expr in shown):
        return ()
    own = any(ref.kind == "instance" for ref in classes)
    return tuple(V(value.kinds, refs=value.refs) for value in args) if own else ()


def call_chain(
    fn: FunctionState,
    state: State,
    chain: tuple[V, ...],
    args: list[V],
    words: dict[str, V],
    expr: ir.Call,
    module: V,
) -> V:
    """The value of ``nn.Sequential(a, b)(x)``, which is ``b(a(x))``."""
    syms = frozenset(path.then("[]") for path in module.syms)
    store = frozenset(("part", item, "[]") for item in module.store)
    for member in chain:
        one = member.but(syms=syms, store=store, device=module.device)
        result = fn.interpreter.call_value(fn, state, one, args, words, expr)
        args, words = [result], {}
    return args[0]


#: layers that save only indices, which are small beside a model's activations
_LOOKUPS = frozenset({"torch.nn.Embedding", "torch.nn.EmbeddingBag"})


def call_instance(
    fn: FunctionState,
    state: State,
    name: str,
    args: list[V],
    words: dict[str, V],
    expr: ir.Call,
    module: V = NOTHING,
) -> V:
    """The value of a call of an instance of an external class: a loss, an activation, a layer."""
    row = knowledge.function(name)
    kind = row.returns if row is not None else ""
    extent = layer_extents.applied(layer_extents.of_value(module), args[0].extent if args else None)
    inner = [tensors_within(fn, state, value) for value in (*args, *words.values())]
    if kind == "lossmodule":
        if args and expr.args:
            note_compared(fn, args[0], text(expr.args[0]))
        return tensor_op(fn, state, expr.at, inner, text(expr), what=text(expr), size=SCALAR, certain=True)
    if kind == "metric":
        return use_metric(fn, name, "__call__", NOTHING, expr)
    if kind == "plainmodule":
        result = tensor_op(fn, state, expr.at, inner, text(expr), what=text(expr), certain=True)
        result = result.but(extent=extent)
        paired = any(ref.name == name and gives_indices(dict(ref.keywords)) for ref in module.refs)
        return values_and_indices(fn, state, expr, result, ACTIVATION) if paired else result
    frozen = frozen_of(fn, state, module, module_expression(expr, module)) is True
    parents = frozenset(source for value in inner for source in value.src)
    key = (expr.at, "run")
    symbol = next(iter(sorted(module.syms)), None)  # a caller may know that the module is frozen
    src = fn.record(state, key, expr.at, text(expr.func), parents, definite=not frozen, model=not frozen, callee=symbol)
    device = device_of(fn, state, inner)
    kinds = TREE if name.rsplit(".", 1)[-1] in GIVE_SEVERAL or not name.startswith("torch.nn.") else TENSOR
    result = V(kinds, src, size=ACTIVATION, device=device, store=frozenset((key,)), extent=extent)
    if src and not frozen and name not in _LOOKUPS:
        made = tuple(("layer", layer) for layer in (layer_extents.of_value(module),) if layer is not None)
        ref = Ref("extinstance", "", name, keywords=made)
        own = V(MODULE, refs=frozenset((ref,)), syms=module.syms, store=module.store)
        note_run(fn, state, expr, own, result, key, args)
    return result


def use_metric(fn: FunctionState, name: str, method: str, receiver: V, expr: ir.Call) -> V:
    """The value of a method of a library's metric object, which keeps numbers, or copies without a graph."""
    note_metric(fn, name, method, expr)
    if method in ("to", "cuda", "cpu", "clone"):
        return receiver
    return V(TENSOR, size=SCALAR) if method in ("compute", "forward", "__call__") else NONE_VALUE
