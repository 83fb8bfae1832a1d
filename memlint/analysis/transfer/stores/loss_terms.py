"""Loss terms (regularizers) that parts of a model sum up, and that a method returns and resets."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from memlint.analysis.domain.summary.effects import Store
from memlint.analysis.domain.values import Path
from memlint.analysis.index.program import Class, Function
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import is_name, parts_of, walk_expression, walk_statements
from memlint.analysis.transfer.modules.flags import own_calls
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: methods that empty a tensor or a container
_EMPTIES = frozenset({"zero_", "detach_", "clear", "fill_"})
#: most classes of an attribute's name that are searched
_MOST = 8


def is_returned_and_reset(analyser: Analyser, store: Store) -> bool:
    """Whether the place is an attribute that some method of a project module returns and resets: its graph becomes
    part of a caller's loss."""
    if not isinstance(store.place, Path) or not store.place.steps or not store.place.steps[-1].startswith("."):
        return False
    name = store.place.steps[-1][1:]
    return any(
        analyser.program.is_module(cls) and name in _returned_and_reset(cls)
        for cls in itertools.islice(analyser.facts.attributes.classes_with(name), _MOST)
    )


@kept
def _returned_and_reset(cls: Class) -> frozenset[str]:
    """The attributes that some method of a class returns and resets."""
    resets = {method.name: _emptied(method) for method in cls.methods.values() if method.name != "__init__"}
    found: set[str] = set()
    for method in cls.methods.values():
        if method.name == "__init__" or not method.takes_self or not method.params:
            continue
        own = method.params[0].name
        gone = set(resets[method.name])
        for call in own_calls(method):
            gone |= resets.get(call, frozenset())
        found |= gone & _returned(method, own) - _added_to(method, own)
    return frozenset(found)


def _added_to(method: Function, own: str) -> set[str]:
    """The attributes that a method rebuilds from their old value: such a method sums them up."""
    found: set[str] = set()
    for statement in walk_statements(method.body, into_definitions=False):
        if isinstance(statement, ir.AugAssign):
            found |= _attributes(statement.target, own)
        elif isinstance(statement, ir.Assign):
            targets = set().union(*(_attributes(target, own) for target in statement.targets))
            found |= targets & _attributes(statement.value, own)
    return found


def _emptied(method: Function) -> frozenset[str]:
    """The attributes that a method resets: assigns a value that does not depend on the old one, or empties in place."""
    if not method.takes_self or not method.params:
        return frozenset()
    own = method.params[0].name
    found: set[str] = set()
    for statement in walk_statements(method.body, into_definitions=False):
        if isinstance(statement, ir.Assign):
            read = _attributes(statement.value, own)
            for target in statement.targets:
                found |= _attributes(target, own) - read if isinstance(target, ir.Attr) else set()
        for part in parts_of(statement):
            if isinstance(part, ir.Call) and isinstance(part.func, ir.Attr) and part.func.name in _EMPTIES:
                found |= _attributes(part.func.value, own)
    return frozenset(found)


def _returned(method: Function, own: str) -> set[str]:
    """The attributes whose values a method returns, directly or through a variable."""
    variables: dict[str, set[str]] = {}
    found: set[str] = set()
    for statement in walk_statements(method.body, into_definitions=False):
        if isinstance(statement, ir.Assign):
            for target in statement.targets:
                if isinstance(target, ir.Name):
                    variables.setdefault(target.id, set()).update(_attributes(statement.value, own))
        elif isinstance(statement, ir.Return) and statement.value is not None:
            found |= _attributes(statement.value, own)
            for part in walk_expression(statement.value):
                found |= variables.get(part.id, set()) if isinstance(part, ir.Name) else set()
    return found


def _attributes(expr: ir.Expr, own: str) -> set[str]:
    """The attributes of the method's own object that an expression reads."""
    return {part.name for part in walk_expression(expr) if isinstance(part, ir.Attr) and is_name(part.value, own)}
