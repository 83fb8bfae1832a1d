"""Functions that are stored in a table (``METRICS = {"accuracy": evaluate}``), whose callers may set a guard."""

from __future__ import annotations

import ast
import functools
import re
from typing import Any

from memlint.analysis.domain.state import GUARDS
from memlint.analysis.index.mentions import root, tree_of
from memlint.analysis.index.program import Function, Module, Program
from memlint.analysis.index.program_memo import memoized_in_program
from memlint.analysis.index.receivers import meant_by
from memlint.frontend.index import members

#: the most files with a function's name that are read
MAX_FILES = 20
#: functions that run the entries of a table without a guard
_RUNNERS = frozenset({"Fire"})


@memoized_in_program
def stands_in_table(program: Program, function: Function) -> bool:
    """Whether some code of the project puts a function, or a method by ``self`` or the class, into a container."""
    if function.node is None or function.enclosing is not None or function.name.startswith("__"):
        return False
    if not any(map(program.words.files, GUARDS)):
        return False  # no file of the project sets a guard
    files = [function.module.key] if function.cls is not None else program.words.files(function.name)
    if len(files) > MAX_FILES:
        return False
    return any(
        _means(program, module.key, function, node)
        for module in map(program.module, files)
        if (
            module is not function.module or _may_hold(module, function.name)
        )  # the function's own file is parsed already
        and _stands_uncalled(module.text, function.name, method=function.cls is not None)
        and _may_hold(module, function.name)
        for node in _put(module.text).get(function.name, ())
    )


def _may_hold(module: Module, name: str) -> bool:
    """Whether a file may put a value of that name into a container, by its index."""
    return not module.index.complete or name in module.index.tabled


def _stands_uncalled(source: str, name: str, *, method: bool) -> bool:
    """Whether a name may occur in a text as a value. Most files only define, import and call it, and need not be
    parsed. In a text with other alphabets the name may be normalised differently. A ``method`` follows a dot, which may
    be on the line before, in front of a comment."""
    return not source.isascii() or any(
        not method or _may_be_attribute(source[max(found.start() - _NEAR, 0) : found.start()])
        for found in _uncalled(name).finditer(source)
    )


#: how many characters before a name may hold its dot
_NEAR = 40


def _may_be_attribute(before: str) -> bool:
    """Whether the text before a name ends with a dot, or may do so: it is blank, or a line begins after it."""
    stripped = before.rstrip(" \t\r\n\f\v\\")
    return not stripped or stripped[-1] == "." or "\n" in before[len(stripped) :] or "\r" in before[len(stripped) :]


@functools.lru_cache(maxsize=1024)
def _uncalled(name: str) -> re.Pattern[str]:
    """A pattern of a name that no call, attribute or assignment follows. It begins with the name's letters, as that is
    found much faster than a word boundary."""
    return re.compile(rf"{name}(?<!\w{name})\b(?![ \t]*[(.=])")


@functools.lru_cache(maxsize=64)
def _put(source: str) -> dict[str, list[ast.Name | ast.Attribute]]:
    """By last name, the names and attributes that a file puts into containers. Kept, as all functions of a file ask."""
    found: dict[str, list[ast.Name | ast.Attribute]] = {}
    tree = tree_of(source)
    run: set[ast.AST] = set()
    todo: list[ast.AST] = [] if tree is None else [tree]
    while todo:  # outer nodes come before inner ones
        node = todo.pop()
        kind = type(node)
        if isinstance(node, ast.Call) and _named(node.func) in _RUNNERS:
            run.update(node.args)
        for part in members(node) if kind in _HOLDERS and node not in run else ():
            if isinstance(part, ast.Name | ast.Attribute):
                found.setdefault(_named(part), []).append(part)
        for name in kind._fields:
            inner: Any = getattr(node, name, None)
            if type(inner) is list:
                todo += [one for one in inner if type(one) not in _EMPTY]
            elif type(inner) not in _EMPTY:
                todo.append(inner)
    return found


#: nodes that may store a value in a container, and nodes without further code
_HOLDERS = frozenset({ast.Dict, ast.List, ast.Set, ast.Tuple, ast.Assign, ast.Call})
_EMPTY = frozenset({
    type(None), str, int, ast.Load, ast.Store, ast.Del, ast.Name, ast.Constant, ast.Pass, ast.Break, ast.Continue,
    *ast.operator.__subclasses__(), *ast.unaryop.__subclasses__(), *ast.cmpop.__subclasses__(),
    *ast.boolop.__subclasses__(),
})  # fmt: skip


def _named(func: ast.expr) -> str:
    return func.id if isinstance(func, ast.Name) else getattr(func, "attr", "")


def _means(program: Program, key: str, function: Function, node: ast.expr) -> bool:
    """Whether a name or an attribute refers to the function."""
    if function.cls is not None:
        return isinstance(node, ast.Attribute) and root(node) in ("self", function.cls.node.name)
    return meant_by(program, program.module(key), node) == ("function", function)
