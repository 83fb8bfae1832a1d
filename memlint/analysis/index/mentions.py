"""Where a file mentions names, as names and as attributes, and whether it looks up names or attributes by computed
strings."""

from __future__ import annotations

import ast
import functools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from memlint.frontend.unit_text import host_tree
from memlint.patterns import lazy_pattern

DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*DEFINITIONS, ast.Lambda)
#: functions that look up names of their own file by strings
LOOKUPS = frozenset({"globals", "locals", "vars", "eval", "exec"})
#: functions that look up an attribute by a string, and the position of that argument
FINDERS = {"getattr": 1, "methodcaller": 0, "attrgetter": 0}
#: names of settings objects, which are no instances of the project's classes
SETTINGS = lazy_pattern(r"(?:\w*_)?(?:args?|opts?|options|cfg|config|conf|hparams|params|flags|FLAGS|hps?|namespace)")


@dataclass(frozen=True)
class Mention:
    """A name or attribute. ``top``: the top-level definition around it, or ""; ``method``: the method of that class
    around it; ``in_class``: it is in a class body itself."""

    node: ast.Name | ast.Attribute
    top: str
    method: ast.FunctionDef | ast.AsyncFunctionDef | None
    in_class: bool


#: a tree takes twenty times the memory of its text; queries about one file come one after the other
@functools.lru_cache(maxsize=8)
def tree_of(source: str) -> ast.Module | None:
    return host_tree(source)


@functools.lru_cache(maxsize=8)
def nodes_of(source: str) -> tuple[ast.AST, ...]:
    """All nodes of a file, breadth-first as `ast.walk` gives them."""
    tree = tree_of(source)
    found: list[ast.AST] = [] if tree is None else [tree]
    for node in found:
        for name in node._fields:
            value = getattr(node, name, None)
            if isinstance(value, ast.AST):
                found.append(value)
            elif isinstance(value, list):
                found += [one for one in value if isinstance(one, ast.AST)]
    return tuple(found)


def walk(node: ast.AST) -> Iterator[ast.Name | ast.Attribute]:
    """The names and attributes below a node, without those of imports."""
    for one in ast.walk(node):
        if isinstance(one, ast.Name | ast.Attribute):
            yield one


def mentions(tree: ast.Module, name: str) -> Iterator[Mention]:
    """All mentions of a name in a file."""
    todo: list[tuple[ast.AST, tuple[ast.AST, ...]]] = [(statement, ()) for statement in tree.body]
    while todo:
        node, around = todo.pop()
        if isinstance(node, ast.Name | ast.Attribute) and _identifier(node) == name:
            method = around[1] if len(around) > 1 and isinstance(around[0], ast.ClassDef) else None
            yield Mention(
                node,
                getattr(around[0], "name", "") if around else "",
                method if isinstance(method, _FUNCTIONS) else None,
                bool(around) and isinstance(around[-1], ast.ClassDef),
            )
        if isinstance(node, DEFINITIONS):
            outside: list[ast.AST] = [*node.decorator_list, *(node.bases if isinstance(node, ast.ClassDef) else ())]
            todo.extend((inner, around) for inner in outside)
            todo.extend((inner, (*around, node)) for inner in ast.iter_child_nodes(node) if inner not in outside)
        else:
            todo.extend((inner, around) for inner in ast.iter_child_nodes(node))


def _identifier(node: ast.Name | ast.Attribute) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr


@functools.lru_cache(maxsize=64)
def imported(source: str) -> frozenset[str]:
    """The names that imports bind in a file, in any scope."""
    return frozenset(
        alias.asname or alias.name.partition(".")[0]
        for node in nodes_of(source)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    )


@functools.lru_cache(maxsize=64)
def bound_to(source: str) -> dict[str, list[ast.expr | None]]:
    """By name, the expressions that a file assigns to it in any scope; None for a binding of another form."""
    found: dict[str, list[ast.expr | None]] = {}
    plain: set[ast.Name] = set()
    for node in nodes_of(source):
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    plain.add(target)
                    found.setdefault(target.id, []).append(node.value)
        elif node not in plain and (name := name_bound_by(node)):
            found.setdefault(name, []).append(None)
    return found


def name_bound_by(node: ast.AST) -> str:
    """The name that a node itself (not its children) binds in its scope; "" for none."""
    match node:
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store() | ast.Del()):
            return name
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return name
        case ast.alias(name=name, asname=other):
            return other or name.partition(".")[0]
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
            return name
        case ast.MatchMapping(rest=str(name)):
            return name
        case _:
            return ""


#: methods of ``nn.Module`` that give the module itself
GIVE_THEMSELVES = frozenset({"to", "cuda", "cpu", "float", "double", "half", "train", "eval", "requires_grad_"})


class Maker(NamedTuple):
    """The callee of the call that makes an object. ``passed``: the methods called on the object in the same expression,
    each of which gives the object itself unless its class overrides it."""

    callee: ast.expr
    passed: frozenset[str]


def maker_of(value: ast.expr | None) -> Maker | None:
    """What makes an object, also in ``Net().to(device)``; None for an expression that is no call."""
    passed: set[str] = set()
    while isinstance(value, ast.Call):
        func = value.func
        if not (isinstance(func, ast.Attribute) and isinstance(func.value, ast.Call) and func.attr in GIVE_THEMSELVES):
            return Maker(func, frozenset(passed))
        passed.add(func.attr)
        value = func.value
    return None


class AttributeWrite(NamedTuple):
    """A write or deletion of an attribute. ``maker``: of the object that is assigned to an attribute of ``self``."""

    maker: Maker | None
    line: int


_WORD = lazy_pattern(r"\w+")
_SET = lazy_pattern(r"\b(\w+)(?=\s*=[^=])")
_SAID_GLOBAL = lazy_pattern(r"global (.*)")


@functools.lru_cache(maxsize=64)
def may_set(source: str) -> frozenset[str]:
    """The names before an equals sign (also of keyword arguments), and those that are declared global."""
    words = (word for line in _SAID_GLOBAL.findall(source) for word in _WORD.findall(line))
    return frozenset((*_SET.findall(source), *words))


#: attribute writes are looked up in every file that has the name, for one name after the other
@functools.lru_cache(maxsize=256)
def attribute_writes(source: str) -> dict[str, list[AttributeWrite]] | None:
    """The writes and deletions of attributes by attribute name; None if the file does not parse."""
    tree = tree_of(source)
    if tree is None:
        return None
    found: dict[str, list[AttributeWrite]] = {}
    seen: set[ast.Attribute] = set()
    for node in nodes_of(source):
        target, maker = node, None
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute):
            target = node.targets[0]
            maker = maker_of(node.value) if root(target) == "self" else None
        if isinstance(target, ast.Attribute) and not isinstance(target.ctx, ast.Load) and target not in seen:
            seen.add(target)
            line = node.value.lineno if isinstance(node, ast.Assign) else target.lineno
            found.setdefault(target.attr, []).append(AttributeWrite(maker, line))
    return found


@functools.lru_cache(maxsize=256)
def reads(source: str) -> Counter[str] | None:
    """How often each name is read, as a name or as an attribute; None if the file does not parse."""
    tree = tree_of(source)
    if tree is None:
        return None
    return Counter(_identifier(node) for node in walk(tree) if isinstance(node.ctx, ast.Load))


@functools.lru_cache(maxsize=64)
def finds_names(source: str) -> bool:
    """Whether a file looks up its top-level names by computed strings. Reading an object (``vars(args)``) does not
    count, nor does a function of the project that is called ``eval``."""
    tree = tree_of(source)
    if tree is None:
        return True
    lookups = set(_unbound(tree, LOOKUPS))
    objects: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "vars" and node.args:
            if root(node.args[0]) not in imported(source) and not _reads_modules(node.args[0]):
                objects.add(node.func)
        elif (
            (node in lookups and node not in objects)
            or (isinstance(node, ast.Attribute) and _reads_modules(node))
            or (isinstance(node, ast.Attribute) and node.attr == "__dict__" and root(node) in imported(source))
            or (isinstance(node, ast.Call) and not node.args and ast.unparse(node.func) in ("fire.Fire", "Fire"))
        ):
            return True
    return False


def _unbound(tree: ast.Module, names: frozenset[str]) -> Iterator[ast.Name]:
    """The mentions of these names where they mean the builtins: neither the file nor a function around binds them. (The
    methods of a class are not in scope inside its functions.)"""
    if not any(isinstance(one, ast.Name) and one.id in names for one in walk(tree)):
        return
    todo: list[tuple[ast.AST, frozenset[str]]] = [(tree, names - _binds(tree))]
    while todo:
        node, left = todo.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Name) and child.id in left:
                yield child
            makes_scope = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            todo.append((child, left - _binds(child) if left and makes_scope else left))


def _binds(scope: ast.AST) -> frozenset[str]:
    """The names that a file or a function binds, without those of inner scopes."""
    found: set[str] = set()
    todo = list(ast.iter_child_nodes(scope))
    while todo:
        node = todo.pop()
        found.add(name_bound_by(node))
        if not isinstance(node, _SCOPES):
            todo.extend(ast.iter_child_nodes(node))
    return frozenset(found)


def _reads_modules(node: ast.expr) -> bool:
    """Whether it reads ``sys.modules``, under any alias of ``sys``."""
    return any(
        isinstance(part, ast.Attribute) and part.attr == "modules" and "sys" in root(part) for part in ast.walk(node)
    )


@functools.lru_cache(maxsize=64)
def picked_from(source: str) -> frozenset[str]:
    """The imported names whose attributes are looked up by a computed string: ``getattr(models, name)``."""
    tree = tree_of(source)
    return frozenset(
        root(call.args[0])
        for call in (() if tree is None else ast.walk(tree))
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Name)
        and call.func.id == "getattr"
        and len(call.args) > 1
        and not isinstance(call.args[1], ast.Constant)
        and root(call.args[0]) in imported(source)
    )


@functools.lru_cache(maxsize=64)
def finds_attributes(source: str, in_class: bool) -> bool:
    """Whether a file looks up attributes by computed strings, of what may be an object of a class. ``in_class``: the
    class is defined in this file. True if the file does not parse."""
    tree = tree_of(source)
    if tree is None:
        return True
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not call.args:
            continue
        function = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        place = FINDERS.get(function)
        if place is None or all(isinstance(arg, ast.Constant) for arg in call.args[place : place + 1]):
            continue
        receiver = root(call.args[0])
        if place == 0 or (receiver == "self" and in_class):
            return True
        if receiver not in imported(source) and receiver != "self" and not SETTINGS.fullmatch(receiver):
            return True
    return False


def root(expr: ast.expr) -> str:
    """``a`` of ``a.b.c``; "" for another expression."""
    while isinstance(expr, ast.Attribute):
        expr = expr.value
    return expr.id if isinstance(expr, ast.Name) else ""
