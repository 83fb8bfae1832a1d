"""All modules of a project, with names resolved on demand."""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any, cast

from memlint import knowledge
from memlint.analysis.index.definitions import Class, Module
from memlint.analysis.index.function import Function
from memlint.analysis.index.indexes import Indexes
from memlint.analysis.index.lineage import Lineage
from memlint.analysis.index.modules_by_use import is_module_by_use
from memlint.analysis.index.text_facts import TextFacts
from memlint.analysis.index.word_index import NAMED_BASES, Words, may_bind, may_define
from memlint.analysis.syntax.memo import kept_for
from memlint.analysis.syntax.syntax import dotted
from memlint.frontend.index_records import Imported
from memlint.ir import nodes as ir
from memlint.knowledge import MODULE_BASES, TENSOR_BASES

#: what these names mean if they come from a star import that cannot be resolved
USUAL_NAMES = {
    "torch": "torch",
    "nn": "torch.nn",
    "F": "torch.nn.functional",
    "optim": "torch.optim",
    "np": "numpy",
    "DataLoader": "torch.utils.data.DataLoader",
}


def is_interactive(key: str) -> bool:
    """Whether a file is a notebook, whose definitions may be used by cells that were not saved."""
    return key.endswith(".ipynb")


def in_tests(key: str) -> bool:
    """Whether a module is in a folder of tests, so that its definitions serve tests alone."""
    return any(folder in ("test", "tests") for folder in key.split("/")[:-1])


#: the most users of a mixin that are examined: the mixin is a module if all of them are modules
MAX_USERS = 32
#: the most overrides of a method that are followed
MAX_OVERRIDES = 8
#: the most re-exports through which a name is followed
MAX_IMPORTS = 12


class Program:
    """All modules of a project, resolved by name."""

    def __init__(self, project: Any) -> None:
        self.project = project
        self._modules: dict[str, Module] = {}
        self._indexes = Indexes(project.sources, project.earlier, project.kept.setdefault("indexes", {}))
        self.words = Words(project, self._indexes.get)
        self.text_facts = TextFacts(project)
        self._lineage = Lineage(
            self.words,
            lambda key: self.module(key).index,
            lambda key, name: self._may_bind(self.module(key), name, may_define),
            self.resolve,
        )
        #: the resolution of names, and the number of re-exports to it
        self._found: dict[tuple[str, str], tuple[tuple[str, Any], int]] = {}
        #: the most re-exports that the current search has followed
        self._deepest = 0
        #: memoised facts about the whole program, by function and arguments (see `program_memo.memoized_in_program`)
        self.answers: dict[tuple[object, ...], Any] = {}
        self._modules_known: dict[tuple[str, str], bool] = {}
        self._below: dict[tuple[str, str], tuple[list[Class], Iterator[Class]]] = {}
        #: classes whose subclasses are being searched for
        self._looking: set[tuple[str, str]] = set()
        self._methods: dict[tuple[Class, str], Function | None] = {}
        self._ancestors: dict[tuple[str, str], tuple[list[Class], frozenset[str]]] = {}

    def close(self) -> None:
        """Release all modules, as their definitions refer to each other."""
        for module in self._modules.values():
            module.close()
        for held in (self._modules, self._found, self._below, self._methods, self._ancestors):
            held.clear()
        self.answers.clear()

    def keep(self) -> None:
        """Store for later runs what was read of all files."""
        self.words.keep()
        self.text_facts.keep()

    def module(self, key: str) -> Module:
        if key not in self._modules:
            self._modules[key] = Module(key, self._indexes)
        return self._modules[key]

    def mistakes(self) -> dict[tuple[str, str], Exception]:
        """Internal errors while files were parsed or lowered, by (key, "")."""
        return {(key, ""): module.mistake for key, module in self._modules.items() if module.mistake is not None}

    def resolve(self, name: str, importer: str, level: int) -> str | None:
        return cast("str | None", self.project.resolve(name, importer, level))

    def imported_files(self, item: Imported, importer: str) -> list[str]:
        """The project's files that an import loads."""
        found = (self.resolve(name, importer, item.level) for name in item.modules)
        return [key for key in found if key is not None]

    def find(self, module: Module, name: str, depth: int = 0) -> tuple[str, Any]:
        """What a global name is, as (kind, what): a class or function, with the definition; a module, with a key; ext,
        with a qualified name; value, with (module, name) of a variable; none, for unknown."""
        if depth > MAX_IMPORTS:
            self._deepest = depth
            return "none", None
        known = self._found.get((module.key, name))
        if known is not None and (depth == 0 or depth + known[1] <= MAX_IMPORTS):
            self._deepest = max(self._deepest, depth + known[1])
            return known[0]
        before, self._deepest = self._deepest, depth
        found = self._find(module, name, depth)
        deepest = self._deepest
        # star imports may lead through hundreds of modules, so each one's answer is stored; an answer that the limit
        # cut short is different at another depth
        if depth == 0 or (deepest <= MAX_IMPORTS and (module.stars or found[0] != "none")):
            self._found[module.key, name] = found, deepest - depth
        self._deepest = max(before, deepest)
        return found

    def _find(self, module: Module, name: str, depth: int) -> tuple[str, Any]:
        # most modules behind star imports do not bind the name, which their text tells
        may = self._may_bind(module, name, may_bind)
        if may and name in module.numbers:
            function, cls = module.function(name), module.cls(name)
            if cls is not None:
                return "class", cls
            if function is not None:
                return "function", function
        statements = module.binders(name) if may else ()
        if not statements:
            for star in module.stars:
                found = self._imported(module, star, name, depth)
                if found[0] not in ("none", "ext") or (
                    found[0] == "ext" and self.resolve(star.module, module.key, star.level) is not None
                ):
                    return found
            if module.stars and name in USUAL_NAMES:
                return "ext", USUAL_NAMES[name]
            return self._of_torch(module, name)
        imports = [s for s in statements if isinstance(s, ir.Import | ir.ImportFrom)]
        if imports and len(imports) == len(statements):
            candidates = [self._imported(module, s, name, depth) for s in imports]
            inside = [found for found in candidates if found[0] not in ("none", "ext")]
            return inside[0] if inside else candidates[0]
        for statement in statements:
            if isinstance(statement, ir.FunctionDef):
                module.build(0)
                return "function", module.functions.get(name)
            if isinstance(statement, ir.ClassDef):
                module.build(0)
                return "class", module.classes.get(name)
        if imports:
            return self._imported(module, imports[0], name, depth)
        return "value", (module, name)

    def _may_bind(self, module: Module, name: str, judge_text: Callable[[str, str], bool]) -> bool:
        """Whether a module may bind a name; an unparsed one is judged by its text."""
        if module.is_read:
            return name in module.names
        return module.key in self.words.holding(name) and judge_text(module.text, name)

    def _of_torch(self, module: Module, name: str) -> tuple[str, Any]:
        """What a star import of a torch module binds, unless a later star import may bind the name as well."""
        for star in reversed(module.stars):
            if star.level == 0 and name in knowledge.star_names(star.module):
                return "ext", f"{star.module}.{name}"
            known = star.level or self.resolve(star.module, module.key, 0) is not None
            first = star.module.partition(".")[0]
            if not known and first != "torch" and (first not in sys.stdlib_module_names or hasattr(math, name)):
                break
        return "none", None

    def imported(self, module: Module, statement: ir.Stmt, name: str) -> tuple[str, Any]:
        """What an import statement binds a name to; ("none", None) where it binds another."""
        bound = statement.names if isinstance(statement, ir.Import | ir.ImportFrom) else ()
        if not any((alias.asname or alias.name.split(".", 1)[0]) == name for alias in bound):
            return "none", None
        return self._imported(module, statement, name, 0)

    def _local(self, module: Module, name: str, around: Function | None) -> tuple[str, Any]:
        """What the functions around a definition bind a name to; ("unknown", None) if by another statement than an
        import or a class, ("none", None) if they do not bind it."""
        while around is not None:
            if name in around.locals:
                for statement in around.definers.get(name, ()):
                    if isinstance(statement, ir.ClassDef):
                        return "class", module.class_at(around.unit, statement.at)
                    found = self.imported(module, statement, name)
                    if found[0] != "none":
                        return found
                return "unknown", None
            around = around.around
        return "none", None

    def _imported(self, module: Module, statement: ir.Stmt, name: str, depth: int) -> tuple[str, Any]:
        if isinstance(statement, ir.Import):
            for alias in statement.names:
                if (alias.asname or alias.name.split(".", 1)[0]) != name:
                    continue
                target = alias.name if alias.asname else alias.name.split(".", 1)[0]
                key = self.resolve(target, module.key, 0)
                # `import utils.utils` means the package, even if other files import a `utils.py` as `utils`
                holds = key is not None and (target == alias.name or key.endswith("__init__.py"))
                if not holds and not alias.asname and self.resolve(alias.name, module.key, 0) is not None:
                    return "package", target
                return ("module", key) if key is not None else ("ext", target)
            return "none", None
        assert isinstance(statement, ir.ImportFrom)
        for alias in statement.names:
            if alias.name != "*" and (alias.asname or alias.name) != name:
                continue
            imported_name = name if alias.name == "*" else alias.name
            key = self.resolve(statement.module, module.key, statement.level)
            if key is not None and key != module.key:
                found = self.find(self.module(key), imported_name, depth + 1)
                if found[0] != "none":
                    return found
            inner = f"{statement.module}.{imported_name}" if statement.module else imported_name
            key = self.resolve(inner, module.key, statement.level)
            if key is not None:
                return "module", key
            if statement.level == 0 and self.resolve(statement.module, module.key, 0) is None:
                return "ext", inner
            return self._in_namesake(module, statement, imported_name, depth)
        return "none", None

    def _in_namesake(self, module: Module, statement: ir.ImportFrom, name: str, depth: int) -> tuple[str, Any]:
        """``from solver import Solver``, which an empty package does not have: the program runs with the package's
        folder on the path, and means ``solver/solver.py``."""
        if statement.level or not statement.module:
            return "none", None
        key = self.resolve(f"{statement.module}.{statement.module.rpartition('.')[2]}", module.key, 0)
        return ("none", None) if key in (None, module.key) else self.find(self.module(key), name, depth + 1)

    def find_expression(self, module: Module, expr: ir.Expr, enclosing: Function | None = None) -> tuple[str, Any]:
        """What a dotted expression refers to, in the scope of ``enclosing`` or of the module."""
        if isinstance(expr, ir.Subscript):
            return self.find_expression(module, expr.value, enclosing)
        if isinstance(expr, ir.Name):
            kind, what = self._local(module, expr.id, enclosing)
            return (kind, what) if kind != "none" else self.find(module, expr.id)
        if not isinstance(expr, ir.Attr):
            return "none", None
        kind, what = self.find_expression(module, expr.value, enclosing)
        return self.member(module, kind, what, expr.name)

    def outside(self, module: Module, expr: ir.Expr, enclosing: Function | None = None) -> str:
        """The qualified name of the external definition that a dotted expression refers to; "" for anything else."""
        kind, what = self.find_expression(module, expr, enclosing)
        return str(what) if kind == "ext" else ""

    def member(self, module: Module, kind: str, what: Any, name: str) -> tuple[str, Any]:
        """What ``name`` is in a module, a package, an external name or a class."""
        if kind == "ext":
            return "ext", f"{what}.{name}"
        if kind == "package":
            dotted_name = f"{what}.{name}"
            key = self.resolve(dotted_name, module.key, 0)
            return ("module", key) if key is not None else ("package", dotted_name)
        if kind == "module":
            inside = self.module(what)
            found = self.find(inside, name)
            if found[0] != "none":
                return found
            key = self.resolve(name, what, 1) if what.endswith("__init__.py") else None
            return ("module", key) if key is not None else ("none", None)
        if kind == "class" and name in what.inner:
            return "class", what.inner[name]
        return "none", None

    def ancestors(self, cls: Class) -> tuple[list[Class], frozenset[str]]:
        """The class and its project ancestors in order of look-up, and the qualified names of external ones."""
        if cls.key in self._ancestors:
            return self._ancestors[cls.key]
        self._ancestors[cls.key] = ([cls], frozenset())
        order = [cls]
        outside: set[str] = set()
        for base in cls.node.bases:
            kind, what = self.find_expression(cls.module, base, cls.enclosing)
            if kind == "class" and what is not None:
                more, names = self.ancestors(what)
                order += [item for item in more if item not in order]
                outside |= names
            elif kind == "ext":
                outside.add(what)
            else:
                name = dotted(base)
                if name:
                    outside.add("?." + name)
        self._ancestors[cls.key] = (order, frozenset(outside))
        return self._ancestors[cls.key]

    def below(self, cls: Class) -> Iterator[Class]:
        """The project's subclasses of a class, at any distance; lazily, as a library's base may have thousands."""
        if cls.key not in self._below:
            self._below[cls.key] = [], self._look_below(cls)
        found, rest = self._below[cls.key]
        at = 0
        while True:
            if at == len(found):
                if cls.key in self._looking:
                    return  # a cycle of classes with equal names
                self._looking.add(cls.key)
                try:
                    found.append(next(rest))
                except StopIteration:
                    return
                finally:
                    self._looking.discard(cls.key)
            yield found[at]
            at += 1

    def _look_below(self, cls: Class) -> Iterator[Class]:
        base = cls.node.name
        for key in self.words.files(base):
            module = self.module(key)
            named = None if module.is_read else self.text_facts.get(NAMED_BASES, key)
            if named is not None and base not in named:
                continue
            for other in filter(None, map(module.cls, module.inheriting.get(base, ()))):
                if other is not cls and cls in self.ancestors(other)[0]:
                    yield other
                    yield from self.below(other)

    def is_module(self, cls: Class) -> bool:
        """Whether a class is a torch module, or a mixin whose users are all modules."""
        if cls.key not in self._modules_known:
            self._modules_known[cls.key] = self._derives_from_module(cls)
            if not self._modules_known[cls.key] and not self.ancestors(cls)[1] - {"?.object"}:
                users = list(itertools.islice(self.below(cls), MAX_USERS))
                self._modules_known[cls.key] = bool(users) and all(map(self._derives_from_module, users))
        return self._modules_known[cls.key]

    def _derives_from_module(self, cls: Class) -> bool:
        order, outside = self.ancestors(cls)
        named = any(MODULE_BASES.fullmatch(name) or name in ("?.nn.Module", "?.LightningModule") for name in outside)
        return named or is_module_by_use(order, outside)

    def is_tensor(self, cls: Class) -> bool:
        """Whether a class is a subclass of tensor: a parameter with methods of its own."""
        return not self.ancestors(cls)[1].isdisjoint(TENSOR_BASES)

    @kept_for
    def overrides(self, cls: Class, name: str) -> list[Function]:
        """The overrides of a method in the project's subclasses; none if there are more than `MAX_OVERRIDES`."""
        found = list(itertools.islice(self._overriding(cls, name), MAX_OVERRIDES + 1))
        return found if len(found) <= MAX_OVERRIDES else []

    def _overriding(self, cls: Class, name: str) -> Iterator[Function]:
        # the index tells faster which classes define the method than which are subclasses
        for key in self.words.defining(name):
            for definition in self.module(key).index.definitions:
                if name not in definition.methods or definition.kind != "class":
                    continue
                if not self._lineage.may_be_below(key, definition, cls.node.name):
                    continue
                other = self.module(key).cls(definition.name)
                if other is None or other is cls or cls not in self.ancestors(other)[0]:
                    continue
                if name in other.methods:
                    yield other.methods[name]

    def methods(self, cls: Class | None) -> list[Function]:
        """The methods of a class and of its ancestors in the project, overridden ones included."""
        order, _ = self.ancestors(cls) if cls is not None else ([], None)
        return [method for item in order for method in item.methods.values()]

    def is_overridden(self, cls: Class, name: str) -> bool:
        """Whether some subclass in the project overrides a method."""
        return any(name in inner.methods for inner in self.below(cls))

    def method(self, cls: Class | None, name: str, after: Class | None = None) -> Function | None:
        """The method that ``instance.name`` finds, None for no class; ``after``: as super() in that class would."""
        if cls is None:
            return None
        key = (cls, name)
        if after is None and key in self._methods:
            return self._methods[key]
        order, _ = self.ancestors(cls)
        if after is not None:
            order = order[order.index(after) + 1 :] if after in order else order[1:]
        found = next((item.methods[name] for item in order if name in item.methods), None)
        if after is None:
            self._methods[key] = found
        return found


__all__ = ["Class", "Function", "Module", "Program"]
