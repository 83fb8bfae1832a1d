"""What is in a container that a module's variable holds, by the module's own statements."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.values import CONTAINER, LOADER, OF_LOADERS, V
from memlint.analysis.index.program import Module
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import walk_statements
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


def with_entries(analyser: Analyser, module: Module, name: str, found: V) -> V:
    """``found``, the value that is assigned to a variable, as a container of loaders if the module stores nothing else
    in it: ``loaders = {}``, ``loaders["train"] = DataLoader(…)``. One that is filled elsewhere has unknown members."""
    if not found.is_only(CONTAINER) or not (OF_LOADERS in found.refs or _begins_empty(module, name)):
        return found
    stored = [analyser.evaluate_constant(module, value) for value in _stored(module.statements).get(name, ())]
    if not all(one.is_only(LOADER) for one in stored):
        return found.but(refs=found.refs - {OF_LOADERS})
    return found.but(refs=found.refs | {OF_LOADERS}) if stored else found


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
