"""Model runs: which module runs, in which mode, and whether autograd may record."""

from __future__ import annotations

from dataclasses import dataclass

from memlint.analysis.domain.recorded_modes import look_up, mode_of
from memlint.analysis.domain.state import OFF, ON, State
from memlint.analysis.domain.summary.effects import LoopState, ModelRun
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.values import MODULE, NONE, NOTHING, UNKNOWN, Args, Source, V, Words
from memlint.analysis.index.uses import methods_held
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import dotted
from memlint.analysis.transfer.loops import over_loader
from memlint.analysis.transfer.modules.modes import frozen_of
from memlint.ir import nodes as ir

#: factories of inputs that are made for their shape
_BLANK = frozenset({"ones", "zeros", "empty"})
_CRITERIA = frozenset({"criterion", "crit", "loss_fn", "loss_func", "loss_function", "lossfn", "loss_fct"})
#: names of collections of criteria
_SEVERAL = frozenset({"criteria", "losses", *(f"{name}s" for name in _CRITERIA)})


def is_statement(fn: FunctionState, expr: ir.Call) -> bool:
    """Whether a call is a statement of its own, whose result is dropped."""
    return isinstance(fn.statement, ir.ExprStmt) and fn.statement.value is expr


def module_expression(expr: ir.Call, module: V) -> ir.Expr:
    """The expression of the module in ``module(x)``, ``module.forward(x)`` and ``module.method(x)``."""
    func = expr.func
    return (
        func.value if isinstance(func, ir.Attr) and (func.name in ("forward", "__call__") or not module.syms) else func
    )


def _is_criterion(func: ir.Expr) -> bool:
    """Whether a call is one of a criterion (``criterion(y, t)``, ``self.loss_fn(y, t)``, ``criterions[0](y, t)``),
    not of a model's method, which may run the model."""
    names = _SEVERAL if isinstance(func, ir.Subscript) else _CRITERIA
    func = func.value if isinstance(func, ir.Subscript) else func
    bare = isinstance(func, ir.Name) or (isinstance(func, ir.Attr) and dotted(func.value) == "self")
    return bare and dotted(func).rpartition(".")[2] in names


def _mode_of_holders(fn: FunctionState, state: State, name: str) -> tuple[bool | None, Source]:
    """The mode of the modules whose methods a variable holds (``encode = a.encode if forth else b.encode``), if they
    have the same; see `mode_of`."""
    if any(param.name == name for param in fn.function.params):
        return None, None
    modes = [mode_of(state, V(UNKNOWN), holder) for holder in methods_held(fn.function.body).get(name, ())]
    return modes[0] if modes and all(mode == modes[0][0] for mode, _ in modes) else (None, None)


def _is_guarded_by_flag(fn: FunctionState, expr: ir.Call) -> bool:
    """Whether the callee sets the grad mode for its layers by a flag that is unknown here: ``with
    torch.set_grad_enabled(self.as_loss):``."""
    modes = [
        run.grad
        for record in fn.calls_at(expr.at)
        if (function := fn.analyser.function_at(record.callee)) is not None
        if (summary := fn.analyser.summary(function, record.args, record.trains)) is not None
        for run in summary.runs.values()
    ]
    return bool(modes) and all(mode == ON | OFF for mode in modes)


def note_run(
    fn: FunctionState,
    state: State,
    expr: ir.Call,
    module: V,
    value: V,
    node: Source,
    args: Args,
    resolved: bool = True,
) -> None:
    """Record a run of a model under which autograd may record."""
    if state.grad == OFF:
        return
    if not expr.args and not expr.keywords and is_statement(fn, expr):
        return  # a call without arguments and result runs no model
    func = expr.func
    if _is_criterion(func) and not any(argument.kinds & MODULE for argument in args):
        return  # a criterion records only what its inputs have recorded
    base = (
        func.value
        if isinstance(func, ir.Attr) and not module.may_be(NONE) and func.name in ("forward", "__call__")
        else func
    )
    mode, key = mode_of(state, module, base)
    if mode is None and isinstance(func, ir.Attr):
        mode, key = mode_of(state, V(UNKNOWN), func.value)
    elif mode is None and isinstance(func, ir.Name) and state.modes:
        mode, key = _mode_of_holders(fn, state, func.id)
    if (other := fn.runs.get(expr.at)) is not None and other.module.refs and module.refs:
        # one call runs each member of a chain, or one of several networks
        module = module.but(refs=module.refs | other.module.refs)
    fn.runs[expr.at] = ModelRun(
        expr.at,
        fn.site(expr.at),
        text(func),
        module,
        fn.loop_ids,
        ON | OFF if _is_guarded_by_flag(fn, expr) else state.grad,
        mode,
        value,
        node,
        resolved=resolved,
        probes=any(fn.notes.made[at][0] in _BLANK for at in args[0].store if at in fn.notes.made) if args else False,
        drawn=any(fn.notes.made[at][1] for argument in args for at in argument.store if at in fn.notes.made),
        loop=fn.innermost(()),
        mode_key=key,
        tests=tuple(fn.tests),
    )


def note_unresolved_method(fn: FunctionState, state: State, expr: ir.Call, receiver: V, name: str) -> None:
    """Record a call of a method that the project defines, on an object of unknown class."""
    if not any(method.cls is not None for method in fn.analyser.methods_named(name, fn.function)):
        return
    place = expr.func.value if isinstance(expr.func, ir.Attr) else None
    shown = dotted(place) if place is not None else ""
    frozen = frozen_of(fn, state, receiver, place) or look_up(state.modes, receiver, shown, "frozen")
    fn.unresolved_methods[expr.at] = (name, receiver, frozen)


#: functions that release the allocator's free memory
EMPTIES = frozenset(
    f"torch.{device}.{place}empty_cache"
    for device in ("cuda", "mps", "xpu", "npu", "accelerator")
    for place in ("", "memory.")
)


@dataclass(slots=True)
class OutsideCall:
    """``name``: qualified. ``loop``: the innermost iteration loop around the call; ``tests``: those of the ifs
    around it in the function; ``given``: its first argument, or its ``dataset``."""

    name: str
    expr: ir.Call
    loop: LoopState | None
    tests: tuple[ir.Expr, ...]
    given: V


@dataclass(slots=True)
class MetricUse:
    """A metric object takes the values of a batch. ``name``: its qualified class; ``held``: the expression of the
    object."""

    name: str
    expr: ir.Call
    held: ir.Expr
    loops: tuple[LoopState, ...]


#: methods of metric objects that add to their state
_ADDS = frozenset({"update", "forward", "__call__"})


def note_metric(fn: FunctionState, name: str, method: str, expr: ir.Call) -> None:
    """Record a call of a metric object's method that adds to its state."""
    held = expr.func
    if method in _ADDS and (method == "__call__" or isinstance(held, ir.Attr)):
        if isinstance(held, ir.Attr) and held.name == method:
            held = held.value
        fn.notes.metrics[expr.at] = MetricUse(name, expr, held, tuple(fn.loops))


def note_call(fn: FunctionState, name: str, expr: ir.Call, args: Args, words: Words) -> None:
    """Record a call of a function outside the project that a rule asks about."""
    first = args[0] if args else words.get("dataset", NOTHING)
    analyser = fn.analyser
    if name in analyser.noted_calls or (name in analyser.noted_of_loaders and over_loader(first)):
        fn.notes.outside[expr.at] = OutsideCall(name, expr, fn.innermost(()), tuple(fn.tests), first)
