"""Tensors that are grown by concatenating onto themselves: ``x = torch.cat([x, part])``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.flow.bounds import begun_by_inner_loop, of_one_update
from memlint.flow.described import lacks_guard, value_of
from memlint.flow.events import Carry, Loop, Place
from memlint.flow.frame import Frame, LoopFrame, Store
from memlint.flow.given_anew import is_given_anew, is_some_member
from memlint.flow.heap import deep
from memlint.flow.kept import kept
from memlint.flow.later import wanted_later
from memlint.flow.mends.gather import gather_of
from memlint.flow.periods import few_members
from memlint.flow.program import Class, Function
from memlint.flow.repeats import layer_code, repeated
from memlint.flow.rows import PASSED, is_member, is_same, is_selection, places_of, unmoved
from memlint.flow.state import OFF, State
from memlint.flow.stores import carried_by
from memlint.flow.syntax import expressions, last_name, mentions, text, walk_expression, walk_statements
from memlint.flow.values import DATA, NONE, NOTHING, TENSORS, UNKNOWN, Path, Source, V, join
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser

_CATS = frozenset(
    {
        "cat",
        "concat",
        "concatenate",
        "stack",
        "hstack",
        "vstack",
        "dstack",
        "row_stack",
        "column_stack",
    }
)
#: calls that make a tensor with nothing of the old one in it
_FRESH = frozenset(
    {
        "empty",
        "zeros",
        "tensor",
        "Tensor",
        "FloatTensor",
        "LongTensor",
        "new_empty",
        "new_zeros",
        "new_tensor",
        "full",
        "ones",
    }
)


#: calls that show, measure or save what they are given
_LOOKS = frozenset(
    {"print", "len", "save", "info", "debug", "update", "append", "isinstance", "type", "write", "format"}
)


def noticed(frame: Frame, state: State, statement: ir.Assign | ir.AnnAssign, target: ir.Expr) -> bool:
    """Whether ``target = …`` concatenates; a growth of the target is remembered for judgement."""
    if statement.value is None:
        return False
    found = False
    for call in _results(statement.value):
        parts = _parts(frame, state, call)
        if parts is None:
            continue
        found = True
        _note(frame, state, statement, target, parts)
    return found


def _results(expr: ir.Expr) -> Iterator[ir.Call]:
    """The calls whose result the expression may be, through conditions and moves."""
    if isinstance(expr, ir.IfExp):
        yield from _results(expr.body)
        yield from _results(expr.orelse)
    elif isinstance(expr, ir.Call):
        if isinstance(expr.func, ir.Attr) and expr.func.name in PASSED and isinstance(expr.func.value, ir.Call):
            yield from _results(expr.func.value)
        else:
            yield expr


def _parts(frame: Frame, state: State, call: ir.Call) -> tuple[ir.Expr, ...] | None:
    """What a call concatenates: the members of a display; () where they cannot be told, None for other calls."""
    name = last_name(call.func)
    if name in _CATS and _of_torch(frame, state, call.func, name):
        given = (
            call.args[0] if call.args else next((word.value for word in call.keywords if word.name == "tensors"), None)
        )
        return given.elements if isinstance(given, ir.Display) else ()
    if name and call.args:
        return _through_helper(frame, state, call)
    return None


def _of_torch(frame: Frame, state: State, func: ir.Expr, name: str) -> bool:
    from memlint.flow.evaluate import evaluate

    return any(ref.kind == "ext" and ref.name == f"torch.{name}" for ref in evaluate(frame, state, func).refs)


def _through_helper(frame: Frame, state: State, call: ir.Call) -> tuple[ir.Expr, ...] | None:
    """``append(rows, part)``, where the function returns ``torch.cat([a, b])`` of its parameters."""
    from memlint.flow.evaluate import evaluate

    if not isinstance(call.func, ir.Name | ir.Attr) or len(call.args) < 2:
        return None
    for ref in evaluate(frame, state, call.func).refs:
        function = frame.analyser.function(ref) if ref.kind == "func" and ref.self_ is None else None
        if function is None or len(function.body) > 3 or function is frame.function:
            continue
        last = function.body[-1] if function.body else None
        if not isinstance(last, ir.Return) or not isinstance(last.value, ir.Call):
            continue
        inner = last.value
        if not isinstance(inner.func, ir.Attr | ir.Name) or not inner.args or not isinstance(inner.args[0], ir.Display):
            continue
        kind, what = frame.analyser.program.find_expression(function.module, inner.func, function)
        if kind != "ext" or what not in {f"torch.{name}" for name in _CATS}:
            continue
        names = [param.name for param in function.params]
        given = [
            names.index(item.id) for item in inner.args[0].elements if isinstance(item, ir.Name) and item.id in names
        ]
        if all(position < len(call.args) for position in given):
            return tuple(call.args[position] for position in given)
    return None


def _note(
    frame: Frame, state: State, statement: ir.Assign | ir.AnnAssign, target: ir.Expr, parts: tuple[ir.Expr, ...]
) -> None:
    from memlint.flow.carry import place_of
    from memlint.flow.evaluate import evaluate

    if isinstance(target, ir.Subscript) and not is_member(target):
        return
    place = text(target, 200)
    olds = [part for part in parts if is_same(part, place)]
    if not olds or len(parts) < 2 or few_members(frame):
        return
    found = place_of(frame, state, target)
    if found is None:
        return
    old = evaluate(frame, state, target)
    index = target.index.id if isinstance(target, ir.Subscript) and isinstance(target.index, ir.Name) else ""
    if index and isinstance(found[0], Path):
        return  # (a list of a few levels, more likely than a dictionary)
    carried, loop = _carried(frame, found[0], old, index)
    if not carried:
        return
    incoming = NOTHING
    for part in parts:
        if part not in olds:
            inner = part.value if isinstance(part, ir.Starred) else part
            incoming = join(incoming, deep(frame, state, evaluate(frame, state, inner)))
    if not incoming.may_be(TENSORS | UNKNOWN) or incoming.is_only(DATA | NONE):
        return
    key = ("s", statement.at, found[0], "cat", None)
    before = frame.stores.get(key)
    extents = [incoming.extent, old.extent]
    if before is not None and before.incoming is not None:
        extents.append(before.incoming.extent)
        incoming = join(before.incoming, incoming)
    # (all that is concatenated has rows of one width: what is known of some of it holds for the rest)
    incoming = incoming.but(extent=next((extent for extent in extents if extent is not None), None))
    shown = ", ".join(text(part, 40) for part in parts if part not in olds)
    frame.stores[key] = Store(
        key,
        "cat",
        "cat",
        found[0],
        found[1],
        text(target),
        incoming,
        frame.site(statement.at),
        (),
        loop,
        frame.loop_ids,
        shown,
        local=not isinstance(found[0], Path),
        grad=state.grad,
        incoming=incoming,
        ended=True,
        selected=all(is_selection(unmoved(part)) for part in olds),
    )


def _carried(frame: Frame, place: Source, old: V, index: str) -> tuple[bool, LoopFrame | None]:
    """(whether the old value is the previous round's, the loop of those rounds, None for the function's calls);
    ``index``: the name that picks the member."""
    loop = carried_by(frame, place, old.src, index)
    if loop is not None:
        return True, loop
    if isinstance(place, Path) and place in old.src:
        return True, frame.innermost(())
    return False, None


# -------------------------------------------------------------------------------------- judgement


def judged(analyser: Analyser, frame: Frame, store: Store) -> Iterator[Carry]:
    """The event of one growing tensor, unless something bounds it."""
    if store.local and (layer_code(analyser, frame.function) or _layers(analyser, frame, store)):
        return
    if not store.local and frame.function.name == "__init__":
        return
    if _bounded(frame, store) or begun_by_inner_loop(store):
        return
    loop = frame.seen(store.loop) if store.loop is not None else None
    if loop is None:
        loop = _calls(analyser, frame, store)
    if loop is None:
        return
    yield Carry(
        site=store.site,
        function=frame.function.qual,
        value=value_of(analyser, frame, store, store.incoming or store.value),
        place=Place(store.place_kind, store.place_text),
        loop=loop,
        how="cat",
        needed=wanted_later(analyser, frame, store),
        reset=store.cleared,
        in_model_loop=lacks_guard(frame, store.incoming or store.value),
        bounded=loop.over == "rows"
        or store.selected
        or _fed(frame, store)
        or of_one_update(frame, store)
        or _over_parts(analyser, frame, store)
        or _begun_by_others(analyser, store),
        gather=gather_of(frame, store.site.at) if store.site.path == frame.module.key else None,
    )


def _fed(frame: Frame, store: Store) -> bool:
    """Whether each round of the loop gives all that has grown to a call (a model that generates token by token), or
    asks how long it is: a list cannot take its place, and it is as long as the callee takes."""
    if store.loop is None:
        return False
    if store.loop.loop.kind == "while" and f"{store.place_text}.shape" in store.loop.loop.text:
        return True
    renamed, given = _handed(store.loop.body)
    names = {store.place_text, *renamed.get(store.place_text, ())}
    return any(at != store.site.at for name in names for at in given.get(name, ()))


@kept
def _handed(body: tuple[ir.Stmt, ...]) -> tuple[dict[str, set[str]], dict[str, set[int]]]:
    """(other names of a place, the ordinals of the statements that give it to a call that does more than move it)"""
    renamed: dict[str, set[str]] = {}
    found: dict[str, set[int]] = {}
    for statement in walk_statements(body):
        if isinstance(statement, ir.Assign):
            for place in places_of(statement.value):
                renamed.setdefault(place, set()).update(text(target, 200) for target in statement.targets)
        for call in (part for expr in expressions(statement) for part in walk_expression(expr)):
            if isinstance(call, ir.Call) and not _only_moves(call):
                for given in (*call.args, *(word.value for word in call.keywords)):
                    for place in places_of(given):
                        found.setdefault(place, set()).add(statement.at)
    return renamed, found


def _over_parts(analyser: Analyser, frame: Frame, store: Store) -> bool:
    """Whether a method of a module that trains nothing grows a variable over no data in sight: modalities, levels."""
    cls = frame.function.cls
    if cls is None or not store.local or store.loop is None or not analyser.program.is_module(cls):
        return False
    loop = store.loop.loop
    return loop.kind == "for" and loop.over == "unknown" and not frame.backwards and frame.hook is None


def _begun_by_others(analyser: Analyser, store: Store) -> bool:
    """Whether a method that is called begins the attribute anew (a cache of one sequence), whenever it does."""
    steps = store.place.steps if isinstance(store.place, Path) else ()
    names = [step for step in steps if step.startswith(".")]
    return bool(names) and analyser.facts.attributes.is_begun(names[-1][1:])


def _only_moves(call: ir.Call) -> bool:
    """A concatenation, or what shows, measures or saves a tensor."""
    name = last_name(call.func)
    return name in _CATS or name in _LOOKS


def _layers(analyser: Analyser, frame: Frame, store: Store) -> bool:
    """A method of a module that autograd may record, over what the module itself holds: its loops run over layers."""
    cls = frame.function.cls
    if cls is None or store.grad == OFF or not analyser.program.is_module(cls) or store.loop is None:
        return False
    return store.loop.loop.over != "loader" and "self." in store.loop.loop.text


def _calls(analyser: Analyser, frame: Frame, store: Store) -> Loop | None:
    """Growth with each call of the function: a loop around its known callers."""
    place = store.place
    if not isinstance(place, Path):
        return None
    if place.root.startswith("p:") and (not place.steps or is_given_anew(analyser, frame, place)):
        return None
    if is_some_member(place.around):
        return None
    return repeated(analyser, frame.function)


def _bounded(frame: Frame, store: Store) -> bool:
    """Whether the place is cut back or started anew where it grows."""
    place = store.place_text
    bodies: list[tuple[ir.Stmt, ...]] = []
    if store.loop is not None and store.local:
        bodies.append(store.loop.body)
    else:
        bodies += [method.body for method in _around(frame.function)]
    known = [_set(body) for body in bodies]
    starts = {store.site.at}.union(*(starts.get(place, ()) for starts, _ in known))
    return any(
        statement.at not in starts and _cut_back(statement, place, store.local)
        for _, assigned in known
        for statement in assigned.get(place, ())
    )


@kept
def _set(body: tuple[ir.Stmt, ...]) -> tuple[dict[str, set[int]], dict[str, list[ir.Assign]]]:
    """(the ordinals of what stands under ``if place is None``, which is the first part and no reset; the statements
    that assign to a place)"""
    starts: dict[str, set[int]] = {}
    assigned: dict[str, list[ir.Assign]] = {}
    for statement in walk_statements(body):
        if isinstance(statement, ir.If) and isinstance(statement.test, ir.Compare) and statement.test.ops == ("is",):
            for place in places_of(statement.test.left):
                starts.setdefault(place, set()).update(inner.at for inner in statement.body)
        elif isinstance(statement, ir.Assign):
            for place in {text(target, 200) for target, _ in _pairs(statement)}:
                assigned.setdefault(place, []).append(statement)
    return starts, assigned


def _around(function: Function) -> list[Function]:
    cls: Class | None = function.cls
    if cls is None:
        return [function]
    return [method for method in cls.methods.values() if method.name != "__init__"]


def _pairs(statement: ir.Assign) -> list[tuple[ir.Expr, ir.Expr]]:
    """The targets of an assignment, each with what it is given, or with all of that."""
    targets: list[ir.Expr] = []
    values: list[ir.Expr] = []
    for target in statement.targets:
        if isinstance(target, ir.Display) and isinstance(statement.value, ir.Display):
            targets += target.elements
            values += statement.value.elements
        elif isinstance(target, ir.Display):
            targets += target.elements
            values += [statement.value] * len(target.elements)
        else:
            targets.append(target)
            values.append(statement.value)
    return list(zip(targets, values, strict=False))


def _cut_back(statement: ir.Assign, place: str, local: bool) -> bool:
    for target, value in _pairs(statement):
        if not isinstance(target, ir.Name | ir.Attr | ir.Subscript) or text(target, 200) != place:
            continue
        if mentions(value, place) and not (_keeps_all(value, place) if local else _uncut(value, place)):
            return True
        if local and not mentions(value, place) and _fresh(value):
            return True
    return False


def _keeps_all(value: ir.Expr, place: str) -> bool:
    """The place itself, moved or joined with something: not a part of it, nor what a layer makes of it."""
    if isinstance(value, ir.IfExp):
        return _keeps_all(value.body, place) or _keeps_all(value.orelse, place)
    if not isinstance(value, ir.Call):
        return is_same(value, place)
    func = value.func
    if isinstance(func, ir.Attr) and func.name in PASSED:
        return _keeps_all(func.value, place)
    name = last_name(func)
    given = value.args[0] if name in _CATS and value.args else None
    return isinstance(given, ir.Display) and any(is_same(part, place) for part in given.elements)


def _uncut(value: ir.Expr, place: str) -> bool:
    parts = (part for part in walk_expression(value) if isinstance(part, ir.Subscript) and mentions(part.value, place))
    return not any(_slices(part.index) for part in parts)


def _slices(index: ir.Expr) -> bool:
    parts = index.elements if isinstance(index, ir.Display) else (index,)
    return any(isinstance(part, ir.Slice) and (part.lower is not None or part.upper is not None) for part in parts)


def _fresh(value: ir.Expr) -> bool:
    """None, an empty display or a new tensor: a start, not what came in."""
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


__all__ = ["judged", "noticed"]
