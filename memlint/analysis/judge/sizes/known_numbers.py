"""What whole numbers, and lists of them, are at most, as literals, defaults of parameters and options, names tell."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from memlint.analysis.domain.bound_names import argument, bindings
from memlint.analysis.domain.extents.by_operation import SAME_LAYERS
from memlint.analysis.domain.extents.extents import NO_BOUND
from memlint.analysis.index.definitions import functions_of
from memlint.analysis.index.program import Class, Function, Module
from memlint.analysis.judge.sizes.declared_options import defaults_of
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import (
    call_at,
    calls,
    dotted,
    last_name,
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

#: a number at most, or a list of such; None for what is not known
Known = int | tuple[int | None, ...] | None

#: how far a number is followed from name to name
_DEPTH = 8
#: of more files that make an object of a class, nobody reads all
_MAX_FILES = 24
_MAX_ACTIONS = 1000
#: of longer lists nothing is remembered
_MAX_LISTED = 64
#: the functions and layers, without underscores
_ACTIVATIONS = frozenset({name.lower() for name in SAME_LAYERS})
_ACTIONS = lazy_pattern(r"(n_?|num_?)?act(ion)?s?_?(dims?|sizes?|num|n)?|.*\baction_space\b.*")


class Scope:
    """Where a number is asked for: a function, what it was given (None for not known), and the attributes of its object
    with the scopes that they are assigned in."""

    def __init__(self, function: Function, given: dict[str, Known] | None = None) -> None:
        self.function = function
        self.given = given
        self.held: dict[str, list[tuple[ir.Expr, Scope]]] = {}


class Numbers:
    """Asked for bounds of whole numbers and of lists of them, in the function where they stand."""

    def __init__(self, analyser: Analyser) -> None:
        self._program, self._facts = analyser.program, analyser.facts
        #: what calls pass, by function and parameter; None as well while that is asked for
        self._arguments: dict[tuple[tuple[str, str], str], Known] = {}

    def most(self, expr: ir.Expr | None, scope: Scope, depth: int = _DEPTH) -> int | None:
        """The most that a whole number is, or the largest one of a list; None for what is not known."""
        return _greatest(self.known(expr, scope, depth))

    def known(self, expr: ir.Expr | None, scope: Scope, depth: int = _DEPTH) -> Known:
        """The most that a number is, or each member of a list; None for what is not known. ``depth``: how many more
        names are followed."""
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
            found = min(found, _MAX_ACTIONS)  # (``env.action_space.n * bins`` is bounded by its name as well)
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
        if isinstance(call.func, ir.Attr) and call.func.name == "get" and call.args:  # (of a configuration)
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
        """``sizes[0]``, ``sizes[i + 1]``, which is not the first one, ``sizes[:-1]``, ``config["hidden"]``"""
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
            return self._of_module(what[0], what[1], depth)
        return self._option(expr.name, last_name(expr.value), scope, depth) if dotted(expr.value) else None

    def _of_module(self, module: Module, name: str, depth: int) -> Known:
        """A constant of a file."""
        return self._bound(name, Scope(module.main), depth)

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
        return self._of_module(what[0], what[1], depth) if kind == "value" else None

    def _argument(self, function: Function, param: ir.Param, depth: int) -> Known:
        """What the calls of a function pass for a parameter, its default where none does; None for a recursion."""
        key = (function.key, param.name)
        if key not in self._arguments:
            self._arguments[key] = None
            default = param.default, Scope(function.module.main)
            given = [
                _passed_by(call_at(caller.function.body, record.at), function, param, Scope(caller.function)) or default
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
            if not (unpacked and isinstance(value, ir.Const))  # (the target of a loop)
        ]
        found += [self._in_rounds(over, scope, depth) for over in rounds_of(body, name)]
        return _either(found)

    def _in_rounds(self, over: ir.Expr | None, scope: Scope, depth: int) -> Known:
        """What one of the rounds over something has."""
        if isinstance(over, ir.Call) and dotted(over.func) == "range" and over.args:
            return _largest(self.most(limit, scope, depth - 1) for limit in _limits(over))
        return self.most(over, scope, depth - 1)

    def _option(self, name: str, held_by: str, scope: Scope, depth: int) -> Known:
        """The default of a command-line option, or of a configuration."""
        declared = defaults_of(self._program, name, held_by, scope.function)
        return _either([self.known(default, Scope(function), depth - 1) for default, function in declared])

    def passed(self, cls: Class, init: Function) -> dict[str, Known]:
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
            param.name: _either([one[param.name] for one in found])
            if found
            else self._given(param.default, Scope(init))
            for param in init.given
        }

    def bound(self, call: ir.Call, function: Function, scope: Scope) -> dict[str, Known]:
        """What a call passes for the parameters of a constructor: a number, or an activation, which has no width."""
        given: dict[str, Known] = {}
        for position, param in enumerate(function.given):
            value = argument(call, position, param.name)
            if value is None:
                given[param.name] = self._given(param.default, Scope(function))
            else:
                given[param.name] = 0 if self._is_activation(value, scope) else self.known(value, scope)
            if given[param.name] is None:
                given[param.name] = self.most(ir.Name(call.at, param.name), Scope(function, {}))
        return given

    def _given(self, default: ir.Expr | None, scope: Scope) -> Known:
        """What a parameter is by default."""
        return 0 if self._is_activation(default, scope) else self.known(default, Scope(scope.function.module.main))

    def _is_activation(self, expr: ir.Expr | None, scope: Scope) -> bool:
        """``F.relu``, ``nn.ReLU`` and ``nn.LeakyReLU(0.2)``: what saves no more than it is given."""
        func = expr.func if isinstance(expr, ir.Call) else expr
        if func is None:
            return False
        name = self._program.outside(scope.function.module, func, scope.function)
        return name.startswith("torch.") and name.rpartition(".")[2].replace("_", "").lower() in _ACTIVATIONS

    def rounds(self, iterated: ir.Expr | None, scope: Scope) -> int | None:
        """The most rounds of a loop over something."""
        iterated = _made(scope.function.body, iterated) if iterated is not None else None
        if isinstance(iterated, ir.Call) and iterated.args:
            name = dotted(iterated.func)
            if name == "range":
                limits = _limits(iterated)
                return self.most(limits[0], scope) if len(limits) == 1 else None
            if name in ("enumerate", "reversed"):
                return self.rounds(iterated.args[0], scope)
            if name == "zip":
                each = [count for one in iterated.args if (count := self.rounds(one, scope)) is not None]
                return min(each, default=None)
        listed = self.known(iterated, scope)
        return len(listed) if isinstance(listed, tuple) else None


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


def rounds_of(body: tuple[ir.Stmt, ...], name: str) -> list[ir.Expr | None]:
    """What the loops and comprehensions go through in which a name is bound; None for what it is not a member of."""
    return _rounds(body).get(name, [])


@kept
def _rounds(body: tuple[ir.Stmt, ...]) -> dict[str, list[ir.Expr | None]]:
    found: dict[str, list[ir.Expr | None]] = {}
    for target, shown in iterations(body):
        over = _made(body, shown)
        if isinstance(target, ir.Name):
            found.setdefault(target.id, []).append(over)
        elif isinstance(target, ir.Display):
            made = last_name(over.func) if isinstance(over, ir.Call) else ""
            given = over.args if isinstance(over, ir.Call) and made == "zip" else ()
            if isinstance(over, ir.Call) and made == "enumerate":
                given = (ir.Const(over.at, "Ellipsis", None), *over.args[:1])
            for position, inner in enumerate(target.elements):
                member = given[position] if position < len(given) else None
                for part in walk_expression(inner):
                    if isinstance(part, ir.Name):
                        found.setdefault(part.id, []).append(member if part is inner else None)
    return found


def _made(body: tuple[ir.Stmt, ...], expr: ir.Expr) -> ir.Expr:
    """What a name is bound to by a single statement: ``pairs = zip(sizes, sizes[1:])``."""
    bound = bindings(body).get(expr.id, []) if isinstance(expr, ir.Name) else []
    return bound[0][0] if len(bound) == 1 and not bound[0][1] else expr


def iterations(body: tuple[ir.Stmt, ...]) -> Iterator[tuple[ir.Expr, ir.Expr]]:
    """The targets of loops and comprehensions, and what they go through."""
    for statement in walk_statements(body, into_definitions=False):
        if isinstance(statement, ir.For):
            yield statement.target, statement.iter
    for part in parts(body):
        if isinstance(part, ir.Comprehension):
            yield from ((clause.target, clause.iter) for clause in part.fors)


def _passed_by(
    call: ir.Call | None, function: Function, param: ir.Param, caller: Scope
) -> tuple[ir.Expr | None, Scope] | None:
    """What a call of a function passes for a parameter, which may be unknown; None where it leaves it out."""
    position = function.given.index(param) if param.kind.startswith("positional") and param in function.given else 99
    value = argument(call, position, param.name) if call is not None else None
    if value is None and call is not None and not any(isinstance(arg, ir.Starred) for arg in call.args):
        return None if all(word.name for word in call.keywords) else (None, caller)
    return value, caller


def _limits(made: ir.Call) -> tuple[ir.Expr, ...]:
    """What the numbers of a range do not exceed: its end, or its start as well where it may count down."""
    if len(made.args) < 3:
        return made.args[-1:]
    step = literal(made.args[2])
    return made.args[1:2] if step is not None and step > 0 else made.args[:2]


def _combined(op: str, left: Known, right: Known) -> Known:
    """Numbers that are calculated with, and lists that are joined or repeated: ``[inputs] + [64] * 3``."""
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
    """What is known of one of several: of lists of different lengths, nothing but their largest number."""
    if len(found) == 1:
        return found[0]
    lists = [one for one in found if isinstance(one, tuple)]
    if found and len(lists) == len(found) and len({*map(len, lists)}) == 1:
        return tuple(_largest(list(each)) for each in zip(*lists, strict=True))
    return _largest([_greatest(one) for one in found])


def _greatest(known: Known) -> int | None:
    """A number, or the largest one of a list."""
    return _largest(list(known)) if isinstance(known, tuple) else known


def _largest(found: Iterable[int | None]) -> int | None:
    """The largest of some numbers; None where one of them is not known."""
    every = [*found]
    known = [one for one in every if one is not None]
    return max(known) if known and len(known) == len(every) else None
