"""Small views of large tensors that are collected round by round: each keeps the whole storage that it looks into."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from memlint.flow.bound_names import argument
from memlint.flow.devices import touches_an_accelerator
from memlint.flow.events import Event, Loop, Retain
from memlint.flow.frame import Frame, LoopFrame
from memlint.flow.judged_runs import of_layers
from memlint.flow.practice_events import PinnedStorage
from memlint.flow.practices.layers import Scope, maker, number, outside_name
from memlint.flow.state import OFF
from memlint.flow.syntax import (
    assigned_names,
    calls,
    expressions,
    last_name,
    names_bound_by,
    text,
    walk_expression,
    walk_statements,
    withs_around,
)
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser

_ADDS = frozenset({"append", "extend"})
#: methods whose result looks into the same storage, whatever is known of the tensor
_VIEWS = frozenset({"detach", "squeeze", "unsqueeze", "view", "numpy", "permute", "transpose", "t", "expand"})
#: the same, of what it is taken from before, where a copy is as large
_AS_LARGE = _VIEWS | {"cpu", "float", "half", "double", "to", "cuda", "contiguous", "clone", "type", "bfloat16"}
_AS_LARGE_ATTRIBUTES = frozenset({"data", "T", "mT"})
#: what models of libraries call the states of all positions of a sequence
_STATES = frozenset(
    {
        "last_hidden_state",
        "hidden_states",
        "encoder_last_hidden_state",
        "encoder_hidden_states",
        "decoder_hidden_states",
    }
)
#: scores of all words at all positions, where the index says that there are positions
_SCORES = frozenset({"logits", "prediction_logits"})
#: layers that give the states of all positions first
_RECURRENT = frozenset({"torch.nn.LSTM", "torch.nn.GRU", "torch.nn.RNN"})
#: what leaves the graph behind
_CUTS = frozenset({"detach", "numpy", "data"})
_GUARDS = frozenset({"no_grad", "inference_mode"})
#: what reads what it is given and keeps none of it
_READERS = frozenset({"print", "len", "isinstance", "type", "range", "enumerate", "zip", "float", "int", "str", "repr"})
#: rounds that a literal bounds to so few keep little
FEW_ROUNDS = 16


@dataclass(slots=True)
class _Base:
    """What a view looks into. ``names``: those that it goes by; ``root``: the call that makes it."""

    names: list[str] = field(default_factory=list)
    root: ir.Call | None = None
    host: bool = False
    array: bool = False
    cut: bool = False
    #: it is known to hold a vector for each position of a sequence
    states: bool = False
    #: the same of scores, if the index has three places
    scores: bool = False
    #: the first of what a model gives, and that model is one of a library's, by its checkpoint's name
    first: bool = False
    of_library: bool = False


@dataclass(slots=True)
class _Kept:
    statement: ir.Stmt
    place: ir.Expr
    stored: ir.Expr
    by_key: bool


def events(analyser: Analyser, frame: Frame, judged: Iterable[Event]) -> Iterator[PinnedStorage]:
    """The views that one function collects. ``judged``: what is told of its stores: where those grow by what is on the
    device, or keep a graph, that is said there."""
    if not frame.notes.rounds or not frame.notes.forwards or of_layers(analyser, frame.function):
        return
    told = [event for event in judged if isinstance(event, Retain)]
    for loop in frame.notes.rounds.values():
        if _goes_on(loop.loop):
            yield from _of_loop(analyser, frame, loop, told)


def _goes_on(loop: Loop) -> bool:
    """Whether its rounds are, for all that is known, as many as there is data."""
    if loop.every != "iteration" or loop.ends or (loop.trips is not None and loop.trips <= FEW_ROUNDS):
        return False
    return loop.over_data or loop.over == "loader" or loop.batches or (loop.kind == "for" and loop.over == "unknown")


def _of_loop(analyser: Analyser, frame: Frame, loop: LoopFrame, told: list[Retain]) -> Iterator[PinnedStorage]:
    bound = assigned_names(loop.body)[0] | loop.targets
    kept = list(_stores(loop.body))
    for one in kept:
        if not isinstance(one.stored, ir.Subscript | ir.Call | ir.Attr | ir.Name):
            continue
        found = _view(one.stored, loop.body)
        if found is None:
            continue
        view, steps = found
        base = _base(analyser, frame, view.value, loop)
        if base is None or base.root is None or not _is_small(view.index, base, loop):
            continue
        if not _collects(analyser, frame, one, bound, loop) or _kept_anyway(one, view, base, kept, loop):
            continue
        told_here = [event for event in told if _stands_in(event.site.at, one.statement)]
        array = base.array or "numpy" in steps
        on_host = base.host or array or not touches_an_accelerator(analyser, frame)
        if any(event.value.attached != "no" or _said(event) for event in told_here):
            continue
        if not (base.cut or steps & _CUTS or told_here or _guarded(frame, one.statement.at, base.root.at)):
            continue
        yield PinnedStorage(
            site=frame.site(one.statement.at),
            function=frame.function.qual,
            certainty="low" if _leaves(analyser, frame, base, loop) else "high" if base.states else "medium",
            view=text(view, 70),
            base=text(view.value),
            place=text(one.place, 40),
            loop=frame.seen(loop),
            on_host=on_host,
            array=array,
            stored=frame.site(one.stored.at),
        )


def _said(event: Retain) -> bool:
    """Whether it is told that the device fills with it."""
    if event.value.device not in ("accelerator", "likely"):
        return False
    return event.loop.over == "loader" or event.loop.kind == "calls" or event.value.moved_later


def _stands_in(at: int, statement: ir.Stmt) -> bool:
    return at == statement.at or any(part.at == at for expr in expressions(statement) for part in walk_expression(expr))


# -------------------------------------------------------------------------------------- what is stored


def _stores(body: tuple[ir.Stmt, ...]) -> Iterator[_Kept]:
    """What statements put into containers and attributes, or hand on; tuples and the like by their members."""
    for statement in walk_statements(body, into_definitions=False):
        value = statement.value if isinstance(statement, ir.ExprStmt) else None
        if isinstance(value, ir.Call) and isinstance(value.func, ir.Attr) and value.func.name in _ADDS:
            for arg in value.args:
                for member in _members(arg):
                    yield _Kept(statement, value.func.value, member, False)
        elif isinstance(statement, ir.Assign):
            for target in statement.targets:
                if isinstance(target, ir.Subscript | ir.Attr):
                    for member in _members(statement.value):
                        yield _Kept(statement, target.value, member, isinstance(target, ir.Subscript))
        else:
            given = statement.value if isinstance(statement, ir.Return) else None
            given = value.value if isinstance(value, ir.Yield) else given
            for member in _members(given) if given is not None else ():
                yield _Kept(statement, ir.Name(statement.at, ""), member, False)


def _members(expr: ir.Expr) -> Iterator[ir.Expr]:
    if isinstance(expr, ir.Display):
        for element in expr.elements:
            yield from _members(element)
    elif isinstance(expr, ir.DictDisplay):
        for value in expr.values:
            yield from _members(value)
    else:
        yield expr


def _collects(analyser: Analyser, frame: Frame, kept: _Kept, bound: frozenset[str], loop: LoopFrame) -> bool:
    """Whether the place is a list or dictionary that begins empty outside the loop, and nothing in it takes out."""
    place = kept.place
    inside = isinstance(place, ir.Subscript)
    while isinstance(place, ir.Subscript):
        place = place.value
    shown = text(place, 200)
    if isinstance(place, ir.Name):
        if place.id in bound:
            return False
        starts = [
            statement.value
            for statement in walk_statements(frame.function.body, into_definitions=False)
            if isinstance(statement, ir.Assign | ir.AnnAssign) and place.id in names_bound_by(statement)
        ]
        if any(param.name == place.id for param in frame.function.params):
            return False
    elif isinstance(place, ir.Attr) and frame.function.cls is not None and isinstance(place.value, ir.Name):
        starts = [
            statement.value
            for owner in analyser.program.ancestors(frame.function.cls)[0]
            for method in owner.methods.values()
            if place.name in method.names
            for statement in walk_statements(method.body)
            if isinstance(statement, ir.Assign | ir.AnnAssign)
            and any(
                text(target, 200) == shown
                for target in (statement.targets if isinstance(statement, ir.Assign) else (statement.target,))
            )
        ]
    else:
        return False
    if not starts or not all(start is not None and _is_empty(start, kept.by_key or inside) for start in starts):
        return False
    for statement in walk_statements(loop.body):
        targets = statement.targets if isinstance(statement, ir.Assign | ir.Delete) else ()
        if any(
            text(target, 200) == shown or (isinstance(statement, ir.Delete) and shown in text(target, 200))
            for target in targets
        ):
            return False
    return not any(
        isinstance(call.func, ir.Attr)
        and call.func.name in ("clear", "pop", "popleft", "popitem", "remove")
        and text(call.func.value, 200).startswith(shown)
        for call in calls(loop.body)
    )


def _is_empty(start: ir.Expr, keyed: bool) -> bool:
    """``[]``, ``{}``, ``list()``, ``dict()``, ``defaultdict(list)``; of what is stored by key, no list."""
    if isinstance(start, ir.DictDisplay):
        return keyed and not start.keys
    if isinstance(start, ir.Display):
        return not keyed and start.kind == "list" and not start.elements
    if not isinstance(start, ir.Call):
        return False
    name = last_name(start.func)
    if name == "list":
        return not keyed and not start.args
    return keyed and name in ("dict", "OrderedDict", "defaultdict")


# -------------------------------------------------------------------------------------- the view and its base


def _assigned(name: str, body: tuple[ir.Stmt, ...], before: int) -> tuple[ir.Expr, int | None] | None:
    """(what the one statement of a body gives a name, its place where it is unpacked)"""
    found: list[tuple[ir.Expr, int | None] | None] = []
    for statement in walk_statements(body, into_definitions=False):
        if name not in names_bound_by(statement):
            continue
        target = statement.targets[0] if isinstance(statement, ir.Assign) and len(statement.targets) == 1 else None
        if not isinstance(statement, ir.Assign) or statement.at > before:
            found.append(None)
        elif isinstance(target, ir.Name):
            found.append((statement.value, None))
        elif isinstance(target, ir.Display):
            places = [at for at, item in enumerate(target.elements) if isinstance(item, ir.Name) and item.id == name]
            found.append((statement.value, places[0]) if places else None)
        else:
            found.append(None)
    return found[0] if len(found) == 1 else None


def _view(expr: ir.Expr, body: tuple[ir.Stmt, ...]) -> tuple[ir.Subscript, set[str]] | None:
    """The subscript whose storage an expression looks into, and the methods and attributes on the way from it."""
    steps: set[str] = set()
    for _ in range(8):
        if isinstance(expr, ir.Subscript):
            return (expr, steps) if isinstance(expr.index, ir.Display) and expr.index.kind == "tuple" else None
        if isinstance(expr, ir.Name):
            given = _assigned(expr.id, body, expr.at)
            if given is None or given[1] is not None:
                return None
            expr = given[0]
        elif isinstance(expr, ir.Attr) and expr.name in _AS_LARGE_ATTRIBUTES:
            steps.add(expr.name)
            expr = expr.value
        elif isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr) and expr.func.name in _VIEWS:
            steps.add(expr.func.name)
            expr = expr.func.value
        else:
            return None
    return None


def _base(analyser: Analyser, frame: Frame, expr: ir.Expr, loop: LoopFrame) -> _Base | None:
    """What a view looks into, back to the model that makes it in the same round."""
    base = _Base()
    for _ in range(16):
        if isinstance(expr, ir.Name):
            base.names.append(expr.id)
            given = _assigned(expr.id, loop.body, expr.at)
            if given is None:
                return None
            expr, place = given
            if place is not None:
                base.first = place == 0
                if not isinstance(expr, ir.Call):
                    return None
        elif isinstance(expr, ir.Attr):
            base.states = base.states or expr.name in _STATES
            base.scores = base.scores or expr.name in _SCORES
            if expr.name not in _STATES | _SCORES | _AS_LARGE_ATTRIBUTES:
                return None
            base.cut = base.cut or expr.name == "data"
            expr = expr.value
        elif isinstance(expr, ir.Subscript):
            index = number(analyser, expr.index, Scope(frame.function))
            if index is None and not (isinstance(expr.index, ir.Const) and expr.index.kind == "str"):
                return None
            base.states = base.states or (isinstance(expr.index, ir.Const) and expr.index.value in _STATES)
            base.first = index == 0
            expr = expr.value
        elif isinstance(expr, ir.Call):
            if expr.at in frame.notes.forwards:
                base.root = expr
                made = _maker(analyser, frame, expr) if base.first else ""
                base.states = base.states or made in _RECURRENT
                base.of_library = made.endswith("from_pretrained")
                return base
            func = expr.func
            if not isinstance(func, ir.Attr) or func.name not in _AS_LARGE:
                return None
            base.host = base.host or func.name in ("cpu", "numpy") or _is_to_host(expr)
            base.array = base.array or func.name == "numpy"
            base.cut = base.cut or func.name in ("detach", "numpy")
            expr = func.value
        else:
            return None
    return None


def _is_to_host(call: ir.Call) -> bool:
    given = argument(call, 0, "device")
    return last_name(call.func) == "to" and isinstance(given, ir.Const) and given.value == "cpu"


def _maker(analyser: Analyser, frame: Frame, call: ir.Call) -> str:
    """What makes the module that a call runs: a qualified name, or that of a method."""
    made = maker(analyser, call.func, Scope(frame.function))
    if made is None or not isinstance(made.expr, ir.Call):
        return ""
    return outside_name(analyser, made.expr, made.scope) or last_name(made.expr.func)


def _is_small(index: ir.Expr, base: _Base, loop: LoopFrame) -> bool:
    """Whether an index takes one position of many. The first of two places is a batch's, or one of its samples, which
    is as much as there is; what stands at place 0 of a dimension may be all of it, unless more are known."""
    if not isinstance(index, ir.Display) or len(index.elements) < 2:
        return False
    parts = index.elements
    if not all(_is_whole(part) or _number(part) is not None for part in parts[1:]):
        return False
    first = parts[0]
    if not (_is_whole(first) or isinstance(first, ir.Name)):
        return False
    taken = [value for part in parts[1:] if (value := _number(part)) is not None]
    if not taken:
        return False
    if base.states:
        return _number(parts[1]) is not None
    if len(parts) < 3:
        return False
    if base.scores or base.of_library:
        return _number(parts[1]) is not None and len(parts) == 3
    return _is_whole(first) and any(value not in (0,) for value in taken)


def _is_whole(part: ir.Expr) -> bool:
    if isinstance(part, ir.Slice):
        return part.lower is None and part.upper is None and part.step is None
    return isinstance(part, ir.Const) and part.kind == "Ellipsis"


def _number(part: ir.Expr) -> int | None:
    if isinstance(part, ir.Unary) and part.op == "-" and isinstance(part.operand, ir.Const):
        value = part.operand.value
        return -value if isinstance(value, int) and part.operand.kind == "int" else None
    if isinstance(part, ir.Const) and part.kind == "int" and isinstance(part.value, int):
        return part.value
    return None


# -------------------------------------------------------------------------------------- what else keeps it


def _kept_anyway(one: _Kept, view: ir.Subscript, base: _Base, kept: list[_Kept], loop: LoopFrame) -> bool:
    """Whether something else that is stored keeps all of the base as well, or views of all its parts are stored."""
    indices = {text(view.index, 200)}
    for other in kept:
        if other.stored is one.stored:
            continue
        names = {part.id for part in walk_expression(other.stored) if isinstance(part, ir.Name)}
        again = _view(other.stored, loop.body)
        if again is not None:
            looked_into, index = again[0].value, again[0].index
            if _names_of(looked_into) & set(base.names) or text(looked_into, 200) == text(view.value, 200):
                indices.add(text(index, 200))
            continue
        if names & set(base.names) and _is_bare(other.stored, set(base.names)):
            return True
    return len(indices) > 2 or (len(indices) == 2 and not any("-1" in index for index in indices))


def _names_of(expr: ir.Expr) -> set[str]:
    return {part.id for part in walk_expression(expr) if isinstance(part, ir.Name)}


def _is_bare(expr: ir.Expr, names: set[str]) -> bool:
    """Whether an expression is one of these, or a part of it that may be all of it."""
    while True:
        if isinstance(expr, ir.Name):
            return expr.id in names
        if isinstance(expr, ir.Attr | ir.Subscript | ir.Starred):
            expr = expr.value
        elif isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr) and expr.func.name in _AS_LARGE:
            expr = expr.func.value
        elif isinstance(expr, ir.Call):
            return any(_is_bare(arg, names) for arg in expr.args)  # a record of it
        else:
            return False


def _leaves(analyser: Analyser, frame: Frame, base: _Base, loop: LoopFrame) -> bool:
    """Whether the base is handed to code that cannot be followed, which may keep it."""
    names = set(base.names)
    for call in calls(loop.body):
        given = (*call.args, *(word.value for word in call.keywords))
        if not any(isinstance(arg, ir.Name) and arg.id in names for arg in given):
            continue
        name = last_name(call.func)
        kind, what = analyser.program.find_expression(frame.module, call.func, frame.function)
        known = kind == "ext" and str(what).partition(".")[0] in ("torch", "numpy", "sklearn")
        if not known and name not in _READERS and call.at not in frame.notes.forwards:
            return True
    return False


def _guarded(frame: Frame, *places: int) -> bool:
    """Whether autograd is off at one of the places."""
    if frame.entry == OFF or frame.function.decorator_names & _GUARDS:
        return True
    blocks = (block for place in places for block in withs_around(frame.function.body, place))
    contexts = (item.context for block in blocks for item in block.items)
    return any(last_name(one.func if isinstance(one, ir.Call) else one) in _GUARDS for one in contexts)
