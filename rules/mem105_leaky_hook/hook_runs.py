"""The loops over data that run a module after a hook was added to it."""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple, TypeGuard

from memlint.sdk import Loop
from memlint.sdk.project import Analyser, Function, Summary, argument, goes_on, last_ordinal, names_model
from memlint.sdk.syntax import (
    call_at,
    calls,
    dotted,
    ir,
    mentions,
    names_bound_by,
    parts,
    under_calls,
    walk_expression,
    walk_statements,
    way_to,
)
from memlint.sdk.values import OFF, LoopState

from .hook_conditions import may_be_skipped
from .hook_places import Place

#: how many levels of callers are followed
MAX_DEPTH = 3
#: methods that return the parts of modules, and functions that pass those on
_PARTS = frozenset(
    {
        "modules",
        "named_modules",
        "children",
        "named_children",
        "get_submodule",
        "parameters",
        "named_parameters",
        "items",
        "values",
    }
)
#: methods that return the module itself
ITSELF = frozenset({"eval", "train", "to", "cuda", "float", "half", "requires_grad_"})
#: methods that only networks have
_OF_NETWORKS = frozenset({"eval", "parameters", "named_parameters", "modules", "named_modules", "zero_grad"})
_THROUGH = frozenset({"list", "dict", "enumerate", "getattr", "zip", "reversed", "tuple", "tqdm"})


#: functions that were examined, each with the parameter that is the module
_Seen = set[tuple[tuple[str, str], str]]


class Found(NamedTuple):
    """A loop that runs the module, whether autograd may record in it, and the last ordinal of it, or of the call that
    leads to it, in the function that adds the hook; None if it is in another function."""

    loop: Loop
    records: bool
    end: int | None = None


def root_of(summary: Summary, expr: ir.Expr, *, as_given: bool = False, depth: int = 0) -> str | None:
    """The variable through which a module is reached: ``model`` of ``model.layer4[1]``, or of a variable that a loop
    over its modules binds. ``as_given``: what a constructor stored on its object (``self.model = model``) counts as
    the argument that it was given."""
    for _ in range(6):
        while not isinstance(expr, ir.Name):
            stored = _stored_by(summary.function, expr) if as_given else None
            if stored is not None:
                expr = stored
            elif isinstance(expr, ir.Attr | ir.Subscript):
                expr = expr.value
            elif isinstance(expr, ir.Call) and isinstance(expr.func, ir.Attr):
                expr = expr.func.value
            elif isinstance(expr, ir.Call) and expr.args and isinstance(expr.func, ir.Name):
                expr = expr.args[0]
            else:
                return None
        behind = _bound_to(summary, expr.id, depth)
        if behind is None:
            return expr.id
        expr = behind
    return None


def _stored_by(function: Function, expr: ir.Expr) -> ir.Expr | None:
    """What the only assignment of a constructor stores under an attribute of its object; None for another
    expression."""
    own = function.own_name
    if function.name != "__init__" or not _is_attribute_of(expr, own):
        return None
    found = [
        statement.value
        for statement in walk_statements(function.body, into_definitions=False)
        if isinstance(statement, ir.Assign)
        for target in statement.targets
        if _is_attribute_of(target, own) and isinstance(target, ir.Attr) and target.name == expr.name
    ]
    value = under_calls(found[0], ITSELF) if len(found) == 1 else None
    if own is None or not isinstance(value, ir.Name | ir.Attr | ir.Subscript) or mentions(value, own):
        return None
    return value


def _is_attribute_of(expr: ir.Expr, own: str | None) -> TypeGuard[ir.Attr]:
    return isinstance(expr, ir.Attr) and isinstance(expr.value, ir.Name) and expr.value.id == own


def _bound_to(summary: Summary, name: str, depth: int) -> ir.Expr | None:
    """The expression that the only loop or assignment binds a name to, besides those that go on to a part of it
    (``layer = layer.children[0]``)."""
    function = summary.function
    if any(param.name == name for param in function.params):
        return None
    found: list[ir.Expr] = []
    for statement in walk_statements(function.body, into_definitions=False):
        if isinstance(statement, ir.For) and names_it(statement.target, name):
            found.append(statement.iter)
        elif isinstance(statement, ir.Assign) and name in names_bound_by(statement):
            found.append(statement.value)  # ``part.tag = "a"`` binds no ``part``
    for part in parts(function.body):
        if isinstance(part, ir.Comprehension):
            found += [one.iter for one in part.fors if names_it(one.target, name)]
    found = [one for one in found if not (isinstance(one, ir.Attr | ir.Subscript) and _begins(one, name))]
    if len(found) != 1 or mentions(found[0], name):
        return None
    one = found[0]
    if isinstance(one, ir.Attr | ir.Subscript):
        return one
    if not isinstance(one, ir.Call):
        return None
    if isinstance(one.func, ir.Attr) and one.func.name in _PARTS:
        return one
    if isinstance(one.func, ir.Name) and one.func.id in _THROUGH:
        return one
    return _argument_returned_in_part(summary, one, depth)


def _argument_returned_in_part(summary: Summary, call: ir.Call, depth: int) -> ir.Expr | None:
    """The argument of which a function of the project returns a part, whatever else it is given:
    ``find_layer(model, name)``."""
    analyser = summary.analyser
    kind, function = analyser.program.find_expression(summary.module, call.func, summary.function)
    callee = analyser.summary(function) if kind == "function" and isinstance(function, Function) else None
    if callee is None or depth >= MAX_DEPTH:
        return None
    given = [one.value for one in walk_statements(callee.function.body, False) if isinstance(one, ir.Return)]
    roots = {
        root_of(callee, value, depth=depth + 1) if isinstance(value, ir.Name | ir.Attr | ir.Subscript) else None
        for value in given
    }
    names = [param.name for param in callee.function.given]
    root = roots.pop() if len(roots) == 1 else None
    return argument(call, names.index(root), root) if root is not None and root in names else None


def rebinds(function: Function, name: str) -> bool:
    """Whether a function binds a parameter to what may be another object than its argument or a part of that: ``model =
    copy.deepcopy(model)``."""
    return any(param.name == name for param in function.params) and any(
        name in names_bound_by(statement)
        and not (isinstance(statement, ir.Assign) and _begins(under_calls(statement.value, ITSELF), name))
        for statement in walk_statements(function.body, into_definitions=False)
    )


def is_from_outside(function: Function, name: str) -> bool:
    """Whether a function only reads a variable of the code around it."""
    return name not in function.locals and not any(
        name in names_bound_by(one) for one in walk_statements(function.body, into_definitions=False)
    )


def names_it(target: ir.Expr, name: str) -> bool:
    return any(isinstance(part, ir.Name) and part.id == name for part in walk_expression(target))


def loop_behind(summary: Summary, name: str, at: int, end: int | None, place: Place | None = None) -> Found | None:
    """The first loop over data between an ordinal and ``end`` that runs the named module without a break, and does not
    create the place again."""
    for held in sorted(summary.notes.rounds.values(), key=lambda one: one.loop.site.at):
        start = held.loop.site.at
        if start <= at or (end is not None and start >= end) or not goes_on(held) or name in held.bound:
            continue
        if place is not None and place.owner is None and place.name in held.bound:
            continue
        run = next((call for call in calls(held.body) if _uses(call, name)), None)
        if run is not None:
            return _found(summary, held, run)
    return None


def _found(summary: Summary, held: LoopState, run: ir.Call) -> Found:
    """A loop of a function that runs the module by a call in it."""
    return Found(summary.seen(held), _records(summary, run), last_ordinal(held.body[-1]))


def _records(summary: Summary, run: ir.Call) -> bool:
    """Whether autograd may record a call."""
    guarded = any(any(call is run for call in calls(block.body)) for block in summary.notes.blocks.values())
    return summary.entry != OFF and not guarded


def loop_of_callees(
    analyser: Analyser, summary: Summary, name: str, at: int, end: int | None, depth: int, seen: _Seen | None = None
) -> Found | None:
    """The loop over data in a function that is called after an ordinal with the named module, and runs it there. Each
    function is examined once (``seen``)."""
    seen = set() if seen is None else seen
    for record in sorted(summary.calls.values(), key=lambda one: one.at):
        function = analyser.function_at(record.callee) if record.at > at and (end is None or record.at < end) else None
        inner = analyser.summary(function)
        expr = call_at(summary.function.body, record.at)
        if function is None or inner is None or expr is None:
            continue
        for param in function.params:
            if (function.key, param.name) in seen or given_for(summary, function, expr, param.name) != name:
                continue
            seen.add((function.key, param.name))
            loop = loop_behind(inner, param.name, -1, None)
            if loop is None and depth < MAX_DEPTH:
                loop = loop_of_callees(analyser, inner, param.name, -1, None, depth + 1, seen)
            if loop is not None:
                return loop._replace(end=last_ordinal(ir.ExprStmt(expr.at, expr)))
    return None


def loop_of_object(analyser: Analyser, summary: Summary, owner: str) -> Found | None:
    """The loop over data in which the object whose constructor adds the hook runs the module that it was given, by the
    attribute that holds it, or in which a caller calls the object's method that does."""
    function = summary.function
    own, cls = function.own_name, function.cls
    if function.name != "__init__" or own is None or cls is None or owner == own:
        return None
    stored = [
        (target.name, _is(under_calls(one.value, ITSELF), owner))
        for method in cls.methods.values()
        for one in walk_statements(method.body, into_definitions=False)
        if isinstance(one, ir.Assign)
        for target in one.targets
        if _is_attribute_of(target, method.own_name) and isinstance(target, ir.Attr)
    ]
    once = Counter(name for name, _ in stored)
    held_as = {name for name, given in stored if given and once[name] == 1}
    runs: dict[str, bool] = {}
    for name, method in cls.methods.items():
        run = _run_by(method, held_as)
        inner = analyser.summary(method)
        if run is None or inner is None:
            continue
        for held in inner.notes.rounds.values():
            if goes_on(held) and any(one is run for one in calls(held.body)):
                return _found(inner, held, run)
        runs[name] = _records(inner, run)
    for caller, record in analyser.facts.calls_of(function) if runs else ():
        expr = call_at(caller.function.body, record.at)
        made = given_for(caller, function, expr, own) if expr is not None else None
        for held in caller.notes.rounds.values() if made is not None else ():
            if held.loop.site.at <= record.at or not goes_on(held) or made is None or made in held.bound:
                continue
            for call in calls(held.body):
                by = call.func.name if isinstance(call.func, ir.Attr) and _is(call.func.value, made) else ""
                by = "__call__" if _is(call.func, made) else by
                if by in runs:
                    found = _found(caller, held, call)
                    return found._replace(records=found.records and runs[by], end=None)
    return None


def _run_by(method: Function, held_as: set[str]) -> ir.Call | None:
    """The call by which a method other than the constructor runs, each time, the module that an attribute holds."""
    if method.name == "__init__" or held_as.isdisjoint(method.names):
        return None
    for call in calls(method.body):
        if _is_attribute_of(call.func, method.own_name) and call.func.name in held_as:
            around = (block[number] for block, number in way_to(method.body, call.at))
            if not any(isinstance(one, ir.If) and not one.orelse for one in around):
                return None if may_be_skipped(method.body, call.at) else call
    return None


def _is(expr: ir.Expr, name: str) -> bool:
    return isinstance(expr, ir.Name) and expr.id == name


def loop_of_network(summary: Summary, part: str, at: int, end: int | None, place: Place) -> Found | None:
    """The loop over data that runs the only network that is given to the function, where the hook is added to a
    parameter that nothing else uses: it is a part of that network."""
    given = {param.name for param in summary.function.params} - {summary.function.own_name}
    known = list(calls(summary.function.body))
    if part not in given or any(_uses(call, part) and call.at != at for call in known):
        return None
    run = {call.func.id for call in known if isinstance(call.func, ir.Name)} & given - {part}
    methods = (call.func for call in known if isinstance(call.func, ir.Attr))
    used = {dotted(func.value) for func in methods if func.name in _OF_NETWORKS}
    networks = [name for name in run if names_model(name) or name in used]
    return loop_behind(summary, networks[0], at, end, place) if len(networks) == 1 else None


def _uses(call: ir.Call, name: str) -> bool:
    """``model(x)``, ``model.generate(x)``, ``evaluate(model, x)``"""
    if isinstance(call.func, ir.Attr) and call.func.name in ("eval", "train", "to", "cuda", "zero_grad", "parameters"):
        return False
    given = call.passed
    if isinstance(call.func, ir.Name) and call.func.id in ("print", "isinstance", "len", "type", "id"):
        return False
    return _begins(call.func, name) or any(isinstance(arg, ir.Name) and arg.id == name for arg in given)


def _begins(expr: ir.Expr, name: str) -> bool:
    while isinstance(expr, ir.Attr | ir.Subscript):
        expr = expr.value
    return isinstance(expr, ir.Name) and expr.id == name


def loop_of_callers(
    analyser: Analyser, summary: Summary, owner: str, depth: int, seen: _Seen | None = None
) -> Found | None:
    """The loop over data in a caller, or in what it calls, after the call, that runs what it passed for the parameter
    ``owner``. Each function is examined once (``seen``)."""
    seen = set() if seen is None else seen
    if depth >= MAX_DEPTH or summary.function.node is None:
        return None
    for caller, record in analyser.facts.calls_of(summary.function):
        expr = call_at(caller.function.body, record.at)
        given = given_for(caller, summary.function, expr, owner) if expr is not None else None
        if given is None:
            continue
        end = _removed_by_object(analyser, caller, summary.function, expr) if expr is not None else None
        loop = loop_behind(caller, given, record.at, end)
        loop = loop or loop_of_callees(analyser, caller, given, record.at, end, 0, seen)
        loop = loop or (loop_of_callers(analyser, caller, given, depth + 1, seen) if end is None else None)
        if loop is not None:
            return loop._replace(end=None)
    return None


def _removed_by_object(analyser: Analyser, caller: Summary, callee: Function, expr: ir.Call) -> int | None:
    """The ordinal at which an object that a caller makes removes its hooks: where the ``with`` block ends whose context
    manager it is, or where a method that removes some is called; None if it does not."""
    if callee.name != "__init__" or callee.cls is None:
        return None
    removers = {
        method.name
        for method in analyser.program.methods(callee.cls)
        for call in calls(method.body)
        if isinstance(call.func, ir.Attr) and call.func.name == "remove" and not call.args
    }
    made = given_for(caller, callee, expr, callee.own_name or "") or ""
    ends = [
        call.at
        for call in calls(caller.function.body)
        if isinstance(call.func, ir.Attr) and call.func.name in removers and _is(call.func.value, made)
    ]
    ends += [
        last_ordinal(one) + 1
        for one in walk_statements(caller.function.body, into_definitions=False)
        if removers and isinstance(one, ir.With) and any(item.context is expr for item in one.items)
    ]
    return min((end for end in ends if end > expr.at), default=None)


def given_for(caller: Summary, callee: Function, expr: ir.Call, owner: str) -> str | None:
    """The name that a call passes for a parameter of the callee; for ``self``, the receiver."""
    own = callee.own_name
    if owner == own:
        if callee.name == "__init__":
            made = (
                statement
                for statement in walk_statements(caller.function.body, into_definitions=False)
                if isinstance(statement, ir.Assign)
                and under_calls(statement.value, ITSELF) is expr
                and len(statement.targets) == 1
            )
            target = next((statement.targets[0] for statement in made), None)
            return target.id if isinstance(target, ir.Name) else None
        return root_of(caller, expr.func.value) if isinstance(expr.func, ir.Attr) else None
    names = [param.name for param in callee.params[1 if own else 0 :]]
    if owner not in names or any(isinstance(arg, ir.Starred) for arg in expr.args):
        return None
    place = names.index(owner)
    word = next((word.value for word in expr.keywords if word.name == owner), None)
    value = word if word is not None else expr.args[place] if len(expr.args) > place else None
    value = under_calls(value, ITSELF) if value is not None else None
    if not isinstance(value, ir.Name | ir.Attr | ir.Subscript) or indexed_by(value) is not None:
        return None
    return root_of(caller, value)


def indexed_by(expr: ir.Expr) -> ir.Expr | None:
    """The index of a subscript if it is no literal: ``models[i]`` may be another model in each iteration."""
    while isinstance(expr, ir.Attr | ir.Subscript):
        if isinstance(expr, ir.Subscript) and not isinstance(expr.index, ir.Const):
            return expr.index
        expr = expr.value
    return None
