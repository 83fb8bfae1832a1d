"""Calls of methods: of project classes, modules, tensors and unknown receivers."""

from __future__ import annotations

from memlint import knowledge
from memlint.analysis.calls import method_runs
from memlint.analysis.domain.recorded_modes import freeze
from memlint.analysis.domain.state import State, join_states
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import (
    ACCELERATOR,
    ACTIVATION,
    CALLABLE,
    CONTAINER,
    DATA,
    DATA_VALUE,
    EMPTY,
    INSTANCE,
    LOADER,
    MODULE,
    NONE,
    NONE_VALUE,
    NOTHING,
    OPTIMIZER,
    OUTPUT,
    TENSORS,
    TREE,
    UNKNOWN,
    UNKNOWN_VALUE,
    Args,
    Ref,
    V,
    Words,
    join,
    ordered,
)
from memlint.analysis.index.program import Function, Program
from memlint.analysis.index.receivers import may_mean
from memlint.analysis.index.uses import is_no_network
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import dotted, is_member, parts
from memlint.analysis.transfer import containers, function_tables
from memlint.analysis.transfer.attributes_by_name import held_module
from memlint.analysis.transfer.heap import make
from memlint.analysis.transfer.library import forward_hooks, instances, standard_library, tensors, threads
from memlint.analysis.transfer.library.instance_methods import call_instance_method
from memlint.analysis.transfer.library.models import run_module
from memlint.analysis.transfer.library.module_methods import module_method, with_its_parts
from memlint.analysis.transfer.library.noted_runs import note_unresolved_method
from memlint.analysis.transfer.library.summands import backward_called
from memlint.analysis.transfer.modules.freezing import freeze_unknown
from memlint.analysis.transfer.modules.guards import entered_by_hand
from memlint.analysis.transfer.modules.made_leaves import set_requires_grad
from memlint.analysis.transfer.modules.modes import PARAMETERS, set_mode
from memlint.analysis.transfer.modules.optimizer_parameters import note_optimizer
from memlint.analysis.transfer.reading import read_attribute
from memlint.analysis.transfer.scope import known_by_use
from memlint.analysis.transfer.signatures import accepts, is_abstract, is_idle
from memlint.analysis.transfer.unresolved import unknown_call
from memlint.analysis.transfer.user_containers import store_update
from memlint.ir import nodes as ir

#: methods that optimizers have, alone or as well as modules
_OF_OPTIMIZERS = frozenset({"step", "zero_grad", "state_dict", "load_state_dict", "add_param_group"})
#: methods of modules that tensors lack
_OF_MODULES = frozenset({"eval", "train", "forward"})
#: methods of strings that tensors lack
_OF_TEXT = frozenset(
    {"strip", "lstrip", "rstrip", "lower", "upper", "splitlines", "startswith", "endswith", "casefold", "capitalize"}
)
#: the kinds of references that are callable
_CALLED = frozenset({"func", "class", "ext", "partial", "instance", "extinstance", "bound", "loads"})


def call_method(fn: FunctionState, state: State, expr: ir.Call, receiver: V, name: str, args: Args, words: Words) -> V:
    """``receiver.name(…)``"""
    if name in forward_hooks.ADDING:
        forward_hooks.note_hook(fn, name, expr, args, words)
    if name == "requires_grad_" and isinstance(expr.func, ir.Attr):
        flag = next(iter([*args, *words.values()]), None)
        on = True if flag is None else flag.const if isinstance(flag.const, bool) else None
        if receiver.is_only(UNKNOWN) and receiver.syms:  # the receiver may be a network or a tensor
            freeze(state, receiver, expr.func.value, None if on is None else not on)
        receiver = set_requires_grad(fn, state, expr.func.value, receiver, on, expr.at)
    if name == "__get__" and receiver.is_only(CALLABLE) and args:
        return standard_library.bound_to(receiver, args, words)  # as ``types.MethodType`` does
    if entered_by_hand(fn, state, receiver, name, args):
        return NONE_VALUE
    receiver = with_its_parts(fn, state, expr, _narrowed(receiver, name), name)
    found = _looked_up(fn, state, expr, receiver, name, args)
    if found is not None:
        return found
    threaded = threads.call_method(fn, state, expr, receiver, name, args, words)
    if threaded is not None:
        return threaded
    held = _held_module(fn, state, expr, receiver, name)
    if held is not None:
        return run_module(fn, state, expr, held, args, words)
    resolved = _resolved_method(fn, state, expr, receiver, name, args, words)
    if name in ("backward", "manual_backward") and resolved is None:
        return backward_called(fn, state, expr, receiver, args, words)
    if resolved is not None:
        return resolved
    if receiver.kinds & OPTIMIZER or name == "step":
        _run_closures(fn, state, expr, [*args, *words.values()])
    if receiver.kinds & OPTIMIZER:
        if name == "add_param_group":
            note_optimizer(fn, state, next(iter(args), words.get("param_group")))
        return UNKNOWN_VALUE if name == "step" else NONE_VALUE
    of_network = _mode_by_method_name(fn, state, expr, receiver, name, args, words)
    return of_network if of_network is not None else _by_kind(fn, state, expr, receiver, name, args, words)


def _narrowed(receiver: V, name: str) -> V:
    """A receiver of several possible kinds, without the kinds that lack the method."""
    if receiver.kinds & OPTIMIZER and receiver.kinds & MODULE and name not in _OF_OPTIMIZERS:
        receiver = receiver.but(kinds=receiver.kinds & ~OPTIMIZER)  # the result of a helper that loads either kind
    if name in PARAMETERS and receiver.kinds & UNKNOWN and not receiver.kinds & (TENSORS | CONTAINER):
        receiver = receiver.but(kinds=receiver.kinds & ~UNKNOWN | MODULE, src=EMPTY)
    if name in _OF_MODULES and receiver.kinds & MODULE:
        receiver = receiver.but(kinds=receiver.kinds & ~TENSORS, src=EMPTY)  # a network, or one loaded from a file
    of_modules = name in _OF_MODULES or name in knowledge.module_evidence()
    if of_modules and not receiver.kinds & UNKNOWN and receiver.may_be_module():
        receiver = receiver.as_module()
    return receiver


def _looked_up(fn: FunctionState, state: State, expr: ir.Call, receiver: V, name: str, args: Args) -> V | None:
    """The entry of a table or of the program's settings under a key, or the result of a string method. None for another
    call."""
    if name == "get" and not receiver.objs and args and isinstance(expr.func, ir.Attr):
        found = function_tables.entries(fn, expr.func.value)
        if found.kinds:
            return found
    if not receiver.objs and (found := function_tables.members(fn, state, expr, name)).kinds:
        return found
    if name == "get" and not receiver.objs and _names_setting(args):
        return DATA_VALUE
    if name in _OF_TEXT and not receiver.resolved() and not receiver.objs and all(one.is_only(DATA) for one in args):
        return DATA_VALUE
    return None


def _run_closures(fn: FunctionState, state: State, expr: ir.Call, args: Args) -> None:
    """``optimizer.step(closure)``, ``optimizer.step(closure=closure)``"""
    for value in args:
        if value.kinds & CALLABLE:
            fn.interpreter.call_value(fn, state, value, [], {}, ir.Call(expr.at, expr.func, (), ()))


def _mode_by_method_name(
    fn: FunctionState, state: State, expr: ir.Call, receiver: V, name: str, args: Args, words: Words
) -> V | None:
    """The result of methods that only networks and their wrappers have (an ``Accelerator``, a ``GradScaler``), also for
    a receiver of unknown class. None for another method."""
    if name in ("eval", "train") and receiver.is_only(UNKNOWN) and is_no_network(expr.func):
        return UNKNOWN_VALUE
    if name in ("eval", "train") and receiver.kinds & (MODULE | UNKNOWN):
        assert isinstance(expr.func, ir.Attr)
        set_mode(state, expr.func, receiver, name, args, words)
        if name == "eval" and not args and not words and not receiver.kinds & (TENSORS | CONTAINER | LOADER):
            return receiver.but(kinds=receiver.kinds & ~UNKNOWN | MODULE, src=EMPTY)
    if receiver.is_only(UNKNOWN) and (frozen := freeze_unknown(fn, state, expr, receiver, args)) is not None:
        return frozen
    wraps = receiver.kinds & (UNKNOWN | CALLABLE) | (not receiver.kinds)
    if name in ("prepare", "setup_dataloaders") and args and wraps:
        moved = MODULE | LOADER | UNKNOWN
        ready = [value.but(device=ACCELERATOR) if value.kinds & moved else value for value in args]
        if len(ready) == 1:
            return ready[0]
        return make(fn, state, expr.at, "tuple", NOTHING, {str(i): v for i, v in enumerate(ready)})
    if (
        name in ("scale", "gather", "gather_for_metrics", "reduce", "unwrap_model", "setup_module")
        and args
        and not receiver.kinds & (TENSORS | MODULE)
        and not args[0].is_only(DATA)  # ``scores.gather(1, labels)`` is a method of tensors
    ):
        return args[0]
    return None


def _by_kind(fn: FunctionState, state: State, expr: ir.Call, receiver: V, name: str, args: Args, words: Words) -> V:
    """The join of the method's results over the kinds that the receiver may have."""
    found = NOTHING
    if receiver.kinds & CONTAINER or (
        receiver.kinds & UNKNOWN
        and (receiver.syms or (receiver.src and containers.lists_members(name, args)))
        and containers.is_container_method(name, args)
    ):
        found = join(found, containers.call(fn, state, expr, receiver, name, args, words))
    if name == "update" and (args or words) and receiver.kinds & (TREE | UNKNOWN):
        store_update(fn, state, expr, receiver, args, words)
        found = NONE_VALUE if receiver.kinds & TREE else found
    if receiver.kinds & TENSORS and not found.kinds & NONE:
        found = join(found, tensors.call(fn, state, expr, receiver, name, args, words))
    if receiver.kinds & MODULE and not found.kinds:
        found = join(found, module_method(fn, state, expr, receiver, name, args, words))
    if receiver.kinds & LOADER and not found.kinds:
        found = receiver if name == "__iter__" else UNKNOWN_VALUE
    if receiver.kinds & (DATA | NONE) and not receiver.kinds & ~(DATA | NONE):
        found = join(found, DATA_VALUE)
    if receiver.kinds & UNKNOWN and not found.kinds:
        found = join(found, _unknown_method(fn, state, expr, receiver, name, args, words))
    return found if found.kinds else unknown_call(fn, state, expr, receiver, args, words)


def _held_module(fn: FunctionState, state: State, expr: ir.Call, receiver: V, name: str) -> V | None:
    """The module that a call runs if it is an attribute and no method: ``trainer.model(x)``, where
    ``trainer.model.eval()`` is called elsewhere. None if it is not known to be one."""
    func = expr.func
    if receiver.kinds & MODULE:
        return None
    if receiver.kinds & TENSORS or dotted(func) not in fn.modules_by_use:
        return _kept_by_classes(fn, receiver, name, expr)
    member = known_by_use(fn, dotted(func), read_attribute(fn, state, receiver, name))
    return member if member.is_only(MODULE) and not member.refs else None


def _kept_by_classes(fn: FunctionState, receiver: V, name: str, expr: ir.Call) -> V | None:
    """The module attribute of an unknown object (``learner.critic(x)``), if the project's classes store modules under
    that name and none has such a method; else None."""
    unknown = bool(receiver.kinds & UNKNOWN) and receiver.is_only(UNKNOWN | TENSORS | NONE) and not receiver.objs
    if not unknown or receiver.resolved() or not (expr.args or expr.keywords):
        return None
    if knowledge.methods().knows(name) or name.startswith("_") or fn.analyser.facts.methods.are_there(name):
        return None
    held = held_module(fn.analyser, name, expr, fn.function)
    return held.but(syms=frozenset(path.then(f".{name}") for path in receiver.syms)) if held is not None else None


def _names_setting(args: Args) -> bool:
    """Whether the arguments look up an option whose default is no tensor: ``options.get("update_freq", 1)``. A default
    of 0 does not count, as it may stand for a missing loss."""
    if len(args) != 2 or not isinstance(args[0].const, str):
        return False
    return isinstance(args[1].const, str | int) and (bool(args[1].const) or isinstance(args[1].const, str | bool))


def _resolved_method(
    fn: FunctionState, state: State, expr: ir.Call, receiver: V, name: str, args: Args, words: Words
) -> V | None:
    """The result of the project methods, attributes and external functions that the receiver is known to have. None if
    none is known."""
    func = expr.func
    assert isinstance(func, ir.Attr)
    if not receiver.resolved() and not receiver.objs:
        return None
    if receiver.kinds & (TENSORS | OPTIMIZER):
        return None
    if (
        receiver.kinds & MODULE
        and name in ("eval", "train", "to", "cuda", "cpu", "parameters", "state_dict")
        and not _own_method(fn, receiver, name)
    ):
        return None
    for ref in ordered(receiver.refs):
        if ref.kind == "extinstance":
            return call_instance_method(fn, state, ref.name, name, receiver, args, words, expr)
    member = read_attribute(fn, state, receiver, name)
    callable_refs = {ref for ref in member.refs if ref.kind in _CALLED}
    if not member.kinds & MODULE and not _own_method(fn, receiver, name):
        # only subclasses have the method: ``self._predict(batch)`` in a base class
        fn.named.add((name, state.grad))
    if not callable_refs and not member.kinds & MODULE:
        if any(ref.kind in ("module", "package") for ref in receiver.refs) and member.kinds:
            return fn.interpreter.call_value(fn, state, member, args, words, expr)
        if (
            member.syms
            and any(ref.kind == "instance" for ref in receiver.refs)
            and not receiver.kinds & (MODULE | CONTAINER)
        ):
            # users of the class pass the model
            if method_runs.called_as_model(fn, state, member, args, words, expr):
                return run_module(fn, state, expr, member.as_module(), args, words)
            return unknown_call(fn, state, expr, member, args, words)
        return None
    if receiver.kinds & MODULE and name == "forward" and not method_runs.is_self(fn, receiver):
        return run_module(fn, state, expr, receiver, args, words)
    if receiver.kinds & MODULE:
        return method_runs.module_call(fn, state, expr, receiver, name, member, args, words)
    known = fn.interpreter.call_value(fn, state, member, args, words, expr)
    if receiver.kinds & UNKNOWN and _stands_in(fn, callable_refs):
        guessed = by_name(fn, state, expr, receiver, name, args, words, idles=True)
        return join(known, guessed) if guessed is not None else known
    return known


def _stands_in(fn: FunctionState, known: set[Ref]) -> bool:
    """Whether the receiver's known methods do nothing (a null logger as a default), so that the unknown rest of the
    receiver decides."""
    methods = [fn.analyser.function(ref) if ref.kind == "func" else None for ref in known]
    return all(method is not None and is_idle(fn, method) for method in methods)


def _own_method(fn: FunctionState, receiver: V, name: str) -> bool:
    program = fn.analyser.program
    for ref in ordered(receiver.refs):
        if ref.kind == "instance":
            cls = program.module(ref.key).cls(ref.name)
            if cls is not None and program.method(cls, name) is not None:
                return True
    return False


def _unknown_method(
    fn: FunctionState, state: State, expr: ir.Call, receiver: V, name: str, args: Args, words: Words
) -> V:
    if knowledge.methods().knows(name):
        return tensors.call(fn, state, expr, receiver, name, args, words)
    model = method_runs.model_of_unresolved(fn, state, expr, receiver, name, args, words)
    if model is not None:
        return run_module(fn, state, expr, model, args, words)
    fn.named.add((name, state.grad))
    note_unresolved_method(fn, state, expr, receiver, name)
    guessed = by_name(fn, state, expr, receiver, name, args, words)
    rest = unknown_call(fn, state, expr, receiver, args, words)
    return join(guessed, rest) if guessed is not None else rest


#: the most project methods that a call on an unknown receiver is resolved to
MAX_CANDIDATES = 3


def _worth_keeping(value: V) -> bool:
    """Whether a value matters for memory if it, or a part of it, is stored: it has a graph, holds values, is a model's
    output, or is an object that may hold such values (``callback.on_step(self)``)."""
    if value.src or value.objs or (value.kinds & INSTANCE and value.syms):
        return True
    return value.size in (OUTPUT, ACTIVATION) and value.is_only(TENSORS)


@kept
def _mappings(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """The expressions, as text, whose members a body accesses by literal names: ``stats[phase]["loss"] = …``."""
    return frozenset(text(part.value, 200) for part in parts(body) if is_member(part))


def _has_members(program: Program, method: Function) -> bool:
    """Whether the objects that have a method may be subscripted as well."""
    return method.cls is None or program.method(method.cls, "__getitem__") is not None


def by_name(
    fn: FunctionState,
    state: State,
    expr: ir.Call,
    receiver: V,
    name: str,
    args: Args,
    words: Words,
    *,
    idles: bool = False,
) -> V | None:
    """The join over the project methods that a call on an unknown receiver may mean, by name. None if there is no
    fitting one, or there are too many. ``idles``: it may also mean a method that does nothing."""
    if name.startswith("__") or not any(map(_worth_keeping, (*args, *words.values()))):
        return None
    program, asker = fn.analyser.program, fn.function
    is_assigned = fn.analyser.facts.attributes.is_assigned
    candidates = [
        method
        for method in fn.analyser.methods_named(name, asker)
        if instances.may_be_of(program, receiver, method) and may_mean(program, asker, expr, method.cls, is_assigned)
        if not fn.analyser.unused.is_never_made(method, asker)
    ]
    if candidates and isinstance(expr.func, ir.Attr) and text(expr.func.value, 200) in _mappings(asker.body):
        candidates = [method for method in candidates if _has_members(program, method)]
    acting = [method for method in candidates if not is_abstract(method)] or candidates
    if not 0 < len(acting) <= MAX_CANDIDATES:
        return None
    # overrides of an abstract method are among the candidates; an empty method without an override does nothing
    idles = idles or any(method not in acting and is_idle(fn, method) for method in candidates)
    found, after = (NONE_VALUE, state.copy()) if idles else (NOTHING, None)
    starred = any(isinstance(arg, ir.Starred) for arg in expr.args)
    before_stores, before_runs, all_run, fits = set(fn.stores), set(fn.runs), not idles, False
    for method in acting:
        if not starred and not accepts(method, len(args) + 1, set(words)):
            continue
        fits = True
        inner = state.copy()
        refs = frozenset((Ref("instance", method.module.key, method.cls.qual),)) if method.cls else EMPTY
        self_value = V(INSTANCE, syms=receiver.syms, refs=refs)
        runs = len(fn.runs)
        found = join(found, fn.interpreter.call_function(fn, inner, method, [self_value, *args], words, expr.at, expr))
        all_run = all_run and len(fn.runs) > runs
        after = join_states(after, inner)
    if after is None or not fits:
        return None
    if not all_run:  # one of the candidates runs no model, or has a guard of its own
        for run in set(fn.runs) - before_runs:
            del fn.runs[run]
    for key in set(fn.stores) - before_stores:
        fn.stores[key].guessed = True
    merged = join_states(state, after)
    assert merged is not None
    # a graph that all candidates free counts as freed
    merged.freed_must |= after.freed_must
    state.take(merged)
    return found
