"""Top-level definitions of a source that the host's `ast` cannot read."""

from __future__ import annotations

import libcst as cst

from memlint.frontend.parsing import normalised, with_tree
from memlint.frontend.problem import SyntaxProblem
from memlint.frontend.units import Extent


def extents(text: str) -> tuple[Extent, ...]:
    """As `units.extents`, by libcst; () where it cannot read the source either."""
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
