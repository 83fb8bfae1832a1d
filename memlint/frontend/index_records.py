"""The records of a module's index."""

from __future__ import annotations

import msgspec


class Imported(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """One imported name: ``import module as asname`` (``name`` is None) or ``from (level dots)module import name``.

    ``at_import``: it runs when the module is imported, not in a function or class. ``unit``: the index of its unit.
    """

    module: str
    level: int
    name: str | None
    asname: str | None
    at_import: bool
    unit: int

    @property
    def binds(self) -> str:
        """The name that it binds; ``*`` for all names of a module."""
        return self.asname or self.name or self.module.split(".", 1)[0]

    @property
    def modules(self) -> tuple[str, ...]:
        """The dotted names that may be imported modules: the module, and the name as a submodule of it."""
        if self.name is None or self.name == "*":
            return (self.module,)
        return self.module, f"{self.module}.{self.name}" if self.module else self.name


class Definition(msgspec.Struct, frozen=True, gc=False, array_like=True):
    """A function or class that is defined at module level, also below ``if``, ``try`` and the like.

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

    ``bound``: names that module-level statements other than imports and definitions may bind; ``nested``: classes that
    are defined in functions and classes; ``tabled``: last names of what may be put into a container; ``changed``:
    attributes of objects other than ``self`` that are assigned or deleted, are arguments of a call, or have a method
    called that may make their parameters require grad.

    If ``complete`` is False, the host's ``ast`` could not parse the source: ``calls`` and ``stores`` contain every
    identifier, and ``bound``, ``nested``, ``tabled`` and ``changed`` are unknown (empty). If libcst cannot parse it
    either, imports and definitions are unknown, too.
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
        """All names in the source."""
        return frozenset[str]().union(*(unit.names for unit in self.units))
