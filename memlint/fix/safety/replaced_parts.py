"""What a project puts in place of parts of a library's networks: ``net.fc = Head()``, ``net.features[0] = Head()``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from memlint import knowledge
from memlint.analysis.facts.calls_by_name import functions_in
from memlint.analysis.index.binders import binders
from memlint.analysis.index.program import Function, Program
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import dotted, parts_of, walk_expression, walk_statements
from memlint.fix.safety import vocabulary as words
from memlint.ir import nodes as ir


@kept
def replacements(program: Program) -> list[tuple[Function, ir.Expr]]:
    """The values that the project stores in attributes and members which parts of a library's networks have, but for
    attributes of ``self``, with their functions."""
    parts = knowledge.replaced_parts()
    found: list[tuple[Function, ir.Expr]] = []
    for key in program.project.sources:
        module = program.module(key)
        for number, unit in enumerate(module.index.units):
            if unit.names.isdisjoint(parts) and unit.stores.isdisjoint(parts):
                continue
            for function in functions_in(module, number):
                found += [(function, value) for value in _put_into(function, parts)]
    return found


def stored_in(program: Program, files: Iterable[str], name: str) -> Iterator[tuple[Function, ir.Expr]]:
    """What code of these files stores in an attribute of this name, or adds to the container there, but for an
    attribute of ``self``: ``change.transforms.insert(0, Noise())``."""
    for key in files:
        module = program.module(key)
        for number, unit in enumerate(module.index.units):
            for function in functions_in(module, number) if name in unit.names else ():
                for place, value in _puts(function):
                    inner = place
                    while isinstance(inner, ir.Subscript):
                        inner = inner.value
                    is_it = isinstance(inner, ir.Name) or (isinstance(inner, ir.Attr) and inner.name == name)
                    if is_it and name in _attributes(function, place):
                        yield function, value


def _put_into(function: Function, parts: frozenset[str]) -> Iterator[ir.Expr]:
    """The values that a function stores in places which such an attribute leads to, or adds to a container there."""
    for place, value in _puts(function):
        if not parts.isdisjoint(_attributes(function, place)):
            yield value


def _puts(function: Function) -> Iterator[tuple[ir.Expr, ir.Expr]]:
    """The places in which a function stores something, and the containers to which it adds, each with a value."""
    for statement in walk_statements(function.body, into_definitions=False):
        for target, value in _stored(statement):
            for place in _places(target):
                yield place, value
        for part in parts_of(statement):
            if isinstance(part, ir.Call) and isinstance(part.func, ir.Attr) and part.func.name in words.PUTS:
                for value in part.passed:
                    yield part.func.value, value


def _stored(statement: ir.Stmt) -> list[tuple[ir.Expr, ir.Expr]]:
    """The targets of a statement, with what they are given."""
    match statement:
        case ir.Assign():
            return [(target, statement.value) for target in statement.targets]
        case ir.AnnAssign() | ir.AugAssign() if statement.value is not None:
            return [(statement.target, statement.value)]
        case ir.For():
            return [(statement.target, statement.iter)]
        case ir.With():
            return [(item.target, item.context) for item in statement.items if item.target is not None]
    return []


def _places(target: ir.Expr) -> Iterator[ir.Expr]:
    if isinstance(target, ir.Display):
        for one in target.elements:
            yield from _places(one)
    elif isinstance(target, ir.Attr | ir.Subscript):
        yield target


def _attributes(function: Function, place: ir.Expr) -> set[str]:
    """The attributes on the way to a place: ``layer4`` and ``fc`` of ``net.layer4[0].fc``; those that a variable was
    taken from (``layers = net.features``) as well. Empty for a place of ``self``."""
    found: set[str] = set()
    inner = place
    while isinstance(inner, ir.Attr | ir.Subscript):
        if isinstance(inner, ir.Attr):
            found.add(inner.name)
        inner = inner.value
    if not isinstance(inner, ir.Name):
        return found
    if inner.id == function.own_name and dotted(place).count(".") == 1:
        return set()
    for value in binders(function, inner.id) or ():
        found.update(part.name for part in walk_expression(value) if isinstance(part, ir.Attr))
    return found
