"""Attributes that a method resets at the first step of each sequence: ``if t == 0: self.begin(…)``, where the callers
count the steps from 0."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.summary.effects import Store
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.index.function import Function
from memlint.analysis.syntax.bindings import assigned_names, mentions
from memlint.analysis.syntax.syntax import dotted, last_name, loops_around, parts
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: how many callers up a step count is followed
MAX_DEPTH = 4
#: calls that show the progress of a loop
_SHOWS = frozenset({"tqdm", "trange", "track", "prange"})


def begun_at_first_step(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether the attribute is reset at the first step of a sequence, and each iteration of the store's loop goes
    through a whole sequence."""
    function = _function_of(analyser, store)
    name = store.place_text.rpartition(".")[2]
    if store.loop is None or function is None or function.cls is None or not name or not function.takes_self:
        return False
    counts = {param.name for param in function.params[1:]} - assigned_names(function.body)[0]
    return any(
        _counts_from_zero(analyser, function, statement.test.left.id, (summary.function, store.loop.id), 0)
        for statement in function.body
        if statement.at < store.site.at
        and isinstance(statement, ir.If)
        and isinstance(statement.test, ir.Compare)
        and statement.test.ops == ("==",)
        and isinstance(statement.test.left, ir.Name)
        and statement.test.left.id in counts
        and isinstance(zero := statement.test.rights[0], ir.Const)
        and zero.kind == "int"
        and zero.value == 0
        and _resets(function, statement.body, name)
    )


def _function_of(analyser: Analyser, store: Store) -> Function | None:
    """The function whose body holds a store; None if it is outside all functions."""
    module = analyser.program.module(store.site.path)
    module.build(store.site.unit)
    inside = module.by_place.get(store.site.unit, {})
    return inside[max(before)] if (before := [at for at in inside if at <= store.site.at]) else None


def _resets(function: Function, body: tuple[ir.Stmt, ...], name: str, deeper: bool = True) -> bool:
    """Whether a block of a method assigns the attribute a value that does not depend on the old one, directly or
    through another method of the class."""
    own = function.params[0].name
    for statement in body:
        if isinstance(statement, ir.Assign) and any(dotted(target) == f"{own}.{name}" for target in statement.targets):
            return not mentions(statement.value, f"{own}.{name}")
        call = statement.value if isinstance(statement, ir.ExprStmt) else None
        if deeper and isinstance(call, ir.Call) and isinstance(call.func, ir.Attr) and dotted(call.func.value) == own:
            method = function.cls.methods.get(call.func.name) if function.cls is not None else None
            if method is not None and method.takes_self and _resets(method, method.body, name, deeper=False):
                return True
    return False


def _counts_from_zero(
    analyser: Analyser, function: Function, param: str, outer: tuple[Function, object], depth: int
) -> bool:
    """Whether each known call passes for a parameter the constant 0, or the count from 0 of a loop other than
    ``outer``. False if no call is known."""
    calls = analyser.facts.calls_of(function)
    return (
        bool(calls)
        and depth < MAX_DEPTH
        and all(
            _passes_count(analyser, caller.function, function, record.at, param, outer, depth)
            for caller, record in calls
        )
    )


def _passes_count(
    analyser: Analyser,
    caller: Function,
    function: Function,
    at: int,
    param: str,
    outer: tuple[Function, object],
    depth: int,
) -> bool:
    call = next((part for part in parts(caller.body) if part.at == at and isinstance(part, ir.Call)), None)
    if call is None or any(isinstance(arg, ir.Starred) for arg in call.args):
        return False
    names = [each.name for each in function.params][1:]
    value: ir.Expr | None = next((word.value for word in call.keywords if word.name == param), None)
    if param in names[: len(call.args)]:
        value = call.args[names.index(param)]
    if isinstance(value, ir.Const):
        return value.kind == "int" and value.value == 0
    if not isinstance(value, ir.Name):
        return False
    for loop in loops_around(caller.body, at):
        if isinstance(loop, ir.For) and isinstance(loop.target, ir.Name) and loop.target.id == value.id:
            same = caller is outer[0] and outer[1] == ("loop", loop.at)
            return not same and _from_zero(loop.iter) and value.id not in assigned_names(loop.body)[0]
    passed = any(each.name == value.id for each in caller.params) and value.id not in assigned_names(caller.body)[0]
    return passed and caller.cls is not None and _counts_from_zero(analyser, caller, value.id, outer, depth + 1)


def _from_zero(iterated: ir.Expr) -> bool:
    """Whether a loop's iterable counts from 0: ``range(n)``, ``range(0, n, 2)``, with or without a progress bar."""
    if not isinstance(iterated, ir.Call) or (iterated.keywords and last_name(iterated.func) not in _SHOWS):
        return False
    if last_name(iterated.func) in _SHOWS - {"trange"} and iterated.args:
        return _from_zero(iterated.args[0])
    if dotted(iterated.func) not in ("range", "trange"):
        return False
    first = iterated.args[0] if len(iterated.args) > 1 else None
    return len(iterated.args) == 1 or (isinstance(first, ir.Const) and first.value == 0)
