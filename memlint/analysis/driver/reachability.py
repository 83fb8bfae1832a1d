"""Whether the code of a finding is used, and whether it can run.

A definition that nothing in the project uses is unused, and so is code that no known call reaches. Code in a file that
fails on import, or that always raises, cannot run.
"""

from __future__ import annotations

import ast
import builtins
import functools
import re

from memlint.analysis.domain.events import Reached, Site
from memlint.analysis.facts.analyser import Analyser
from memlint.analysis.facts.constant_arguments import ConstantArguments
from memlint.analysis.index.definitions import Class, Module
from memlint.analysis.index.function import Function
from memlint.analysis.index.mentions import name_bound_by, nodes_of, tree_of
from memlint.analysis.index.program import Program, is_interactive
from memlint.analysis.reach.broken_files import UNREADABLE, broken_import, names_in
from memlint.analysis.reach.known_calls import KnownCall, KnownCalls
from memlint.analysis.reach.refused_calls import callee_of, is_bound_once, is_found_first, refused, used_up
from memlint.analysis.reach.unnamed_definitions import Unnamed
from memlint.analysis.syntax.bindings import names_bound_by
from memlint.analysis.syntax.control_flow import ErrorsOnPaths, evaluated, surely
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept, kept_for
from memlint.analysis.syntax.syntax import is_name, walk_statements
from memlint.analysis.transfer.modules.inert_guards import last_ordinal
from memlint.finding import FAILS
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern


class Reachability:
    """Answers whether sites are used and can run, on demand."""

    def __init__(self, analyser: Analyser) -> None:
        self._program = program = analyser.program
        self._unused = analyser.unused
        self._unnamed = Unnamed(program)
        self._constant_arguments = ConstantArguments(analyser.known_calls)
        self._raising = Raising(program, analyser.known_calls, self._constant_arguments)
        by_text = KnownCalls(program, self._unnamed, by_attributes=True)
        self._constant_arguments_by_text = ConstantArguments(by_text)
        self._raising_by_text = Raising(program, by_text, self._constant_arguments_by_text)

    def of(self, function: Function, site: Site) -> Reached:
        """``function``: the one around the site. Reasons that hold for the whole text come before those that may be
        wrong where code is looked up by computed names."""
        if broken := self._why_broken(site.path):
            return Reached("cannot-run", f"{FAILS}: {broken}", site)
        if raises := self._raising.why(function, site.at):
            return Reached("cannot-run", f"this code raises before it ends: {raises}", site)
        if unused := self._unused.why(function):
            return Reached("unused", unused.reason, _place(unused.what))
        if left_out := self._constant_arguments.why_left_out(function, site.at):
            return Reached("unused", left_out, _place(function))
        if unnamed := self._unnamed.why(function):
            return Reached("unused", f"{_BY_TEXT}{unnamed.reason}", _place(unnamed.what))
        if raises := self._raising_by_text.why(function, site.at):
            return Reached("cannot-run", f"{_BY_TEXT}this code raises before it ends: {raises}", site)
        if left_out := self._constant_arguments_by_text.why_left_out(function, site.at):
            return Reached("unused", f"{_BY_TEXT}{left_out}", _place(function))
        return Reached("used", "", site)

    def _why_broken(self, path: str) -> str:
        """The error because of which a file cannot be imported or run; "" if none is known."""
        if self._program.project.sources[path].rewritten:
            return UNREADABLE
        return broken_import(self._program, path)


_BY_TEXT = "as far as its text tells, "


def _place(what: Function | Class) -> Site:
    """The site of a definition."""
    return Site(what.module.key, what.unit, what.node.at if what.node is not None else 0)


#: names that tools inject into a file
_INJECTED = frozenset({"get_ipython", "display", "profile", "reveal_type", "dbutils", "spark", "sc", "_"})
#: builtins of Python 2, and the imports of a file that also supports it
_OF_PYTHON_2 = frozenset(
    {"basestring", "cmp", "execfile", "file", "long", "raw_input", "reduce", "reload", "unichr", "unicode", "xrange"}
)
_FOR_PYTHON_2 = lazy_pattern(
    r"^from __future__ import .*\b(print_function|division|absolute_import|unicode_literals)", re.MULTILINE
)
#: names with which code may bind names that the text does not show
_DYNAMIC = frozenset({"exec", "globals", "vars", "locals", "setattr", "builtins", "__builtins__"})


#: the most call sites that are examined
MAX_CALLS = 8
#: how many levels of callers and callees are followed
MAX_DEPTH = 3


class Raising:
    """Computes the error before a place on demand."""

    def __init__(self, program: Program, calls: KnownCalls, constant_arguments: ConstantArguments) -> None:
        self._program = program
        self._calls = calls
        self._constant_arguments = constant_arguments
        self._bodies: dict[tuple[str, str, int], str] = {}
        self._errors_before: dict[tuple[str, str, int, int], str] = {}

    def why(self, function: Function, at: int) -> str:
        """The error before a place in a function (an ordinal of its unit), as a clause; "" if none is known."""
        return self._before(function, at, MAX_DEPTH)

    def _before(self, function: Function, at: int, depth: int) -> str:
        key = (*function.key, at, depth)
        if key not in self._errors_before:
            self._errors_before[key] = ""  # the answer for a recursive query
            errors, goes_on = self._errors(function), not self._is_tried(function)
            self._errors_before[key] = (
                errors.before(at)
                or (errors.behind(at) if goes_on else "")
                or used_up(self._program, function, lambda: errors.parts(at, behind=goes_on))
                or self._constructor(function, depth)
                or self._callers(function, depth)
            )
        return self._errors_before[key]

    @kept_for
    def _errors(self, function: Function) -> ErrorsOnPaths:
        decide = self._constant_arguments.of(function)
        return ErrorsOnPaths(function.body, decide, lambda part: self._mistake(function, part))

    @kept_for
    def _is_tried(self, function: Function) -> bool:
        """Whether a caller may catch an exception of a function."""
        return any(_is_tried(call) for call in self._calls.of(function))

    def _constructor(self, function: Function, depth: int) -> str:
        """The error because of which no object of a method's class can exist; "" if none is known."""
        cls, of_instance = function.cls, function.takes_self and "classmethod" not in function.decorator_names
        if cls is None or not of_instance or function.name == "__new__" or any(self._program.below(cls)):
            return ""
        init = cls.methods.get("__init__")
        why = self._in_callee(init, 1) if init is not None and function is not init else ""
        return why or self._all_raise(self._calls.of_class(cls), depth)

    def _callers(self, function: Function, depth: int) -> str:
        if function.around is not None or function.name.startswith("__"):
            return ""
        return self._all_raise(self._calls.of(function), depth)

    def _all_raise(self, calls: tuple[KnownCall, ...], depth: int) -> str:
        """The error because of which none of these calls is reached; "" if one may be."""
        if depth == 0 or not calls or len(calls) > MAX_CALLS:
            return ""
        first = ""
        for call in calls:
            why = self._before(call.caller, call.call.at, depth - 1)
            if not why:
                return ""
            first = first or why
        return first

    def _in_callee(self, function: Function, depth: int) -> str:
        """The error because of which a function never returns; "" if none is known."""
        key = (*function.key, depth)
        if key not in self._bodies:
            self._bodies[key] = ""  # the answer for a recursive query
            parts = surely(function.body, self._constant_arguments.of(function))
            found = (self._mistake(function, part, depth) for part in parts)
            self._bodies[key] = next(filter(None, found), "")
        return self._bodies[key]

    def _mistake(self, function: Function, part: ir.Expr | ir.Raise, depth: int = 1) -> str:
        if isinstance(part, ir.Raise):
            return f"`{function.name}` raises {text(part.exc)}" if part.exc is not None else ""
        if isinstance(part, ir.Name):
            return _unbound(function.module, part.id) or _read_before_binding(function, part.id)
        if not isinstance(part, ir.Call):
            return ""
        why = refused(self._program, function, part) or _missing_attribute(self._program, function, part.func)
        if why or depth == 0:
            return why
        callee = callee_of(self._program, function, part)
        return "" if callee is None else self._in_callee(callee, depth - 1)


# ------------------------------------------------------------------------------------- what raises


def _is_tried(call: KnownCall) -> bool:
    return any(first <= call.call.at <= last for first, last in _tried(call.caller.body))


@kept
def _tried(body: tuple[ir.Stmt, ...]) -> tuple[tuple[int, int], ...]:
    """The first and last ordinals of the ``try`` blocks of a body."""
    tries = (one for one in walk_statements(body) if isinstance(one, ir.Try))
    return tuple((one.body[0].at, last_ordinal(one.body[-1])) for one in tries)


def _unbound(module: Module, name: str) -> str:
    """The error for a name that neither the file nor Python binds."""
    if name in _INJECTED or hasattr(builtins, name) or name.startswith("__") or module.stars:
        return ""
    if name in _OF_PYTHON_2 and _FOR_PYTHON_2.search(module.text):
        return ""
    bound = _bound_names(module)
    return f"`{name}` is not defined" if bound is not None and name not in bound else ""


def _read_before_binding(function: Function, name: str) -> str:
    """The error for a variable whose every binding reads it first: ``total = total + x``, ``total += x``."""
    if function.node is None or name not in _bound_from_themselves(function.body):
        return ""
    if name not in function.locals or any(param.name == name for param in function.params):
        return ""
    return f"`{name}` is read before it has a value"


@kept
def _bound_from_themselves(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """The names whose every binding in a body reads the name itself."""
    made: dict[str, bool] = {}
    for statement in walk_statements(body, into_definitions=False):
        for name in names_bound_by(statement):
            made[name] = made.get(name, True) and _reads_itself(statement, name)
    if not any(made.values()):
        return frozenset()
    # a nested function may bind one
    scoped = {name for one in walk_statements(body) if isinstance(one, ir.Scope) for name in one.names}
    return frozenset(name for name, alone in made.items() if alone and name not in scoped)


def _reads_itself(statement: ir.Stmt, name: str) -> bool:
    if isinstance(statement, ir.AugAssign):
        return True
    value = statement.value if isinstance(statement, ir.Assign) else None
    return value is not None and any(is_name(part, name) for part in evaluated((value,)))


def _bound_names(module: Module) -> frozenset[str] | None:
    """All names that a file binds in any scope; None if unknown."""
    index = module.index
    if not index.complete or module.names & _DYNAMIC or is_interactive(module.key):
        return None
    return _bound_in(module.text)


@functools.lru_cache(maxsize=64)
def _bound_in(source: str) -> frozenset[str] | None:
    if tree_of(source) is None:
        return None
    found: set[str] = set()
    for node in nodes_of(source):
        found.add(name_bound_by(node))
        if isinstance(node, ast.Global | ast.Nonlocal):
            found.update(node.names)
        elif type(node).__name__ in ("TypeVar", "TypeVarTuple", "ParamSpec"):
            found.add(getattr(node, "name", ""))
    return frozenset(found)


def _missing_attribute(program: Program, function: Function, func: ir.Expr) -> str:
    """The error for an attribute that a module of the project lacks (``net.Nett(…)``), if no other file has such a
    name."""
    if not isinstance(func, ir.Attr) or not isinstance(func.value, ir.Name):
        return ""
    module = function.module
    kind, what = program.find_expression(module, func.value, function)
    if kind != "module" or not is_found_first(what, module.key) or not is_bound_once(module, func.value.id):
        return ""
    known = names_in(program, what)
    if known is None or func.name in known or func.name.startswith("__") or what.endswith("__init__.py"):
        return ""  # a package may contain modules that are no source files
    elsewhere = set(program.words.files(func.name)) - {module.key}
    set_here = re.search(rf"\.{func.name}\b\s*[^(\s]", module.text)
    return "" if elsewhere or set_here else f"`{func.value.id}` has no `{func.name}`"
