"""Whether a checkpoint and its model may be on the device at the same time. A checkpoint that is loaded into a model on
the host, and released before the model is moved, never is."""

from __future__ import annotations

import sys

from memlint.sdk import lazy_pattern
from memlint.sdk.project import Analyser, Function, KnownCall, names_an_accelerator
from memlint.sdk.syntax import (
    bodies,
    calls,
    ir,
    last_name,
    mentions,
    parts_of,
    text,
    walk_statements,
)

from .loaded_states import Taken, bound, held_by, is_handed_on_at_once, load_state_dict, loaded_into

#: names of receivers that load a state and are no modules, which may keep the tensors as they are
KEEPS = lazy_pattern(
    r"ema|averag|swa|shadow|optim|(^|_)opt($|_)|sched|scaler|sampler|loader|metric|meter|buffer|normali|state"
)
#: how many levels of callers are searched for the device of a model
MAX_DEPTH = 2


def meets_its_model(
    analyser: Analyser, function: Function, expr: ir.Call, statement: ir.Stmt, taken: list[Taken]
) -> bool:
    """Whether the model may be on the device while the checkpoint is. A model that is created here or by the callers on
    the host, and moved after the checkpoint is released, is not."""
    names = bound(statement)
    kept = load_state_dict(statement, expr) is None and not (taken and is_handed_on_at_once(statement, expr))
    models = [one.model for one in taken if not KEEPS.search(one.model.rsplit(".", 1)[-1].lower())]
    if not models:  # an optimizer keeps using the loaded tensors on their device
        return kept
    until = _deleted(function, statement) if kept else expr.at
    depth = MAX_DEPTH if until < sys.maxsize or not _outlives(function, names) else 0
    return any(not name or _on_device(analyser, function, name, until, depth) for name in models)


def _deleted(function: Function, statement: ir.Stmt) -> int:
    """Where a function has deleted the checkpoint that a statement binds, and the part of it that a model loads by
    another name, by ordinal; behind all its statements if it does not."""
    name = held_by(function, statement)
    loads = loaded_into(function, name)
    holders = {name, *(arg.id for call in loads for arg in call.args if isinstance(arg, ir.Name))}
    deleted = {
        text(target, 200): one.at
        for one in reversed(_behind(function.body, statement.at) or ())
        if isinstance(one, ir.Delete)
        for target in one.targets
    }
    return max(deleted.get(one, sys.maxsize) for one in holders)


def _behind(block: tuple[ir.Stmt, ...], at: int) -> tuple[ir.Stmt, ...] | None:
    """The statements behind one, in its block and in those around it; None if it is not in the block."""
    for position, statement in enumerate(block):
        if statement.at == at:
            return block[position + 1 :]
        for inner in bodies(statement):
            if (found := _behind(inner, at)) is not None:
                return (*found, *block[position + 1 :])
    return None


def _outlives(function: Function, names: list[str]) -> bool:
    """Whether an object with one of these names may outlive the function."""
    if function.node is None or any("." in name for name in names):
        return True
    returned = (one.value for one in walk_statements(function.body) if isinstance(one, ir.Return))
    return any(value is not None and mentions(value, name) for value in returned for name in names)


def _on_device(analyser: Analyser, function: Function, model: str, until: int, depth: int) -> bool:
    """Whether a model may be on the device with a checkpoint that is released at the ordinal ``until``."""
    owners = _owners(function, model)
    made = False
    for statement in walk_statements(function.body, into_definitions=False):
        value = _made(statement, owners) if statement.at < until else None
        if value is not None:
            shown = text(value, 4000)
            if ".to(" in shown or names_an_accelerator(shown):
                return True
            made = True
        for part in parts_of(statement):
            if isinstance(part, ir.Call) and (_brings(part, owners) or _moves_part(statement, part, model)):
                return part.at < until
    return not made and not (depth > 0 and _comes_on_the_host(analyser, function, model, depth))


def _owners(function: Function, model: str) -> frozenset[str]:
    """A module and the modules that contain it: ``net.body.head``, ``net.body``, ``net``."""
    steps = model.split(".")
    owners = frozenset(".".join(steps[:end]) for end in range(1, len(steps) + 1))
    return owners if function.name == "__init__" else owners - {"self"}


def _comes_on_the_host(analyser: Analyser, function: Function, model: str, depth: int) -> bool:
    """Whether a model that the function does not create is always on the host: a part of a module under construction,
    or a model that all known callers have created and not moved yet."""
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
    """Whether an attribute may hold an argument: ``self.encoder = encoder``."""
    return any(
        place in bound(statement) and not isinstance(statement.value, ir.Call)
        for statement in walk_statements(function.body, into_definitions=False)
        if isinstance(statement, ir.Assign | ir.AnnAssign)
    )


def _gives_from_host(
    analyser: Analyser, function: Function, known: KnownCall, model: str, of_self: bool, depth: int
) -> bool:
    """Whether one call passes a model that its caller has on the host."""
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
        return False  # an object that holds the model: its constructor may have moved it to the device
    handed = f"{name}.{rest}" if rest else name
    return not _on_device(analyser, caller, handed, known.call.at, depth)


def _is_self(function: Function, name: str) -> bool:
    return function.cls is not None and bool(function.params) and name == function.params[0].name


def _receiver(call: ir.Call) -> ir.Expr | None:
    return call.func.value if isinstance(call.func, ir.Attr) else None


def _made(statement: ir.Stmt, owners: frozenset[str]) -> ir.Call | None:
    """The call whose result a statement binds to one of the names; None if there is none."""
    value = statement.value if isinstance(statement, ir.Assign | ir.AnnAssign) else None
    return value if isinstance(value, ir.Call) and not owners.isdisjoint(bound(statement)) else None


def _moves_part(statement: ir.Stmt, call: ir.Call, model: str) -> bool:
    """Whether a statement moves a part of a model in its place, as only modules are: ``model.encoder.to(device)``."""
    if not isinstance(statement, ir.ExprStmt) or statement.value is not call or not isinstance(call.func, ir.Attr):
        return False
    return call.func.name in ("cuda", "to") and text(call.func.value, 200).startswith((f"{model}.", f"{model}["))


def _brings(call: ir.Call, owners: frozenset[str]) -> bool:
    """Whether a call moves one of the modules: ``model.cuda()``, ``DataParallel(model).to(device)``,
    ``accelerator.prepare(model)``."""
    if last_name(call.func) in ("prepare", "setup", "initialize"):
        return any(text(arg, 200) in owners for arg in call.args)
    if not isinstance(call.func, ir.Attr) or call.func.name not in ("cuda", "to"):
        return False
    moved = call.func.value
    if isinstance(moved, ir.Call) and last_name(moved.func).endswith("DataParallel") and moved.args:
        moved = moved.args[0]
    return text(moved, 200) in owners
