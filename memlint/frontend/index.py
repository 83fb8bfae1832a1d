"""The index of a module: what each unit defines, imports and names. It decides which units must be lowered."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from memlint.frontend.index_records import Definition, Imported, ModuleIndex, UnitIndex
from memlint.frontend.unit_text import Extent, UnitText, cut, host_tree
from memlint.frontend.units import DEFINITIONS, first_line, split, tree_extents


def index(text: str) -> ModuleIndex:
    """The index of a module's source (see `units.split` for what ``text`` may be). Never raises."""
    return index_and_units(text)[0]


def index_and_units(text: str) -> tuple[ModuleIndex, tuple[UnitText, ...]]:
    """``(index(text), split(text))`` with one parse."""
    found, units, _ = read(text)
    return found, units


def read(text: str) -> tuple[ModuleIndex, tuple[UnitText, ...], tuple[list[ast.stmt], ...] | None]:
    """As `index_and_units`, with the statements of each unit in the host's tree; None for these if the host cannot
    parse the source. The trees are large, so the caller should not keep them."""
    tree = host_tree(text)
    if tree is None:
        from memlint.frontend.fallback import index_and_units as by_libcst

        return *by_libcst(text), None
    units = cut(text, tree_extents(tree))
    starts = {unit.start_line: unit for unit in units[1:]}
    bodies: tuple[list[ast.stmt], ...] = tuple([[] for _ in units])
    for node in tree.body:
        unit = starts.get(first_line(node)) if isinstance(node, DEFINITIONS) else None
        bodies[0 if unit is None else unit.index].append(node)
    return _index(bodies, units), units, bodies


def units_of(text: str, found: ModuleIndex) -> tuple[UnitText, ...]:
    """``split(text)``, without a parse if its index is complete."""
    if not found.complete:
        return split(text)
    definitions = (each for each in found.definitions if each.unit)
    return cut(text, tuple([Extent(each.name, each.first_line, each.last_line) for each in definitions]))


def _index(bodies: tuple[list[ast.stmt], ...], units: tuple[UnitText, ...]) -> ModuleIndex:
    scans = [_Scan(number) for number in range(len(units))]
    definitions: list[Definition] = []
    for number, body in enumerate(bodies[1:], 1):
        definitions.append(_definition(body[0], number))
        scans[number].run(body, at_import=False)
    module = scans[0]
    inner: list[ast.AST] = []
    # definitions below other statements are scanned last: their imports run later
    module.run(bodies[0], at_import=True, inner=inner)
    bound = frozenset(module.bound)
    definitions += [_definition(node, 0) for node in inner if isinstance(node, DEFINITIONS)]
    module.run(inner, at_import=False)
    return ModuleIndex(
        complete=True,
        imports=tuple([each for scan in scans for each in scan.imports]),
        definitions=tuple(sorted(definitions, key=lambda each: each.first_line)),
        units=tuple([scan.result(unit.name) for scan, unit in zip(scans, units, strict=True)]),
        bound=bound,
        nested=frozenset([name for scan in scans for name in scan.nested]),
        tabled=frozenset([name for scan in scans for name in scan.tabled]),
        changed=frozenset([name for scan in scans for name in scan.changed]),
    )


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _definition(node: Any, unit: int) -> Definition:
    is_class = isinstance(node, ast.ClassDef)
    bases = tuple([_dotted(base) for base in node.bases]) if is_class else ()
    methods = tuple([each.name for each in node.body if isinstance(each, _FUNCTIONS)]) if is_class else ()
    kind = "class" if is_class else "function"
    return Definition(node.name, kind, unit, first_line(node), node.end_lineno, bases, methods)


def _dotted(node: ast.expr) -> str:
    parts: list[str] = []
    if isinstance(node, ast.Subscript):
        # Generic[T], nn.Module[...]
        node = node.value
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


#: methods that put their arguments into a container
_ADDS = frozenset({"append", "add", "insert", "register", "setdefault", "update"})
#: callees that put their arguments into a container
_FILLS = _ADDS | {"dict"}
#: methods of a module by which its parameters can be made to require grad
_UNFREEZING = frozenset({"parameters", "requires_grad_", "unfreeze"})
#: other nodes that may put something into a container
_HOLDERS = frozenset({ast.Dict, ast.List, ast.Set, ast.Tuple, ast.Assign})


def members(node: ast.AST) -> Iterable[ast.expr]:
    """The expressions that a node puts into a container."""
    match node:
        case ast.Dict(values=values):
            return values
        case ast.List(elts=elements, ctx=ast.Load()) | ast.Set(elts=elements):
            return elements
        case ast.Tuple(elts=elements, ctx=ast.Load()):
            return elements
        case ast.Assign(targets=targets, value=value) if any(isinstance(one, ast.Subscript) for one in targets):
            return [value]
        case ast.Call(func=ast.Name(id="dict"), keywords=words):
            return [word.value for word in words]
        case ast.Call(func=ast.Attribute(attr=name), args=arguments) if name in _ADDS:
            return arguments
    return ()


class _Fields(dict[type, tuple[str, ...]]):
    """The fields of each class of nodes that may contain names or nodes."""

    def __missing__(self, cls: type) -> tuple[str, ...]:
        # `str` is the source text of an interpolation
        skipped = ("ctx", "op", "ops", "type_comment", "kind", "str", "conversion", "is_async", "simple")
        fields = tuple([field for field in getattr(cls, "_fields", ()) if field not in skipped])
        self[cls] = fields
        return fields


_FIELDS = _Fields()


class _Scan:
    """The names of one unit while they are collected."""

    __slots__ = ("bound", "calls", "changed", "imports", "names", "nested", "stores", "tabled", "unit")

    def __init__(self, unit: int) -> None:
        self.unit = unit
        self.bound: set[str] = set()
        self.calls: set[str] = set()
        self.changed: set[str] = set()
        self.stores: set[str] = set()
        self.names: set[str] = set()
        self.nested: set[str] = set()
        self.tabled: set[str] = set()
        self.imports: list[Imported] = []

    def result(self, name: str) -> UnitIndex:
        return UnitIndex(name, frozenset(self.calls), frozenset(self.stores), frozenset(self.names))

    def run(self, roots: Iterable[ast.AST], at_import: bool, inner: list[ast.AST] | None = None) -> None:
        """Collect names below ``roots``. If ``inner`` is given, definitions are added to it and not scanned."""
        names, fields = self.names, _FIELDS
        # strings on the stack are identifiers
        tops = frozenset(roots)
        stack: list[Any] = [*roots]
        stack.reverse()
        push, extend = stack.append, stack.extend
        while stack:
            node = stack.pop()
            cls = type(node)
            if cls is ast.Name:
                names.add(node.id)
                if inner is not None and type(node.ctx) is not ast.Load:
                    self.bound.add(node.id)
            elif cls is ast.Attribute:
                names.add(node.attr)
                push(node.value)
                if type(node.ctx) is not ast.Load:
                    self._change(node)
                    if type(node.ctx) is ast.Store:
                        self.stores.add(node.attr)
            elif cls is ast.Constant:
                continue
            elif cls is str:
                names.add(node)
            elif cls is ast.Call:
                func = node.func
                self._called(func)
                if (func.attr if type(func) is ast.Attribute else getattr(func, "id", "")) in _FILLS:
                    self._put(members(node))
                if type(func) is ast.Attribute and func.attr in _UNFREEZING:
                    self._change(func.value)
                for value in node.args:
                    self._change(value)
                for word in node.keywords:
                    self._change(word.value)
                push(func)
                extend(node.args)
                extend(node.keywords)
            elif cls in DEFINITIONS and inner is not None:
                inner.append(node)
            elif cls is ast.Import or cls is ast.ImportFrom:
                self._imported(node, at_import)
            else:
                if cls in _HOLDERS:
                    self._put(members(node))
                elif cls in DEFINITIONS:
                    self._decorated(node)
                    if cls is ast.ClassDef and node not in tops:
                        self.nested.add(node.name)
                for field in fields[cls]:
                    value = getattr(node, field, None)
                    if type(value) is list:
                        extend(value)
                    elif value is not None:
                        push(value)

    def _called(self, func: ast.expr) -> None:
        if isinstance(func, ast.Attribute):
            self.calls.add(func.attr)
        elif isinstance(func, ast.Name):
            self.calls.add(func.id)

    def _change(self, node: ast.expr) -> None:
        """Note the name of an attribute that may be assigned or unfrozen here, unless it is one of ``self``."""
        if type(node) is not ast.Attribute:
            return
        root: ast.expr = node.value
        while type(root) is ast.Attribute:
            root = root.value
        if type(root) is not ast.Name or root.id != "self":
            self.changed.add(node.attr)

    def _put(self, values: Iterable[ast.expr]) -> None:
        for value in values:
            if isinstance(value, ast.Name):
                self.tabled.add(value.id)
            elif isinstance(value, ast.Attribute):
                self.tabled.add(value.attr)

    def _decorated(self, node: Any) -> None:
        for decorator in node.decorator_list:
            self._called(decorator)

    def _imported(self, node: Any, at_import: bool) -> None:
        for alias in node.names:
            self.names.update(alias.name.split("."))
            if alias.asname is not None:
                self.names.add(alias.asname)
            if isinstance(node, ast.Import):
                found = Imported(alias.name, 0, None, alias.asname, at_import, self.unit)
            else:
                found = Imported(node.module or "", node.level, alias.name, alias.asname, at_import, self.unit)
            self.imports.append(found)
        if isinstance(node, ast.ImportFrom) and node.module:
            self.names.update(node.module.split("."))
