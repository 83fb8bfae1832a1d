"""Upper bounds of integers and of lists of integers: from literals, defaults of parameters and options, and names."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from memlint.analysis.domain.bound_names import argument, bindings
from memlint.analysis.domain.extents.extents import NO_BOUND, SAME_LAYERS
from memlint.analysis.facts.sizes.declared_options import defaults_of
from memlint.analysis.facts.sizes.scopes import Known, Scope, attributes_of, bound_once, limits, rounds_of
from memlint.analysis.index.definitions import functions_of
from memlint.analysis.index.program import Class, Function, Program
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import (
    call_at,
    calls,
    dotted,
    is_name,
    last_name,
    parts,
    spreads,
    walk_expression,
    walk_statements,
)
from memlint.analysis.transfer.library.extent_ops import literal, size_of
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.analysis.facts.facts import Facts

#: how many bindings of a number are followed
_DEPTH = 8
#: the most files that are read for calls of a constructor
_MAX_FILES = 24
_MAX_ACTIONS = 1000
#: the longest list whose members are distinguished
_MAX_LISTED = 64
#: the activation functions and layers, without underscores
_ACTIVATIONS = frozenset({name.lower() for name in SAME_LAYERS})
_ACTIONS = lazy_pattern(r"(n_?|num_?)?act(ion)?s?_?(dims?|sizes?|num|n)?|.*\baction_space\b.*")


class Numbers:
    """Upper bounds of integers and of lists of integers, in the function where they occur."""

    def __init__(self, program: Program, facts: Facts) -> None:
        self._program, self._facts = program, facts
        #: the arguments of calls, by function and parameter; None also while the answer is computed
        self._arguments: dict[tuple[tuple[str, str], str], Known] = {}
        #: the arguments of constructors, by class and constructor; empty also while the answer is computed
        self._given: dict[tuple[tuple[str, str], tuple[str, str]], dict[str, Known]] = {}
        #: by class, the scopes of its objects' methods
        self._methods: dict[tuple[str, str], dict[tuple[str, str], Scope]] = {}
        #: the settings, by name, holder, asking module and depth: declarations of one name read each other
        self._options: dict[tuple[str, str, str, int], Known] = {}

    def at(self, expr: ir.Expr, function: Function) -> int | None:
        """The upper bound of an integer in a function; None if unknown."""
        return self.most(expr, self.scope_of(function))

    def scope_of(self, function: Function) -> Scope:
        """The scope of a function; for a method, with the values of its object's attributes."""
        cls = function.cls
        if cls is None:
            return Scope(function)
        if cls.key not in self._methods:
            order, _ = self._program.ancestors(cls)
            scopes = [Scope(method) for method in self._program.methods(cls)]
            held = attributes_of(scopes)
            for item in order:
                for name, value in item.attributes.items():
                    held.setdefault(name, []).append((value, Scope(item.module.main)))
            for scope in scopes:
                scope.held = held
            self._methods[cls.key] = {scope.function.key: scope for scope in scopes}
        return self._methods[cls.key].get(function.key) or Scope(function)

    def most(self, expr: ir.Expr | None, scope: Scope, depth: int = _DEPTH) -> int | None:
        """The upper bound of an integer, or of the members of a list; None if unknown."""
        return _greatest(self.known(expr, scope, depth))

    def known(self, expr: ir.Expr | None, scope: Scope, depth: int = _DEPTH) -> Known:
        """The upper bound of an integer, or of each member of a list; None if unknown. ``depth``: how many more
        bindings are followed."""
        if expr is None or depth == 0:
            return None
        found: Known = literal(expr)
        if found is None:
            found = self._computed(expr, scope, depth)
        of_actions = _ACTIONS.fullmatch(dotted(expr)) is not None
        if found is None:
            by_name = size_of(None, expr)
            found = by_name[1] if by_name is not None else _MAX_ACTIONS if of_actions else None
        elif of_actions and isinstance(found, int):
            found = min(found, _MAX_ACTIONS)  # ``env.action_space.n * bins`` is bounded by its name as well
        return min(found, NO_BOUND) if isinstance(found, int) else found

    def _computed(self, expr: ir.Expr, scope: Scope, depth: int) -> Known:
        if isinstance(expr, ir.Name):
            return self._variable(expr.id, scope, depth)
        if isinstance(expr, ir.Attr):
            return self._attribute(expr, scope, depth)
        if isinstance(expr, ir.Display):
            return self._listed(expr, scope, depth)
        if isinstance(expr, ir.Subscript):
            return self._member(expr, scope, depth)
        if isinstance(expr, ir.IfExp):
            return _either([self.known(one, scope, depth - 1) for one in (expr.body, expr.orelse)])
        if isinstance(expr, ir.Call):
            return self._called(expr, scope, depth)
        if isinstance(expr, ir.Binary):
            return _combined(expr.op, *(self.known(one, scope, depth - 1) for one in (expr.left, expr.right)))
        return None

    def _called(self, call: ir.Call, scope: Scope, depth: int) -> Known:
        name = dotted(call.func)
        if name in ("list", "tuple", "sorted") and len(call.args) == 1:
            return self.known(call.args[0], scope, depth - 1)
        if name == "len" and len(call.args) == 1:
            listed = self.known(call.args[0], scope, depth - 1)
            return len(listed) if isinstance(listed, tuple) else None
        if name in ("int", "max", "min") and call.args:
            return _largest([self.most(one, scope, depth - 1) for one in call.args])
        if isinstance(call.func, ir.Attr) and call.func.name == "get" and call.args:  # the ``get`` of a configuration
            return _either([self._of_key(call.func.value, one, scope, depth) for one in call.args])
        return None

    def _listed(self, expr: ir.Display, scope: Scope, depth: int) -> Known:
        found: list[int | None] = []
        for element in expr.elements:
            if isinstance(element, ir.Starred):
                inner = self.known(element.value, scope, depth - 1)
                if not isinstance(inner, tuple) or len(found) + len(inner) > _MAX_LISTED:
                    return None
                found += inner
            else:
                found.append(self.most(element, scope, depth - 1))
        return tuple(found)

    def _member(self, expr: ir.Subscript, scope: Scope, depth: int) -> Known:
        """The bound of ``sizes[0]``, ``sizes[i + 1]`` (not the first member), ``sizes[:-1]`` or
        ``config["hidden"]``."""
        if isinstance(expr.index, ir.Const) and isinstance(expr.index.value, str):
            return self._of_key(expr.value, expr.index, scope, depth)
        base, index = self.known(expr.value, scope, depth - 1), expr.index
        if not isinstance(base, tuple):
            return base
        if isinstance(index, ir.Slice):
            lower, upper = (literal(one) if one is not None else None for one in (index.lower, index.upper))
            return base[lower:upper] if index.step is None else base
        at = literal(index)
        if at is not None:
            return base[at] if -len(base) <= at < len(base) else None
        follows = isinstance(index, ir.Binary) and index.op == "+" and literal(index.right)
        return _largest([*base[follows or 0 :]])

    def _of_key(self, held: ir.Expr, key: ir.Expr, scope: Scope, depth: int) -> Known:
        name = key.value if isinstance(key, ir.Const) else None
        if isinstance(name, str):
            return self._option(name, last_name(held), scope, depth)
        return self.known(key, scope, depth - 1)

    def _attribute(self, expr: ir.Attr, scope: Scope, depth: int) -> Known:
        if scope.function.own_name and dotted(expr.value) == scope.function.own_name:
            held = scope.held.get(expr.name, [])
            return _either([self.known(value, inner, depth - 1) for value, inner in held])
        kind, what = self._program.find_expression(scope.function.module, expr, scope.function)
        if kind == "value":
            return self._bound(what[1], Scope(what[0].main), depth)  # a constant of a module
        return self._option(expr.name, last_name(expr.value), scope, depth) if dotted(expr.value) else None

    def _variable(self, name: str, scope: Scope, depth: int) -> Known:
        function = scope.function
        param = next((one for one in function.params if one.name == name), None)
        bound = bindings(function.body).get(name, [])
        if param is not None and not bound:
            if scope.given is not None:
                return scope.given.get(name)
            return self._argument(function, param, depth)
        if param is not None:
            return None
        if bound or rounds_of(function.body, name) or function.node is None or name in function.locals:
            return self._bound(name, scope, depth)
        kind, what = self._program.find(function.module, name)
        return self._bound(what[1], Scope(what[0].main), depth) if kind == "value" else None

    def _argument(self, function: Function, param: ir.Param, depth: int) -> Known:
        """The bound over what the calls of a function pass for a parameter, its default if no call is known; None for a
        recursive query."""
        if function.name == "__init__" and function.cls is not None and param in function.given:
            return self.passed(function.cls, function).get(param.name)
        key = (function.key, param.name)
        if key not in self._arguments:
            self._arguments[key] = None
            default = param.default, Scope(function.module.main)
            given = [
                _passed_by(call_at(caller.function.body, record.at), function, param, self.scope_of(caller.function))
                or default
                for caller, record in self._facts.calls_of(function)
            ]
            self._arguments[key] = _either([self.known(value, scope, depth - 1) for value, scope in given or [default]])
        return self._arguments[key]

    def _bound(self, name: str, scope: Scope, depth: int) -> Known:
        body = scope.function.body
        if name in _updated(body):
            return None
        found = [
            None if unpacked else self.known(value, scope, depth - 1)
            for value, unpacked in bindings(body).get(name, [])
            if not (unpacked and isinstance(value, ir.Const))  # the target of a loop
        ]
        found += [self._in_rounds(over, scope, depth) for over in rounds_of(body, name)]
        return _either(found)

    def _in_rounds(self, over: ir.Expr | None, scope: Scope, depth: int) -> Known:
        """The bound of the members of an iterable."""
        if isinstance(over, ir.Call) and dotted(over.func) == "range" and over.args:
            return _largest(self.most(limit, scope, depth - 1) for limit in limits(over))
        return self.most(over, scope, depth - 1)

    def _option(self, name: str, held_by: str, scope: Scope, depth: int) -> Known:
        """The bound of the default of a command-line option or a configuration."""
        key = name, held_by, scope.function.module.key, depth
        if key not in self._options:
            declared = defaults_of(self._program, name, held_by, scope.function)
            self._options[key] = _either([self.known(one, Scope(function), depth - 1) for one, function in declared])
        return self._options[key]

    def passed(self, cls: Class, init: Function) -> dict[str, Known]:
        """The bounds over what the calls that make an object of a class, or of a subclass, pass to its constructor. The
        defaults if no call is known, and the class is used in no other way."""
        key = (cls.key, init.key)
        if key not in self._given:
            self._given[key] = {}
            found = [*self._makings(cls, init)]
            if not found and not self._goes_elsewhere(cls):
                found = [{param.name: self._by_default(param.default, Scope(init)) for param in init.given}]
            self._given[key] = {param.name: _either([one[param.name] for one in found]) for param in init.given}
        return self._given[key]

    def _makings(self, cls: Class, init: Function) -> Iterator[dict[str, Known]]:
        """What each call of a constructor passes: where an object is made, and in constructors of subclasses."""
        for one in (cls, *self._program.below(cls)):
            if self._program.method(one, "__init__") is init:
                if len(self._program.words.files(one.node.name)) > _MAX_FILES:
                    yield dict.fromkeys((param.name for param in init.given), None)
                for caller, call in self._calls_of_class(one):
                    yield self.bound(call, init, self.scope_of(caller))
            own = one.methods.get("__init__")
            if own is not None and own is not init and self._program.method(one, "__init__", one) is init:
                scope = self.scope_of(own)
                yield from (self.bound(call, init, scope) for call in calls(own.body) if _calls_base(call))

    def _calls_of_class(self, cls: Class) -> Iterator[tuple[Function, ir.Call]]:
        for caller in self._namers(cls):
            for call in calls(caller.body):
                if self._program.find_expression(caller.module, call.func, caller) == ("class", cls):
                    yield caller, call

    def _namers(self, cls: Class) -> Iterator[Function]:
        """The functions that name a class."""
        for key in self._program.words.files(cls.node.name)[:_MAX_FILES]:
            yield from (one for one in functions_of(self._program.module(key)) if cls.node.name in one.names)

    def _goes_elsewhere(self, cls: Class) -> bool:
        """Whether a class is stored in a table, passed on, or instantiated through a method of its own, so that not all
        its calls are known."""
        return any(
            isinstance(part, ir.Name | ir.Attr)
            and last_name(part) == cls.node.name
            and self._program.find_expression(caller.module, part, caller) == ("class", cls)
            for caller in self._namers(cls)
            for part in _values(caller.body)
        )

    def bound(self, call: ir.Call, function: Function, scope: Scope) -> dict[str, Known]:
        """What a call passes for the parameters of a constructor. An activation counts as 0, as it has no width."""
        given: dict[str, Known] = {}
        spread = spreads(call)
        own = scope.function.own_name or "self"
        first = int(_calls_base(call) and is_name(call.args[0] if call.args else None, own))
        for position, param in enumerate(function.given):
            value = argument(call, position + first, param.name)
            if value is None and spread:
                given[param.name] = None
            elif value is None:
                given[param.name] = self._by_default(param.default, Scope(function))
            else:
                given[param.name] = 0 if self._is_activation(value, scope) else self.known(value, scope)
            if given[param.name] is None:
                given[param.name] = self.most(ir.Name(call.at, param.name), Scope(function, {}))
        return given

    def _by_default(self, default: ir.Expr | None, scope: Scope) -> Known:
        """The bound of a parameter's default."""
        return 0 if self._is_activation(default, scope) else self.known(default, Scope(scope.function.module.main))

    def _is_activation(self, expr: ir.Expr | None, scope: Scope) -> bool:
        """Whether an expression is an activation, which saves no more than its input: ``F.relu``, ``nn.ReLU``,
        ``nn.LeakyReLU(0.2)``."""
        func = expr.func if isinstance(expr, ir.Call) else expr
        if func is None:
            return False
        name = self._program.outside(scope.function.module, func, scope.function)
        return name.startswith("torch.") and name.rpartition(".")[2].replace("_", "").lower() in _ACTIVATIONS

    def rounds(self, iterated: ir.Expr | None, scope: Scope) -> int | None:
        """The most iterations of a loop over an iterable; None if unknown."""
        iterated = bound_once(scope.function.body, iterated) if iterated is not None else None
        if isinstance(iterated, ir.Call) and iterated.args:
            name = dotted(iterated.func)
            if name == "range":
                ends = limits(iterated)
                return self.most(ends[0], scope) if len(ends) == 1 else None
            if name in ("enumerate", "reversed"):
                return self.rounds(iterated.args[0], scope)
            if name == "zip":
                each = [count for one in iterated.args if (count := self.rounds(one, scope)) is not None]
                return min(each, default=None)
        listed = self.known(iterated, scope)
        return len(listed) if isinstance(listed, tuple) else None


@kept
def _updated(body: tuple[ir.Stmt, ...]) -> frozenset[str]:
    """The names that a body changes by augmented assignments."""
    updates = (one for one in walk_statements(body) if isinstance(one, ir.AugAssign))
    return frozenset(dotted(one.target) for one in updates)


@kept
def _values(body: tuple[ir.Stmt, ...]) -> tuple[ir.Expr, ...]:
    """The expressions of a body that are neither called nor tested as a class."""
    made = [*calls(body)]
    called = {id(call.func) for call in made}
    tests = (call for call in made if dotted(call.func) in ("isinstance", "issubclass", "super"))
    called |= {id(part) for call in tests for arg in call.args for part in walk_expression(arg)}
    return tuple(part for part in parts(body) if id(part) not in called)


def _calls_base(call: ir.Call) -> bool:
    """Whether a call runs a constructor by name: ``super().__init__(…)``, ``Base.__init__(self, …)``."""
    return isinstance(call.func, ir.Attr) and call.func.name == "__init__"


def _passed_by(
    call: ir.Call | None, function: Function, param: ir.Param, caller: Scope
) -> tuple[ir.Expr | None, Scope] | None:
    """What a call passes for a parameter, with its scope; the expression is None if unknown. None if the call omits the
    parameter."""
    position = function.given.index(param) if param.kind.startswith("positional") and param in function.given else 99
    value = argument(call, position, param.name) if call is not None else None
    if value is None and call is not None and not any(isinstance(arg, ir.Starred) for arg in call.args):
        return None if all(word.name for word in call.keywords) else (None, caller)
    return value, caller


def _combined(op: str, left: Known, right: Known) -> Known:
    """The result of an operation on bounds, or on lists that are joined or repeated: ``[inputs] + [64] * 3``."""
    if isinstance(left, tuple) or isinstance(right, tuple):
        if op == "+" and isinstance(left, tuple) and isinstance(right, tuple):
            return left + right if len(left) + len(right) <= _MAX_LISTED else None
        if op == "*" and isinstance(left, tuple) and isinstance(right, int):
            return left * right if len(left) * right <= _MAX_LISTED else None
        return None
    if left is None or (right is None and op != "//"):
        return None
    if op == "//":
        return left // right if right else left
    return {"+": left + (right or 0), "-": left, "*": left * (right or 0)}.get(op)


def _either(found: list[Known]) -> Known:
    """The join of several bounds: of lists of different lengths, only the largest number."""
    if len(found) == 1:
        return found[0]
    lists = [one for one in found if isinstance(one, tuple)]
    if found and len(lists) == len(found) and len({*map(len, lists)}) == 1:
        return tuple(_largest(list(each)) for each in zip(*lists, strict=True))
    return _largest([_greatest(one) for one in found])


def _greatest(known: Known) -> int | None:
    """An integer, or the largest one of a list."""
    return _largest(list(known)) if isinstance(known, tuple) else known


def _largest(found: Iterable[int | None]) -> int | None:
    """The largest of some integers; None if one of them is unknown."""
    every = [*found]
    known = [one for one in every if one is not None]
    return max(known) if known and len(known) == len(every) else None
