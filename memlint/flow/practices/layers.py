"""What expressions of the source stand for, followed by the text alone: through names that one assignment binds,
attributes that a class sets once, and parameters of calls in sight."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from memlint.flow.bound_names import argument
from memlint.flow.mentions import sets_of_others
from memlint.flow.practices.lifetimes import Spot, spots
from memlint.flow.program import Class, Function
from memlint.flow.syntax import assigned_names, dotted, loops_around, names_bound_by, walk_expression, walk_statements
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.flow.analyser import Analyser

#: names are followed through so many others
MAX_STEPS = 12
#: a target's place in what it is unpacked from (a number), or a member of what a loop goes through
EACH = -1
Steps = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Scope:
    """Where an expression stands. ``args``: what the parameters of the function are given, with the scope of that;
    ``instance``: the object whose method it is."""

    function: Function
    args: Mapping[str, Given] = field(default_factory=dict)
    instance: Instance | None = None
    depth: int = 0


class Given(NamedTuple):
    expr: ir.Expr
    scope: Scope


class Instance(NamedTuple):
    """An object of a class of the project, and the call that makes it."""

    cls: Class
    call: ir.Call
    scope: Scope


class Bound(NamedTuple):
    """What a name is bound to: ``steps`` into ``expr``, in order (see `EACH`)."""

    expr: ir.Expr
    steps: Steps
    scope: Scope


def bound(analyser: Analyser, name: ir.Name, scope: Scope) -> Bound | None:
    """What a name stands for where it is read; None where more than one assignment may have bound it."""
    function: Function | None = scope.function
    if name.id in scope.function.locals:
        return _bound_in(scope.function, name.id, name.at, scope)
    while function is not None:
        function = function.around
        if function is not None and name.id in function.locals:
            return _bound_in(function, name.id, None, Scope(function, depth=scope.depth + 1))
    main = scope.function.module.main
    if scope.function is main:
        return None
    if analyser.program.find(main.module, name.id)[0] != "value":
        return None
    return _bound_in(main, name.id, None, Scope(main, depth=scope.depth + 1))


def _bound_in(function: Function, name: str, at: int | None, scope: Scope) -> Bound | None:
    """The one binding that is sure to be the last before ``at``; of another function, the only one."""
    found = _bindings(function, name)
    if at is not None:
        found = [one for one in found if one[0].statement.at < at and not _inside(one[0].statement, at)]
    elif len(found) > 1:
        return None
    if any(param.name == name for param in function.params) and (at is None or not found):
        given = scope.args.get(name) if at is not None else None
        return Bound(given.expr, (), given.scope) if given is not None and not _in_loop(function, name, at) else None
    if not found:
        return None
    spot, one = found[-1]
    if at is not None and not (_always_before(function, spot, at) and _in_same_round(function, name, spot, at)):
        return None
    return Bound(one[0], one[1], scope) if one is not None else None


def _in_same_round(function: Function, name: str, spot: Spot, at: int) -> bool:
    """Whether no loop around the reader, that the binding is not in, gives the name another value later on."""
    inside = {id(block) for block, _ in spot.around} | {id(spot.statement)}
    return all(
        id(loop) in inside or name not in assigned_names(loop.body)[0] for loop in loops_around(function.body, at)
    )


def _in_loop(function: Function, name: str, at: int | None) -> bool:
    """Whether a loop around the ordinal gives the name another value, which the next round reads."""
    return at is not None and any(name in assigned_names(loop.body)[0] for loop in loops_around(function.body, at))


def _inside(statement: ir.Stmt, at: int) -> bool:
    """Whether the ordinal stands in an assignment itself, whose value is read before it binds."""
    return isinstance(statement, ir.Assign | ir.AnnAssign | ir.AugAssign) and any(
        part.at == at for expr in (statement.value,) if expr is not None for part in walk_expression(expr)
    )


_Binding = tuple[Spot, tuple[ir.Expr, Steps] | None]


def _bindings(function: Function, name: str) -> list[_Binding]:
    """All that binds a name in a function, in source order; None for what is not followed."""
    found: list[_Binding] = []
    for spot in spots(function.body):
        statement = spot.statement
        if name not in names_bound_by(statement):
            continue
        one: tuple[ir.Expr, Steps] | None = None
        if isinstance(statement, ir.Assign):
            for target in statement.targets:
                one = _in_target(target, statement.value, (), name) or one
        elif isinstance(statement, ir.AnnAssign) and statement.value is not None:
            one = (statement.value, ())
        elif isinstance(statement, ir.For):
            one = _in_target(statement.target, statement.iter, (EACH,), name)
        found.append((spot, one))
    return found


def _in_target(target: ir.Expr, value: ir.Expr, steps: Steps, name: str) -> tuple[ir.Expr, Steps] | None:
    if isinstance(target, ir.Name):
        return (value, steps) if target.id == name else None
    if not isinstance(target, ir.Display) or any(isinstance(item, ir.Starred) for item in target.elements):
        return None
    for position, item in enumerate(target.elements):
        same = isinstance(value, ir.Display) and len(value.elements) == len(target.elements) and not steps
        if same and isinstance(value, ir.Display):
            found = _in_target(item, value.elements[position], (), name)
        else:
            found = _in_target(item, value, (*steps, position), name)
        if found is not None:
            return found
    return None


def _always_before(function: Function, spot: Spot, at: int) -> bool:
    """Whether whoever comes to an ordinal has come through a statement: each block around it is around the other."""
    reader = None
    for other in spots(function.body):
        if other.statement.at > at:
            break
        reader = other
    if reader is None:
        return False
    around = spot.around
    if isinstance(spot.statement, ir.For):
        around = (*around, (spot.statement, 0))  # (its target is bound where it has a round)
    inside = {(id(block), number) for block, number in reader.around}
    return all((id(block), number) in inside or isinstance(block, ir.With) for block, number in around)


def attribute(analyser: Analyser, expr: ir.Attr, scope: Scope) -> Bound | None:
    """What ``self.name`` was set to, where one statement of the class and its bases does."""
    function = scope.function
    if function.cls is None or not function.takes_self or not function.params:
        return None
    if not isinstance(expr.value, ir.Name) or expr.value.id != function.params[0].name:
        return None
    cls = scope.instance.cls if scope.instance is not None else function.cls
    found: list[tuple[Function, ir.Expr, Steps]] = []
    for owner in analyser.program.ancestors(cls)[0]:
        for method in owner.methods.values():
            if expr.name in method.names:
                found += [(method, *one) for one in _set_in(method, expr.name)]
    if len(found) != 1 or _is_set_elsewhere(cls, expr.name):
        return None
    method, value, steps = found[0]
    instance = scope.instance
    args: Mapping[str, Given] = {}
    if instance is not None and method.name == "__init__":
        args = arguments(method, instance.call, instance.scope) or {}
    return Bound(value, steps, Scope(method, args, instance, scope.depth + 1))


def _is_set_elsewhere(cls: Class, name: str) -> bool:
    """Whether the file sets an attribute of that name of something else than ``self``."""
    return name in sets_of_others(cls.module.text)


def _set_in(method: Function, name: str) -> list[tuple[ir.Expr, Steps]]:
    """What a method sets an attribute of its object to; a value of no use for what is not followed."""
    if not method.takes_self or not method.params:
        return []
    own = method.params[0].name
    found: list[tuple[ir.Expr, Steps]] = []

    def look(target: ir.Expr, value: ir.Expr, steps: Steps) -> None:
        if isinstance(target, ir.Display):
            same = isinstance(value, ir.Display) and len(value.elements) == len(target.elements) and not steps
            for position, item in enumerate(target.elements):
                if same and isinstance(value, ir.Display):
                    look(item, value.elements[position], ())
                else:
                    look(item, value, (*steps, position))
        elif isinstance(target, ir.Attr) and target.name == name and dotted(target.value) == own:
            found.append((value, steps))

    for statement in walk_statements(method.body):
        if isinstance(statement, ir.Assign):
            for target in statement.targets:
                look(target, statement.value, ())
        elif isinstance(statement, ir.AnnAssign) and statement.value is not None:
            look(statement.target, statement.value, ())
        elif isinstance(statement, ir.AugAssign):
            look(statement.target, ir.Const(statement.at, "Ellipsis", None), ())
    return found


def arguments(function: Function, call: ir.Call, scope: Scope) -> dict[str, Given] | None:
    """What the parameters of a function are given by a call, defaults included; None where that is not told."""
    if any(word.name is None for word in call.keywords) or any(isinstance(arg, ir.Starred) for arg in call.args):
        return None
    given: dict[str, Given] = {}
    own = Scope(function.module.main, depth=scope.depth + 1)
    params = [param for param in function.given if param.kind not in ("star", "double-star")]
    for param, arg in zip((one for one in params if one.kind != "keyword-only"), call.args, strict=False):
        given[param.name] = Given(arg, scope)
    for word in call.keywords:
        if word.name is not None:
            given[word.name] = Given(word.value, scope)
    for param in params:
        if param.name not in given and param.default is not None:
            given[param.name] = Given(param.default, own)
    return given


#: methods of a module that give the module itself
SAME_MODEL = frozenset({"to", "cuda", "cpu", "train", "eval", "float", "double", "half", "bfloat16", "xpu", "apply"})


def maker(analyser: Analyser, expr: ir.Expr, scope: Scope) -> Given | None:
    """The call that made what an expression stands for, through ``model.to(device)`` and the like."""
    for _ in range(MAX_STEPS):
        if isinstance(expr, ir.Call):
            func = expr.func
            if not isinstance(func, ir.Attr) or func.name not in SAME_MODEL or _is_class_call(analyser, func, scope):
                return Given(expr, scope)
            expr = func.value
            continue
        found = None
        if isinstance(expr, ir.Name):
            found = bound(analyser, expr, scope)
        elif isinstance(expr, ir.Attr):
            found = attribute(analyser, expr, scope)
        if found is None or found.steps or found.scope.depth > MAX_STEPS:
            return None
        expr, scope = found.expr, found.scope
    return None


def _is_class_call(analyser: Analyser, func: ir.Attr, scope: Scope) -> bool:
    return analyser.program.find_expression(scope.function.module, func, scope.function)[0] in ("class", "function")


def outside_name(analyser: Analyser, call: ir.Call, scope: Scope) -> str:
    """The qualified name of what a call calls, where that is none of the project's."""
    return analyser.program.outside(scope.function.module, call.func, scope.function)


def instance_of(analyser: Analyser, call: ir.Call, scope: Scope) -> Instance | None:
    """The object that a call of a class of the project makes."""
    kind, what = analyser.program.find_expression(scope.function.module, call.func, scope.function)
    return Instance(what, call, scope) if kind == "class" and what is not None else None


def number(analyser: Analyser, expr: ir.Expr | None, scope: Scope, depth: int = 0) -> int | None:
    """The whole number that an expression stands for."""
    if expr is None or depth > MAX_STEPS:
        return None
    if isinstance(expr, ir.Const):
        return expr.value if isinstance(expr.value, int) and expr.kind == "int" else None
    if isinstance(expr, ir.Unary) and expr.op == "-":
        value = number(analyser, expr.operand, scope, depth + 1)
        return -value if value is not None else None
    if isinstance(expr, ir.Binary):
        left = number(analyser, expr.left, scope, depth + 1)
        right = number(analyser, expr.right, scope, depth + 1)
        if left is None or right is None:
            return None
        if expr.op == "**":
            return left**right if 0 <= right < 64 and abs(left) < 1 << 16 else None
        if expr.op == "//":
            return left // right if right else None
        return {"+": left + right, "-": left - right, "*": left * right}.get(expr.op)
    found = None
    if isinstance(expr, ir.Name):
        found = bound(analyser, expr, scope)
    elif isinstance(expr, ir.Attr):
        found = attribute(analyser, expr, scope)
    if found is None or found.steps or found.scope.depth > MAX_STEPS:
        return None
    return number(analyser, found.expr, found.scope, depth + 1)


#: layers of torch.nn whose first two arguments and kernel tell how many parameters they have, by their dimensions
_CONVOLUTIONS = {"Conv1d": 1, "Conv2d": 2, "Conv3d": 3}


def literal_parameters(analyser: Analyser, made: ir.Call, scope: Scope, depth: int = 0) -> int:
    """At least how many parameters a model has that a call makes, by the literal sizes of its layers."""
    if depth > 4:
        return 0
    name = outside_name(analyser, made, scope)
    if name.startswith("torch.nn."):
        own = name.rsplit(".", 1)[-1]
        if own in ("Sequential", "ModuleList") and not made.keywords:
            listed = made.args[0].elements if _is_list(made) else made.args  # type: ignore[union-attr]
            return sum(
                literal_parameters(analyser, arg, scope, depth + 1) for arg in listed if isinstance(arg, ir.Call)
            )
        first = number(analyser, made.args[0], scope) if made.args else None
        second = number(analyser, made.args[1], scope) if len(made.args) > 1 else None
        if first is None or second is None:
            return 0
        if own in ("Linear", "Embedding"):
            return first * second
        kernel = number(analyser, argument(made, 2, "kernel_size"), scope)
        if own in _CONVOLUTIONS and kernel is not None and argument(made, 6, "groups") is None:
            return int(first * second * kernel ** _CONVOLUTIONS[own])
        return 0
    instance = instance_of(analyser, made, scope)
    if instance is None or not analyser.program.is_module(instance.cls):
        return 0
    method = analyser.program.method(instance.cls, "__init__")
    if method is None:
        return 0
    inner = Scope(method, arguments(method, made, scope) or {}, instance, scope.depth + 1)
    return sum(
        literal_parameters(analyser, statement.value, inner, depth + 1)
        for statement in method.body
        if isinstance(statement, ir.Assign)
        and isinstance(statement.value, ir.Call)
        and isinstance(statement.targets[0], ir.Attr)
    )


def _is_list(made: ir.Call) -> bool:
    return len(made.args) == 1 and isinstance(made.args[0], ir.Display)
