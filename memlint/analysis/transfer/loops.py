"""What a loop runs over, and whether its rounds count as iterations."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import Literal

from memlint.analysis.domain.events import Loop, Over
from memlint.analysis.domain.periods import MAX_PERIOD
from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.effects import LoopState
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.trips import literal_trips
from memlint.analysis.domain.values import (
    CALLABLE,
    CONTAINER,
    INSTANCE,
    LOADER,
    MODULE,
    OF_KEYS,
    OF_MODULES,
    OVER_LOADER,
    PER_BATCH,
    SAMPLE,
    TENSORS,
    UNKNOWN,
    V,
    join_all,
)
from memlint.analysis.syntax.bindings import names_bound_by
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import dotted, walk_expression, walk_statements
from memlint.analysis.transfer.heap import elements_of
from memlint.analysis.transfer.library.feeding import gives_transitions
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

#: most passes over a loop's body in search of a fixpoint
MAX_PASSES = 3
#: methods and attributes that give the submodules or parameters of a module
_PARTS = (".modules", ".children", ".parameters", ".named_parameters", ".named_modules", ".named_children", ".layers")


def describe(
    fn: FunctionState, state: State, at: int, source: V, iterable: ir.Expr, target: ir.Expr, shown: str
) -> LoopState:
    """The state of a for loop that begins: what it runs over, how often, and whether its rounds count as iterations."""
    over: Over = "unknown"
    trips = literal_trips(fn, state, iterable) or _rows(source)
    names = [part.id for part in walk_expression(target) if isinstance(part, ir.Name)]
    called = dotted(iterable.func) if isinstance(iterable, ir.Call) else ""
    if gives_transitions(fn.function.body, iterable, target):
        over = "rows"
    elif source.kinds & LOADER or PER_BATCH in source.refs:
        over = "loader"
    elif (
        source.kinds & MODULE
        or called.endswith(_PARTS)
        or _holds_modules(state, source)
        or (called == "range" and _counts_modules(fn, state, iterable))
        or (_parts_of_module(fn, state, iterable) and not _unpacks(target, iterable))
    ):
        over = "modules"
    elif any("epoch" in name.lower() for name in names):
        over = "epochs"
    elif _runs_over_rows(fn, state, source, iterable, called):
        over = "rows"
    elif called.rsplit(".", 1)[-1] in ("range", "trange"):
        over = "range"
    counters = _counters(target, called)
    single = over == "loader" and source.size == SAMPLE
    every: Literal["epoch", "iteration"] = "epoch" if over == "epochs" else "iteration"
    loop = Loop("for", over, every, trips, shown, fn.site(at), single=single, behind=_iterable_of_name(fn, iterable))
    made = LoopState(
        ("loop", at),
        loop,
        not accumulates(iterable)
        and over != "modules"
        and (trips is None or trips > MAX_PERIOD)  # a literal bounds the rounds by a handful, which is no growth
        and not literal_display(iterable)
        and not known_members(state, source),
    )
    made.over_objects = _holds_objects(state, source)
    made.counters = counters
    made.targets = frozenset(names)
    return made


def _rows(source: V) -> int | None:
    """The number of rows of a tensor, if the shape that it was made with tells; else None."""
    dims = source.extent.dims if source.extent is not None and source.is_only(TENSORS) else None
    return dims[0][0] if dims and dims[0][0] == dims[0][1] else None


def run_generators_in(fn: FunctionState, loop: LoopState, before: int) -> None:
    """Put the backwards of the generators that a loop goes through into the loop: they run as it asks for items.
    ``before``: how many backwards there were before the iterable was evaluated."""
    fn.backwards[before:] = [
        one._replace(loops=(*one.loops, loop.id), lazy=False) if one.lazy else one for one in fn.backwards[before:]
    ]


#: calls that iterate over their argument unchanged
_SHOWS = frozenset({"enumerate", "iter", "progressbar", "tqdm", "tqdm_notebook", "track"})


def _iterable_of_name(fn: FunctionState, iterable: ir.Expr) -> str:
    """The iterable that a variable stands for: ``tqdm(loader)`` for ``bar`` in ``for i, batch in enumerate(bar)``;
    "" where the iterable is no such variable."""
    inner = iterable
    while _iterates_unchanged(inner) and isinstance(inner, ir.Call) and inner.args:
        inner = inner.args[0]
    if not isinstance(inner, ir.Name) or inner.id not in fn.function.locals:
        return ""
    made = _wrapped_iterables(fn.function.body).get(inner.id, ())
    before = [one for one in made if one is not None and one.at < iterable.at]
    return text(before[-1], 200) if before and None not in made else ""


def _iterates_unchanged(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Call) and dotted(expr.func).rsplit(".", 1)[-1] in _SHOWS


@kept
def _wrapped_iterables(body: tuple[ir.Stmt, ...]) -> dict[str, list[ir.Expr | None]]:
    """The values of each name that is bound to ``tqdm(…)`` or the like; None among them for a binding to anything
    else."""
    found: dict[str, list[ir.Expr | None]] = {}
    for statement in walk_statements(body, into_definitions=False):
        bindings: list[tuple[ir.Expr | None, ir.Expr]] = []
        if isinstance(statement, ir.Assign) and len(statement.targets) == 1:
            bindings = [(statement.targets[0], statement.value)]
        elif isinstance(statement, ir.With):
            bindings = [(item.target, item.context) for item in statement.items]
        shown = {
            target.id: value for target, value in bindings if isinstance(target, ir.Name) and _iterates_unchanged(value)
        }
        for name in names_bound_by(statement):
            found.setdefault(name, []).append(shown.get(name))
    return found


def member_and_whole(loop: ir.For) -> tuple[ir.Expr, ir.Expr]:
    """The loop variable of the members and the iterable: ``x`` and ``xs`` of ``for i, x in enumerate(xs)``."""
    target, iterable = loop.target, loop.iter
    if (
        isinstance(iterable, ir.Call)
        and dotted(iterable.func) == "enumerate"
        and iterable.args
        and isinstance(target, ir.Display)
        and len(target.elements) == 2
    ):
        return target.elements[1], iterable.args[0]
    return target, iterable


def _counters(target: ir.Expr, called: str) -> frozenset[str]:
    """The loop variables that hold a new number in each round."""
    name = called.rsplit(".", 1)[-1]
    number = target if name in ("range", "trange", "count") else None
    if name == "enumerate" and isinstance(target, ir.Display) and target.elements:
        number = target.elements[0]
    return frozenset((number.id,)) if isinstance(number, ir.Name) else frozenset()


def _holds_modules(state: State, source: V) -> bool:
    """Whether all members are modules: ``list(model.children())``."""
    held = [obj for _, obj in state.objects(source)]
    known = bool(held) and not source.kinds & UNKNOWN
    return known and all(obj.elem.is_only(MODULE) and not obj.fields for obj in held)


def _holds_objects(state: State, source: V) -> bool:
    """Whether a collection holds models, agents or heads instead of data: its rounds are bounded by its members."""
    held = [obj for _, obj in state.objects(source)]
    known = bool(held) and not source.kinds & UNKNOWN
    return known and all(
        join_all((obj.elem, *obj.fields.values())).is_only(MODULE | INSTANCE | CALLABLE) for obj in held
    )


def _runs_over_rows(fn: FunctionState, state: State, source: V, iterable: ir.Expr, called: str) -> bool:
    """Whether a loop runs over the rows of a tensor or of one batch: ``for image in images``, ``zip(batch["a"],
    batch["b"])``."""
    if isinstance(iterable, ir.Call) and called in ("zip", "enumerate"):
        values = [fn.interpreter.evaluate(fn, state, arg) for arg in iterable.args]
    else:
        values = [source]
    return any(value.is_only(TENSORS) and bool(value.kinds) for value in values)


def _parts_of_module(fn: FunctionState, state: State, iterable: ir.Expr) -> bool:
    """Whether a loop runs over submodules: ``enumerate(model.layers)``."""
    if isinstance(iterable, ir.Call) and dotted(iterable.func) in ("enumerate", "zip", "reversed", "list"):
        return any(_parts_of_module(fn, state, arg) for arg in iterable.args)
    if not isinstance(iterable, ir.Attr):
        return False
    owner = fn.interpreter.evaluate(fn, state, iterable.value)
    if not owner.kinds & MODULE or not owner.is_only(MODULE | INSTANCE):
        return False
    return fn.interpreter.evaluate(fn, state, iterable).is_only(MODULE | UNKNOWN)


def _unpacks(target: ir.Expr, iterable: ir.Expr) -> bool:
    """Whether a loop unpacks each member of an attribute (``for x, y in self.batches``), which no submodule allows."""
    return isinstance(iterable, ir.Attr) and isinstance(target, ir.Display)


#: names of settings for the number of layers of a network
_PARTS_COUNTED = lazy_pattern(r"(num|n|number_of)_(layer|block|stage|level|head)s?")


def _counts_modules(fn: FunctionState, state: State, iterable: ir.Expr) -> bool:
    """Whether a range counts submodules: ``range(len(self.layers))``, ``range(1, len(layers) - 1)``,
    ``range(self.num_layers)``."""

    last = iterable.args[-1] if isinstance(iterable, ir.Call) and iterable.args else None
    if last is not None and _PARTS_COUNTED.fullmatch(dotted(last).rsplit(".", 1)[-1]):
        return True
    counted = (
        fn.interpreter.evaluate(fn, state, part.args[0])
        for part in walk_expression(iterable)
        if isinstance(part, ir.Call) and isinstance(part.func, ir.Name) and part.func.id == "len" and part.args
    )
    return any(
        value.kinds & MODULE or OF_MODULES in value.refs or elements_of(fn, state, value).is_only(MODULE)
        for value in counted
    )


def known_members(state: State, source: V) -> bool:
    """Whether a loop runs over a dict with a handful of literal keys, or over the keys of such a dict."""
    if OF_KEYS in source.refs:
        return True
    held = [state.heap.get(key) for key in source.objs]
    return (
        bool(held)
        and source.is_only(CONTAINER)
        and all(
            obj is not None and obj.kind == "dict" and 0 < len(obj.fields) <= MAX_PERIOD and not obj.elem.kinds
            for obj in held
        )
    )


def accumulates(iterable: ir.Expr) -> bool:
    """Whether the rounds are the few micro-batches of one step: ``range(accumulation_steps)``."""
    return isinstance(iterable, ir.Call) and any("accum" in text(arg).lower() for arg in iterable.args)


def literal_display(iterable: ir.Expr) -> bool:
    """Whether a loop runs over a display, or over zip or enumerate of one: the display bounds its rounds."""
    if isinstance(iterable, ir.Display | ir.DictDisplay):
        return True
    if isinstance(iterable, ir.Call) and dotted(iterable.func) in ("zip", "enumerate", "reversed", "sorted"):
        return any(isinstance(arg, ir.Display | ir.DictDisplay) for arg in iterable.args)
    return False


def changes_each_round(loop: LoopState, name: str) -> bool:
    """Whether a variable has another value in each round, on every path: it is the loop variable, or derived from it
    (``key.replace("left", "both")``, ``"new_" + key``, ``f"{key}_all"``)."""
    binders = [
        statement
        for statement in walk_statements(loop.body, into_definitions=False)
        if name in names_bound_by(statement)
    ]
    named = {*loop.targets, name}
    renamed = [
        isinstance(one, ir.Assign)
        and _renames(one.value, named)
        and all(isinstance(target, ir.Name) for target in one.targets)
        for one in binders
    ]
    first = name in loop.targets or any(
        isinstance(one, ir.Assign) and _renames(one.value, loop.targets) for one in binders
    )
    return first and all(renamed)


def _renames(value: ir.Expr, names: AbstractSet[str]) -> bool:
    match value:
        case ir.FormattedString():
            return any(_renames(part, names) for part in value.parts)
        case ir.Call(func=ir.Attr(name="replace", value=old)):
            return _renames(old, names)
        case ir.Binary(op="+", left=ir.Const()):
            return _renames(value.right, names)
        case ir.Binary(op="+", right=ir.Const()):
            return _renames(value.left, names)
        case ir.Name():
            return value.id in names
        case _:
            return False


def over_loader(value: V) -> bool:
    """Whether a value is a loader, or goes through one: ``enumerate(loader)``."""
    return bool(value.kinds & LOADER) or OVER_LOADER in value.refs
