"""Tensors that grow by concatenation with themselves, judged by named reasons that bound them."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.analysis.demand.needed_later import graph_needed_later
from memlint.analysis.domain.events import Carry, Loop, Place
from memlint.analysis.domain.state import OFF
from memlint.analysis.domain.summary.effects import Store
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Path
from memlint.analysis.facts.repeats import by_requests, layer_code, repeated
from memlint.analysis.facts.same_object import is_given_anew, is_some_member
from memlint.analysis.facts.sizes.scopes import bound_pairs
from memlint.analysis.index.program import Class, Function
from memlint.analysis.judge.bounded_places import begun_by_inner_loop, is_taken_elsewhere, of_one_update
from memlint.analysis.judge.described import lacks_guard, value_of
from memlint.analysis.judge.reasons import Reason, first, report_store_reason
from memlint.analysis.syntax.bindings import mentions, targets
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import (
    dotted,
    last_name,
    parts,
    parts_of,
    walk_expression,
    walk_statements,
)
from memlint.analysis.transfer.stores.growing import CATS, PASSED, is_same, places_of
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.domain.fix_places import FixPlaces
    from memlint.analysis.facts.analyser import Analyser

#: calls that make a new tensor, independent of the old one
_FRESH = frozenset({
    "empty", "zeros", "tensor", "Tensor", "FloatTensor", "LongTensor", "new_empty", "new_zeros", "new_tensor",
    "full", "ones",
})  # fmt: skip


#: calls that show, measure or save their arguments
_LOOKS = frozenset(
    {"print", "len", "save", "info", "debug", "update", "append", "isinstance", "type", "write", "format"}
)


class _Grown:
    """A tensor that grows by concatenation, with its cached facts."""

    def __init__(self, analyser: Analyser, summary: Summary, store: Store) -> None:
        self.analyser, self.summary, self.store = analyser, summary, store

    @functools.cached_property
    def loop(self) -> Loop | None:
        """What repeats the concatenation: a loop, or the calls of the function. None if nothing is known to repeat
        it."""
        seen = self.summary.seen(self.store.loop) if self.store.loop is not None else None
        return seen if seen is not None else _calls(self.analyser, self.summary, self.store)


#: the tensor is no finding if one of these applies
DROPPED: tuple[Reason[_Grown], ...] = (
    Reason(
        "loop-of-layers",
        "{function} is code of a module: its loop runs over layers or steps, and {place} goes when the call returns",
        lambda one: (
            one.store.local
            and (layer_code(one.analyser, one.summary.function) or _layers(one.analyser, one.summary, one.store))
        ),
    ),
    Reason(
        "built-once",
        "`__init__` puts {place} together, once for each object",
        lambda one: not one.store.local and one.summary.function.name == "__init__",
    ),
    Reason(
        "cut-back",
        "{place} is cut back or begun anew where it grows",
        lambda one: _bounded(one.summary, one.store),
    ),
    Reason(
        "begun-by-inner-loop",
        "the first round of an inner loop gives {place} a new value",
        lambda one: begun_by_inner_loop(one.store),
    ),
    Reason(
        "not-repeated",
        "nothing is known to repeat this line: no loop that {place} outlives, and no loop around a call of {function}",
        lambda one: one.loop is None,
    ),
)


def judged(analyser: Analyser, summary: Summary, store: Store, fixes: FixPlaces) -> Iterator[Carry]:
    """The event of one growing tensor; none if something bounds it."""
    one = _Grown(analyser, summary, store)
    reason = first(DROPPED, one)
    if reason is not None:
        report_store_reason(analyser, summary, store, one.loop, "dropped", reason)
        return
    loop = one.loop
    assert loop is not None
    yield Carry(
        site=store.site,
        function=summary.function.qual,
        value=value_of(analyser, summary, store, store.entering),
        place=Place(store.place_kind, store.place_text),
        loop=loop,
        how="cat",
        needed=graph_needed_later(analyser, summary, store),
        reset=store.cleared,
        in_model_loop=lacks_guard(summary, store.entering),
        bounded=loop.over == "rows"
        or store.selected
        or _fed(store)
        or _rows_of_argument(summary, store)
        or of_one_update(summary, store)
        or _over_parts(analyser, summary, store)
        or _begun_by_others(analyser, store),
        read=_is_read(store),
        gather=fixes.gather_of(summary, store.site.at) if store.site.path == summary.module.key else None,
    )


def _fed(store: Store) -> bool:
    """Whether each iteration passes the whole grown tensor to a call (a model that generates token by token), or the
    loop tests its length. A list cannot replace it, and the callee bounds its length."""
    if store.loop is None:
        return False
    if store.loop.loop.kind == "while" and f"{store.place_text}.shape" in store.loop.loop.text:
        return True
    renamed, passed = _handed(store.loop.body)
    names = {store.place_text, *renamed.get(store.place_text, ())}
    return any(at != store.site.at for name in names for at in passed.get(name, ()))


def _is_read(store: Store) -> bool:
    """Whether the loop reads what has grown so far, other than to put it together or to see whether it has begun."""
    for statement in walk_statements(store.loop.body) if store.loop is not None else ():
        if any(text(target, 200) == store.place_text for target in targets(statement)):
            continue
        others: set[int] = set()
        for part in parts_of(statement):
            if isinstance(part, ir.Compare) and "None" in map(text, part.rights):
                others.add(id(part.left))
            elif id(part) not in others and text(part, 200) == store.place_text:
                return True
    return False


def _rows_of_argument(summary: Summary, store: Store) -> bool:
    """Whether a function iterates over the rows of an argument and returns what its own, newly made layers compute from
    them (an augmentation): the result is one batch, as large as the argument."""
    if store.loop is None or not store.local:
        return False
    reached = summary.graphs.closure(store.entering.src)
    if any(run.module.syms or not run.module.store for run in summary.runs.values() if run.node in reached):
        return False
    params = {param.name for param in summary.function.params}
    cut = any(
        isinstance(part, ir.Subscript)
        and dotted(part.value) in params
        and any(mentions(part.index, name) for name in store.loop.counters)
        for part in parts(store.loop.body)
    )
    return cut and any(
        isinstance(one, ir.Return) and one.value is not None and mentions(one.value, store.place_text)
        for one in walk_statements(summary.function.body, into_definitions=False)
    )


@kept
def _handed(body: tuple[ir.Stmt, ...]) -> tuple[dict[str, set[str]], dict[str, set[int]]]:
    """By place, its other names, and the ordinals of the statements that pass it to a call which does more than move
    it."""
    renamed: dict[str, set[str]] = {}
    found: dict[str, set[int]] = {}
    for statement in walk_statements(body):
        if isinstance(statement, ir.Assign):
            for place in places_of(statement.value):
                renamed.setdefault(place, set()).update(text(target, 200) for target in statement.targets)
        for call in parts_of(statement):
            if isinstance(call, ir.Call) and not _only_moves(call):
                for argument in call.passed:
                    for place in places_of(argument):
                        found.setdefault(place, set()).add(statement.at)
    return renamed, found


def _over_parts(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether a module's method that trains nothing grows a variable in a loop over no known data: modalities,
    levels."""
    cls = summary.function.cls
    if cls is None or not store.local or store.loop is None or not analyser.program.is_module(cls):
        return False
    loop = store.loop.loop
    return loop.kind == "for" and loop.over == "unknown" and not summary.backwards and summary.hook is None


def _begun_by_others(analyser: Analyser, store: Store) -> bool:
    """Whether another method resets the attribute at some time (a cache of one sequence)."""
    steps = store.place.steps if isinstance(store.place, Path) else ()
    names = [step for step in steps if step.startswith(".")]
    return bool(names) and analyser.facts.attributes.is_begun(names[-1][1:])


def _only_moves(call: ir.Call) -> bool:
    """Whether a call only concatenates, shows, measures or saves a tensor."""
    name = last_name(call.func)
    return name in CATS or name in _LOOKS


def _layers(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether a module's method, under recording grad mode, loops over what the module holds: its layers."""
    cls = summary.function.cls
    if cls is None or store.grad == OFF or not analyser.program.is_module(cls) or store.loop is None:
        return False
    return store.loop.loop.over != "loader" and "self." in store.loop.loop.text


def _calls(analyser: Analyser, summary: Summary, store: Store) -> Loop | None:
    """The calls of the function as a loop, if known callers repeat it and the place outlives the call."""
    place = store.place
    if not isinstance(place, Path):
        return None
    if place.root.startswith("p:") and (not place.steps or is_given_anew(analyser, summary, place)):
        return None
    if is_some_member(place.around):
        return None
    again = repeated(analyser, summary.function)
    if again is None and (again := by_requests(analyser, summary.function)) is not None:
        return None if is_taken_elsewhere(analyser, summary, store) else again
    return again


def _bounded(summary: Summary, store: Store) -> bool:
    """Whether the place is truncated or reset in the loop, or in another method for an attribute."""
    place = store.place_text
    bodies: list[tuple[ir.Stmt, ...]] = []
    if store.loop is not None and store.local:
        bodies.append(store.loop.body)
    else:
        bodies += [method.body for method in _around(summary.function)]
    known = [_set(body) for body in bodies]
    starts = {store.site.at}.union(*(starts.get(place, ()) for starts, _ in known))
    return any(
        statement.at not in starts and _cut_back(statement, place, store.local)
        for _, assigned in known
        for statement in assigned.get(place, ())
    )


@kept
def _set(body: tuple[ir.Stmt, ...]) -> tuple[dict[str, set[int]], dict[str, list[ir.Assign]]]:
    """By place: the ordinals of the statements under ``if place is None``, which make the first part and are no reset;
    and the statements that assign to the place."""
    starts: dict[str, set[int]] = {}
    assigned: dict[str, list[ir.Assign]] = {}
    for statement in walk_statements(body):
        if isinstance(statement, ir.If) and isinstance(statement.test, ir.Compare) and statement.test.ops == ("is",):
            for place in places_of(statement.test.left):
                starts.setdefault(place, set()).update(inner.at for inner in statement.body)
        elif isinstance(statement, ir.Assign):
            for place in {text(target, 200) for target, _ in bound_pairs(statement.targets, statement.value)}:
                assigned.setdefault(place, []).append(statement)
    return starts, assigned


def _around(function: Function) -> list[Function]:
    cls: Class | None = function.cls
    if cls is None:
        return [function]
    return [method for method in cls.methods.values() if method.name != "__init__"]


def _cut_back(statement: ir.Assign, place: str, local: bool) -> bool:
    for target, value in bound_pairs(statement.targets, statement.value):
        if not isinstance(target, ir.Name | ir.Attr | ir.Subscript) or text(target, 200) != place:
            continue
        if mentions(value, place) and not (_keeps_all(value, place) if local else _uncut(value, place)):
            return True
        if local and not mentions(value, place) and _fresh(value):
            return True
    return False


def _keeps_all(value: ir.Expr, place: str) -> bool:
    """Whether a value is the whole place, moved or concatenated with something, and not a part or a function of it."""
    if isinstance(value, ir.IfExp):
        return _keeps_all(value.body, place) or _keeps_all(value.orelse, place)
    if not isinstance(value, ir.Call):
        return is_same(value, place)
    func = value.func
    if isinstance(func, ir.Attr) and func.name in PASSED:
        return _keeps_all(func.value, place)
    name = last_name(func)
    parts = value.args[0] if name in CATS and value.args else None
    return isinstance(parts, ir.Display) and any(is_same(part, place) for part in parts.elements)


def _uncut(value: ir.Expr, place: str) -> bool:
    parts = (part for part in walk_expression(value) if isinstance(part, ir.Subscript) and mentions(part.value, place))
    return not any(_slices(part.index) for part in parts)


def _slices(index: ir.Expr) -> bool:
    parts = index.elements if isinstance(index, ir.Display) else (index,)
    return any(isinstance(part, ir.Slice) and (part.lower is not None or part.upper is not None) for part in parts)


def _fresh(value: ir.Expr) -> bool:
    """Whether an expression starts a place anew: None, an empty display or a new tensor, but no function of the
    input."""
    if isinstance(value, ir.Const):
        return True
    if isinstance(value, ir.Display):
        return not value.elements
    if not isinstance(value, ir.Call):
        return False
    func = value.func
    while isinstance(func, ir.Attr) and func.name in PASSED and isinstance(func.value, ir.Call):
        func = func.value.func
    name = last_name(func)
    return name in _FRESH
