"""Calls of models: the forward is followed where the class is known; otherwise the result is a tensor with a graph."""

from __future__ import annotations

from typing import NamedTuple

from memlint import knowledge
from memlint.analysis.domain.call_arity import fitting_classes
from memlint.analysis.domain.extents import by_name
from memlint.analysis.domain.state import AMBIENT, OFF, State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.tensor_ops import names_metric, names_number
from memlint.analysis.domain.values import (
    ANYWHERE,
    BATCH,
    CONTAINER,
    EMPTY,
    MODULE,
    NONE,
    OUTPUT,
    SCALAR,
    SOME_SIZE,
    TENSOR,
    TENSORS,
    TREE,
    UNKNOWN,
    Args,
    Ref,
    Source,
    Sources,
    V,
    Words,
    join_all,
    ordered,
)
from memlint.analysis.index.program import Class, Function
from memlint.analysis.index.stateful import is_stateful
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import dotted, last_name
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.library import batches, instances, layer_extents
from memlint.analysis.transfer.library.computing import prepares
from memlint.analysis.transfer.library.noted_runs import module_expression, note_run
from memlint.analysis.transfer.library.placement import as_output, device_of
from memlint.analysis.transfer.modules.modes import freezes_itself, frozen_of
from memlint.analysis.transfer.signatures import is_abstract, is_left_open
from memlint.analysis.transfer.unresolved import is_loss
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

#: names of models whose ``encode`` libraries do not guard (AutoencoderKL of diffusers)
_AUTOENCODERS = lazy_pattern(r"vae|vq|auto_?enc")
#: methods that may return decoded results on the host: words, numbers of classes
_DECODES = frozenset({"predict", "translate", "transcribe", "answer"})
#: the most classes of a model that are followed
_MAX_CLASSES = 4
#: depth of nested modules whose forwards are inspected
_MAX_PARTS = 3


class _Run(NamedTuple):
    """A call that runs a model. ``method``: "forward" for a call of the module itself."""

    expr: ir.Call
    module: V
    args: Args
    words: Words
    method: str


class _Forwards(NamedTuple):
    """Facts about the forwards that were followed, where none determines the model's output."""

    #: some class leaves its forward to subclasses
    is_open: bool = False
    #: the graphs that they store in their arguments or in attributes
    elsewhere: Sources = EMPTY
    #: their layers' outputs escape to code that cannot be followed
    leaves: bool = False


def run_module(
    fn: FunctionState,
    state: State,
    expr: ir.Call,
    module: V,
    args: Args,
    words: Words,
    method: str = "forward",
    graph: str = "yes",
) -> V:
    """The output of a model's run. The forward is followed where the class is known; otherwise the output has a
    graph as ``graph`` says of the method: "yes", "no", "unknown", or "unheard" for a method that may not run the
    model at all."""
    if _is_class(fn, expr, module):
        return V(MODULE, store=frozenset((expr.at,)))
    if prepares(words) and not module.resolved():
        return V(TREE, size=BATCH)
    batches.note_model_call(fn, expr)
    freezes = frozen_of(fn, state, module, module_expression(expr, module))
    found = _through_classes(fn, state, _Run(expr, module, args, words, method), freezes)
    if isinstance(found, V):
        return _shaped_as(found, args)
    shown = text(expr.func)
    frozen = freezes is True
    parents = EMPTY.union(*(tensors_within(fn, state, value).src for value in (*args, *words.values())))
    device = device_of(fn, state, [module, *args, *words.values()])
    if method == "forward" and not module.resolved() and (is_loss(expr.func) or names_metric(shown)):
        # a loss has few parameters, if any: its result has the graph of its arguments
        src = fn.record(state, expr.at, expr.at, text(expr), parents, guess=True)
        return V(TENSOR, src, size=SCALAR, device=device)
    key = (expr.at, "run")
    src = fn.record(
        state,
        key,
        expr.at,
        shown,
        parents,
        definite=not frozen and graph == "yes",
        unknown=not frozen and graph != "yes",
        model=not frozen,
        callee=min(module.syms, default=None) if graph == "yes" else None,  # a method's result may be another
    )
    small = names_number(shown) or method in _DECODES
    made_by = (ref.name for ref in ordered(module.refs) if ref.kind == "foreign" and method in ("forward", "__call__"))
    extent = by_name.of_model(last_name(expr.func), made_by)
    result = _shaped_as(
        V(TREE, src, size=SOME_SIZE if small else OUTPUT, device=device, store=frozenset((key,)), extent=extent), args
    )
    if key in src and not frozen:
        fn.graphs.nodes[key].opaque = True
    if key in src and not frozen and graph != "unheard":
        # a known class makes it certain that a model runs, even where the forward is unknown
        kept = result.but(src=src | found.elsewhere)
        if found.leaves:
            fn.leave(fn.graphs.closure(src))
        note_run(fn, state, expr, module, kept, key, args, resolved=found.is_open)
        if expr.at in fn.runs:
            fn.runs[expr.at].method = method
            fn.runs[expr.at].served = not found.is_open and _is_served(fn, shown, method)
    return result


def _shaped_as(output: V, args: Args) -> V:
    """A model's output; its extent, where unknown, is derived from the input's."""
    known = layer_extents.of_unknown(args[0].extent) if args else None
    return output.but(extent=known) if output.extent is None and output.kinds & TENSORS else output


def _through_classes(fn: FunctionState, state: State, run: _Run, freezes: bool | None) -> V | _Forwards:
    """The output of a model, by those of its possible classes that determine one; `_Forwards` where none does. Behind
    one whose output has a graph, those alone are followed that may keep something. ``freezes``: whether the model is
    frozen here, None for unknown."""
    found: list[V] = []
    forwards, followed = _Forwards(), 0
    for ref in fitting_classes(fn, run.module.refs, run.expr, run.method):
        known = bool(found) and (state.grad == OFF or any(fn.graphs.attached(one.src)[0] == "yes" for one in found))
        if followed == _MAX_CLASSES or (known and not _keeps_something(fn, ref)):
            continue
        one = _through_class(fn, state, run, freezes, ref)
        followed += one is not None
        if isinstance(one, V):
            found.append(one)
        elif one is not None:
            forwards = _Forwards(
                forwards.is_open or one.is_open, forwards.elsewhere | one.elsewhere, forwards.leaves or one.leaves
            )
    return join_all(found) if found else forwards


def _runs_around(fn: FunctionState, function: Function) -> bool:
    """Whether a forward is being interpreted that leads here through other ones: modules that contain each other."""
    return function.key != fn.function.key and fn.analyser.summaries.is_running(function)


def _keeps_something(fn: FunctionState, ref: Ref) -> bool:
    """Whether a run of a module of this class of the project may change the module."""
    cls = fn.analyser.cls(ref) if ref.kind == "instance" else None
    return cls is not None and is_stateful(fn.analyser.program, cls)


def _through_class(fn: FunctionState, state: State, run: _Run, freezes: bool | None, ref: Ref) -> V | _Forwards | None:
    """The output of a model of the class ``ref``; `_Forwards` where its forward was followed and does not determine
    it, None where there is none to follow."""
    expr, module, args, words, method = run
    program = fn.analyser.program
    if ref.kind == "extinstance" and method == "forward":
        if ref.args:
            return instances.call_chain(fn, state, ref.args, args, words, expr, module)
        return instances.call_instance(fn, state, ref.name, args, words, expr, module)
    if ref.kind != "instance" or freezes is True:
        return None
    cls = fn.analyser.cls(ref)
    if freezes is None and module.syms and cls is not None and freezes_itself(fn.analyser, cls):
        return None  # another model may be passed in that is not frozen
    function = program.method(cls, method)
    if function is None and cls is not None and method == "forward":
        function = program.method(cls, "__call__")
    if function is None:
        return None
    if is_left_open(fn, function) or _runs_around(fn, function):
        return _Forwards(is_open=True)
    known = fn.interpreter.call_function(fn, state, function, [module, *args], words, expr.at, expr)
    inner = tensors_within(fn, state, known)
    if known.is_only(NONE) and known.kinds and not _records_layers(fn, function, expr):
        return known  # the method changes the model (a larger vocabulary), and runs no layer
    determined = bool(known.kinds & ~(UNKNOWN | NONE)) and not (
        known.kinds & UNKNOWN and not known.kinds & (TENSORS | CONTAINER)
    )
    if determined or _computes_only(fn, function, expr, known):
        tips = _last_operations(fn, inner)
        followed = is_abstract(function)  # all its overrides were interpreted
        if not tips and not followed and cls is not None and (below := _overrides(fn, cls, method)):
            if any(one is not None and one.notes.gradients for one in below):
                fn.notes.gradients = fn.notes.unknown_gradients = True
            return None  # an override may run layers
        if not determined and not tips:
            return as_output(state, known.but(kinds=TREE), device_of(fn, state, [module, *args]), text(expr.func))
        return _output(fn, state, run, function, known, inner, tips)
    return _Forwards(elsewhere=_stored_graphs(fn, function, expr), leaves=_outputs_escape(fn, function, expr))


def _last_operations(fn: FunctionState, inner: V) -> list[Source]:
    """The model operations that an output has last; where there are none, the operations on the model's own
    parameters, which then count as model operations."""
    tips = [tip for tip in ordered(inner.src) if tip in fn.graphs.nodes and fn.graphs.nodes[tip].model]
    if not tips:
        tips = [
            tip
            for tip in ordered(inner.src)
            if (node := fn.graphs.nodes.get(tip)) is not None and node.definite and not node.leaf
        ]
        for tip in tips:
            fn.graphs.mark_model(tip)
    return tips


def _output(
    fn: FunctionState, state: State, run: _Run, function: Function, known: V, inner: V, tips: list[Source]
) -> V:
    """The output of a model whose forward was followed. ``known``: the result; ``inner``: the join of the tensors in
    it."""
    expr, module, args, words, _ = run
    shown = text(expr.func)
    if not tips and state.grad != OFF and (_records_layers(fn, function, expr) or _runs_parts(fn, function, expr)):
        tips = list(fn.record(state, (expr.at, "run"), expr.at, shown, EMPTY, definite=True, model=True))
        inner = inner.but(src=inner.src | _stored_graphs(fn, function, expr))
    device = device_of(fn, state, [module, *args, *words.values()])
    if tips:
        ran = inner.but(device=device) if inner.device == ANYWHERE else inner
        note_run(fn, state, expr, module, ran, tips[0], args)
    return as_output(state, known, device, shown)


def _is_served(fn: FunctionState, shown: str, method: str) -> bool:
    """Whether a model whose class is unknown runs by a method that most libraries guard."""
    if method not in knowledge.serving_methods() or _AUTOENCODERS.search(shown.lower()) is not None:
        return False
    return all(one.cls is None for one in fn.analyser.methods_named(method, fn.function))


def _overrides(fn: FunctionState, cls: Class, method: str) -> list[Summary | None]:
    """The summaries of a method's overrides in subclasses."""
    classes = list(fn.analyser.program.below(cls))
    return [fn.analyser.summary(other.methods[method]) for other in classes if method in other.methods]


def _summary_of(fn: FunctionState, function: Function, expr: ir.Call) -> Summary | None:
    """The summary of a forward for its call at ``expr``; None where the call was not followed."""
    record = fn.calls.get((expr.at, function.key))
    return fn.analyser.summary(function, record.args, record.trains) if record is not None else None


def _computes_only(fn: FunctionState, function: Function, expr: ir.Call, known: V) -> bool:
    """Whether a forward only computes with its arguments (``x.pow(self.by)``): every call is resolved, and none is a
    layer."""
    summary = _summary_of(fn, function, expr)
    if summary is None or summary.exit is None or summary.cut_short or summary.runs or not known.src:
        return False
    return not any(node.definite or node.unknown for node in summary.graphs.nodes.values())


def _is_class(fn: FunctionState, expr: ir.Call, module: V) -> bool:
    """Whether what is called for a module is a class, by its name (``def evaluate(Model: nn.Module): agent =
    Model(envs)``, ``model_cls``), or because the result is used as a module, and no class of the called one is known:
    ``net = model(**options).cuda(); net.load_state_dict(saved)``"""
    func, statement = expr.func, fn.statement
    made = statement.targets if isinstance(statement, ir.Assign) and _begins(statement.value, expr) else ()
    used = fn.modules_by_use
    known = module.resolved() and not any(param.name == dotted(func) for param in fn.function.params)
    if not known and dotted(func) not in used and any(dotted(one) in used for one in made):
        return True
    if isinstance(func, ir.Name) and func.id.endswith(("_cls", "_class")):
        return True
    if not isinstance(func, ir.Name) or not func.id[:1].isupper() or func.id.isupper() or "_" in func.id:
        return False
    return len(func.id) > 2 and any(param.name == func.id for param in fn.function.params)


def _begins(value: ir.Expr, expr: ir.Call) -> bool:
    """Whether a value is a call, or what methods give that are called on its result in a row: ``net(x).cuda()``."""
    while value is not expr and isinstance(value, ir.Call) and isinstance(value.func, ir.Attr):
        value = value.func.value
    return value is expr


def _records_layers(fn: FunctionState, function: Function, expr: ir.Call) -> bool:
    """Whether a forward whose result has no graph (a decoded sequence) runs layers that record."""
    summary = _summary_of(fn, function, expr)
    return summary is not None and any(run.grad & AMBIENT for run in summary.runs.values())


def _runs_parts(fn: FunctionState, function: Function, expr: ir.Call) -> bool:
    """Whether a forward that returns a collection calls unresolved parts of its module."""
    return _calls_parts(fn, function, _summary_of(fn, function, expr), _MAX_PARTS)


def _calls_parts(fn: FunctionState, function: Function, summary: Summary | None, depth: int) -> bool:
    """Whether a forward, or one that it calls, calls an unresolved part of its module. ``depth``: of calls that are
    followed."""
    if summary is None or not function.takes_self or not function.params:
        return False
    own = f"p:{function.params[0].name}"
    called = [node.callee for node in summary.graphs.nodes.values() if node.unknown and node.callee is not None]
    if any(path.root == own and len([step for step in path.steps if step.startswith(".")]) == 1 for path in called):
        return True
    return depth > 0 and any(
        inner.name in ("forward", "__call__")
        and _calls_parts(fn, inner, fn.analyser.summary(inner, one.args, one.trains), depth - 1)
        for one in summary.calls.values()
        if one.grad & AMBIENT and (inner := fn.analyser.function_at(one.callee)) is not None
    )


def _outputs_escape(fn: FunctionState, function: Function, expr: ir.Call) -> bool:
    """Whether the outputs of a forward's layers escape to code that cannot be followed (``batch.update(out=out)``)."""
    summary = _summary_of(fn, function, expr)
    if summary is None:
        return False
    nodes = summary.graphs.nodes
    return any(nodes[key].model for key in summary.left - summary.notes.logged if key in nodes)


def _stored_graphs(fn: FunctionState, function: Function, expr: ir.Call) -> Sources:
    """The graphs that a forward whose result has none has stored in its arguments or in attributes."""
    call = (expr.at, function.module.key, function.qual)
    nodes = fn.graphs.nodes.items()
    return frozenset(key for key, node in nodes if node.model and isinstance(key, tuple) and key[:3] == call)
