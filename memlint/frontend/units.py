"""The units of a module: one for each top-level definition, and one for the module's own statements."""

from __future__ import annotations

import ast

from memlint.frontend.unit_text import Extent, UnitText, cut, host_tree

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def split(text: str) -> tuple[UnitText, ...]:
    """The units of a module's source, in source order after unit 0.

    ``text`` is decoded, without byte order mark; newlines may be \\n, \\r\\n or \\r. A source that nothing can
    parse is one unit, for which `lower` raises SyntaxProblem. A definition that cannot be cut out stays in
    unit 0, as do definitions below a top-level ``if``, ``try`` and the like.
    """
    return cut(text, extents(text))


def extents(text: str) -> tuple[Extent, ...]:
    """The extents of the top-level definitions of ``text``, by the host's grammar, else by libcst's."""
    tree = host_tree(text)
    if tree is not None:
        return tree_extents(tree)
    from memlint.frontend.fallback import extents as by_libcst

    return by_libcst(text)


def tree_extents(tree: ast.Module) -> tuple[Extent, ...]:
    """The extents of the top-level definitions in a tree."""
    definitions = [node for node in tree.body if isinstance(node, DEFINITIONS)]
    return tuple([Extent(node.name, first_line(node), node.end_lineno or node.lineno) for node in definitions])


def first_line(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> int:
    """The line of a definition's first decorator, else of the definition."""
    return min([node.lineno, *[decorator.lineno for decorator in node.decorator_list]])
