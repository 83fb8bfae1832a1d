"""The classes of a called object on all paths to it: classes of the project, and layers of torch.

An annotation proves nothing here: an argument for ``model: Net`` may be compiled, wrapped, or of a subclass.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from memlint import knowledge
from memlint.analysis.facts.calls_by_name import (
    MAX_UNITS,
    TooManyError,
    UnknownCallersError,
    functions_in,
    functions_naming,
    own_expressions,
)
from memlint.analysis.index.binders import binders
from memlint.analysis.index.program import Class, Function
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import dotted, is_name, spreads, walk_expression, walk_statements
from memlint.fix.safety import vocabulary as words
from memlint.fix.safety.arguments import passed_for
from memlint.fix.safety.bindings import is_container
from memlint.fix.safety.reflection import set_by_name
from memlint.fix.safety.replaced_parts import stored_in
from memlint.ir import nodes as ir
from memlint.knowledge import PLAIN_DECORATORS

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: methods of a module that return the module itself, or its submodules
_SAME = frozenset(["to", "cuda", "cpu", "float", "double", "half", "bfloat16", "eval", "train", "requires_grad_"])
_MEMBERS = frozenset(["children", "named_children", "modules", "named_modules", "values", "items"])
#: builtins that return their argument, or its members
_PASSING = frozenset(["list", "tuple", "reversed", "enumerate", "zip", "iter", "next", "dict", "sorted"])
#: containers that run their modules
_HOLDERS = frozenset(["Sequential", "ModuleList", "ModuleDict"])
MAX_STEPS = 200

#: a class of the project, or the qualified name of an external one
Origin = Class | str


class UnknownOriginError(Exception):
    """The origin of an object is unknown. The message is a clause."""


class Origins:
    """Finds the classes of objects. Raises UnknownOriginError if one of their origins is unknown."""

    def __init__(self, analyser: Analyser, files: tuple[str, ...]) -> None:
        """``files``: those whose code may get hold of the objects."""
        self.analyser = analyser
        self._files = files
        self._seen: set[object] = set()

    def of(self, function: Function, expr: ir.Expr) -> set[Origin]:
        """The possible classes of an expression's value."""
        self._seen = set()
        return self._of(function, expr)

    def _of(self, function: Function, expr: ir.Expr) -> set[Origin]:
        key = (function.key, expr.at)
        if key in self._seen:
            return set()  # a cycle
        if len(self._seen) >= MAX_STEPS:
            raise UnknownOriginError(f"`{text(expr, 40)}` is not resolved (it has too many sources)")
        self._seen.add(key)
        match expr:
            case ir.Const():
                return set()
            case ir.Name():
                return self._name(function, expr.id)
            case ir.Attr():
                return self._attribute(function, expr)
            case ir.Call():
                return self._call(function, expr)
            case ir.Subscript() | ir.Starred() | ir.Walrus():
                return self._of(function, expr.value)
            case ir.Display():
                return self._all(function, expr.elements)
            case ir.DictDisplay():
                return self._all(function, expr.values)
            case ir.Comprehension():
                return self._of(function, expr.element)
            case ir.IfExp():
                return self._all(function, (expr.body, expr.orelse))
            case ir.BoolOp():
                return self._all(function, (expr.left, expr.right))
        raise UnknownOriginError(f"`{text(expr, 40)}` is not resolved")

    def _all(self, function: Function, parts: tuple[ir.Expr, ...]) -> set[Origin]:
        return {origin for part in parts for origin in self._of(function, part)}

    # ------------------------------------------------------------------------------------ calls

    def _call(self, function: Function, call: ir.Call) -> set[Origin]:
        func = call.func
        given = call.passed
        kind, what = resolve(self.analyser, function, func)
        if kind == "class" and isinstance(what, Class):
            return {what}
        if kind == "function" and isinstance(what, Function):
            return self._returned(what)
        if kind == "ext" and isinstance(what, str):
            last = what.rsplit(".", 1)[-1]
            if what in ("torch.nn.DataParallel", "torch.nn.parallel.DataParallel"):
                # its other arguments are devices
                return self._all(function, given[:1]) | self._stored("module")
            if is_layer(what):
                return {what, *(self._all(function, given) if last in _HOLDERS else ())}
            if knowledge.is_same_network(what):
                _check_options(call)
                return {what}
            if words.is_same_outside(what) and last != "Lambda":
                steps = self._all(function, given) | self._stored("transforms") if last in words.COMPOSED else ()
                return {what, *steps}
            if what in ("collections.OrderedDict", "copy.deepcopy", "copy.copy"):
                return self._all(function, given)
        if isinstance(func, ir.Name) and func.id in _PASSING and func.id not in function.locals and kind == "none":
            return self._all(function, given)
        own = isinstance(func, ir.Attr) and self.analyser.facts.methods.are_there(func.name)
        if isinstance(func, ir.Attr) and func.name in _SAME | _MEMBERS and kind != "ext" and not own:
            return self._of(function, func.value)
        raise UnknownOriginError(f"the result of `{text(func, 40)}` is not resolved")

    def _stored(self, name: str) -> set[Origin]:
        """The classes of what is stored in an attribute of a library's object later."""
        key = ("stored", name)
        if key in self._seen:
            return set()
        self._seen.add(key)
        stored = stored_in(self.analyser.program, self._files, name)
        return {origin for function, value in stored for origin in self._of(function, value)}

    def _returned(self, function: Function) -> set[Origin]:
        plain = not set(function.decorator_names) - PLAIN_DECORATORS
        if function.is_generator or not plain or (isinstance(function.node, ir.FunctionDef) and function.node.is_async):
            raise UnknownOriginError(f"the result of `{function.name}` is not resolved")
        found: set[Origin] = set()
        for statement in walk_statements(function.body, into_definitions=False):
            if isinstance(statement, ir.Return) and statement.value is not None:
                found |= self._of(function, statement.value)
        return found

    # ------------------------------------------------------------------------------------ names

    def _name(self, function: Function, name: str) -> set[Origin]:
        owner: Function | None = function
        while owner is not None and name not in owner.locals:
            owner = owner.around
        if owner is None:
            kind, what = self.analyser.program.find(function.module, name)
            if kind != "value":
                raise UnknownOriginError(f"`{name}` is not resolved")
            module, name = what
            owner = module.main
            self._assigned_by_others(owner, name)
        key = (owner.key, name)
        if key in self._seen:
            return set()
        self._seen.add(key)
        if any(isinstance(item, ir.Scope) and name in item.names for item in walk_statements(owner.body)):
            raise UnknownOriginError(f"`{name}` is not resolved (several functions assign it)")
        found: set[Origin] = set()
        if any(param.name == name for param in owner.params):
            found |= self._parameter(owner, name)
        values = binders(owner, name)
        if values is None or not (values or any(param.name == name for param in owner.params)):
            raise UnknownOriginError(f"`{name}` is not resolved")
        for value in values:
            found |= self._of(owner, value)
        if any(is_container(owner, value) for value in values):
            found |= self._put(lambda part: is_name(part, name), name, owner)
        return found

    def _assigned_by_others(self, main: Function, name: str) -> None:
        for key in self._files:
            for number, unit in enumerate(self.analyser.program.module(key).index.units):
                if name in unit.stores:
                    raise UnknownOriginError(f"`{name}` is not resolved (another file may assign it)")
                if key != main.module.key or number == 0 or name not in unit.names:
                    continue
                body = main.module.lowered(number).body
                if any(isinstance(item, ir.Scope) and name in item.names for item in walk_statements(body)):
                    raise UnknownOriginError(f"`{name}` is not resolved (several functions assign it)")

    def _parameter(self, function: Function, name: str) -> set[Origin]:
        """The classes of the arguments that all callers pass for a parameter."""
        try:
            passed = passed_for(self.analyser, function, name)
        except UnknownCallersError:
            raise UnknownOriginError(
                f"`{name}` is not resolved (not all callers of `{function.name}` are known)"
            ) from None
        if not passed:
            raise UnknownOriginError(f"`{name}` is not resolved (no call of `{function.name}` is found)")
        return {origin for caller, given in passed for origin in self._of(caller, given)}

    # ------------------------------------------------------------------------------------ attributes

    def _attribute(self, function: Function, expr: ir.Attr) -> set[Origin]:
        """The classes of all values that the project assigns to an attribute of this name, on any object."""
        name = expr.name
        if name in self._seen:
            return set()
        self._seen.add(name)
        unknown = UnknownOriginError(f"`{text(expr, 40)}` is not resolved")
        if self.analyser.facts.methods.are_there(name):
            raise unknown
        found: set[Origin] = set()
        assigned = left = 0
        for key in self._files:
            module = self.analyser.program.module(key)
            for number, unit in enumerate(module.index.units):
                if name not in unit.stores:
                    continue
                left += 1
                if left > MAX_UNITS:
                    raise unknown
                for other in functions_in(module, number):
                    for statement in _storing(other).get(name, ()):
                        if not isinstance(statement, ir.Assign | ir.AnnAssign) or not _is_target(statement):
                            raise unknown
                        assigned += 1
                        found |= self._of(other, statement.value) if statement.value is not None else set()
        if not assigned or set_by_name(self.analyser, name, self._files):
            raise unknown
        return found | self._put(lambda part: isinstance(part, ir.Attr) and part.name == name, name)

    def _put(self, means: Callable[[ir.Expr], bool], name: str, only: Function | None = None) -> set[Origin]:
        """The classes of the members that are added to a container later."""
        found: set[Origin] = set()
        try:
            functions = [only] if only is not None else list(functions_naming(self.analyser, name, self._files))
        except TooManyError:
            raise UnknownOriginError(f"`{name}` is not resolved (it is used in too many places)") from None
        for function in functions:
            for statement, expr in _naming(function).get(name, ()):
                stored = (
                    isinstance(statement, ir.Assign) and isinstance(expr, ir.Subscript) and expr in statement.targets
                )
                if stored and isinstance(statement, ir.Assign) and isinstance(expr, ir.Subscript) and means(expr.value):
                    found |= self._of(function, statement.value)
                for part in walk_expression(expr):
                    if not isinstance(part, ir.Call):
                        continue
                    given = part.passed
                    if isinstance(part.func, ir.Attr) and means(part.func.value) and part.func.name in words.PUTS:
                        found |= self._all(function, given)
                    elif only is not None and any(means(arg) for arg in given):
                        self._handed(function, part, name)
        return found

    def _handed(self, function: Function, call: ir.Call, name: str) -> None:
        """Raise if a container is passed to code that may add members."""
        kind, what = resolve(self.analyser, function, call.func)
        if kind == "ext" and isinstance(what, str) and is_layer(what):
            return
        if kind == "none" and isinstance(call.func, ir.Name):
            return  # a builtin
        raise UnknownOriginError(f"`{name}` is not resolved (`{text(call.func, 40)}` may add to it)")


@kept
def _naming(function: Function) -> dict[str, list[tuple[ir.Stmt, ir.Expr]]]:
    """By variable and attribute, the expressions of a function that contain it, with their statements."""
    found: dict[str, list[tuple[ir.Stmt, ir.Expr]]] = {}
    for statement, expr in own_expressions(function):
        parts = [*walk_expression(expr)]
        names = {part.id for part in parts if isinstance(part, ir.Name)}
        for name in names | {part.name for part in parts if isinstance(part, ir.Attr)}:
            found.setdefault(name, []).append((statement, expr))
    return found


@kept
def _storing(function: Function) -> dict[str, list[ir.Stmt]]:
    """By attribute, the statements of a function that assign it."""
    found: dict[str, list[ir.Stmt]] = {}
    for statement in walk_statements(function.body, into_definitions=False):
        targets: tuple[ir.Expr, ...] = ()
        match statement:
            case ir.Assign():
                targets = statement.targets
            case ir.AnnAssign() | ir.AugAssign() | ir.For():
                targets = (statement.target,)
            case ir.With():
                targets = tuple(item.target for item in statement.items if item.target is not None)
        for name in {part.name for one in targets for part in _bound(one) if isinstance(part, ir.Attr)}:
            found.setdefault(name, []).append(statement)
    return found


def _bound(target: ir.Expr) -> tuple[ir.Expr, ...]:
    """The parts of a target that an assignment binds."""
    if isinstance(target, ir.Display):
        return tuple(part for element in target.elements for part in _bound(element))
    return _bound(target.value) if isinstance(target, ir.Starred) else (target,)


def _is_target(statement: ir.Assign | ir.AnnAssign) -> bool:
    """Whether the attribute itself is assigned, not as one of several unpacked targets."""
    targets = statement.targets if isinstance(statement, ir.Assign) else (statement.target,)
    return all(not isinstance(target, ir.Display) for target in targets)


def _check_options(call: ir.Call) -> None:
    """Raise if a library's network may be made with layers of the project: ``resnet18(norm_layer=Norm)``."""
    known = knowledge.options_without_layers()
    if spreads(call) or any(word.name not in known and not isinstance(word.value, ir.Const) for word in call.keywords):
        raise UnknownOriginError(f"`{text(call, 40)}` may be given other layers")


def is_layer(name: str) -> bool:
    """Whether a qualified name is a module class of torch."""
    parts = name.split(".")
    plain = len(parts) == 3 or parts[:3] == ["torch", "nn", "modules"]
    return (
        parts[:2] == ["torch", "nn"] and plain and parts[-1][:1].isupper() and parts[-1] not in ("Parameter", "Module")
    )


def resolve(analyser: Analyser, function: Function, func: ir.Expr) -> tuple[str, object]:
    """(kind, what) that a dotted expression means in a function; ("none", None) for its variables."""
    root = dotted(func).partition(".")[0]
    if not root:
        return "unknown", None
    kind, what = analyser.program.find_expression(function.module, func, function)
    return kind, what
