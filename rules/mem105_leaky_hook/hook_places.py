"""The places in which hooks store their arguments, and whether the project empties them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from memlint.sdk.project import Analyser, Class, Function, Module, Summary, argument, functions_of, last_ordinal
from memlint.sdk.syntax import calls, ir, parts_of, text, walk_expression, walk_statements
from memlint.sdk.values import HookCall, Path, Store

#: methods that remove members of a container
_TAKES = frozenset({"clear", "pop", "popleft", "popitem", "remove", "reset"})


class Place(NamedTuple):
    """A place by its name: an attribute of an instance (of ``owner``), a variable of a function (``local_to``), or a
    global of ``module``."""

    name: str
    module: Module
    owner: Class | None = None
    local_to: Function | None = None


def place_of(analyser: Analyser, summary: Summary, hook: Summary, store: Store) -> Place | None:
    """The place of a store in a hook that ``summary`` adds; None if unknown."""
    path = store.place
    if not isinstance(path, Path):
        return None
    root, name = path.root[:2], path.root.rsplit(":", 1)[1]
    function = hook.function
    if root == "g:":
        key = path.root[2:].rsplit(":", 1)[0]
        return None if _attribute_steps(path) else Place(name, analyser.program.module(key))
    if root == "p:":
        own = function.own_name
        return _of_self(function, path) if own == name else None
    if root != "c:":
        return None
    around = function.owner(name)
    if around is None:
        return None
    if around.takes_self and around.params and around.params[0].name == name:
        return _of_self(around, path)
    if _attribute_steps(path):
        return None
    if any(param.name == name for param in around.params):
        return _given(summary, around, name)
    return Place(name, around.module, local_to=around)


def _attribute_steps(path: Path) -> list[str]:
    return [step for step in path.steps if step.startswith(".")]


def _of_self(function: Function, path: Path) -> Place | None:
    steps = _attribute_steps(path)
    if function.cls is None or len(steps) != 1 or path.steps[0] != steps[0]:
        return None
    return Place(steps[0][1:], function.module, owner=function.cls)


def _given(summary: Summary, factory: Function, name: str) -> Place | None:
    """The place that the function which adds the hook passes for a parameter of the hook's factory."""
    position = [param.name for param in factory.given].index(name)
    found = [
        value
        for call in calls(summary.function.body)
        if text(call.func).rsplit(".", 1)[-1] == factory.name and (value := argument(call, position, name)) is not None
    ]
    if not found or len({text(value) for value in found}) != 1:
        return None
    value = found[0]
    own = summary.function.own_name
    if isinstance(value, ir.Attr) and isinstance(value.value, ir.Name) and value.value.id == own:
        return Place(value.name, summary.module, owner=summary.function.cls)
    if not isinstance(value, ir.Name):
        return None
    if summary.function.node is None or value.id not in summary.function.locals:
        return Place(value.id, summary.module) if value.id in summary.module.bindings else None
    if any(param.name == value.id for param in summary.function.params):
        return None
    return Place(value.id, summary.module, local_to=summary.function)


def outlives(analyser: Analyser, summary: Summary, call: HookCall, place: Place) -> bool:
    """Whether a place outlives the loop around a call that adds a hook, or the function where there is no loop: it is
    no variable of a factory that each call runs, nor an attribute of an object that is made there."""
    function = summary.function
    bound = call.loop.bound if call.loop is not None else function.locals
    if place.owner is None:
        around: Function | None = function
        while around is not None and around is not place.local_to:
            around = around.around
        return place.local_to is None or (around is not None and (place.name not in bound or around is not function))
    hook = next(iter(call.expr.passed), None)
    if isinstance(hook, ir.Lambda):
        return True  # its place is an attribute of the object whose method this is
    while isinstance(hook, ir.Attr | ir.Call):
        hook = hook.value if isinstance(hook, ir.Attr) else hook.func
    if not isinstance(hook, ir.Name):
        return False
    kind, _ = analyser.program.find_expression(summary.module, hook, function)
    return hook.id == function.own_name or (kind not in ("class", "ext") and hook.id not in bound)


# -------------------------------------------------------------------------------------- emptied


class Span(NamedTuple):
    """From the ordinal at which a function adds the hook to the last at which the module runs in it."""

    function: Function
    added: int
    end: int


def emptied(analyser: Analyser, place: Place, span: Span | None) -> bool:
    """Whether code that can reach a place empties, rebinds or bounds it. What the function that creates the place and
    adds the hook does with it when the module has run (``kept = torch.cat(kept)``) comes too late."""
    begun = 0
    for function, statement in _statements(analyser, place):
        if span is not None and function is place.local_to is span.function and _too_late(statement, span):
            continue
        made = _makes(place, function, statement)
        if made is not None:
            begun += 1
            again = begun > 1 and place.owner is None  # an ``__init__`` creates the container once for its object
            if again or not _begins(place, function) or _is_bounded(made):
                return True
        elif _takes(place, statement) or _hands_on(analyser, place, function, statement):
            return True
    return begun == 0  # its creation is not in the analysed code


def _too_late(statement: ir.Stmt, span: Span) -> bool:
    """Whether a statement runs only after the last run of the module with this hook: behind it, and in no loop that
    repeats it with the same hook."""
    return statement.at > span.end and not any(
        span.added < loop.at < span.end and statement.at <= last_ordinal(loop)
        for loop in walk_statements(span.function.body, into_definitions=False)
        if isinstance(loop, ir.For | ir.While)
    )


def _statements(analyser: Analyser, place: Place) -> Iterator[tuple[Function, ir.Stmt]]:
    """The statements that can reach a place, each with its function."""
    if place.local_to is not None:
        inside = [one for one in functions_of(place.module) if _is_inside(one, place.local_to)]
    else:
        keys = analyser.program.words.files(place.name)
        inside = [one for key in keys for one in functions_of(analyser.program.module(key))]
    for function in inside:
        on_demand = _made_on_demand(place, function)
        for statement in walk_statements(function.body, into_definitions=False):
            if statement.at not in on_demand:
                yield function, statement


def _made_on_demand(place: Place, function: Function) -> set[int]:
    """The statements that create a missing member of the place: ``if key not in kept: kept[key] = []``."""
    return {
        inner.at
        for statement in walk_statements(function.body, into_definitions=False)
        if isinstance(statement, ir.If)
        and isinstance(statement.test, ir.Compare)
        and statement.test.ops == ("not in",)
        and _is(place, statement.test.rights[0])
        for inner in statement.body
        if any(isinstance(target, ir.Subscript) and _is(place, target) for target in _targets(inner))
    }


def _is_inside(function: Function | None, around: Function) -> bool:
    while function is not None:
        if function is around:
            return True
        function = function.around
    return False


def _is(place: Place, expr: ir.Expr) -> bool:
    """Whether an expression refers to the place, or to a member of it (``store[name]``)."""
    while isinstance(expr, ir.Subscript):
        expr = expr.value
    if place.owner is not None:
        return isinstance(expr, ir.Attr) and expr.name == place.name
    return (isinstance(expr, ir.Name) and expr.id == place.name) or (
        place.local_to is None and isinstance(expr, ir.Attr) and expr.name == place.name
    )


def _targets(statement: ir.Stmt) -> Iterator[ir.Expr]:
    if isinstance(statement, ir.Assign):
        for target in statement.targets:
            yield from target.elements if isinstance(target, ir.Display) else (target,)
    elif isinstance(statement, ir.AnnAssign) and statement.value is not None:
        yield statement.target


def _makes(place: Place, function: Function, statement: ir.Stmt) -> ir.Expr | None:
    """The value that a statement assigns to the place or a member of it. ``self.x`` of an unrelated class is another
    place."""
    for target in _targets(statement):
        if _is(place, target) and not _is_of_another(place, function, target):
            assert isinstance(statement, ir.Assign | ir.AnnAssign)
            return statement.value
    return None


def _is_of_another(place: Place, function: Function, target: ir.Expr) -> bool:
    """Whether ``self.x`` is in a class unrelated to the owner of the place."""
    while isinstance(target, ir.Subscript):
        target = target.value
    if isinstance(target, ir.Name):
        if place.local_to is not None:
            return False
        local = target.id in function.locals and function.node is not None
        return local or function.module is not place.module
    if place.owner is None or not isinstance(target, ir.Attr) or not isinstance(target.value, ir.Name):
        return False
    own = function.own_name
    if target.value.id != own or function.cls is None or function.module is place.module:
        return (
            target.value.id == own
            and function.cls is not None
            and function.cls is not place.owner
            and not any(
                base.id == place.owner.node.name if isinstance(base, ir.Name) else False
                for base in function.cls.node.bases
            )
        )
    return function.cls.node.name != place.owner.node.name


def _begins(place: Place, function: Function) -> bool:
    """Whether a function creates the place once."""
    if place.owner is not None:
        return function.name == "__init__"
    return function is place.local_to if place.local_to is not None else function.node is None


def _is_bounded(made: ir.Expr | None) -> bool:
    return made is not None and any(
        isinstance(part, ir.Call) and any(word.name == "maxlen" for word in part.keywords)
        for part in walk_expression(made)
    )


def _takes(place: Place, statement: ir.Stmt) -> bool:
    """Whether a statement removes members from the place."""
    if isinstance(statement, ir.Delete):
        return any(_is(place, target) for target in statement.targets)
    for part in parts_of(statement):
        if not isinstance(part, ir.Call):
            continue
        if isinstance(part.func, ir.Attr) and part.func.name in _TAKES and _is(place, part.func.value):
            return True
        if text(part.func) in ("setattr", "delattr") and any(
            isinstance(arg, ir.Const) and arg.value == place.name for arg in part.args
        ):
            return True
    return False


#: builtins that only read their arguments
_READS = frozenset({"len", "list", "tuple", "enumerate", "zip", "print", "sum", "max", "min", "reversed", "str", "map"})


def _hands_on(analyser: Analyser, place: Place, function: Function, statement: ir.Stmt) -> bool:
    """Whether a statement passes the place itself to code that may empty it: a function of the project (but not the
    hook factory), a method, the caller, or a variable from which something is removed."""
    if place.local_to is not None and isinstance(statement, ir.Return) and statement.value is not None:
        given = statement.value.elements if isinstance(statement.value, ir.Display) else (statement.value,)
        if any(isinstance(part, ir.Name) and part.id == place.name for part in given):
            return True
    if isinstance(statement, ir.Assign) and _is(place, statement.value):
        aliases = {target.id for target in statement.targets if isinstance(target, ir.Name)}
        if len(aliases) != len(statement.targets):
            return True
        return any(
            isinstance(call.func, ir.Attr)
            and call.func.name in _TAKES
            and isinstance(call.func.value, ir.Name)
            and call.func.value.id in aliases
            for call in calls(function.body)
        )
    for part in parts_of(statement):
        if isinstance(part, ir.Call) and _goes_to_others(analyser, place, function, part):
            return True
    return False


def _goes_to_others(analyser: Analyser, place: Place, function: Function, call: ir.Call) -> bool:
    given = call.passed
    if not any(_is(place, arg) and not isinstance(arg, ir.Subscript) for arg in given):
        return False
    if isinstance(call.func, ir.Name) and call.func.id in _READS:
        return False
    kind, what = analyser.program.find_expression(function.module, call.func, function)
    if kind == "function" and what is not None:
        return not _makes_hooks(what)
    return kind != "ext"


def _makes_hooks(function: Function) -> bool:
    """Whether a function only defines another one and returns it."""
    kinds = [type(one) for one in function.body if not isinstance(one, ir.ExprStmt)]
    return kinds == [ir.FunctionDef, ir.Return]
