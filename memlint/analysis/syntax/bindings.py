"""The names that a statement binds, and those that an expression or a body reads."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import Any

from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import (
    DEFINITIONS,
    PARTS,
    bodies,
    expressions,
    parts,
    walk_expression,
    walk_statements,
)
from memlint.ir import nodes as ir


@kept
def assigned_names(body: tuple[ir.Stmt, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """(names that the body binds, names that it declares global or nonlocal), nested definitions left out."""
    names: set[str] = set()
    foreign: set[str] = set()
    for statement in body:
        if type(statement) is ir.Scope:
            foreign.update(statement.names)
            continue
        _bind(statement, names)
        for block in () if type(statement) in DEFINITIONS else bodies(statement):
            # memoised by block, as loops query their own blocks too
            inner, declared = assigned_names(block) if block else _NO_NAMES
            names |= inner
            foreign |= declared
    return frozenset(names), frozenset(foreign)


_NO_NAMES: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())


def targets(statement: ir.Stmt) -> tuple[ir.Expr, ...]:
    """The targets of an assignment of any form; none for another statement."""
    if isinstance(statement, ir.Assign):
        return statement.targets
    return (statement.target,) if isinstance(statement, ir.AnnAssign | ir.AugAssign) else ()


def unpacked_targets(statement: ir.Stmt) -> list[ir.Expr]:
    """As `targets`, with the elements of an unpacking in its place; a nested one stays whole."""
    return [part for one in targets(statement) for part in (one.elements if isinstance(one, ir.Display) else (one,))]


def binds(statement: ir.Stmt, name: str) -> bool:
    """Whether a statement, or one in its blocks, binds the name."""
    return name in names_bound_by(statement) or (
        type(statement) not in DEFINITIONS and any(name in assigned_names(block)[0] for block in bodies(statement))
    )


def names_bound_by(statement: ir.Stmt) -> frozenset[str]:
    """The names that a statement itself binds, without what its blocks do."""
    names: set[str] = set()
    _bind(statement, names)
    return frozenset(names)


def _bind(statement: ir.Stmt, names: set[str]) -> None:
    bind = _BOUND_BY.get(type(statement))
    if bind is not None:
        bind(statement, names)
    todo = [*expressions(statement)]
    while todo:
        part = todo.pop()
        parts = PARTS.get(type(part))
        if parts is not None:
            if type(part) is ir.Walrus:
                _target(part.target, names)
            todo.extend(parts(part))


def _target(target: ir.Expr, names: set[str]) -> None:
    if isinstance(target, ir.Name):
        names.add(target.id)
    elif isinstance(target, ir.Display):
        for element in target.elements:
            _target(element, names)
    elif isinstance(target, ir.Starred):
        _target(target.value, names)


def _bind_with(statement: ir.With, names: set[str]) -> None:
    for item in statement.items:
        if item.target is not None:
            _target(item.target, names)


def _bind_all(statement: ir.Assign, names: set[str]) -> None:
    for target in statement.targets:
        _target(target, names)


_BOUND_BY: dict[type, Callable[[Any, set[str]], None]] = {
    ir.Assign: _bind_all,
    ir.AugAssign: lambda statement, names: _target(statement.target, names),
    ir.AnnAssign: lambda statement, names: _target(statement.target, names),
    ir.For: lambda statement, names: _target(statement.target, names),
    ir.With: _bind_with,
    ir.FunctionDef: lambda statement, names: names.add(statement.name),
    ir.ClassDef: lambda statement, names: names.add(statement.name),
    ir.Import: lambda statement, names: names.update(
        [alias.asname or alias.name.split(".", 1)[0] for alias in statement.names]
    ),
    ir.ImportFrom: lambda statement, names: names.update([alias.asname or alias.name for alias in statement.names]),
    ir.Try: lambda statement, names: names.update([each.name for each in statement.handlers if each.name]),
    ir.Match: lambda statement, names: names.update([name for case in statement.cases for name in case.captures]),
}


def unpacked_beside(body: tuple[ir.Stmt, ...], place: ir.Expr, at: int) -> frozenset[str]:
    """The names that hold other objects than a variable, or a member of it, at an ordinal: the last statement before
    that binds it unpacks a value into all of them. The members of a container (``for s in states``) differ from what is
    unpacked beside it. Empty if unknown."""
    while isinstance(place, ir.Subscript):
        place = place.value
    if not isinstance(place, ir.Name):
        return frozenset()
    name = place.id
    around = _comprehensions(body).get(at)
    if around is not None:
        over = [one.iter for one in around.fors if isinstance(one.target, ir.Name) and one.target.id == name]
        return unpacked_beside(body, over[0], around.at) if over else frozenset()
    own = _last_binding(body, name, at)
    if isinstance(own, ir.For):
        return unpacked_beside(body, own.iter, own.at)
    if not isinstance(own, ir.Assign) or isinstance(own.value, ir.Name | ir.Display):
        return frozenset()
    if not all(isinstance(one, ir.Display) for one in own.targets):
        return frozenset()
    return frozenset(other for other in names_bound_by(own) - {name} if _last_binding(body, other, at) is own)


def _last_binding(body: tuple[ir.Stmt, ...], name: str, at: int) -> ir.Stmt | None:
    """The last statement before an ordinal that binds a name, in the order of the source."""
    statements = _binding_statements(body).get(name, [])
    place = bisect_left(statements, at, key=lambda one: one.at)
    return statements[place - 1] if place else None


@kept
def _binding_statements(body: tuple[ir.Stmt, ...]) -> dict[str, list[ir.Stmt]]:
    """By name, the statements that bind it, in order."""
    found: dict[str, list[ir.Stmt]] = {}
    for statement in walk_statements(body, into_definitions=False):
        for name in names_bound_by(statement):
            found.setdefault(name, []).append(statement)
    return {name: sorted(statements, key=lambda one: one.at) for name, statements in found.items()}


@kept
def _comprehensions(body: tuple[ir.Stmt, ...]) -> dict[int, ir.Comprehension]:
    """By ordinal, the comprehension whose element an expression is in."""
    found: dict[int, ir.Comprehension] = {}
    for part in parts(body):
        if isinstance(part, ir.Comprehension):
            for one in walk_expression(part.element):
                found.setdefault(one.at, part)
    return found


@kept
def identifiers(body: tuple[ir.Stmt, ...]) -> tuple[frozenset[str], frozenset[str]]:
    """(variables, attributes) that the statements of a body mention, nested definitions left out."""
    variables: set[str] = set()
    attributes: set[str] = set()
    for part in parts(body):
        if type(part) is ir.Name:
            variables.add(part.id)
        elif type(part) is ir.Attr:
            attributes.add(part.name)
    return frozenset(variables), frozenset(attributes)


def mentions(expr: ir.Expr, place: str) -> bool:
    """Whether the expression reads the place with this text."""
    names, places = _reads(expr)
    return place in (names if place.isidentifier() else places)


def reads_any(expr: ir.Expr, names: AbstractSet[str]) -> bool:
    """Whether the expression reads one of these variables."""
    return not names.isdisjoint(names_read(expr))


@kept
def names_read(expr: ir.Expr) -> frozenset[str]:
    """The variables that an expression reads."""
    return frozenset([part.id for part in walk_expression(expr) if type(part) is ir.Name])


@kept
def _reads(expr: ir.Expr) -> tuple[frozenset[str], frozenset[str]]:
    """The names, and the texts of the attributes and subscripts, that an expression reads."""
    parts = (part for part in walk_expression(expr) if isinstance(part, (ir.Attr, ir.Subscript)))
    return names_read(expr), frozenset([text(part, 200) for part in parts])
