"""Definitions that nothing in an application uses.

An application is a project with programs of its own; what a package exports to other projects is left alone. A name is
used if code of a used definition, or module-level code, mentions it with that meaning. Whatever a text cannot tell
(names looked up by strings, registries, entry points) counts as a use.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import NamedTuple

from memlint.analysis.index.bases import is_entered, knows_bases
from memlint.analysis.index.definitions import Class, Module
from memlint.analysis.index.function import Function
from memlint.analysis.index.loading import is_imported, is_loaded, loaded_names, may_mean_project_definition
from memlint.analysis.index.mentions import (
    DEFINITIONS,
    FINDERS,
    LOOKUPS,
    bound_to,
    finds_attributes,
    finds_names,
    mentions,
    picked_from,
    tree_of,
    walk,
)
from memlint.analysis.index.program import Program, in_tests, is_interactive
from memlint.analysis.index.programs import is_collected, is_library, is_of_hub, is_program
from memlint.analysis.index.receivers import is_of_another
from memlint.analysis.reach.names_in_strings import in_strings
from memlint.analysis.syntax.memo import kept_for
from memlint.frontend.index_records import Imported
from memlint.patterns import lazy_pattern

#: decorators that do not pass the function to other code
_PLAIN = frozenset(
    {"staticmethod", "classmethod", "property", "no_grad", "inference_mode", "enable_grad", "wraps", "abstractmethod"}
)
#: methods of modules and data sets that torch and Python call themselves
_CALLED = frozenset({"forward", "train", "eval", "extra_repr", "reset_parameters", "state_dict", "load_state_dict"})
#: names in a package that finds its members on demand
_LAZY = frozenset({"__getattr__", "import_module", "__import__", "modules", "__path__", "attach", "lazy_loader"})
#: names of code that finds or instantiates classes at run time
_LOOKS_THROUGH = ("__subclasses__", "getmembers", "instantiate_classes", "LightningCLI", "unsafe_load", "UnsafeLoader")
_OF_DICT = lazy_pattern(r"__dict__\s*(?:\[|\.\s*(?:get|items|values)\b)")
#: if more files than this mention a name, none is read
MAX_FILES = 40
#: if a package may export more files than this, any file may be among them
MAX_EXPORTED = 400


class Idle(NamedTuple):
    """Why a definition counts as unused, as a clause, and the definition."""

    reason: str
    what: Function | Class


class Unused:
    """The definitions that nothing in the project uses, computed on demand."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._known: dict[tuple[str, str], bool] = {}
        self._supposed: list[tuple[str, str]] = []

    def why(self, function: Function) -> Idle | None:
        """The part of a function's definition that is unused, and why; None if it may be used."""
        module, name = function.module, function.qual.partition(".")[0].partition("@")[0]
        if name == "<module>" or self._is_library(module):
            return None
        if self._is_unused(module, name):
            what = self._program.find(module, name)[1]
            verb = "uses" if isinstance(what, Class) else "calls"
            return Idle(f"no code that this project runs {verb} `{name}`", what)
        method = _method_around(function)
        if method is not None and method.cls is not None and self._is_unused_method(method.cls, method):
            return Idle(f"no code that this project runs calls `{method.name}`", method)
        return None

    def is_never_made(self, method: Function, caller: Function) -> bool:
        """Whether nothing uses the class of a method, and no code can reach the class without its name, so that the
        caller can have no such object. A caller that is unused as well may be meant for such an object."""
        cls = method.cls
        if cls is None or not self._is_unused(cls.module, cls.qual.partition(".")[0]):
            return False
        if self._is_library(cls.module) or self._is_come_by(cls):
            return False
        return self.why(caller) is None

    def _is_come_by(self, cls: Class) -> bool:
        """Whether a base may register its subclasses, or code of the project may search through classes."""
        return not knows_bases(self._program, cls) or is_entered(self._program, cls) or self._looks_through

    @functools.cached_property
    def _looks_through(self) -> bool:
        """Whether some code finds or instantiates classes at run time."""
        files = self._program.words.files
        return any(map(files, _LOOKS_THROUGH)) or any(
            _OF_DICT.search(self._program.module(key).text) for key in files("__dict__")
        )

    # ------------------------------------------------------------------ what only runs and other projects tell

    def _is_library(self, module: Module) -> bool:
        """Whether unknown programs may use the definitions of a file."""
        return is_library(self._program, module.key)

    def _may_load(self, module: Module) -> bool:
        """Whether a file may be loaded by code that then uses any of its names."""
        return self._loaded is None or is_loaded(module, self._loaded)

    def _may_be_loaded(self, module: Module, what: Function | Class) -> bool:
        """Whether code may load the file by a computed name and find the definition there. Nothing loads a program to
        call a function of it that the program itself does not call."""
        if self._loaded is not None:
            return is_loaded(module, self._loaded)
        return not isinstance(what, Function) or what.cls is not None or not is_program(self._program, module.key)

    def _finders(self, near: set[str]) -> list[str]:
        """The files that may find an attribute of an object by a computed name. ``near``: the files of the object's
        class and its relatives."""
        return sorted({key for finder in FINDERS for key in self._program.words.files(finder)})

    @property
    def _loaded(self) -> frozenset[str] | None:
        return loaded_names(self._program)

    # -------------------------------------------------------------------------- functions and classes

    def _is_unused(self, module: Module, name: str) -> bool:
        return self._ask((module.key, name), lambda: self._look(module, name))

    def _ask(self, key: tuple[str, str], look: Callable[[], bool]) -> bool:
        """The answer for a definition, known or from all of its uses. A definition that uses only itself is unused.
        Answers about others that relied on a wrong assumption are dropped."""
        if key not in self._known:
            self._known[key] = True
            since = len(self._supposed)
            self._supposed.append(key)
            self._known[key] = look()
            if not self._known[key]:
                for other in self._supposed[since + 1 :]:
                    self._known.pop(other, None)
                del self._supposed[since:]
        return self._known[key]

    def _look(self, module: Module, name: str) -> bool:
        kind, what = self._program.find(module, name)
        if kind not in ("function", "class") or what is None or what.module is not module or not self._shows_all(what):
            return False
        files = self._program.words.files(name)
        # for names in too many files (``main``), see `_shows_all`
        return not any(self._uses(key, module, name) for key in (files if len(files) <= MAX_FILES else [module.key]))

    def is_sure_of(self, what: Function | Class) -> bool:
        """Whether all code that may use a definition names it, and is in the project."""
        return self._shows_all(what)

    def _shows_all(self, what: Function | Class) -> bool:
        module, name = what.module, what.qual.rpartition(".")[2]
        if not module.index.complete or in_tests(module.key) or is_collected(module.key) or _is_handed_on(what):
            return False
        if is_interactive(module.key):
            return False
        files = self._program.words.files(name)
        if isinstance(what, Class) and is_entered(self._program, what):
            return False
        cls = what.cls if isinstance(what, Function) else None
        if len(files) > MAX_FILES and (cls is not None or is_imported(self._program, module)):
            return False
        if self._is_in_strings(name, what) or self._is_library(module):
            return False
        if self._program.project.notebooks.mention(name):
            return False
        if is_of_hub(self._program, module.key):
            return False
        if self._may_be_loaded(module, what):
            return False
        if cls is None:
            here = finds_names(module.text) or self._is_picked_from(module)
            return not here and not self._is_looked_up(module, name)
        if name.startswith("__") or name in _CALLED or not knows_bases(self._program, cls):
            return False
        near = {inner.module.key for inner in (*self._program.ancestors(cls)[0], *self._program.below(cls))}
        return not any(finds_attributes(self._program.module(key).text, key in near) for key in self._finders(near))

    def _uses(self, key: str, module: Module, name: str) -> bool:
        """Whether used code of a file mentions the definition."""
        other = self._program.module(key)
        if not other.index.complete:
            return True
        bound, attribute = self._meanings(other, module, name)
        if not bound and not attribute:
            return False
        if bound and other is not module and self._may_load(other):
            return True  # any name of a file that is loaded by a computed name may be used
        if tree_of(other.text) is None or finds_names(other.text):
            return True
        found: dict[int, str] = {}
        for word in {*bound, name}:
            for place, around, part in _by_word(other.text).get(word, ()):
                if place in found or (around == name and other is module):
                    continue
                named = isinstance(part, ast.Name) and word in bound
                if named or (
                    isinstance(part, ast.Attribute)
                    and attribute
                    and word == name
                    and self._may_mean(other, part, module)
                ):
                    found[place] = around
        return any(not around or not self._is_unused(other, around) for _, around in sorted(found.items()))

    def _may_mean(self, other: Module, node: ast.Attribute, module: Module) -> bool:
        """Whether an attribute may be a definition of a module, by the binding of the name before it."""
        receiver = node.value
        if not isinstance(receiver, ast.Name) or len(bound_to(other.text).get(receiver.id, ())) != 1:
            return True
        if not any(item.binds == receiver.id for item in other.index.imports):
            return True
        kind, what = self._program.member(other, *self._program.find(other, receiver.id), node.attr)
        if kind in ("function", "class"):
            return what is not None and what.module is module
        return kind != "ext"

    def _meanings(self, other: Module, module: Module, name: str) -> tuple[frozenset[str], bool]:
        """The names of the definition in a file, and whether it may be an attribute there."""
        if other is module:
            return frozenset((name,)), False
        bound: set[str] = set()
        attribute = False
        for item in other.index.imports:
            if item.name in (name, "*") and self._leads_to(other, item, module, name):
                bound.add(item.asname or name)
            elif item.name != "*":  # a module may have the name of its definition
                attribute = attribute or self._brings_module(other, item, module)
        return frozenset(bound), attribute and is_imported(self._program, module)

    def _leads_to(self, other: Module, item: Imported, module: Module, name: str) -> bool:
        target = self._program.resolve(item.module, other.key, item.level)
        if target is None:
            return item.name == name and may_mean_project_definition(f"{item.module}.{name}", name)
        kind, what = self._program.find(self._program.module(target), name)
        if kind == "ext":
            return may_mean_project_definition(str(what), name)
        if kind == "none":
            return item.name == name  # the file lacks the name, so another one may be meant
        return kind in ("function", "class") and what is not None and what.module is module

    def _brings_module(self, other: Module, item: Imported, module: Module) -> bool:
        """Whether an import may bind the definition's module, or a package that contains or exports it."""
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
            if target == module.key or (target.endswith("__init__.py") and self._hands_out(target, module)):
                return True
        return False

    def _hands_out(self, package: str, module: Module) -> bool:
        """Whether a package may export the definitions of a file: the file is in it, or it imports from the file,
        possibly through other files."""
        exported = self._exported(package)
        return exported is None or any(
            module.key == key
            or (key.endswith("__init__.py") and module.key.startswith(key.removesuffix("__init__.py")))
            for key in exported
        )

    @kept_for
    def _exported(self, package: str) -> frozenset[str] | None:
        """The package and the files that it imports, directly or through others; None if any file may be among them."""
        found, todo = {package}, [package]
        while todo:
            key = todo.pop()
            init = self._program.module(key)
            if not init.index.complete or finds_names(init.text) or len(found) > MAX_EXPORTED or init.names & _LAZY:
                return None
            for item in init.index.imports:
                inner = f"{item.module}.{item.name}" if item.name and item.module else item.name or item.module
                targets = {self._program.resolve(name, key, item.level) for name in (item.module, inner)}
                if item.name == "*" and targets == {None}:
                    return None
                further = {target for target in targets if target is not None} - found
                found |= further
                todo += sorted(further)
        return frozenset(found)

    def _is_picked_from(self, module: Module) -> bool:
        """Whether some code takes members of a file by a computed name: ``getattr(models, name)``."""
        files = (self._program.module(key) for key in self._program.words.files("getattr"))
        return any(
            item.binds in picked and self._brings_module(other, item, module)
            for other in files
            if (picked := picked_from(other.text))
            for item in other.index.imports
        )

    def _is_looked_up(self, module: Module, name: str) -> bool:
        """Whether a file that looks names up at run time has the name by a star import: ``from nets import *; net =
        eval(args.net)()``."""
        return any(self._leads_to(other, item, module, name) for other, item in self._looked_through)

    @functools.cached_property
    def _looked_through(self) -> list[tuple[Module, Imported]]:
        """The star imports of the files that find attributes by computed names."""
        files = {key for word in LOOKUPS for key in self._program.words.files(word)}
        return [
            (other, item)
            for other in map(self._program.module, sorted(files))
            for item in other.index.imports
            if item.name == "*" and finds_names(other.text)
        ]

    def _is_in_strings(self, name: str, what: Function | Class) -> bool:
        return name in in_strings(self._program).called

    # ------------------------------------------------------------------------------------- methods

    def _is_unused_method(self, cls: Class, method: Function) -> bool:
        """Whether no used code mentions a method's name, and no external class can call it."""
        return self._ask((cls.module.key, f"{cls.qual}.{method.name}"), lambda: self._look_for_calls(cls, method))

    def _look_for_calls(self, cls: Class, method: Function) -> bool:
        if method.node is None or not self._shows_all(method):
            return False
        return not any(self._calls(key, cls, method.name) for key in self._program.words.files(method.name))

    def _calls(self, key: str, cls: Class, name: str) -> bool:
        """Whether used code of a file mentions the name as a possible method of the class."""
        other = self._program.module(key)
        tree = tree_of(other.text)
        if tree is None or not other.index.complete:
            return True
        for mention in mentions(tree, name):
            if not isinstance(mention.node.ctx, ast.Load) or is_of_another(self._program, other, mention, cls):
                continue
            if mention.top and self._is_unused(other, mention.top):
                continue
            inside = other.cls(mention.top) if mention.method is not None else None
            method = inside.methods.get(mention.method.name) if inside is not None and mention.method else None
            if inside is None or method is None or not self._is_unused_method(inside, method):
                return True
        return False


#: cached, as a file is queried for one definition after the other
@functools.lru_cache(maxsize=8)
def _by_word(source: str) -> dict[str, list[tuple[int, str, ast.Name | ast.Attribute]]]:
    """The names and attributes of a file by word, each with the index of its module-level statement and the name of the
    definition that the statement is ("" for none)."""
    found: dict[str, list[tuple[int, str, ast.Name | ast.Attribute]]] = {}
    tree = tree_of(source)
    for place, statement in enumerate(tree.body if tree is not None else ()):
        around = statement.name if isinstance(statement, DEFINITIONS) else ""
        for part in walk(statement):
            word = part.id if isinstance(part, ast.Name) else part.attr
            found.setdefault(word, []).append((place, around, part))
    return found


def _method_around(function: Function) -> Function | None:
    """The method of a module-level class that a function is, or is nested in; None for another function."""
    around: Function | None = function
    while around is not None and around.enclosing is not None:
        around = around.enclosing
    return around if around is not None and around.cls is not None and "." not in around.cls.qual else None


def _is_handed_on(what: Function | Class) -> bool:
    """Whether a decorator passes the definition to other code."""
    if isinstance(what, Class):
        return bool(what.node.decorators) and not what.is_dataclass
    return not what.decorator_names <= _PLAIN or len(what.decorator_names) < len(what.decorators)
