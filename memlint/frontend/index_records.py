"""The index of a file: what it imports and defines, and the names in its units."""

from __future__ import annotations

import msgspec


class Imported(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One imported name: ``import module as asname`` (``name`` is None) or ``from (level dots)module import name``.

    ``at_import``: it is imported when the module is, not in a function or class. ``unit`` is the index of its unit.
    """

    module: str
    level: int
    name: str | None
    asname: str | None
    at_import: bool
    unit: int

    @property
    def binds(self) -> str:
        """The name that it binds, ``*`` for all of a module's."""
        return self.asname or self.name or self.module.split(".", 1)[0]

    @property
    def modules(self) -> tuple[str, ...]:
        """The dotted names of what may be modules that it brings: what it imports from, and what it takes of that."""
        if self.name is None or self.name == "*":
            return (self.module,)
        return self.module, f"{self.module}.{self.name}" if self.module else self.name


class Definition(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A function or class that the module's own statements define, also below ``if``, ``try`` and the like.

    ``kind`` is function or class. Lines count from 1, the first decorator's to the last one's. ``bases``:
    dotted names of a class's bases, "" for other expressions; ``methods``: functions in its body.
    """

    name: str
    kind: str
    unit: int
    first_line: int
    last_line: int
    bases: tuple[str, ...]
    methods: tuple[str, ...]


class UnitIndex(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The names in one unit. ``calls``: last components of what is called or decorates (``backward``);
    ``stores``: attributes that are assigned on anything; ``names``: every identifier, those two included."""

    name: str
    calls: frozenset[str]
    stores: frozenset[str]
    names: frozenset[str]


class ModuleIndex(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """The index of one source. ``units`` are in the order of `units.split`.

    ``bound``: names that the module's own statements may bind by other means than imports and definitions;
    ``nested``: classes that are defined in functions and in other classes; ``tabled``: last names of what may be put
    into a container; ``changed``: attributes of other objects than ``self`` that are assigned or deleted, are arguments
    of a call, or are asked for what can make their parameters require grad.

    Where ``complete`` is False, the host's ``ast`` could not read the source: ``calls`` and ``stores`` then hold
    every identifier, nothing is told of ``bound``, ``nested``, ``tabled`` and ``changed``, and a source that libcst
    cannot read either has no imports and no definitions.
    """

    complete: bool
    imports: tuple[Imported, ...]
    definitions: tuple[Definition, ...]
    units: tuple[UnitIndex, ...]
    bound: frozenset[str] = frozenset()
    nested: frozenset[str] = frozenset()
    tabled: frozenset[str] = frozenset()
    changed: frozenset[str] = frozenset()

    @property
    def names(self) -> frozenset[str]:
        """All names that stand in the source."""
        return frozenset[str]().union(*(unit.names for unit in self.units))
