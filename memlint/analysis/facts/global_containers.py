"""What is in a container that a module's variable holds, by the module's own statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.values import CONTAINER, LOADER, OF_LOADERS, V
from memlint.analysis.index.program import Module
from memlint.analysis.syntax.memo import kept, kept_for
from memlint.analysis.syntax.syntax import calls, dotted, walk_statements
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


def with_entries(analyser: Analyser, module: Module, name: str, found: V) -> V:
    """``found``, the value that is assigned to a variable, as a container of loaders if the module stores nothing else
    in it: ``loaders = {}``, ``loaders["train"] = DataLoader(…)``. One that is filled elsewhere has unknown members."""
    if not found.is_only(CONTAINER) or not (OF_LOADERS in found.refs or _begins_empty(module, name)):
        return found
    if name in _changed_otherwise(module.statements) or not _are_loaders(analyser, module, name):
        return found.but(refs=found.refs - {OF_LOADERS})
    return found.but(refs=found.refs | {OF_LOADERS}) if name in _stored(module.statements) else found


@kept_for
def _are_loaders(analyser: Analyser, module: Module, name: str) -> bool:
    """Whether everything that the module stores in the variable's container is a loader."""
    stored = _stored(module.statements).get(name, ())
    return all(analyser.evaluate_constant(module, value).is_only(LOADER) for value in stored)


def _begins_empty(module: Module, name: str) -> bool:
    """Whether all bindings of the variable assign ``{}``."""
    bound = module.bindings.get(name, ())
    return bool(bound) and all(
        isinstance(one, ir.Assign) and isinstance(one.value, ir.DictDisplay) and not one.value.values for one in bound
    )


@kept
def _stored(body: tuple[ir.Stmt, ...]) -> dict[str, list[ir.Expr]]:
    """By variable, what a body stores in it under keys."""
    found: dict[str, list[ir.Expr]] = {}
    for statement in walk_statements(body, into_definitions=False):
        if not isinstance(statement, ir.Assign):
            continue
        for target in statement.targets:
            if isinstance(target, ir.Subscript) and isinstance(target.value, ir.Name):
                found.setdefault(target.value.id, []).append(statement.value)
    return found


@kept
def _changed_otherwise(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """The variables whose container may change in another way than by the module's own assignments: in a function, by
    ``|=``, by a method, or by a callee that gets it."""
    found: set[str] = set()
    own = {id(statement) for statement in walk_statements(body, into_definitions=False)}
    for statement in walk_statements(body):
        targets = statement.targets if isinstance(statement, ir.Assign) and id(statement) not in own else ()
        targets = (statement.target,) if isinstance(statement, ir.AugAssign) else targets
        found |= {dotted(one.value if isinstance(one, ir.Subscript) else one) for one in targets}
    for call in calls(body, into_definitions=True):
        found |= {arg.id for arg in call.args if isinstance(arg, ir.Name)}
        if isinstance(call.func, ir.Attr) and call.func.name not in _READS:
            found.add(dotted(call.func.value))
    return frozenset(found)


#: methods that only read a dictionary
_READS = frozenset({"get", "items", "keys", "values", "copy"})
