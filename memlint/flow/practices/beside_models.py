"""Whether a checkpoint may lie on the device beside the model that it is for: one that is loaded into a model on the
host, and gone before that comes to the device, never does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.flow.devices import names_an_accelerator
from memlint.flow.known_calls import KnownCall
from memlint.flow.program import Function
from memlint.flow.syntax import calls, expressions, last_name, mentions, text, walk_expression, walk_statements
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser

#: names of what loads a state and is no module, which may keep the tensors as they come
KEEPS = lazy_pattern(
    r"ema|averag|swa|shadow|optim|(^|_)opt($|_)|sched|scaler|sampler|loader|metric|meter|buffer|normali|state"
)
#: methods that put what a call is given into the object that they are of
_TAKES_IN = frozenset({"update", "setdefault", "append"})
#: how far up the callers are asked where the model lies that they hand on
MAX_DEPTH = 2


def meets_its_model(analyser: Analyser, function: Function, expr: ir.Call, statement: ir.Stmt) -> bool:
    """Whether the model may be on the device while the checkpoint is: one that is made here or by the callers, on the
    host, and brought there after the checkpoint is gone never meets it."""
    names = bound(statement)
    inline = load_state_dict(statement, expr)
    into = [inline] if inline is not None else [call for name in names for call in loaded_into(function, name)]
    receivers = [text(call.func.value, 200) for call in into if isinstance(call.func, ir.Attr)]
    models = [name for name in receivers if not KEEPS.search(name.rsplit(".", 1)[-1].lower())]
    if not models:  # (an optimizer goes on with the very tensors that come on its device)
        return inline is None
    kept = inline is None
    gone = not kept or not _outlives(function, names)
    return any(_on_device(analyser, function, name, expr.at, kept, MAX_DEPTH if gone else 0) for name in models)


def _outlives(function: Function, names: list[str]) -> bool:
    """Whether what has one of these names may stay when the function ends."""
    if function.node is None or any("." in name for name in names):
        return True
    returned = (one.value for one in walk_statements(function.body) if isinstance(one, ir.Return))
    return any(value is not None and mentions(value, name) for value in returned for name in names)


def _on_device(analyser: Analyser, function: Function, model: str, at: int, kept: bool, depth: int) -> bool:
    """Whether a model may be on the device beside what is loaded at ``at``, and has a name where it is ``kept``."""
    owners = _owners(function, model)
    made = False
    for statement in walk_statements(function.body, into_definitions=False):
        value = _made(statement, owners) if kept or statement.at < at else None
        if value is not None:
            shown = text(value, 400)
            if ".to(" in shown or names_an_accelerator(shown):
                return True
            made = True
        for expr in expressions(statement):
            for part in walk_expression(expr):
                if isinstance(part, ir.Call) and _brings(part, owners):
                    return kept or part.at < at
    return not made and not (depth > 0 and _comes_on_the_host(analyser, function, model, depth))


def _owners(function: Function, model: str) -> frozenset[str]:
    """A module and those that it is a part of: ``net.body.head``, ``net.body``, ``net``."""
    steps = model.split(".")
    owners = frozenset(".".join(steps[:end]) for end in range(1, len(steps) + 1))
    return owners if function.name == "__init__" else owners - {"self"}


def _comes_on_the_host(analyser: Analyser, function: Function, model: str, depth: int) -> bool:
    """Whether a model that a function does not make itself is on the host whenever it runs: a part of a module that is
    being made, or what all known callers have made and brought nowhere yet."""
    root, _, rest = model.partition(".")
    cls = function.cls
    of_self = cls is not None and function.takes_self and bool(function.params) and root == function.params[0].name
    if of_self and cls is not None and analyser.program.is_module(cls):
        if function.name == "__init__":
            return not (rest and _is_given(function, ".".join(model.split(".")[:2])))
        init = analyser.program.method(cls, "__init__")
        if init is None or any(last_name(call.func) in ("cuda", "to") for call in calls(init.body)):
            return False
    elif of_self and rest == "":
        return False
    known = analyser.known_calls.of(function)
    return bool(known) and all(_gives_from_host(analyser, function, call, model, of_self, depth - 1) for call in known)


def _is_given(function: Function, place: str) -> bool:
    """Whether an attribute may be what somebody else made: ``self.encoder = encoder``."""
    return any(
        place in bound(statement) and not isinstance(statement.value, ir.Call)
        for statement in walk_statements(function.body, into_definitions=False)
        if isinstance(statement, ir.Assign | ir.AnnAssign)
    )


def _gives_from_host(
    analyser: Analyser, function: Function, known: KnownCall, model: str, of_self: bool, depth: int
) -> bool:
    """Whether one call hands a model on that its caller has on the host."""
    root, _, rest = model.partition(".")
    given = _receiver(known.call) if of_self else known.passes(function, root)
    if not isinstance(given, ir.Name | ir.Attr):
        return False
    name = text(given, 200)
    caller = known.caller
    if (
        of_self
        and not _is_self(caller, name)
        and not (function.cls is not None and analyser.program.is_module(function.cls))
    ):
        return False  # (an object that has the model: what made it may have brought that to the device)
    handed = f"{name}.{rest}" if rest else name
    return not _on_device(analyser, caller, handed, known.call.at, False, depth)


def _is_self(function: Function, name: str) -> bool:
    return function.cls is not None and bool(function.params) and name == function.params[0].name


def _receiver(call: ir.Call) -> ir.Expr | None:
    return call.func.value if isinstance(call.func, ir.Attr) else None


def _made(statement: ir.Stmt, owners: frozenset[str]) -> ir.Call | None:
    """The call that a statement binds one of the names to."""
    value = statement.value if isinstance(statement, ir.Assign | ir.AnnAssign) else None
    return value if isinstance(value, ir.Call) and not owners.isdisjoint(bound(statement)) else None


def _brings(call: ir.Call, owners: frozenset[str]) -> bool:
    """``model.cuda()``, ``DataParallel(model).to(device)``, ``accelerator.prepare(model)``"""
    if last_name(call.func) in ("prepare", "setup", "initialize"):
        return any(text(arg, 200) in owners for arg in call.args)
    if not isinstance(call.func, ir.Attr) or call.func.name not in ("cuda", "to"):
        return False
    moved = call.func.value
    if isinstance(moved, ir.Call) and last_name(moved.func).endswith("DataParallel") and moved.args:
        moved = moved.args[0]
    return text(moved, 200) in owners


# ------------------------------------------------------------------------------------- what is loaded into what


def bound(statement: ir.Stmt) -> list[str]:
    """The names and attributes that a statement binds."""
    targets: tuple[ir.Expr, ...] = ()
    if isinstance(statement, ir.Assign):
        targets = statement.targets
    elif isinstance(statement, ir.AnnAssign):
        targets = (statement.target,)
    return [text(target, 200) for target in targets if isinstance(target, ir.Name | ir.Attr)]


def load_state_dict(statement: ir.Stmt, expr: ir.Call) -> ir.Call | None:
    """The ``load_state_dict(…)`` that takes what is loaded, or a part of it, in the same statement."""
    for whole in expressions(statement):
        for part in walk_expression(whole):
            if isinstance(part, ir.Call) and last_name(part.func) == "load_state_dict" and contains(part.args, expr):
                return part
    return None


def contains(args: tuple[ir.Expr, ...], expr: ir.Call) -> bool:
    """Whether a call is a part of some arguments."""
    return any(part.at == expr.at and isinstance(part, ir.Call) for arg in args for part in walk_expression(arg))


def loaded_into(function: Function, name: str) -> list[ir.Call]:
    """Each ``load_state_dict(…)`` that is given what has this name, or something made of it."""
    known = {name}
    found: list[ir.Call] = []
    for statement in walk_statements(function.body, into_definitions=False):
        known.update(_made_of(statement, known))
        for expr in expressions(statement):
            for part in walk_expression(expr):
                if not isinstance(part, ir.Call) or not any(mentions(arg, one) for arg in part.args for one in known):
                    continue
                if last_name(part.func) == "load_state_dict":
                    found.append(part)
                elif isinstance(part.func, ir.Attr) and part.func.name in _TAKES_IN:
                    known.add(text(part.func.value, 200))
    return found


def _made_of(statement: ir.Stmt, known: set[str]) -> list[str]:
    """The names that a statement gives to what is made of something known, or puts it into: ``own[key] = found[key]``,
    ``for key, value in found.items():``"""
    value: ir.Expr | None = None
    targets: tuple[ir.Expr, ...] = ()
    if isinstance(statement, ir.Assign):
        value, targets = statement.value, statement.targets
    elif isinstance(statement, ir.AnnAssign):
        value, targets = statement.value, (statement.target,)
    elif isinstance(statement, ir.For):
        value, targets = statement.iter, (statement.target,)
    if value is None or not any(mentions(value, one) for one in known):
        return []
    named: list[str] = []
    for target in targets:
        place = target
        while isinstance(place, ir.Subscript):
            place = place.value
        items = list(walk_expression(place)) if isinstance(statement, ir.For) else [place]
        named += [text(item, 200) for item in items if isinstance(item, ir.Name | ir.Attr)]
    return named
