"""Names that a module reads and does not bind."""

from __future__ import annotations

import builtins
import functools
import symtable
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import libcst as cst

_GIVEN = frozenset(dir(builtins)) | {"__file__", "__path__", "__annotations__", "__builtins__"}


@functools.lru_cache(maxsize=32)
def unbound(text: str) -> frozenset[str]:
    """The globals that a text reads and does not bind; a star import binds none. The text must compile."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        module = symtable.symtable(text, "<fixed>", "exec")
    read, bound, tables = set[str](), set[str](), [module]
    for table in tables:
        tables += table.get_children()
        for symbol in table.get_symbols():
            if table is not module and not symbol.is_global():
                continue
            if symbol.is_referenced():
                read.add(symbol.get_name())
            if symbol.is_assigned() or symbol.is_imported():
                bound.add(symbol.get_name())
    return frozenset(read - bound - _GIVEN)


def unbound_by_libcst(before: str, after: str) -> frozenset[str]:
    """The names that ``after`` binds in no scope and ``before`` does not contain, for texts that this interpreter
    cannot parse."""
    old, _ = _names(before)
    new, bound = _names(after)
    return frozenset(new - old - bound - _GIVEN)


def _names(text: str) -> tuple[set[str], set[str]]:
    """The names in a text, and those of them that it binds in any scope."""
    import libcst as cst

    from memlint.frontend.deep_stack import normalised
    from memlint.frontend.parsing import with_tree

    held, bound = set[str](), set[str]()

    class Names(cst.CSTVisitor):
        def visit_Name(self, node: cst.Name) -> None:  # noqa: N802
            held.add(node.value)

        def visit_Attribute(self, node: cst.Attribute) -> bool:  # noqa: N802
            node.value.visit(self)
            return False

        def visit_Arg(self, node: cst.Arg) -> bool:  # noqa: N802
            node.value.visit(self)
            return False

        def visit_ImportAlias(self, node: cst.ImportAlias) -> bool:  # noqa: N802
            bound.add(node.evaluated_alias or node.evaluated_name.partition(".")[0])
            return False

        def visit_AssignTarget(self, node: cst.AssignTarget) -> None:  # noqa: N802
            bound.update(_targets(node.target))

        def visit_For(self, node: cst.For) -> None:  # noqa: N802
            bound.update(_targets(node.target))

        def visit_AsName(self, node: cst.AsName) -> None:  # noqa: N802
            bound.update(_targets(node.name))

        def visit_NamedExpr(self, node: cst.NamedExpr) -> None:  # noqa: N802
            bound.update(_targets(node.target))

    with_tree(normalised(text), lambda tree: tree.visit(Names()))
    return held, bound


def _targets(node: cst.BaseExpression) -> set[str]:
    import libcst as cst

    match node:
        case cst.Name(value=name):
            return {name}
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            return set().union(*(_targets(element.value) for element in elements))
    return set()
