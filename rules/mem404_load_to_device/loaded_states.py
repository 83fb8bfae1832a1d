"""Which models load a checkpoint: in the function that reads it, or in a helper that it is passed to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memlint.sdk import lazy_pattern
from memlint.sdk.project import Analyser, Function, KnownCall
from memlint.sdk.syntax import (
    calls,
    ir,
    is_true,
    last_name,
    mentions,
    parts_of,
    text,
    unpacked_targets,
    walk_expression,
    walk_statements,
)

#: methods that store their argument in the receiver
_TAKES_IN = frozenset({"update", "setdefault", "append"})
#: names of unknown helpers that load their argument into a model
_LOADS = lazy_pattern(r"_?(re)?(load|store|sume)\w*(checkpoint|ckpt|state|weights?|model|pretrained|params)\w*")


class Taken(NamedTuple):
    """A model that loads a checkpoint. ``model``: its source in the function that reads the checkpoint, "" if unknown.
    ``assigns``: the loaded tensors become its parameters (``assign=True``)."""

    model: str
    assigns: bool = False


def taken_by(analyser: Analyser, function: Function, statement: ir.Stmt, expr: ir.Call) -> list[Taken]:
    """The models that load the state which ``expr`` reads in a statement of a function."""
    names = bound(statement)
    inline = load_state_dict(statement, expr)
    into = [inline] if inline is not None else [call for name in names for call in loaded_into(function, name)]
    found = [_taken(call) for call in into if isinstance(call.func, ir.Attr)]
    others = (call for call in calls(function.body) if last_name(call.func) != "load_state_dict")
    for call in others if inline is None else ():
        for arg in call.passed:
            root = arg.value if isinstance(arg, ir.Subscript) else arg
            own = isinstance(root, ir.Call) and root.at == expr.at
            if own or (isinstance(root, ir.Name | ir.Attr) and text(root, 200) in names):
                found += _by_helper(analyser, function, call, arg)
    return found


def is_handed_on_at_once(statement: ir.Stmt, expr: ir.Call) -> bool:
    """Whether the loaded object is passed to a helper directly, and so released when that returns:
    ``load_checkpoint(torch.load(path))``."""
    return not bound(statement) and any(
        isinstance(part, ir.Call) and part.at != expr.at and any(_is_of(arg, expr) for arg in part.args)
        for part in parts_of(statement)
    )


def _is_of(arg: ir.Expr, expr: ir.Call) -> bool:
    root = arg.value if isinstance(arg, ir.Subscript) else arg
    return isinstance(root, ir.Call) and root.at == expr.at


def _taken(call: ir.Call) -> Taken:
    receiver = text(call.func.value, 200) if isinstance(call.func, ir.Attr) else ""
    return Taken(receiver, any(word.name == "assign" and is_true(word.value) for word in call.keywords))


def _by_helper(analyser: Analyser, function: Function, call: ir.Call, arg: ir.Expr) -> Iterator[Taken]:
    """The models that load a state which a helper has as an argument."""
    helper, on_self = _helper(analyser, function, call)
    if helper is None:
        kind, _ = analyser.program.find_expression(function.module, call.func, function)
        if kind != "class" and _LOADS.fullmatch(last_name(call.func).lower()) is not None:
            names = (text(one, 200) for one in call.args if isinstance(one, ir.Name | ir.Attr) and one is not arg)
            yield Taken(next(names, ""))
        return
    known = KnownCall(function, call, 1 if helper.takes_self else 0)
    for param in helper.given:
        if known.passes(helper, param.name) is not arg:
            continue
        for inner in loaded_into(helper, param.name):
            taken = _taken(inner)
            root, _, rest = taken.model.partition(".")
            if on_self and helper.params and root == helper.params[0].name:
                given: ir.Expr | None = call.func.value if isinstance(call.func, ir.Attr) else None
            else:
                given = known.passes(helper, root)
            shown = text(given, 200) if isinstance(given, ir.Name | ir.Attr) else ""
            yield taken._replace(model=f"{shown}.{rest}" if shown and rest else shown)


def _helper(analyser: Analyser, function: Function, call: ir.Call) -> tuple[Function | None, bool]:
    """The function of the project that a call calls, and whether it is a method of the same object."""
    kind, what = analyser.program.find_expression(function.module, call.func, function)
    if kind == "function" and isinstance(what, Function):
        return what, False
    func = call.func
    if function.cls is None or not function.takes_self or not isinstance(func, ir.Attr) or not function.params:
        return None, False
    if not isinstance(func.value, ir.Name) or func.value.id != function.params[0].name:
        return None, False
    return analyser.program.method(function.cls, func.name), True


def bound(statement: ir.Stmt) -> list[str]:
    """The names and attributes that an assignment binds, each by itself: ``state, args = torch.load(path)``."""
    if not isinstance(statement, ir.Assign | ir.AnnAssign):
        return []
    return [text(target, 200) for target in unpacked_targets(statement) if isinstance(target, ir.Name | ir.Attr)]


def held_by(function: Function, statement: ir.Stmt) -> str:
    """The name that a statement binds to the checkpoint: of several, one that a model loads. "" for none."""
    names = bound(statement)
    return next((one for one in names if loaded_into(function, one)), next(iter(names), ""))


def load_state_dict(statement: ir.Stmt, expr: ir.Call) -> ir.Call | None:
    """The ``load_state_dict(…)`` in the same statement that takes the loaded object, or a part of it; None for none."""
    for part in parts_of(statement):
        if isinstance(part, ir.Call) and last_name(part.func) == "load_state_dict" and contains(part.args, expr):
            return part
    return None


def contains(args: tuple[ir.Expr, ...], expr: ir.Call) -> bool:
    """Whether a call is a part of one of the arguments."""
    return any(part.at == expr.at and isinstance(part, ir.Call) for arg in args for part in walk_expression(arg))


def loaded_into(function: Function, name: str) -> list[ir.Call]:
    """The calls of ``load_state_dict(…)`` with the named object, or something made from it."""
    known = {name}
    found: list[ir.Call] = []
    for statement in walk_statements(function.body, into_definitions=False):
        known.update(_made_of(statement, known))
        for part in parts_of(statement):
            if not isinstance(part, ir.Call) or not any(_is_made_of(arg, known) for arg in part.args):
                continue
            if last_name(part.func) == "load_state_dict":
                found.append(part)
            elif isinstance(part.func, ir.Attr) and part.func.name in _TAKES_IN:
                known.add(text(part.func.value, 200))
    return found


def _is_made_of(expr: ir.Expr, known: set[str]) -> bool:
    """Whether an expression reads something known, other than for the path of another file: what
    ``torch.load(found["best"])`` gives is not made of what was found."""
    if not any(mentions(expr, one) for one in known):
        return False
    files = [part for part in walk_expression(expr) if isinstance(part, ir.Call) and last_name(part.func) == "load"]
    paths = {id(part) for call in files for arg in call.passed for part in walk_expression(arg)}
    return any(
        isinstance(part, ir.Name | ir.Attr | ir.Subscript) and text(part, 200) in known and id(part) not in paths
        for part in walk_expression(expr)
    )


def _made_of(statement: ir.Stmt, known: set[str]) -> list[str]:
    """The names that a statement binds to something made from a known object, or to which it adds it: ``own[key] =
    found[key]``, ``for key, value in found.items():``."""
    value: ir.Expr | None = None
    targets: tuple[ir.Expr, ...] = ()
    if isinstance(statement, ir.Assign):
        value, targets = statement.value, statement.targets
    elif isinstance(statement, ir.AnnAssign):
        value, targets = statement.value, (statement.target,)
    elif isinstance(statement, ir.For):
        value, targets = statement.iter, (statement.target,)
    if value is None or not _is_made_of(value, known):
        return []
    named: list[str] = []
    for target in targets:
        place = target
        while isinstance(place, ir.Subscript):
            place = place.value
        items = list(walk_expression(place)) if isinstance(statement, ir.For) else [place]
        named += [text(item, 200) for item in items if isinstance(item, ir.Name | ir.Attr)]
    return named
