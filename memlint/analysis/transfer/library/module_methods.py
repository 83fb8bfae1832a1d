"""Methods of every module, and methods of modules of unknown class that may run layers."""

from __future__ import annotations

from memlint import knowledge
from memlint.analysis.domain.parts_taken import contained
from memlint.analysis.domain.recorded_modes import freeze
from memlint.analysis.domain.state import GUARDS, State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import (
    BATCH,
    CONTAINER,
    DATA,
    DATA_VALUE,
    EMPTY,
    MODEL,
    NONE,
    NONE_VALUE,
    SAMPLE,
    TREE,
    UNKNOWN,
    Args,
    V,
    Words,
)
from memlint.analysis.index.bases import may_be_module
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.transfer.assignment import assign_attribute
from memlint.analysis.transfer.heap import elements_of, make, tuple_of
from memlint.analysis.transfer.library.computing import is_any_callable, names_computing, names_part, prepares
from memlint.analysis.transfer.library.models import run_module
from memlint.analysis.transfer.library.noted_runs import is_statement, note_unresolved_method
from memlint.analysis.transfer.library.placement import moved_module
from memlint.analysis.transfer.methods_by_name import graph_by_name, methods_by_name
from memlint.analysis.transfer.modules.contained import ADDS, add_modules
from memlint.analysis.transfer.modules.modes import PARAMETERS, parts_of
from memlint.analysis.transfer.modules.optimizer_parameters import marks_of_parameters
from memlint.analysis.transfer.modules.touched_parameters import note_applied
from memlint.analysis.transfer.reading import read_attribute
from memlint.analysis.transfer.signatures import accepts, is_abstract
from memlint.analysis.transfer.unresolved import unknown_call
from memlint.ir import nodes as ir

#: methods that give the modules in a module, and those that give them with their names
_GIVE_NAMES = frozenset({"named_modules", "named_children", "items"})
#: methods of torch's modules, and of transformers' models, that give one module
_GIVE_PART = frozenset({"get_submodule", "get_input_embeddings", "get_output_embeddings"})
_GIVE_PARTS = _GIVE_NAMES | {"modules", "children", "values"}


def module_method(
    fn: FunctionState, state: State, expr: ir.Call, receiver: V, name: str, args: Args, words: Words
) -> V:
    if name in ("register_buffer", "register_parameter") and len(args) >= 2 and isinstance(args[0].const, str):
        if len(expr.args) >= 2 and isinstance(expr.func, ir.Attr):
            owner = expr.func.value, receiver
            assign_attribute(fn, state, expr, owner, args[0].const, (expr.args[1], args[1]))
        return NONE_VALUE
    if name in ("requires_grad_", "freeze", "unfreeze") and isinstance(expr.func, ir.Attr):
        return _frozen(state, expr, expr.func.value, receiver, name, args, words)
    if name in ("to", "cuda", "cpu"):
        return moved_module(state, expr, receiver, args, words)
    if name == "apply" and args and isinstance(expr.func, ir.Attr):
        note_applied(fn, state, receiver, expr.func.value, args[0])
    if name in ("half", "float", "double", "eval", "train", "apply", "share_memory", "bfloat16", "compile"):
        return receiver
    if name in PARAMETERS:
        return _parameters(fn, state, expr, receiver)
    if name in ADDS:
        add_modules(fn, state, expr, receiver, args)
    if name in _GIVE_PART:
        return parts_of(fn, state, receiver)
    if name in _GIVE_PARTS:
        return _parts(fn, state, expr, receiver, name)
    if name in ("state_dict", "buffers", "named_buffers"):
        return V(TREE, size=MODEL)
    if name in ("forward", "__call__"):
        return run_module(fn, state, expr, receiver, args, words)
    return _of_class(fn, state, expr, receiver, name, args, words)


def _parts(fn: FunctionState, state: State, expr: ir.Call, receiver: V, name: str) -> V:
    """The submodules of ``net.children()``, or their names and they of ``blocks.items()``."""
    part = elements_of(fn, state, receiver) if contained(receiver) else parts_of(fn, state, receiver)
    member = tuple_of(fn, state, expr.at, [DATA_VALUE, part]) if name in _GIVE_NAMES else part
    return make(fn, state, expr.at, "list", member)


def _frozen(state: State, expr: ir.Call, place: ir.Expr, receiver: V, name: str, args: Args, words: Words) -> V:
    """The module after ``net.requires_grad_(False)`` or ``net.freeze()``."""
    flag = next(iter([*args, *words.values()]), None)
    const = name == "unfreeze" if flag is None or name != "requires_grad_" else flag.const
    frozen = not const if isinstance(const, bool) else None
    if not receiver.syms and not receiver.store:  # a module without a key gets one
        receiver = receiver.but(store=frozenset((expr.at,)))
    explicit = flag is not None or name != "requires_grad_"
    freeze(state, receiver, place, name == "freeze" or (frozen if explicit else False))
    return receiver


def _parameters(fn: FunctionState, state: State, expr: ir.Call, receiver: V) -> V:
    """The container of ``net.parameters()``: leaves with the mark of their network."""
    leaf = fn.record(state, (expr.at, "leaf"), expr.at, text(expr), EMPTY, definite=True, leaf=True)
    place = expr.func.value if isinstance(expr.func, ir.Attr) else None
    parameter = V(TREE, leaf, size=MODEL, store=marks_of_parameters(receiver, place))
    return V(CONTAINER | UNKNOWN, objs=make(fn, state, expr.at, "list", parameter).objs)


def _of_class(fn: FunctionState, state: State, expr: ir.Call, receiver: V, name: str, args: Args, words: Words) -> V:
    """The value of a method that torch's own modules lack, and that may run the module."""
    if is_any_callable(fn.analyser, receiver, name):
        return unknown_call(fn, state, expr, read_attribute(fn, state, receiver, name), args, words)
    if prepares(words) and not _defines(fn, receiver, name):
        return V(TREE, size=BATCH)
    # also where too many methods have the name: callers ask whether it is guarded
    fn.named.add((name, state.grad))
    own = any(method.cls is not None for method in fn.analyser.methods_named(name, fn.function))
    if name in knowledge.guarded_methods() and not own:
        return V(TREE, size=SAMPLE)
    if not receiver.resolved():
        note_unresolved_method(fn, state, expr, receiver, name)
    quiet = knowledge.is_bookkeeping(name) or (is_statement(fn, expr) and not names_computing(name))
    if quiet or not _computes(fn, expr, name, args, words):
        # an attribute of such a name is no module: even a caller that knows the object as one learns nothing of the
        # result
        quiet = quiet or not names_computing(name)
        return unknown_call(fn, state, expr, receiver.but(syms=EMPTY) if quiet else receiver, args, words)
    if not receiver.resolved() and _gives_data(fn, name):
        return DATA_VALUE
    if receiver.resolved() and _defines(fn, receiver, name):
        return run_module(fn, state, expr, receiver, args, words, method=name)
    methods = methods_by_name(fn, state, receiver, name, args, words)
    # a method that is named like a library's guarded method may wrap it
    if (
        methods.guards
        or methods.silent
        or methods.idle
        or methods.trains
        or (name in knowledge.guarded_methods() and methods.graph != "yes")
    ):
        return unknown_call(fn, state, expr, receiver, args, words)
    if methods.differentiates:
        fn.notes.gradients = fn.notes.unknown_gradients = True
    layer = not methods.found and fn.analyser.facts.attributes.names_layer(name)
    graph = methods.graph if methods.found else "yes" if layer else graph_by_name(name)
    return run_module(fn, state, expr, receiver, args, words, method=name, graph=graph)


def _defines(fn: FunctionState, receiver: V, name: str) -> bool:
    """Whether the class of a module has the method, or is unknown. A class without it is a known base of the actual
    one (``Model.load(…)``)."""
    program = fn.analyser.program
    classes = [fn.analyser.cls(ref) for ref in receiver.refs if ref.kind == "instance"]
    return not classes or any(cls is None or program.method(cls, name) is not None for cls in classes)


def _gives_data(fn: FunctionState, name: str) -> bool:
    """Whether all of the project's methods of that name are annotated to return numbers or text."""
    candidates = [method for method in fn.analyser.methods_named(name, fn.function) if method.cls is not None]
    notes = [
        fn.analyser.annotated(method.module, method.node.returns)
        for method in candidates
        if isinstance(method.node, ir.FunctionDef) and method.node.returns is not None
    ]
    return (
        bool(notes)
        and len(notes) == len(candidates)
        and all(note is not None and note.is_only(DATA | NONE) for note in notes)
    )


def _computes(fn: FunctionState, expr: ir.Call, name: str, args: Args, words: Words) -> bool:
    """Whether a method of a module of unknown class may run layers, by the project's methods of that name, or else
    by the name."""
    candidates = [method for method in fn.analyser.methods_named(name, fn.function) if method.cls is not None]
    summaries = [summary for method in candidates if (summary := fn.analyser.summary(method)) is not None]
    if summaries:
        # a method with a bookkeeping name runs a model only if all methods of the name do; a method that turns grad
        # mode off itself counts for none
        runs = (summary.runs or (_runs_parts(summary) and not summary.notes.blocks) for summary in summaries)
        return any(runs) if names_computing(name) else all(runs)
    if not names_computing(name):
        return False
    return not fn.analyser.facts.methods.are_many(name, fn.module.key) or _nearest_compute(fn, expr, name, args, words)


def _nearest_compute(fn: FunctionState, expr: ir.Call, name: str, args: Args, words: Words) -> bool:
    """Whether the nearest methods of a name that many classes have, as far as the call may mean them, all belong to
    modules, run layers and guard nothing: they are those of a model zoo."""
    program = fn.analyser.program
    near = fn.analyser.facts.methods.nearest(name, fn.module.key)
    methods = [
        one
        for one in near
        if one.key != fn.function.key
        and not is_abstract(one)
        and _may_accept(one, expr, args, words)
        and (one.cls is None or may_be_module(program, one.cls))
    ]
    for method in methods:
        if method.cls is None or not program.is_module(method.cls):
            return False
        if not GUARDS.isdisjoint(method.module.index.units[method.unit].names):
            return False
    summaries = [fn.analyser.summary(method) for method in methods]
    return bool(summaries) and all(one is not None and (one.runs or _runs_parts(one)) for one in summaries)


def _may_accept(method: Function, expr: ir.Call, args: Args, words: Words) -> bool:
    """Whether a call on an object may fit a method's signature: what ``*args`` and ``**words`` hold is unknown."""
    if any(isinstance(arg, ir.Starred) for arg in expr.args) or any(name.startswith("**") for name in words):
        return True
    return accepts(method, len(args) + (1 if method.takes_self else 0), set(words))


def _runs_parts(summary: Summary) -> bool:
    """Whether a method records a graph, or calls an attribute of its object that may be a layer."""
    own = f"p:{summary.function.params[0].name}" if summary.function.params else ""
    return any(
        (node.definite and not node.leaf)
        or (node.unknown and node.callee is not None and node.callee.root == own and names_part(node.callee.steps))
        for node in summary.graphs.nodes.values()
    )


#: attributes that are networks
_NETWORKS = frozenset(
    {"backbone", "decoder", "encoder", "language_model", "text_model", "transformer", "vision_model", "vision_tower"}
)


#: attributes of a model beside its networks
_SETTINGS = ("cfg", "config", "processor", "scheduler", "tokenizer", "transforms")


def with_its_parts(fn: FunctionState, state: State, expr: ir.Call, receiver: V, name: str) -> V:
    """The library model of which a nested part runs (``self.model.speecht5.encoder(…)``); the receiver itself, where
    it is no such part."""
    if name not in _NETWORKS or not receiver.is_only(UNKNOWN) or receiver.resolved():
        return receiver
    part = expr.func.value if isinstance(expr.func, ir.Attr) else None
    if not isinstance(part, ir.Attr) or part.name.endswith(_SETTINGS):
        return receiver
    whole = fn.interpreter.evaluate(fn, state, part.value)
    return whole if whole.is_of_library() else receiver
