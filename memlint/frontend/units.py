"""The units of a module: one for each top-level definition, and one for the module's own statements."""

from __future__ import annotations

import ast

from memlint.frontend.unit_text import Extent, UnitText, cut, host_tree

_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def split(text: str) -> tuple[UnitText, ...]:
    """The units of a module's source, in source order after unit 0.

    ``text`` is decoded, without byte order mark; newlines may be \\n, \\r\\n or \\r. A source that nothing can
    parse is one unit, and `lower` says what is wrong with it. A definition that cannot be cut out stays in
    unit 0, as do definitions below a top-level ``if``, ``try`` and the like.
    """
    return cut(text, extents(text))


def extents(text: str) -> tuple[Extent, ...]:
    """Where the top-level definitions of ``text`` are: by the host's grammar, else by libcst's."""
    tree = host_tree(text)
    return _libcst_extents(text) if tree is None else tree_extents(tree)


def tree_extents(tree: ast.Module) -> tuple[Extent, ...]:
    found = []
    for node in tree.body:
        if isinstance(node, _DEFINITIONS):
            first = min([node.lineno, *[decorator.lineno for decorator in node.decorator_list]])
            found.append(Extent(node.name, first, node.end_lineno or node.lineno))
    return tuple(found)


def _libcst_extents(text: str) -> tuple[Extent, ...]:
    from memlint.frontend.fallback import extents as by_libcst

    return by_libcst(text)
