"""What whole numbers are at most, as literals, defaults of parameters and of command-line options, and names tell."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.analysis.domain.bound_names import argument, bindings
from memlint.analysis.domain.extents.by_operation import SAME_LAYERS
from memlint.analysis.domain.extents.extents import NO_BOUND
from memlint.analysis.index.definitions import functions_of
from memlint.analysis.index.program import Class, Function
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import (
    calls,
    calls_named,
    dotted,
    loops_around,
    parts,
    walk_expression,
    walk_statements,
)
from memlint.analysis.transfer.library.extent_ops import literal, size_of
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: how far a number is followed from name to name
_DEPTH = 8
#: of more files that declare options, or make an object of a class, nobody reads all
_MAX_FILES = 24
_MAX_ACTIONS = 1000
#: the functions and layers, without underscores
_ACTIVATIONS = frozenset({name.lower() for name in SAME_LAYERS})
_ACTIONS = lazy_pattern(r"(n_?|num_?)?act(ion)?s?_?(dims?|sizes?|num|n)?|.*\baction_space\b.*")


class Scope:
    """Where a number is asked for: a function, what it was given (None for not known), and the attributes of its object
    with the scopes that they are assigned in."""

    def __init__(self, function: Function, given: dict[str, int | None] | None = None) -> None:
        self.function = function
        self.given = given
        self.held: dict[str, list[tuple[ir.Expr, Scope]]] = {}


class Numbers:
    def __init__(self, analyser: Analyser) -> None:
        self._program = analyser.program

    def most(self, expr: ir.Expr | None, scope: Scope, depth: int = _DEPTH) -> int | None:
        """The most that a whole number is; None for what is not known."""
        if expr is None or depth == 0:
            return None
        found = literal(expr)
        if found is None:
            found = self._computed(expr, scope, depth)
        if found is None:
            by_name = size_of(None, expr)
            found = by_name[1] if by_name is not None else _MAX_ACTIONS if _ACTIONS.fullmatch(dotted(expr)) else None
        return None if found is None else min(found, NO_BOUND)

    def _computed(self, expr: ir.Expr, scope: Scope, depth: int) -> int | None:
        if isinstance(expr, ir.Name):
            return self._variable(expr.id, scope, depth)
        if isinstance(expr, ir.Attr):
            if scope.function.own_name and dotted(expr.value) == scope.function.own_name:
                held = scope.held.get(expr.name, [])
                return _largest([self.most(value, inner, depth - 1) for value, inner in held])
            return self._option(expr.name, scope) if dotted(expr.value) else None
        if isinstance(expr, ir.IfExp):
            return _largest([self.most(one, scope, depth - 1) for one in (expr.body, expr.orelse)])
        if isinstance(expr, ir.Call) and dotted(expr.func) in ("int", "max", "min") and expr.args:
            return _largest([self.most(one, scope, depth - 1) for one in expr.args])
        if not isinstance(expr, ir.Binary):
            return None
        left, right = self.most(expr.left, scope, depth - 1), self.most(expr.right, scope, depth - 1)
        if left is None or (right is None and expr.op != "//"):
            return None
        if expr.op == "//":
            return left // right if right else left
        return {"+": left + (right or 0), "-": left, "*": left * (right or 0)}.get(expr.op)

    def _variable(self, name: str, scope: Scope, depth: int) -> int | None:
        function = scope.function
        param = next((one for one in function.params if one.name == name), None)
        bound = bindings(function.body).get(name, [])
        if param is not None and not bound:
            if scope.given is not None:
                return scope.given.get(name)
            return literal(param.default) if param.default is not None else None
        if param is not None:
            return None
        if not bound and function.node is not None and name not in function.locals:
            scope = Scope(function.module.main)
            bound = bindings(function.module.statements).get(name, [])
        if name in _updated(scope.function.body):
            return None
        return _largest([None if unpacked else self.most(value, scope, depth - 1) for value, unpacked in bound])

    def _option(self, name: str, scope: Scope) -> int | None:
        """The default of a command-line option: of the same file, or else the largest of the project."""
        files = self._program.words.files("add_argument")
        own = scope.function.module.key
        for keys in ([own] if own in files else [], files if len(files) <= _MAX_FILES else []):
            found = [default for key in keys for default in self._defaults(key, name)]
            if found:
                return _largest(found)
        return None

    def _defaults(self, key: str, name: str) -> list[int | None]:
        functions = functions_of(self._program.module(key))
        made = (call for function in functions for call in calls_named(function.body, {"add_argument"}))
        return [
            None if (default := argument(call, 99, "default")) is None else literal(default)
            for call in made
            if name in {_option_name(arg) for arg in call.args}
        ]

    def passed(self, cls: Class, init: Function) -> dict[str, int | None]:
        """What the calls that make an object of a class pass to its constructor, be it by default."""
        found = [
            self.bound(call, init, Scope(caller))
            for key in self._program.words.files(cls.node.name)[:_MAX_FILES]
            for caller in functions_of(self._program.module(key))
            if cls.node.name in caller.names
            for call in calls(caller.body)
            if self._program.find_expression(caller.module, call.func, caller) == ("class", cls)
        ]
        return {
            param.name: _largest([one[param.name] for one in found])
            if found
            else self._given(param.default, Scope(init))
            for param in init.given
        }

    def bound(self, call: ir.Call, function: Function, scope: Scope) -> dict[str, int | None]:
        """What a call passes for the parameters of a constructor: a number, or an activation, which has no width."""
        given: dict[str, int | None] = {}
        for position, param in enumerate(function.given):
            value = argument(call, position, param.name)
            if value is None:
                given[param.name] = self._given(param.default, Scope(function))
            else:
                given[param.name] = 0 if self._is_activation(value, scope) else self.most(value, scope)
            if given[param.name] is None:
                given[param.name] = self.most(ir.Name(call.at, param.name), Scope(function, {}))
        return given

    def _given(self, default: ir.Expr | None, scope: Scope) -> int | None:
        """What a parameter is by default."""
        return 0 if self._is_activation(default, scope) else literal(default) if default is not None else None

    def _is_activation(self, expr: ir.Expr | None, scope: Scope) -> bool:
        """``F.relu``, ``nn.ReLU`` and ``nn.LeakyReLU(0.2)``: what saves no more than it is given."""
        func = expr.func if isinstance(expr, ir.Call) else expr
        if func is None:
            return False
        name = self._program.outside(scope.function.module, func, scope.function)
        return name.startswith("torch.") and name.rpartition(".")[2].replace("_", "").lower() in _ACTIVATIONS

    def rounds(self, iterated: ir.Expr | None, scope: Scope) -> int | None:
        """The most rounds of a loop over something."""
        if isinstance(iterated, ir.Display):
            return len(iterated.elements)
        if isinstance(iterated, ir.Call) and dotted(iterated.func) == "range" and iterated.args:
            return self.most(iterated.args[-1 if len(iterated.args) < 3 else 1], scope)
        return None

    def attributes(self, scopes: list[Scope]) -> dict[str, list[tuple[ir.Expr, Scope]]]:
        """What the methods of a class assign to its attributes."""
        held: dict[str, list[tuple[ir.Expr, Scope]]] = {}
        for scope in scopes:
            for statement in walk_statements(scope.function.body, into_definitions=False):
                if isinstance(statement, ir.Assign):
                    targets, value = statement.targets, statement.value
                elif isinstance(statement, ir.AugAssign):
                    targets, value = (statement.target,), ir.Const(statement.at, "Ellipsis", None)
                else:
                    continue
                for target, one in _pairs(targets, value):
                    if isinstance(target, ir.Attr) and dotted(target.value) == scope.function.own_name:
                        held.setdefault(target.name, []).append((one, scope))
        return held


def _pairs(targets: tuple[ir.Expr, ...], value: ir.Expr) -> Iterator[tuple[ir.Expr, ir.Expr]]:
    """What an assignment binds: ``self.a, self.b = a, b`` each to its own."""
    for target in targets:
        if not isinstance(target, ir.Display):
            yield target, value
            continue
        same = isinstance(value, ir.Display) and len(value.elements) == len(target.elements)
        for number, inner in enumerate(target.elements):
            yield inner, value.elements[number] if same and isinstance(value, ir.Display) else value


def calls_in_rounds(body: tuple[ir.Stmt, ...]) -> Iterator[tuple[ir.Call, list[ir.Expr | None]]]:
    """The calls of a body, each with what the loops and comprehensions around it go through; None for a while loop, and
    for a comprehension of several clauses."""
    comprehended: dict[int, list[ir.Expr | None]] = {}
    for part in parts(body):
        if isinstance(part, ir.Comprehension):
            iterated = part.fors[0].iter if len(part.fors) == 1 else None
            for inner in walk_expression(part.element):
                comprehended.setdefault(inner.at, []).append(iterated)
    for call in calls(body):
        around = [loop.iter if isinstance(loop, ir.For) else None for loop in loops_around(body, call.at)]
        yield call, around + comprehended.get(call.at, [])


@kept
def _updated(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """The names that a body changes by ``+=`` and the like."""
    updates = (one for one in walk_statements(body) if isinstance(one, ir.AugAssign))
    return frozenset(dotted(one.target) for one in updates)


def _largest(found: list[int | None]) -> int | None:
    known = [one for one in found if one is not None]
    return max(known) if known and len(known) == len(found) else None


def _option_name(arg: ir.Expr) -> str:
    value = arg.value if isinstance(arg, ir.Const) else None
    return value.lstrip("-").replace("-", "_") if isinstance(value, str) else ""
