"""What is in a container that a module's variable holds, by the module's own statements."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from memlint.analysis.domain.values import CONTAINER, LOADER, OF_LOADERS, V
from memlint.analysis.index.program import Module
from memlint.analysis.syntax.memo import kept, kept_for
from memlint.analysis.syntax.syntax import calls, walk_statements
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


def with_entries(analyser: Analyser, module: Module, name: str, found: V) -> V:
    """``found``, the value that is assigned to a variable, as a container of loaders if the module stores nothing else
    in it: ``loaders = {}``, ``loaders["train"] = DataLoader(…)``. One that is filled elsewhere has unknown members."""
    if OF_LOADERS not in found.refs and not (found.is_only(CONTAINER) and _begins_empty(module, name)):
        return found
    changes = not found.is_only(CONTAINER) or _is_changed_otherwise(module, name)
    if changes or not _are_loaders(analyser, module, name):
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


#: changes of the dictionary ``NAME``: by a key, by ``|=`` or by a method
_CHANGES = r"\bNAME\s*(?:\[[^\]\n]*\]\s*(?:,[^\n=]*)?=(?!=)|\|=|\.\s*(?:update|setdefault|pop|popitem|clear)\b)"


@kept_for
def _is_changed_otherwise(module: Module, name: str) -> bool:
    """Whether the file changes the container in another way than by the module's own assignments, or a callee gets it,
    which may."""
    changes = re.findall(_CHANGES.replace("NAME", name), module.text)
    given = any(isinstance(arg, ir.Name) and arg.id == name for call in calls(module.statements) for arg in call.args)
    return given or len(changes) > len(_stored(module.statements).get(name, ()))
