"""Unresolved calls: what they may return, by their names and arguments, and which values escape."""

from __future__ import annotations

from memlint.analysis.domain.literal_values import referred_functions
from memlint.analysis.domain.state import OFF, State
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.tensor_ops import asks_for_count, names_number
from memlint.analysis.domain.values import (
    ACCELERATOR,
    ANYWHERE,
    BATCH,
    CONTAINER,
    CPU,
    DATA_VALUE,
    EMPTY,
    OUTPUT,
    SCALAR,
    SOME_SIZE,
    TENSOR,
    TENSORS,
    TREE,
    UNKNOWN,
    Args,
    Path,
    Source,
    V,
    Words,
)
from memlint.analysis.index.roles_by_name import names_model
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import dotted, last_name
from memlint.analysis.transfer.held_values import tensors_within
from memlint.analysis.transfer.library.computing import prepares
from memlint.analysis.transfer.library.noted_runs import is_statement
from memlint.analysis.transfer.library.placement import device_of
from memlint.analysis.transfer.modules.frozen_parts import made_frozen
from memlint.analysis.transfer.modules.modes import PARAMETER_CONTAINERS
from memlint.analysis.transfer.modules.optimizer_parameters import note_escaped_modules
from memlint.analysis.transfer.modules.touched_parameters import note_escaped
from memlint.analysis.transfer.stores import loop_updates
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern


def unknown_call(fn: FunctionState, state: State, expr: ir.Call, callee: V, args: Args, words: Words) -> V:
    """The value of an unresolved call, which may have any graph or none; its arguments escape."""
    if isinstance(expr.func, ir.Attr) and asks_for_count(expr.func.name):
        return DATA_VALUE
    parents: frozenset[Source] = callee.src if isinstance(expr.func, ir.Attr) else EMPTY
    alone = is_statement(fn, expr)
    guess = not alone and (is_loss(expr.func) or _made_as_loss(callee) or _named_loss(fn, expr, args))
    logged = _only_reads(fn, callee, last_name(expr.func), alone)
    for value in (*args, *words.values()):
        inner = tensors_within(fn, state, value)
        parents |= inner.src
        escape(fn, value, inner, scored=guess, logged=logged)
        fn.handed_on.update((key, state.grad) for key in referred_functions(value))
    note_escaped_modules(fn, state, [*args, *words.values()])
    note_escaped(fn, state, [*args, *words.values()])
    if prepares(words):  # words and pictures as tensors: no graph, whatever callers pass as the callee
        device = ANYWHERE if "device" in words else CPU
        return V(TREE, device=device, size=BATCH, store=frozenset((expr.at,)))
    symbol = next(iter(sorted(callee.syms)), None)
    src = fn.record(
        state,
        expr.at,
        expr.at,
        text(expr),
        parents,
        unknown=not guess and not made_frozen(fn, callee),
        callee=symbol,
        guess=guess,
    )
    if guess and src:
        return V(TENSOR, src, size=SCALAR)
    if not any(path.steps[-1:] in ((), ("." + dotted(expr.func).rsplit(".", 1)[-1],)) for path in callee.syms):
        return V(UNKNOWN, src, store=frozenset((expr.at,)))
    # a callable that was passed in returns tensors on the device of its arguments
    moved = any(value.is_only(UNKNOWN) and value.device == ACCELERATOR for value in args[:1])
    size = OUTPUT if moved and not names_number(text(expr.func)) else _result_size(fn, state, args, text(expr.func))
    computes = (moved or state.grad == OFF) and size == OUTPUT and names_model(text(expr.func))
    kinds = TREE if computes else UNKNOWN
    for key in src if computes else ():
        fn.graphs.nodes[key].opaque = True  # its parts may be numbers for display
    return V(kinds, src, device=device_of(fn, state, args), size=size, store=frozenset((expr.at,)))


def _result_size(fn: FunctionState, state: State, args: Args, shown: str) -> int:
    inputs = [tensors_within(fn, state, value) for value in args if value.kinds & (TENSORS | CONTAINER)]
    large = any(value.kinds & TENSORS and value.size in (BATCH, OUTPUT, SOME_SIZE) for value in inputs)
    return OUTPUT if large and not names_number(shown) else SOME_SIZE


_LOSS = lazy_pattern(r"criterion|(^|_)crit$|loss(_?(f|fn|fun|func|fct|function|module|layer|criterion))?_?\d*$")


#: names of collections of losses
_LOSSES = lazy_pattern(r"criteria$|loss(es|_?(fn|fun|func|fct|function|module|layer)s)$")


def is_loss(func: ir.Expr) -> bool:
    """Whether an unresolved callee is named like a loss, so that its result has its arguments' graph: ``loss(y, t)``,
    ``criterions[0](y, t)``."""
    several = isinstance(func, ir.Subscript)
    name = last_name(func.value if isinstance(func, ir.Subscript) else func).lower()
    return _LOSS.search(name) is not None or (several and _LOSSES.search(name) is not None)


#: names of library classes whose objects are losses
_LOSS_CLASS = lazy_pattern(r"(Loss|Criterion)\d*$")


def _made_as_loss(callee: V) -> bool:
    """Whether a callee is an instance of a library's loss class."""
    return any(ref.kind == "foreign" and _LOSS_CLASS.search(ref.name) is not None for ref in callee.refs)


#: names of a loss that is trained on or summed, but not of values for a log
_LOSS_NAME = lazy_pattern(r"(\w+_)?loss\d*")


def _named_loss(fn: FunctionState, expr: ir.Call, args: Args) -> bool:
    """Whether a library's function receives a value that surely has a graph, and its result is called a loss. (A
    library that computes on the host would raise; a function of the project may return numbers.)"""
    statement = fn.statement
    if not isinstance(statement, ir.Assign) or statement.value is not expr or len(statement.targets) != 1:
        return False
    target = statement.targets[0]
    if not isinstance(target, ir.Name) or not _LOSS_NAME.fullmatch(target.id.lower()) or not args:
        return False
    kind, _ = fn.analyser.program.find_expression(fn.module, expr.func, fn.function)
    return kind == "ext" and args[0].is_only(TENSORS) and fn.graphs.attached(args[0].src)[0] == "yes"


#: methods of loggers
_LOGS = lazy_pattern(r"log(_dict)?|(?:add|log)_(?:scalar|metric|histogram|image|figure|audio|video|text)s?")


def _only_reads(fn: FunctionState, callee: V, name: str, alone: bool) -> bool:
    """Whether a call reads the numbers of its arguments, and no gradient can come back through it: a logger's, whose
    result nobody uses, or one that copies them into a module, or makes parameters of them. A method of the project
    that the call may mean must not keep the arguments themselves."""
    if name == "load_state_dict" or (alone and _LOGS.fullmatch(name) is not None):
        return callee.resolved() or not _may_be_kept(fn, name)
    return name in ("append", "extend", "update") and any(
        ref.kind == "extinstance" and ref.name in PARAMETER_CONTAINERS for ref in callee.refs
    )


def _may_be_kept(fn: FunctionState, name: str) -> bool:
    """Whether a method of the project of that name may keep what it is given, or run a backward through it."""
    methods = [one for one in fn.analyser.methods_named(name, fn.function) if one.cls is not None]
    if not methods:
        return fn.analyser.facts.methods.are_many(name, fn.module.key)
    summaries = [fn.analyser.summary(one) for one in methods if one.key != fn.function.key]
    return any(summary is None or _keeps_given(summary) for summary in summaries)


def _keeps_given(summary: Summary) -> bool:
    roots = {f"p:{param.name}" for param in summary.function.given}
    kept = set(summary.left - summary.notes.logged)
    for store in summary.stores.values():
        kept |= store.value.src
    for _, value in summary.exit.sym.items() if summary.exit is not None else ():
        kept |= value.src | value.syms
    for one in summary.backwards:
        kept |= one.reached
    return any(isinstance(source, Path) and source.root in roots for source in summary.graphs.closure(kept))


def escape(fn: FunctionState, value: V, inner: V, *, scored: bool = False, logged: bool = False) -> None:
    """The value escapes to code that cannot be followed (``scored``: to a loss, ``logged``: to a log)."""
    fn.escape(inner.src | {("elem", key) for key in value.objs}, scored=scored, logged=logged)
    loop_updates.note_escaped_storage(fn, inner)
