"""Functions that stand in a table: ``METRICS = {"accuracy": evaluate}``. Who calls them out of it may guard them."""

from __future__ import annotations

import ast
import functools
import re
from typing import Any

from memlint.analysis.domain.state import GUARDS
from memlint.analysis.index.mentions import root, tree_of
from memlint.analysis.index.program import Function, Module, Program
from memlint.frontend.index import members

#: files with a function's name that are read for it
MAX_FILES = 20
#: what runs what it is given in a table, and guards nothing
_RUNNERS = frozenset({"Fire"})


def stands_in_table(program: Program, function: Function) -> bool:
    """Whether some code of the project puts a function, or a method of its own object, into a container."""
    if function.node is None or function.enclosing is not None or function.name.startswith("__"):
        return False
    if not any(map(program.words.files, GUARDS)):
        return False  # (nobody guards anything)
    files = [function.module.key] if function.cls is not None else program.words.files(function.name)
    if len(files) > MAX_FILES:
        return False
    return any(
        _means(program, module.key, function, node)
        for module in map(program.module, files)
        if (module is not function.module or _may_hold(module, function.name))  # (which was read already)
        and _stands_uncalled(module.text, function.name, method=function.cls is not None)
        and _may_hold(module, function.name)
        for node in _put(module.text).get(function.name, ())
    )


def _may_hold(module: Module, name: str) -> bool:
    """Whether a file may put a thing of that name into a container, by its index."""
    return not module.index.complete or name in module.index.tabled


def _stands_uncalled(source: str, name: str, *, method: bool) -> bool:
    """Whether a name may stand in a text as a value: most files only define, import and call it, which no tree is read
    for. (Other alphabets are read in another normal form.) A ``method`` stands behind a dot, which may end the line
    before, or the comment behind it."""
    return not source.isascii() or any(
        not method or _may_be_attribute(source[max(found.start() - _NEAR, 0) : found.start()])
        for found in _uncalled(name).finditer(source)
    )


#: characters before a name in which its dot is looked for
_NEAR = 40


def _may_be_attribute(before: str) -> bool:
    """Whether what stands before a name ends with a dot; where a line begins between, or all is blank, it may."""
    told = before.rstrip(" \t\r\n\f\v\\")
    return not told or told[-1] == "." or "\n" in before[len(told) :] or "\r" in before[len(told) :]


@functools.lru_cache(maxsize=1024)
def _uncalled(name: str) -> re.Pattern[str]:
    """A name that no call, attribute or assignment follows. (It begins with its letters, which are found much faster
    than a boundary of words.)"""
    return re.compile(rf"{name}(?<!\w{name})\b(?![ \t]*[(.=])")


@functools.lru_cache(maxsize=64)
def _put(source: str) -> dict[str, list[ast.Name | ast.Attribute]]:
    """What a file puts into containers, by its last name: a file is read once for all of its functions."""
    found: dict[str, list[ast.Name | ast.Attribute]] = {}
    tree = tree_of(source)
    run: set[ast.AST] = set()
    todo: list[ast.AST] = [] if tree is None else [tree]
    while todo:  # (what is around comes first)
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


#: what may put something into a container, and what holds no further code
_HOLDERS = frozenset({ast.Dict, ast.List, ast.Set, ast.Tuple, ast.Assign, ast.Call})
_EMPTY = frozenset({
    type(None), str, int, ast.Load, ast.Store, ast.Del, ast.Name, ast.Constant, ast.Pass, ast.Break, ast.Continue,
    *ast.operator.__subclasses__(), *ast.unaryop.__subclasses__(), *ast.cmpop.__subclasses__(),
    *ast.boolop.__subclasses__(),
})  # fmt: skip


def _named(func: ast.expr) -> str:
    return func.id if isinstance(func, ast.Name) else getattr(func, "attr", "")


def _means(program: Program, key: str, function: Function, node: ast.expr) -> bool:
    """Whether a name, or an attribute, is the function."""
    if function.cls is not None:
        return isinstance(node, ast.Attribute) and root(node) in ("self", function.cls.node.name)
    module = program.module(key)
    if isinstance(node, ast.Name):
        kind, what = program.find(module, node.id)
    elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
        kind, what = program.member(module, *program.find(module, node.value.id), node.attr)
    else:
        return False
    return kind == "function" and what is function
