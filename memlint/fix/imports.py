"""What a file calls torch, and where an import of it belongs."""

from __future__ import annotations

import ast
import functools

from memlint.fix.spans import Text


def torch_name(text: Text, line: int, *, at_import: bool = False) -> tuple[str, int | None] | None:
    """(the name that the file has for torch at a line, None), or ("torch", the line before which to import it).

    None where the file cannot be read, or calls something else by that name. ``at_import``: the line runs when the file
    is imported (a decorator's), so that the name must be bound before it, whatever happens.
    """
    tree = _parsed("".join(text.lines))
    if tree is None:
        return None
    local = _bound_around(tree, line)
    for node in _top_level(tree.body):
        for alias in node.names if isinstance(node, ast.Import) else ():
            name = alias.asname or alias.name.partition(".")[0]
            if alias.name == "torch" or (alias.asname is None and alias.name.startswith("torch.")):
                if at_import and (node not in tree.body or node.lineno > line):
                    return None
                return None if name in local else (name, None)
    if "torch" in local or _binds(tree.body, "torch"):
        return None
    return "torch", _import_line(tree)


@functools.lru_cache(maxsize=4)
def _parsed(source: str) -> ast.Module | None:
    """The tree of a file, whose findings come one after another."""
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return None


def _top_level(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements that run on import, those in ``try`` and ``if`` included."""
    found: list[ast.stmt] = []
    for node in body:
        found.append(node)
        if isinstance(node, ast.Try):
            found += _top_level(node.body)
    return found


def _bound_around(tree: ast.Module, line: int) -> set[str]:
    """The names that the functions around a line bind."""
    names: set[str] = set()
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        first = getattr(node, "lineno", line)  # (arguments and the like have no place of their own)
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
    """Behind the last import of the file's head; behind its docstring, where it has none."""
    last = 0
    for position, node in enumerate(tree.body):
        docstring = position == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, ast.Import | ast.ImportFrom) or docstring:
            last = node.end_lineno or node.lineno
        elif last:
            break
    return last + 1
