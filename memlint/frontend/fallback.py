"""Units and index of a source that the host's ``ast`` cannot parse, because its grammar is newer or it is invalid."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from memlint.frontend.deep_stack import normalised
from memlint.frontend.index_records import Definition, Imported, ModuleIndex, UnitIndex
from memlint.frontend.literals import identifier
from memlint.frontend.lower import lower
from memlint.frontend.parsing import with_tree
from memlint.frontend.problem import SyntaxProblem
from memlint.frontend.unit_text import Extent, UnitText, cut
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

_IDENTIFIER = lazy_pattern(r"[^\W\d]\w*")


def extents(text: str) -> tuple[Extent, ...]:
    """As `units.extents`, by libcst; () if it cannot parse the source either."""
    try:
        return with_tree(normalised(text), _extents)
    except SyntaxProblem:
        return ()


def _extents(tree: cst.Module) -> tuple[Extent, ...]:
    found = []
    line = 1 + sum(_lines(tree, node) for node in tree.header)
    for node in tree.body:
        count = _lines(tree, node)
        if isinstance(node, (cst.FunctionDef, cst.ClassDef)):
            leading = sum(_lines(tree, each) for each in node.leading_lines)
            found.append(Extent(node.name.value, line + leading, line + count - 1))
        line += count
    return tuple(found)


def _lines(tree: cst.Module, node: cst.CSTNode) -> int:
    return tree.code_for_node(node).count("\n")


def index_and_units(text: str) -> tuple[ModuleIndex, tuple[UnitText, ...]]:
    """As `index.index_and_units`, with ``complete`` False."""
    found = extents(text)
    units = cut(text, found)
    imports: list[Imported] = []
    definitions: list[Definition] = []
    last_lines = {each.first_line: each.last_line for each in found}
    for unit in units:
        for statement, at_import in _statements(unit):
            if isinstance(statement, (ir.Import, ir.ImportFrom)):
                imports.extend(_imports(statement, at_import, unit.index))
            elif at_import and isinstance(statement, (ir.FunctionDef, ir.ClassDef)):
                last_line = last_lines.get(unit.start_line, unit.start_line)
                definitions.append(_definition(statement, unit, last_line))
    facts = tuple([_names(unit) for unit in units])
    return ModuleIndex(False, tuple(imports), tuple(definitions), facts), units


def _names(unit: UnitText) -> UnitIndex:
    names = frozenset(map(identifier, _IDENTIFIER.findall(unit.text)))
    return UnitIndex(unit.name, names, names, names)


def _statements(unit: UnitText) -> Iterator[tuple[ir.Stmt, bool]]:
    """Every statement of a unit, and whether it runs when the module is imported."""
    try:
        body = lower(unit).body
    except SyntaxProblem:
        return
    stack = [(statement, True) for statement in reversed(body)]
    while stack:
        statement, at_import = stack.pop()
        yield statement, at_import
        inner = at_import and not isinstance(statement, (ir.FunctionDef, ir.ClassDef))
        stack.extend((each, inner) for each in _children(statement))


def _children(statement: ir.Stmt) -> Iterator[ir.Stmt]:
    for field in ("body", "orelse", "final"):
        yield from getattr(statement, field, ())
    for block in (*getattr(statement, "handlers", ()), *getattr(statement, "cases", ())):
        yield from block.body


def _imports(statement: ir.Import | ir.ImportFrom, at_import: bool, unit: int) -> Iterator[Imported]:
    for alias in statement.names:
        if isinstance(statement, ir.Import):
            yield Imported(alias.name, 0, None, alias.asname, at_import, unit)
        else:
            yield Imported(statement.module, statement.level, alias.name, alias.asname, at_import, unit)


def _definition(statement: ir.FunctionDef | ir.ClassDef, unit: UnitText, last_line: int) -> Definition:
    first_line = unit.start_line
    if isinstance(statement, ir.FunctionDef):
        return Definition(statement.name, "function", unit.index, first_line, last_line, (), ())
    bases = tuple([_dotted(base) for base in statement.bases])
    methods = tuple([each.name for each in statement.body if isinstance(each, ir.FunctionDef)])
    return Definition(statement.name, "class", unit.index, first_line, last_line, bases, methods)


def _dotted(node: ir.Expr) -> str:
    parts: list[str] = []
    if isinstance(node, ir.Subscript):
        node = node.value
    while isinstance(node, ir.Attr):
        parts.append(node.name)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ir.Name) else ""
