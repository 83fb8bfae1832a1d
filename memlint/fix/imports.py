"""The name of torch in a file, and the position for an import of it."""

from __future__ import annotations

import ast
import functools
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from memlint.fix.spans import Text


def torch_name(text: Text, line: int, *, at_import: bool = False) -> tuple[str, int | None] | None:
    """(the file's name for torch at a line, None), or ("torch", the line before which to import it). None if the file
    does not parse, or uses that name for something else. ``at_import``: the line runs on import (a decorator's), so
    that the name must surely be bound before it."""
    file = _read(text.whole)
    if file is None:
        return None
    local = _bound_around(file, line)
    if file.known is not None:
        node, name = file.known
        if at_import and (node not in file.tree.body or node.lineno > line):
            return None
        return None if name in local else (name, None)
    if "torch" in local or file.binds_torch:
        return None
    return "torch", file.import_line


class _File(NamedTuple):
    """The facts about a file that its fixes need. ``known``: the first import of torch that runs on import, and the
    name that it binds; ``starts``: the first lines of its top-level statements."""

    tree: ast.Module
    known: tuple[ast.Import, str] | None
    binds_torch: bool
    import_line: int
    starts: list[int]


@functools.lru_cache(maxsize=4)
def _read(source: str) -> _File | None:
    """The facts about a file, memoised, as its findings come one after another."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return None
    known = next(_torch_imports(tree.body), None)
    starts = [node.lineno for node in tree.body]
    return _File(tree, known, known is None and _binds(tree.body, "torch"), _import_line(tree), starts)


def _torch_imports(body: list[ast.stmt]) -> Iterator[tuple[ast.Import, str]]:
    imports = (node for node in _top_level(body) if isinstance(node, ast.Import))
    for node in imports:
        for alias in node.names:
            if alias.name == "torch" or (alias.asname is None and alias.name.startswith("torch.")):
                yield node, alias.asname or alias.name.partition(".")[0]


def _top_level(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements that run on import, including those in ``try`` and ``if``."""
    found: list[ast.stmt] = []
    for node in body:
        found.append(node)
        if isinstance(node, ast.Try):
            found += _top_level(node.body)
    return found


def _bound_around(file: _File, line: int) -> set[str]:
    """The names that the functions around a line bind."""
    names: set[str] = set()
    # the top-level statements that begin on the last such line up to it, and the one before
    last = bisect_right(file.starts, line)
    first = bisect_left(file.starts, file.starts[last - 1]) if last else 0
    todo: list[ast.AST] = [*file.tree.body[max(first - 1, 0) : last]]
    while todo:
        node = todo.pop()
        first = getattr(node, "lineno", line)  # arguments and some other nodes have no position of their own
        if not first <= line <= (getattr(node, "end_lineno", None) or first):
            continue
        todo += ast.iter_child_nodes(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            names |= {arg.arg for arg in ast.walk(node.args) if isinstance(arg, ast.arg)}
            for inner in ast.walk(node):
                if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                    names.add(inner.id)
                elif isinstance(inner, ast.Import | ast.ImportFrom):
                    names |= {alias.asname or alias.name.partition(".")[0] for alias in inner.names}
    return names


def _binds(body: list[ast.stmt], name: str) -> bool:
    for node in body:
        for inner in ast.walk(node):
            if isinstance(inner, ast.Name) and inner.id == name and isinstance(inner.ctx, ast.Store):
                return True
            if isinstance(inner, ast.ImportFrom) and any((one.asname or one.name) == name for one in inner.names):
                return True
    return any(isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name for node in body)


def _import_line(tree: ast.Module) -> int:
    """The line after the last import at the head of the file, or after its docstring."""
    last = 0
    for position, node in enumerate(tree.body):
        docstring = position == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Import | ast.ImportFrom) or docstring:
            last = node.end_lineno or node.lineno
        elif last:
            break
    return last + 1
