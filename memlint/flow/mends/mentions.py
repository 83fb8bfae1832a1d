"""Every function of the project that mentions a name: what a proof about a name has to look at."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from memlint.flow.program import Class, Function, Module
from memlint.flow.syntax import expressions, walk_expression, walk_statements
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser

#: units that are looked at for one name; a name that more of them use is followed no further
MAX_UNITS = 24


class TooManyError(Exception):
    """The name is mentioned in more places than a proof can look at."""


def functions_naming(analyser: Analyser, name: str) -> Iterator[Function]:
    """The functions (and modules' own statements) in whose units the identifier occurs. Raises TooManyError."""
    left = MAX_UNITS
    for key in analyser.program.project.sources:
        module = analyser.program.module(key)
        for number, unit in enumerate(module.index.units):
            if name not in unit.names:
                continue
            left -= 1
            if left < 0:
                raise TooManyError(name)
            yield from functions_in(module, number)


def functions_in(module: Module, number: int) -> Iterator[Function]:
    """The functions of one unit; of the first one, the module's own statements too."""
    module.build(number)
    if number == 0:
        yield module.main
    yield from (function for (unit, _), function in list(module.by_place.items()) if unit == number)


def own_expressions(function: Function) -> Iterator[tuple[ir.Stmt, ir.Expr]]:
    """The expressions of a function with their statements, nested definitions left out."""
    for statement in walk_statements(function.body, into_definitions=False):
        for expr in expressions(statement):
            yield statement, expr


def attribute_stores(analyser: Analyser, name: str) -> Iterator[Function]:
    """The functions of the units that assign an attribute of this name."""
    for key in analyser.program.project.sources:
        module = analyser.program.module(key)
        for number, unit in enumerate(module.index.units):
            if name in unit.stores:
                yield from functions_in(module, number)


def reads(function: Function, name: str) -> bool:
    """Whether the function's own statements mention a variable."""
    return any(
        isinstance(part, ir.Name) and part.id == name
        for _, expr in own_expressions(function)
        for part in walk_expression(expr)
    )


def inside(outer: Function, function: Function) -> bool:
    """Whether a function is defined in another one, at any depth."""
    around = function.around
    while around is not None:
        if around is outer:
            return True
        around = around.around
    return False


def calls_of_function(analyser: Analyser, function: Function) -> Iterator[tuple[Function, ir.Call | None]]:
    """Every call that may be of a function, with its caller; with None, a mention that is no call. Raises
    TooManyError."""
    yield from _calls(analyser, function.name, lambda other, part: _may_be(analyser, other, part, function))


def calls_of_class(analyser: Analyser, cls: Class) -> Iterator[tuple[Function, ir.Call | None]]:
    """Every call that makes an instance of a class, as `calls_of_function`."""

    def means(other: Function, part: ir.Expr) -> bool:
        if not isinstance(part, ir.Name | ir.Attr):
            return False
        kind, what = analyser.program.find_expression(other.module, part, other)
        return kind == "class" and what is cls

    yield from _calls(analyser, cls.node.name, means)


def _calls(
    analyser: Analyser, name: str, means: Callable[[Function, ir.Expr], bool]
) -> Iterator[tuple[Function, ir.Call | None]]:
    for other in functions_naming(analyser, name):
        for _, expr in own_expressions(other):
            called = {id(part.func): part for part in walk_expression(expr) if isinstance(part, ir.Call)}
            yield from ((other, called.get(id(part))) for part in walk_expression(expr) if means(other, part))
            yield from (
                (other, None)
                for part in walk_expression(expr)
                if isinstance(part, ir.Lambda) and any(means(other, inner) for inner in walk_expression(part.body))
            )
        decorators = other.decorators
        yield from ((other, None) for expr in decorators for part in walk_expression(expr) if means(other, part))
    for key in analyser.program.project.sources:
        for row in analyser.program.module(key).index.imports:
            if row.name == name and row.asname not in (None, name):
                raise TooManyError(name)  # it goes by another name there


def _may_be(analyser: Analyser, other: Function, part: ir.Expr, function: Function) -> bool:
    if isinstance(part, ir.Attr) and part.name == function.name and function.cls is not None:
        return True
    named = isinstance(part, ir.Name) and part.id == function.name
    if not named and not (isinstance(part, ir.Attr) and part.name == function.name):
        return False
    kind, what = analyser.program.find_expression(other.module, part, other)
    return kind == "function" and what is function
