"""Definitions of one module: functions and classes with their scope, made on demand from the lowered units."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import msgspec

from memlint.analysis.index.function import Function
from memlint.analysis.index.indexes import Indexes
from memlint.analysis.syntax.bindings import names_bound_by
from memlint.analysis.syntax.main_guard import unguarded
from memlint.analysis.syntax.syntax import dotted, walk_statements
from memlint.finding import unnumbered
from memlint.frontend.index import read, units_of
from memlint.frontend.index_records import Imported, ModuleIndex, UnitIndex
from memlint.frontend.lower import lower
from memlint.frontend.problem import SyntaxProblem
from memlint.frontend.unit_text import UnitText
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern
from memlint.project import Source

#: what an import of everything looks like, wherever it stands
_STAR = lazy_pattern(r"import[\s\\(]*\*")
#: how many files keep the texts of their units: the last ones that were used
MAX_SPLIT = 32
#: the index and units of a file that could not be parsed
UNREAD = ModuleIndex(False, (), (), (UnitIndex("", *[frozenset()] * 3),)), (UnitText("", 0, 1, ""),)


@dataclass(eq=False)
class Class:
    module: Module
    unit: int
    node: ir.ClassDef
    qual: str
    enclosing: Function | None = None
    methods: dict[str, Function] = field(default_factory=dict)
    attributes: dict[str, ir.Expr] = field(default_factory=dict)
    annotations: dict[str, ir.Expr] = field(default_factory=dict)
    inner: dict[str, Class] = field(default_factory=dict)
    #: setters and deleters of properties
    accessors: list[Function] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.key = (self.module.key, self.qual)

    @property
    def is_dataclass(self) -> bool:
        names = (dotted(item.func if isinstance(item, ir.Call) else item) for item in self.node.decorators)
        return any(name and name.rsplit(".", 1)[-1] in ("dataclass", "define", "attrs", "s") for name in names)


class Module:
    """One source file, with its index; its units are lowered on demand."""

    def __init__(self, key: str, indexes: Indexes) -> None:
        """``indexes``: the indexes of parsed files by key; this file's is added once it is parsed."""
        self.key = key
        self._indexes = indexes
        self._index: ModuleIndex | None = None
        #: whether this run has parsed it
        self._is_parsed = False
        self._units: tuple[UnitText, ...] | None = None
        self._lowered: dict[int, ir.Unit] = {}
        self.problem: SyntaxProblem | None = None
        #: an internal error while it was parsed or lowered; the module then holds less than its text, or nothing
        self.mistake: Exception | None = None
        #: its own statements under ``if __name__ == "__main__":``, once they are lowered
        self.guarded: tuple[ir.Stmt, ...] = ()
        self.functions: dict[str, Function] = {}
        #: functions by unit and ordinal
        self.by_place: dict[int, dict[int, Function]] = {}
        self.classes: dict[str, Class] = {}
        self._classes_by_place: dict[tuple[int, int], Class] = {}
        self._built: set[int] = set()
        #: names whose units are all built
        self._complete: set[str] = set()

    @property
    def text(self) -> str:
        return self._source.text

    @property
    def _source(self) -> Source:
        # (read on first use: of most files, the index alone is asked for)
        return self._indexes.sources[self.key]

    def read(self, lower_all: Callable[[ModuleIndex], bool]) -> ModuleIndex:
        """The index. If ``lower_all`` says so of a newly parsed file, all its units are lowered from the tree, which is
        then released."""
        if self._index is None:
            self._index = self._indexes.get(self.key) or self._indexes.read_for_others(self.key)
        return self._index or self._parse(lower_all)

    def _parse(self, lower_all: Callable[[ModuleIndex], bool]) -> ModuleIndex:
        if self._source.unreadable is not None:
            self._index, self._units = UNREAD
            return self._index
        try:
            self._index, self._units, bodies = read(self.text)
        except Exception as error:  # an error in one file does not affect the others
            self.mistake = error
            self._index, self._units = UNREAD
            return self._index
        self._indexes.add(self.key, self._index)
        self._is_parsed = True
        if bodies is not None and lower_all(self._index):
            for number, body in enumerate(bodies):
                self._lower(number, body)
        self._units = None  # their texts are as long as the file's
        return self._index

    def _follow_change(self) -> None:
        """Parse a file that has changed since its index was stored or fetched: the places in the index are not those
        of the text."""
        if self._source.unreadable is None and self.key in self._indexes.sources.changed and not self._is_parsed:
            for name, value in vars(type(self)).items():
                if isinstance(value, functools.cached_property):
                    vars(self).pop(name, None)
            self._parse(lambda _: False)

    @property
    def index(self) -> ModuleIndex:
        return self._index or self.read(lambda _: False)

    @functools.cached_property
    def names(self) -> frozenset[str]:
        """All names in the source, joined once, as rules query them for every function."""
        return self.index.names

    @property
    def units(self) -> tuple[UnitText, ...]:
        if self._units is None:
            self._follow_change()
            self._units = units_of(self.text, self.index)
            self._indexes.recent.append(self)
            if len(self._indexes.recent) > MAX_SPLIT:
                self._indexes.recent.popleft()._units = None
        return self._units

    def lowered(self, number: int) -> ir.Unit:
        """The IR of one unit; an empty one if it does not parse (see `problem`)."""
        if number not in self._lowered:
            self._lower(number, None)
        return self._lowered[number]

    def _lower(self, number: int, body: list[ast.stmt] | None) -> None:
        try:
            unit = lower(self.units[number], body)
            if number == 0:
                statements, self.guarded = unguarded(unit.body)
                unit = msgspec.structs.replace(unit, body=statements)
            self._lowered[number] = unit
        except SyntaxProblem as problem:
            self.problem = problem
            self._lowered[number] = ir.Unit("", (), 0)
        except Exception as error:  # an error in one definition does not affect the others
            self.mistake = error
            self._lowered[number] = ir.Unit("", (), 0)

    def close(self) -> None:
        """Release everything, as definitions refer to each other."""
        for definition in (*self.functions.values(), *self.classes.values()):
            vars(definition).clear()
        vars(self).clear()

    @functools.cached_property
    def numbers(self) -> dict[str, list[int]]:
        """Unit numbers of each top-level definition's name."""
        found: dict[str, list[int]] = {}
        for number, unit in enumerate(self.index.units):
            if unit.name:
                found.setdefault(unit.name, []).append(number)
        return found

    @functools.cached_property
    def inheriting(self) -> dict[str, list[str]]:
        """The classes with a base of a name, by its last component."""
        found: dict[str, list[str]] = {}
        for definition in self.index.definitions:
            for base in dict.fromkeys(base.rsplit(".", 1)[-1] for base in definition.bases):
                found.setdefault(base, []).append(definition.name)
        return found

    @functools.cached_property
    def statements(self) -> tuple[ir.Stmt, ...]:
        """The module's own statements."""
        return self.lowered(0).body if self.index.units else ()

    @property
    def bodies(self) -> Iterator[tuple[ir.Stmt, ...]]:
        """The module's own statements, and then those of each of its definitions."""
        return (self.lowered(number).body for number in range(len(self.index.units)))

    def build(self, number: int) -> None:
        """Register the functions and classes of a unit, and of all units with the same name: the last definition has
        the plain qualified name, whichever unit is built first."""
        if number in self._built:
            return
        for same in self.numbers.get(self.index.units[number].name) or (number,):
            self._build(same)

    def _build(self, number: int) -> None:
        self._built.add(number)
        for statement in walk_statements(self.lowered(number).body, into_definitions=False):
            self._register(statement, number, "", None, None)

    def _register(
        self, statement: ir.Stmt, unit: int, prefix: str, cls: Class | None, enclosing: Function | None
    ) -> None:
        if isinstance(statement, ir.FunctionDef):
            function = Function(self, unit, statement, prefix + statement.name, cls, enclosing)
            while function.qual in self.functions:  # redefinitions and overloads: the last one has the plain name
                old = self.functions.pop(function.qual)
                old.qual = f"{old.qual}@{old.node.at if old.node else 0}"
                old.key = (self.key, old.qual)
                self.functions[old.qual] = old
            self.functions[function.qual] = function
            self.by_place.setdefault(unit, {})[statement.at] = function
            if cls is not None and enclosing is None:
                accessor = any(
                    isinstance(item, ir.Attr) and item.name in ("setter", "deleter") for item in statement.decorators
                )
                if accessor:
                    cls.accessors.append(function)
                else:
                    cls.methods[statement.name] = function
            for item in walk_statements(statement.body, into_definitions=False):
                self._register(item, unit, f"{function.qual}.<locals>.", None, function)
        elif isinstance(statement, ir.ClassDef):
            made = Class(self, unit, statement, prefix + statement.name, enclosing)
            before = self.classes.get(made.qual)
            if before is not None:
                before.qual = f"{before.qual}@{before.unit}:{before.node.at}"
                before.key = (self.key, before.qual)
                self.classes[before.qual] = before
            self.classes[made.qual] = made
            self._classes_by_place[unit, statement.at] = made
            if cls is not None:
                cls.inner[statement.name] = made
            for item in walk_statements(statement.body, into_definitions=False):
                self._register(item, unit, f"{made.qual}.", made, None)
                if isinstance(item, ir.Assign):
                    for target in item.targets:
                        if isinstance(target, ir.Name):
                            made.attributes[target.id] = item.value
                if isinstance(item, ir.AnnAssign) and isinstance(item.target, ir.Name):
                    made.annotations[item.target.id] = item.annotation
                    if item.value is not None:
                        made.attributes[item.target.id] = item.value

    def function(self, qual: str) -> Function | None:
        """A function by qualified name; its unit is lowered if necessary."""
        name = qual.partition(".")[0]
        if name not in self._complete:
            self._build_named(name)
        return self.functions.get(qual)

    def class_at(self, unit: int, at: int) -> Class | None:
        """The class that a statement of a built unit defines."""
        return self._classes_by_place.get((unit, at))

    def classes_in(self, number: int) -> list[Class]:
        """The classes that a unit defines, at any depth."""
        self.build(number)
        return [one for (unit, _), one in self._classes_by_place.items() if unit == number]

    def cls(self, qual: str) -> Class | None:
        name = qual.partition(".")[0]
        if name not in self._complete:
            self._build_named(name)
        return self.classes.get(qual)

    def _build_named(self, name: str) -> None:
        for number in self.numbers.get(name, ()):
            self.build(number)
        if name not in self.numbers and self.index.units:
            self.build(0)
        self._complete.add(name)

    @functools.cached_property
    def main(self) -> Function:
        """The module's own statements, as a function."""
        return Function(self, 0, None, "<module>")

    @functools.cached_property
    def bindings(self) -> dict[str, list[ir.Stmt]]:
        """What the module's own statements bind: name -> the binding statements (no top-level definitions)."""
        found: dict[str, list[ir.Stmt]] = {}
        for statement in walk_statements(self.statements, into_definitions=False):
            for name in names_bound_by(statement):
                found.setdefault(name, []).append(statement)
        return found

    @functools.cached_property
    def _writers(self) -> dict[str, list[Function]]:
        found: dict[str, list[Function]] = {}
        if "global " not in self.text:
            return found
        for number, unit in enumerate(self.units):
            if number and "global " in unit.text:
                self.build(number)
        for function in self.functions.values():
            for statement in walk_statements(function.body, into_definitions=False):
                if isinstance(statement, ir.Scope) and statement.kind == "global":
                    for name in statement.names:
                        found.setdefault(name, []).append(function)
        return found

    def writers(self, name: str) -> Sequence[Function]:
        """The functions with a ``global`` declaration of the name, which may rebind the module's variable."""
        return self._writers.get(name, ())

    def binders(self, name: str) -> Sequence[ir.Stmt]:
        """The module's own statements that bind a name. If only one import does, the index tells, and nothing is
        lowered."""
        if "bindings" not in self.__dict__ and self.index.complete and name not in self.index.bound:
            imports = self._imports.get(name, ())
            inside = name in self._inside
            if not imports and not inside:
                return ()
            if len(imports) == 1 and not inside:
                return (_statement(imports[0]),)
        return self.bindings.get(name, ())

    @functools.cached_property
    def _imports(self) -> dict[str, list[Imported]]:
        """The imports among the module's own statements that run on import, by the name that they bind."""
        found: dict[str, list[Imported]] = {}
        for each in self.index.imports:
            if each.unit == 0 and each.at_import:
                found.setdefault(each.binds, []).append(each)
        return found

    @functools.cached_property
    def _inside(self) -> frozenset[str]:
        """The names of definitions inside other statements (``if``, ``try``) of the module itself."""
        return frozenset(each.name for each in self.index.definitions if not each.unit)

    @property
    def is_read(self) -> bool:
        """Whether its index is available and holds all of its names."""
        return self._index is not None and self._index.complete

    @functools.cached_property
    def stars(self) -> list[ir.ImportFrom]:
        """The star imports among the module's own statements, in order."""
        if _STAR.search(self.text) is None:
            return []
        if self.index.complete:
            return [_import_from(each) for each in self.index.imports if each.name == "*"]
        return [
            statement
            for statement in walk_statements(self.statements, into_definitions=False)
            if isinstance(statement, ir.ImportFrom) and any(alias.name == "*" for alias in statement.names)
        ]


def _statement(imported: Imported) -> ir.Stmt:
    """An import of one name as an IR statement without an ordinal."""
    if imported.name is None:
        return ir.Import(-1, (ir.Alias(imported.module, imported.asname),))
    return _import_from(imported)


def _import_from(imported: Imported) -> ir.ImportFrom:
    return ir.ImportFrom(-1, imported.module, imported.level, (ir.Alias(imported.name or "", imported.asname),))


def functions_of(module: Module) -> list[Function]:
    """All functions of a module, and its own statements."""
    for number in range(len(module.index.units)):
        module.build(number)
    return [module.main, *module.functions.values()]


def functions_named(module: Module, names: Iterable[str]) -> list[Function]:
    """The functions of these qualified names, as they are written in the code, with all definitions of a name;
    "<module>": the module's own statements."""
    found: dict[Function, None] = {}
    for name in names:
        if name == module.main.qual:
            module.build(0)
            found[module.main] = None
        elif module.function(name) is not None:
            found |= dict.fromkeys(one for one in module.functions.values() if unnumbered(one.qual) == name)
    return list(found)
