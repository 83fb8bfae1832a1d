"""A function of a module: its scope, its parameters, its position."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING

from memlint.analysis.syntax.bindings import assigned_names, names_bound_by
from memlint.analysis.syntax.syntax import dotted, walk_statements
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.index.definitions import Class, Module

#: the last components of decorators that make a method a property
PROPERTIES = frozenset({"property", "cached_property"})


@dataclass(eq=False)
class Function:
    """A function or method. ``qual``: qualified name in its module; ``enclosing``: the function around it."""

    module: Module
    unit: int
    node: ir.FunctionDef | ir.Lambda | None
    qual: str
    cls: Class | None = None
    enclosing: Function | None = None

    @property
    def around(self) -> Function | None:
        """The function whose variables are visible in this one; for a method, the function around its class."""
        return self.enclosing if self.enclosing is not None or self.cls is None else self.cls.enclosing

    def __post_init__(self) -> None:
        self.key = (self.module.key, self.qual)

    @property
    def name(self) -> str:
        return self.qual.rsplit(".", 1)[-1]

    @functools.cached_property
    def params(self) -> tuple[ir.Param, ...]:
        return self.node.params if self.node is not None else ()

    @property
    def own_name(self) -> str:
        """The name of a method's ``self`` parameter; "" for other functions."""
        return self.params[0].name if self.takes_self and self.params else ""

    @property
    def given(self) -> tuple[ir.Param, ...]:
        """The parameters without ``self``."""
        return self.params[1:] if self.takes_self else self.params

    @functools.cached_property
    def body(self) -> tuple[ir.Stmt, ...]:
        if self.node is None:
            return self.module.statements
        if isinstance(self.node, ir.Lambda):
            return (ir.Return(self.node.body.at, self.node.body),)
        return self.node.body

    @functools.cached_property
    def locals(self) -> frozenset[str]:
        """Names that are bound in this function."""
        names, foreign = assigned_names(self.body)
        return frozenset({param.name for param in self.params} | names) - foreign

    @functools.cached_property
    def definers(self) -> dict[str, list[ir.Stmt]]:
        """The imports and classes among its own statements, by the names that they bind."""
        found: dict[str, list[ir.Stmt]] = {}
        for statement in walk_statements(self.body, into_definitions=False):
            if isinstance(statement, ir.Import | ir.ImportFrom | ir.ClassDef):
                for name in names_bound_by(statement):
                    found.setdefault(name, []).append(statement)
        return found

    def owner(self, name: str) -> Function | None:
        """The innermost function around this one that has a variable of that name."""
        around = self.around
        while around is not None and name not in around.locals:
            around = around.around
        return around

    @functools.cached_property
    def decorators(self) -> tuple[ir.Expr, ...]:
        return self.node.decorators if isinstance(self.node, ir.FunctionDef) else ()

    @functools.cached_property
    def decorator_names(self) -> frozenset[str]:
        """Last components of the decorators' names."""
        names = (dotted(item.func if isinstance(item, ir.Call) else item) for item in self.decorators)
        return frozenset(name.rsplit(".", 1)[-1] for name in names if name)

    @property
    def is_property(self) -> bool:
        """Whether reading an attribute of its name calls it."""
        return not self.decorator_names.isdisjoint(PROPERTIES)

    @property
    def names(self) -> frozenset[str]:
        """All names in its unit, a superset of its own names."""
        return self.module.index.units[self.unit].names

    @functools.cached_property
    def is_generator(self) -> bool:
        return isinstance(self.node, ir.FunctionDef) and self.node.is_generator

    @functools.cached_property
    def takes_self(self) -> bool:
        return self.cls is not None and self.enclosing is None and "staticmethod" not in self.decorator_names
