"""Definitions that nothing in an application uses: what is said of them happens to nobody.

An application is a project that has programs of its own; what a package hands out to other projects is left alone. A
name is used where code of a definition that is itself used, or a file's own statements, mention it as what it is there.
Whatever a text cannot tell (names looked up by strings, registries, entry points) counts as a use.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator

from memlint.flow.definitions import Class, Function, Module
from memlint.flow.program import Program, in_tests
from memlint.flow.programs import has_program
from memlint.frontend.index import Imported
from memlint.project.published import is_published

#: names of what loads code by its name, wherever it stands
_LOADERS = (
    "import_module",
    "__import__",
    "exec_module",
    "load_module",
    "run_module",
    "run_path",
    "import_string",
    "locate",
    "instantiate",
    "hydra",
    "LightningCLI",
    "Fire",
    "get_obj_from_str",
    "build_from_cfg",
    "walk_packages",
    "iter_modules",
    "entry_points",
)
#: functions and attributes that find names of the file that they stand in
_LOOKUPS = frozenset({"globals", "locals", "vars", "eval", "exec"})
_TABLES = frozenset({"modules", "__dict__"})
#: decorators that leave a function to whoever calls it by its name
_PLAIN = frozenset(
    {"staticmethod", "classmethod", "property", "no_grad", "inference_mode", "enable_grad", "wraps", "abstractmethod"}
)
#: what torch and Python call of a module or a data set by themselves
_CALLED = frozenset({"forward", "train", "eval", "extra_repr", "reset_parameters", "state_dict", "load_state_dict"})
#: functions that find an attribute by its name, and which argument that is
_FINDERS = {"getattr": 1, "methodcaller": 0, "attrgetter": 0}
#: what settings are called, which are no objects with methods of ours
_SETTINGS = re.compile(r"(?:\w*_)?(?:args?|opts?|options|cfg|config|conf|hparams|params|flags|FLAGS|hps?|namespace)")
_ALL = re.compile(r"__all__\s*(?:\+?=|\.extend\()\s*[\[(][^\])]*[\])]")
#: beyond so many files with a name, nobody reads them all
MAX_FILES = 40


class Unused:
    """What nothing in the project uses, found when it is asked for."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[tuple[str, str], bool] = {}

    def why(self, function: Function) -> str:
        """What of a function's definition nothing uses, as a clause; "" where something may."""
        module, name = function.module, function.qual.partition(".")[0].partition("@")[0]
        if name == "<module>" or not self._is_application or is_published(self._program.project, module.key):
            return ""
        if self._is_unused(module, name):
            return f"nothing in this project uses `{name}`"
        method = _method_around(function)
        if method is not None and method.cls is not None and self._is_unused_method(method.cls, method):
            return f"nothing in this project calls `{method.name}`"
        return ""

    @functools.cached_property
    def _is_application(self) -> bool:
        """Whether some file is a program, and none loads code by a name that only runs tell."""
        if any(self._program.words.files(name) for name in _LOADERS):
            return False
        return has_program(self._program)

    # -------------------------------------------------------------------------- functions and classes

    def _is_unused(self, module: Module, name: str) -> bool:
        key = (module.key, name)
        if key not in self._known:
            self._known[key] = True  # what only uses itself is not used
            self._known[key] = self._look(module, name)
        return self._known[key]

    def _look(self, module: Module, name: str) -> bool:
        kind, what = self._program.find(module, name)
        if kind not in ("function", "class") or what is None or what.module is not module:
            return False
        if not module.index.complete or in_tests(module.key) or _is_collected(module.key):
            return False
        if _is_handed_on(what) or _finds_names(module.text) or self._is_in_strings(name):
            return False
        files = self._program.words.files(name)
        return len(files) <= MAX_FILES and not any(self._uses(key, module, name) for key in files)

    def _uses(self, key: str, module: Module, name: str) -> bool:
        """Whether code of a file that somebody uses mentions the definition."""
        other = self._program.module(key)
        if not other.index.complete:
            return True
        bound, attribute = self._meanings(other, module, name)
        if not bound and not attribute:
            return False
        tree = _tree(other.text)
        if tree is None or _finds_names(other.text):
            return True
        for statement in tree.body:
            around = statement.name if isinstance(statement, _DEFINITIONS) else ""
            if (around == name and other is module) or not any(
                part.id in bound if isinstance(part, ast.Name) else attribute and part.attr == name
                for part in _walk(statement)
            ):
                continue
            if not around or not self._is_unused(other, around):
                return True
        return False

    def _meanings(self, other: Module, module: Module, name: str) -> tuple[frozenset[str], bool]:
        """The names that the definition has in a file, and whether it may be an attribute there."""
        if other is module:
            return frozenset((name,)), False
        bound: set[str] = set()
        attribute = False
        for item in other.index.imports:
            if item.name in (name, "*"):
                if self._leads_to(other, item, module, name):
                    bound.add(item.asname or name)
            else:
                attribute = attribute or self._brings_module(other, item, module)
        return frozenset(bound), attribute

    def _leads_to(self, other: Module, item: Imported, module: Module, name: str) -> bool:
        target = self._program.resolve(item.module, other.key, item.level)
        if target is None:
            return False
        kind, what = self._program.find(self._program.module(target), name)
        return kind in ("function", "class") and what is not None and what.module is module

    def _brings_module(self, other: Module, item: Imported, module: Module) -> bool:
        """Whether an import may bind the module of a definition, or a package that it is in or is handed out by."""
        targets = [self._program.resolve(item.module, other.key, item.level)]
        if item.name is not None:
            inner = f"{item.module}.{item.name}" if item.module else item.name
            targets = [self._program.resolve(inner, other.key, item.level)]
        else:
            first = item.module.partition(".")[0]
            targets.append(self._program.resolve(first, other.key, 0))
            if first != item.module and targets == [None, None]:
                return False
        for target in targets:
            if target is None:
                continue
            if target == module.key:
                return True
            if target.rpartition("/")[2] == "__init__.py":
                return True  # (what it hands out may come from anywhere)
        return False

    def _is_in_strings(self, name: str) -> bool:
        pattern = re.compile(rf"[\"'][\w.:/]*\b{re.escape(name)}[\"'(]")
        sources = self._program.project.sources
        return any(
            name in (text := sources[key].text) and pattern.search(_ALL.sub("", text)) is not None for key in sources
        )

    # ------------------------------------------------------------------------------------- methods

    def _is_unused_method(self, cls: Class, method: Function) -> bool:
        """Whether no code mentions a method's name, and no class from elsewhere can call it."""
        name = method.name
        if name.startswith("__") or name in _CALLED or method.node is None or in_tests(cls.module.key):
            return False
        if _is_handed_on(method) or _is_collected(cls.module.key) or not self._knows_bases(cls):
            return False
        if self._is_in_strings(name) or not cls.module.index.complete:
            return False
        files = self._program.words.files(name)
        if len(files) > MAX_FILES or any(self._mentions_method(key, name) for key in files):
            return False
        near = {inner.module.key for inner in (*self._program.ancestors(cls)[0], *self._program.below(cls))}
        finders = {key for finder in _FINDERS for key in self._program.words.files(finder)}
        return not any(_finds_attributes(self._program.module(key).text, key in near) for key in sorted(finders))

    def _knows_bases(self, cls: Class) -> bool:
        """Whether all that may call a method by itself is in sight: no framework's class is above."""
        _, outside = self._program.ancestors(cls)
        plain = {"object", "?.object", "abc.ABC", "torch.nn.Module", "?.nn.Module", "torch.nn.modules.module.Module"}
        return outside <= plain

    def _mentions_method(self, key: str, name: str) -> bool:
        other = self._program.module(key)
        tree = _tree(other.text)
        return tree is None or any(
            (part.id if isinstance(part, ast.Name) else part.attr) == name for part in _walk(tree, without=name)
        )


_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def _method_around(function: Function) -> Function | None:
    """The method of a first-level class that a function is, or stands in."""
    around: Function | None = function
    while around is not None and around.enclosing is not None:
        around = around.enclosing
    return around if around is not None and around.cls is not None and "." not in around.cls.qual else None


def _is_collected(key: str) -> bool:
    """Whether it is a file of tests, which a runner finds, or of their settings."""
    file = key.rpartition("/")[2]
    return file.startswith(("test_", "conftest")) or file.endswith("_test.py")


def _is_handed_on(what: Function | Class) -> bool:
    """Whether a decorator gives the definition to somebody."""
    if isinstance(what, Class):
        return bool(what.node.decorators) and not what.is_dataclass
    return not what.decorator_names <= _PLAIN or len(what.decorator_names) < len(what.decorators)


def _walk(node: ast.AST, without: str = "") -> Iterator[ast.Name | ast.Attribute]:
    """The names and attributes in a piece of code, imports left out, and the functions that bear a name."""
    todo = [node]
    while todo:
        one = todo.pop()
        if isinstance(one, ast.Name | ast.Attribute):
            yield one
        if not isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) or one.name != without:
            todo.extend(ast.iter_child_nodes(one))


@functools.lru_cache(maxsize=64)
def _tree(source: str) -> ast.Module | None:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


@functools.lru_cache(maxsize=64)
def _finds_names(source: str) -> bool:
    """Whether code finds first-level names by what only runs tell."""
    tree = _tree(source)
    return tree is None or any(
        part.id in _LOOKUPS if isinstance(part, ast.Name) else part.attr in _TABLES for part in _walk(tree)
    )


@functools.lru_cache(maxsize=64)
def _finds_attributes(source: str, in_class: bool) -> bool:
    """Whether code finds attributes by names that are not written there, of what may be an object of a class;
    ``in_class``: of which the class is in the file."""
    tree = _tree(source)
    if tree is None:
        return True
    modules = {
        alias.asname or alias.name.partition(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call):
            continue
        function = call.func.id if isinstance(call.func, ast.Name) else getattr(call.func, "attr", "")
        place = _FINDERS.get(function)
        if place is None or all(isinstance(arg, ast.Constant) for arg in call.args[place : place + 1]):
            continue
        receiver = _root(call.args[0])
        if place == 0 or (receiver == "self" and in_class):
            return True
        if receiver not in modules and receiver != "self" and not _SETTINGS.fullmatch(receiver):
            return True
    return False


def _root(expr: ast.expr) -> str:
    """``a`` of ``a.b.c``; "" of all that is no such name."""
    while isinstance(expr, ast.Attribute):
        expr = expr.value
    return expr.id if isinstance(expr, ast.Name) else ""
