"""All calls of a definition, if the project leaves no room for others.

No answer is given if a computed name, a table of functions, or a project that installs this one may call it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memlint.analysis.index.definitions import Class, Module, functions_of
from memlint.analysis.index.function import Function
from memlint.analysis.index.loading import may_mean_project_definition
from memlint.analysis.index.mentions import finds_names, reads
from memlint.analysis.index.program import Program
from memlint.analysis.reach.unused_definitions import Unused
from memlint.analysis.syntax.syntax import expressions, walk_expression, walk_statements
from memlint.ir import nodes as ir

#: if more files than this mention a name, none is read
MAX_FILES = 24


class KnownCall(NamedTuple):
    caller: Function
    call: ir.Call
    #: the number of parameters bound before the first argument: 1 for a receiver
    bound: int

    def passes(self, function: Function, name: str) -> ir.Expr | None:
        """The argument that the call passes for a parameter; None for none, or for an unknown one."""
        named = next((word.value for word in self.call.keywords if word.name == name), None)
        if named is not None:
            return named
        names = [each.name for each in function.params if each.kind in ("positional", "positional-only")][self.bound :]
        args = self.call.args
        if any(isinstance(arg, ir.Starred) for arg in args) or name not in names[: len(args)]:
            return None
        return args[names.index(name)]


class KnownCalls:
    def __init__(self, program: Program, unused: Unused, *, by_attributes: bool = False) -> None:
        """``by_attributes``: calls by the function's name on unresolved receivers count as well."""
        self._by_attributes = by_attributes
        self._program = program
        self._unused = unused
        self._found: dict[tuple[str, str], tuple[KnownCall, ...]] = {}
        #: the uses in the files of the last queries
        self._used: dict[str, _Uses] = {}

    def of(self, function: Function) -> tuple[KnownCall, ...]:
        """All calls of a function or method; empty if there are none, or may be others."""
        if function.key not in self._found:
            self._found[function.key] = ()
            self._found[function.key] = self._look(function)
        return self._found[function.key]

    def of_class(self, cls: Class) -> tuple[KnownCall, ...]:
        """All calls that make an object of this very class; empty if there are none, or may be others."""
        key = (cls.module.key, f"{cls.qual}()")
        if key not in self._found:
            self._found[key] = ()
            if "." not in cls.qual and not any(self._program.below(cls)) and self._unused.is_sure_of(cls):
                self._found[key] = tuple(self._all(cls, cls.node.name, 1))
        return self._found[key]

    def _look(self, function: Function) -> tuple[KnownCall, ...]:
        if function.node is None or not self._unused.is_sure_of(function):
            return ()
        if function.cls is None:
            return tuple(self._all(function, function.name, 0)) if "." not in function.qual else ()
        if "." in function.cls.qual:
            return ()
        bound = 1 if function.takes_self else 0
        return tuple(self._all(function, function.name, bound))

    def _all(self, what: Function | Class, name: str, bound: int) -> Iterator[KnownCall]:
        files = self._program.words.files(name)
        if len(files) > MAX_FILES:
            return
        found: list[KnownCall] = []
        for key in files:
            module = self._program.module(key)
            times = reads(module.text)
            if times is None or not module.index.complete or finds_names(module.text):
                return
            uses = self._uses_in(module).get(name, [])
            if len(uses) < times[name]:
                return  # some uses are in class bodies, decorators or lambdas
            for caller, part, is_called in uses:
                if not self._may_mean(module, caller, part.func if isinstance(part, ir.Call) else part, what):
                    continue
                if not is_called or not isinstance(part, ir.Call):
                    return
                found.append(KnownCall(caller, part, bound))
        yield from found

    def _uses_in(self, module: Module) -> _Uses:
        if module.key not in self._used:
            if len(self._used) >= MAX_FILES:
                self._used.clear()
            self._used[module.key] = _uses(module)
        return self._used[module.key]

    def _may_mean(self, module: Module, caller: Function, func: ir.Expr, what: Function | Class) -> bool:
        """Whether an expression may refer to a definition."""
        if isinstance(what, Function) and what.cls is not None:
            return isinstance(func, ir.Attr)  # the method of any object
        kind, found = self._program.find_expression(module, func, caller)
        if kind == "none" and isinstance(func, ir.Name) and func.id in caller.locals:
            return False
        if kind in ("function", "class"):
            return found is what
        # an attribute of an object is no module-level definition
        if self._by_attributes and isinstance(func, ir.Attr) and isinstance(what, Function) and kind == "none":
            return True
        return isinstance(func, ir.Name) and (kind != "ext" or may_mean_project_definition(str(found), what.qual))


#: by name, its uses: the function, the call or else the name alone, and whether it is a call
_Uses = dict[str, list[tuple[Function, ir.Expr, bool]]]


def _uses(module: Module) -> _Uses:
    """The places where the functions of a file name something in their own bodies."""
    found: _Uses = {}
    for caller in functions_of(module):
        statements = walk_statements(caller.body, into_definitions=False)
        exprs = [expr for statement in statements for expr in expressions(statement)]
        if isinstance(caller.node, ir.FunctionDef):
            exprs += [param.default for param in caller.node.params if param.default is not None]
        called: set[int] = set()
        for expr in exprs:
            for part in walk_expression(expr):
                is_called = isinstance(part, ir.Call)
                name = _name_of(part.func if isinstance(part, ir.Call) else part)
                if name and isinstance(part, ir.Call):
                    called.add(part.func.at)
                if name and (is_called or part.at not in called):
                    found.setdefault(name, []).append((caller, part, is_called))
    return found


def _name_of(expr: ir.Expr) -> str:
    return expr.id if isinstance(expr, ir.Name) else expr.name if isinstance(expr, ir.Attr) else ""
