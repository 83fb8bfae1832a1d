"""Every function of the project that mentions a name: what a proof about a name has to look at."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.flow.program import Function, Module
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
