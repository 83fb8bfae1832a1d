"""Whether all calls in a network's methods are known: counted layers, and functions."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.analysis.domain.bound_names import bindings
from memlint.analysis.facts.sizes.scopes import Scope, calls_in_rounds, iterations
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import calls_named, dotted, is_name, last_name, walk_expression, walk_statements
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.analysis.index.program import Function, Program

#: how many bindings of a part are followed
_DEPTH = 8
#: layers that hold other layers
_CONTAINERS = frozenset({"Sequential", "ModuleList", "ModuleDict", "ParameterList", "ParameterDict"})
#: functions and methods that return the elements of a collection
_SAME_ELEMENTS = frozenset({"OrderedDict", "dict", "enumerate", "list", "reversed", "tuple", "zip"})
_VIEWS = frozenset({"children", "items", "keys", "values"})
_ADDS = frozenset({"add_module", "append", "extend", "insert"})
#: functions of torch that load a saved object
_LOADS = lazy_pattern(r"torch\.(hub|jit)\..*|torch\.load")
_BUILTINS = frozenset(vars(builtins)) - {"getattr"}
#: methods that a module has from torch
_INHERITED = frozenset({
    "add_module", "apply", "buffers", "children", "cpu", "cuda", "eval", "float", "half", "load_state_dict", "log",
    "log_dict", "modules", "named_modules", "named_parameters", "parameters", "register_buffer",
    "register_parameter", "requires_grad_", "save_hyperparameters", "state_dict", "to", "train", "zero_grad",
})  # fmt: skip


class Parts:
    """What a network holds and calls. ``layers``: how much each call that makes a layer saves; ``held``: by attribute,
    its values with the scopes that assign them."""

    def __init__(
        self,
        program: Program,
        scopes: list[Scope],
        layers: dict[tuple[Function, int], int],
        held: dict[str, list[tuple[ir.Expr, Scope]]],
    ) -> None:
        self._program, self._scopes, self._layers = program, scopes, layers
        self._names = {scope.function.name for scope in scopes}
        self._held = {name: [*values, *self._added_to(name)] for name, values in held.items()}

    def _added_to(self, name: str) -> list[tuple[ir.Expr, Scope]]:
        added = ((_added(one.function.body).get(f"{one.function.own_name}.{name}", []), one) for one in self._scopes)
        return [(value, scope) for values, scope in added for value in values]

    def knows_all(self) -> bool:
        """Whether the methods call only functions, methods of tensors, and counted layers, each of these once."""
        return all(
            self._knows(call.func, scope.function.own_name, around, scope)
            for scope in self._scopes
            for call, around in calls_in_rounds(scope.function.body)
        )

    def _knows(self, func: ir.Expr, own: str, around: list[ir.Expr | None], scope: Scope) -> bool:
        if isinstance(func, ir.Name):
            kind, _ = self._program.find_expression(scope.function.module, func, scope.function)
            if kind in ("class", "function", "ext") or (kind == "none" and func.id in _BUILTINS):
                return True
            return self._is_known(func, scope) and self._runs_each_once(around, scope)
        if isinstance(func, ir.Attr) and own and dotted(func.value) == own:
            if func.name in self._names:
                return not around
            if not self._held.get(func.name):
                return func.name in _INHERITED
            return self._holds_known(func.name) and (not around or self._holds_free(func.name))
        name = _attribute_of(func, own) if own else ""
        if name:
            known = self._holds_known(name) or (isinstance(func, ir.Attr) and not self._held.get(name))
            return known and (isinstance(func, ir.Attr) or _by_number(around) or self._runs_each_once(around, scope))
        return isinstance(func, ir.Attr) or (isinstance(func, ir.Call) and self._is_known(func, scope))

    def _runs_each_once(self, around: list[ir.Expr | None], scope: Scope) -> bool:
        """Whether the loop around a call iterates once over the parts, directly or by index."""
        if not around:
            return True
        over = around[0]
        if len(around) > 1 or over is None:
            return False
        return (isinstance(over, ir.Call) and dotted(over.func) == "range") or self._is_known(over, scope)

    def _holds_known(self, name: str) -> bool:
        held = self._held.get(name, [])
        return bool(held) and all(self._is_known(value, scope) for value, scope in held)

    def _holds_free(self, name: str) -> bool:
        """Whether an attribute holds only functions and layers that save no more than their input."""
        return all(
            not isinstance(part, ir.Call)
            or (self._layers.get((scope.function, part.at)) == 0 and last_name(part.func) not in _CONTAINERS)
            for value, scope in self._held[name]
            for part in walk_expression(value)
        )

    def _is_known(self, expr: ir.Expr, scope: Scope, depth: int = _DEPTH) -> bool:
        """Whether all layers that an expression may be, or may hold, are counted."""
        if depth == 0:
            return False
        if isinstance(expr, ir.Const | ir.Lambda):
            return True
        if isinstance(expr, ir.Call):
            return self._is_known_call(expr, scope, depth)
        if isinstance(expr, ir.Name):
            return self._is_known_name(expr, scope, depth)
        if isinstance(expr, ir.Attr):
            if scope.function.own_name and dotted(expr.value) == scope.function.own_name:
                held = self._held.get(expr.name, [])
                return bool(held) and all(self._is_known(value, inner, depth - 1) for value, inner in held)
            return self._is_function(expr, scope)
        inner = _elements(expr)
        return inner is not None and all(self._is_known(one, scope, depth - 1) for one in inner)

    def _is_known_call(self, call: ir.Call, scope: Scope, depth: int) -> bool:
        arguments = [*call.passed]
        own, name = scope.function.own_name, last_name(call.func)
        if (scope.function, call.at) in self._layers:
            return name not in _CONTAINERS or all(self._is_known(one, scope, depth - 1) for one in arguments)
        if isinstance(call.func, ir.Name) and name in _SAME_ELEMENTS:
            return all(self._is_known(one, scope, depth - 1) for one in arguments)
        if isinstance(call.func, ir.Attr) and name in _VIEWS:
            return self._is_known(call.func.value, scope, depth - 1)
        if isinstance(call.func, ir.Attr) and own and dotted(call.func.value) == own:
            return name in self._names  # the layers of the object's own methods are counted
        return isinstance(call.func, ir.Attr) and self._is_function(call.func, scope)

    def _is_known_name(self, expr: ir.Name, scope: Scope, depth: int) -> bool:
        body = scope.function.body
        if any(param.name == expr.id for param in scope.function.params):
            # a known argument is a number or an activation
            return not bindings(body).get(expr.id) and (scope.given or {}).get(expr.id) is not None
        found = [*_bound_to(body, expr.id)]
        if not found:
            return self._is_function(expr, scope)
        found += _added(body).get(expr.id, [])
        return all(value is not None and self._is_known(value, scope, depth - 1) for value in found)

    def _is_function(self, expr: ir.Expr, scope: Scope) -> bool:
        kind, what = self._program.find_expression(scope.function.module, expr, scope.function)
        if kind == "ext":
            return str(what).startswith("torch.") and _LOADS.fullmatch(str(what)) is None
        return kind == "function"


def _by_number(around: list[ir.Expr | None]) -> bool:
    """Whether a loop enumerates: ``for i, size in enumerate(sizes): x = self.layers[i](x)``."""
    return len(around) == 1 and isinstance(around[0], ir.Call) and dotted(around[0].func) == "enumerate"


def _elements(expr: ir.Expr) -> tuple[ir.Expr, ...] | None:
    """The expressions whose values an expression combines or selects; None for any other expression."""
    if isinstance(expr, ir.Display):
        return expr.elements
    if isinstance(expr, ir.DictDisplay):
        return expr.values
    if isinstance(expr, ir.Comprehension):
        return (expr.element,)
    if isinstance(expr, ir.Starred | ir.Subscript):
        return (expr.value,)
    if isinstance(expr, ir.IfExp):
        return expr.body, expr.orelse
    return (expr.left, expr.right) if isinstance(expr, ir.Binary) and expr.op == "+" else None


def _attribute_of(expr: ir.Expr, own: str) -> str:
    """The attribute of ``self`` with which an expression begins: ``layers`` for ``self.layers[0].forward``. "" if there
    is none."""
    name = ""
    while isinstance(expr, ir.Attr | ir.Subscript):
        name = expr.name if isinstance(expr, ir.Attr) else name
        expr = expr.value
    return name if is_name(expr, own) else ""


@kept
def _added(body: tuple[ir.Stmt, ...]) -> dict[str, list[ir.Expr]]:
    """By collection, the values that a body adds: ``parts.append(x)``, ``parts["a"] = x``, ``parts += x``."""
    found: dict[str, list[ir.Expr]] = {}
    for call in calls_named(body, _ADDS):
        if isinstance(call.func, ir.Attr):
            found.setdefault(dotted(call.func.value), []).extend(call.args[-1:])
    for statement in walk_statements(body, into_definitions=False):
        if isinstance(statement, ir.AugAssign):
            found.setdefault(dotted(statement.target), []).append(statement.value)
        elif isinstance(statement, ir.Assign):
            members = (one for one in statement.targets if isinstance(one, ir.Subscript))
            for target in members:
                found.setdefault(dotted(target.value), []).append(statement.value)
    return found


def _bound_to(body: tuple[ir.Stmt, ...], name: str) -> Iterator[ir.Expr | None]:
    """The values of a name, or collections of which it is an element; None for an unknown value."""
    for value, unpacked in bindings(body).get(name, []):
        if not unpacked:
            yield value
    for target, iterated in iterations(body):
        if any(is_name(part, name) for part in walk_expression(target)):
            yield iterated
    if any(unpacked and not isinstance(value, ir.Const) for value, unpacked in bindings(body).get(name, [])):
        yield None
