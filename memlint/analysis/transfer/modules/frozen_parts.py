"""Parts of a module that its class freezes in its constructor or in another method: their runs record nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.recorded_modes import is_elsewhere, is_made, look_up
from memlint.analysis.domain.values import UNKNOWN, Path, V, ordered
from memlint.analysis.index.definitions import functions_of
from memlint.analysis.index.program import Class, Function
from memlint.analysis.syntax.control_flow import evaluated
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import (
    calls_named,
    expressions,
    is_false,
    last_name,
    parts_of,
    walk_statements,
    way_to,
)
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.summary import Summary
    from memlint.analysis.facts.analyser import Analyser


def made_frozen(summary: Summary, module: V) -> bool:
    """Whether the module is surely a part of ``self`` that the class freezes, in ``__init__`` or in a method that
    the program calls."""
    function = summary.function
    if function.cls is None or not function.takes_self or not function.params or function.name == "__init__":
        return False
    if not module.syms or is_made(module):
        return False
    own, cls = f"p:{function.params[0].name}", function.cls
    return all(
        path.root == own and path.steps and _freezes_part(summary.analyser, cls, path.steps)
        for path in ordered(module.syms)
    )


def _freezes_part(analyser: Analyser, cls: Class, steps: tuple[str, ...]) -> bool:
    """Whether a class freezes a part of its instances, and no method makes it trainable again."""
    methods = analyser.program.methods(cls)
    if any(_thaws(method.body) for method in methods if method.name != "__init__"):
        return False
    init = analyser.program.method(cls, "__init__")
    return any(_is_frozen_by(analyser, method, steps) for method in ([init] if init is not None else [])) or any(
        _is_frozen_by(analyser, method, steps)
        for method in methods
        if method.takes_self and _freezes(method.body) and _is_surely_called(analyser, method)
    )


def _is_frozen_by(analyser: Analyser, method: Function, steps: tuple[str, ...]) -> bool:
    """Whether a method freezes a part of its object, for any arguments."""
    summary = analyser.summary(method) if method.params else None
    if summary is None or summary.exit is None:
        return False
    modes, own = summary.exit.modes, f"p:{method.params[0].name}"
    if not any(isinstance(key, tuple) and key[:1] == ("frozen",) and frozen for key, frozen in modes.items()):
        return False
    if (frozen_mode := look_up(modes, V(UNKNOWN, syms=frozenset((Path(own, steps),))), "", "frozen")) is not None:
        return frozen_mode
    made = summary.exit.sym.get(Path(own, steps[:1])) if method.name == "__init__" else None
    if made is None:
        return False
    # the part may be created in several known ways, each of which must be frozen
    ways = [V(UNKNOWN, syms=frozenset((item,))) for item in made.syms]
    ways += [V(UNKNOWN, store=frozenset((item,))) for item in made.store if not is_elsewhere(item)]
    return bool(ways) and all(look_up(modes, way, "", "frozen") is True for way in ways)


@kept
def _freezes(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a body sets requires_grad of some parameters to False."""
    assigned = (one for one in walk_statements(body) if isinstance(one, ir.Assign) and is_false(one.value))
    return any("requires_grad" in map(last_name, one.targets) for one in assigned) or any(
        call.args and is_false(call.args[0]) for call in calls_named(body, {"requires_grad_"})
    )


#: most files with a method's name that are searched for calls
_MAX_FILES = 24


def _is_surely_called(analyser: Analyser, method: Function) -> bool:
    """Whether some call of a method is unconditional: one in its own file, or anywhere if no other class has a
    method of that name."""
    own = method.module.key
    alone = len(analyser.facts.methods.few(method.name, own)) == 1
    files = analyser.program.words.files(method.name) if alone else [own]
    if len(files) > _MAX_FILES:
        return False
    return any(
        _is_unconditional(caller.body, call)
        for key in files
        for caller in functions_of(analyser.program.module(key))
        if method.name in caller.names
        for call in calls_named(caller.body, {method.name})
    )


def _is_unconditional(body: tuple[ir.Stmt, ...], call: ir.Call) -> bool:
    """Whether a call runs whenever its function runs to its end, where each loop is taken to have a round."""
    way = way_to(body, call.at)
    if any(isinstance(block[number], ir.If | ir.Try | ir.Match) for block, number in way[:-1]):
        return False
    block, number = way[-1]
    return any(part is call for part in evaluated(expressions(block[number])))


@kept
def _thaws(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a body may make some parameters trainable."""
    for statement in walk_statements(body):
        targets = statement.targets if isinstance(statement, ir.Assign) and not is_false(statement.value) else ()
        if "requires_grad" in map(last_name, targets):
            return True
        if any(_is_thawing(part) for part in parts_of(statement)):
            return True
    return False


def _is_thawing(part: ir.Expr) -> bool:
    if not isinstance(part, ir.Call):
        return False
    name = last_name(part.func)
    return "unfreeze" in name or (name == "requires_grad_" and not (part.args and is_false(part.args[0])))
