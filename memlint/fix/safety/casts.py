"""Whether a guard inside an autocast region may lose gradients.

Autocast caches cast weights until its region ends, and older releases of torch keep them as they were cast: a model
that first runs under a guard leaves copies without a graph, and gets no gradients when it is trained in the same region
(pytorch/pytorch#112583; fixed in torch 2.11).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from memlint.analysis.facts.calls_by_name import TooManyError, calls_of_function
from memlint.analysis.index.binders import binders
from memlint.analysis.index.program import Function
from memlint.analysis.syntax.syntax import bodies, parts_of, walk_expression, walk_statements
from memlint.analysis.transfer.modules.inert_guards import last_ordinal
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.summary import Summary
    from memlint.analysis.facts.analyser import Analyser

Body = tuple[ir.Stmt, ...]

#: how many levels of callers are searched for a region
MAX_DEPTH = 6
#: every project that opens a region itself contains one of these names
_OPENERS = frozenset({"autocast", "autocast_smart_context_manager", "compute_loss_context_manager"})
#: names of functions that open a region: ``torch.autocast``, ``self.amp_context()``
_REGION = lazy_pattern(r"autocast|(^|_)amp(_|$)|precision", re.IGNORECASE)


def loses_gradients(summary: Summary, guarded: Body, module: str) -> bool:
    """Whether a network (its source) runs again after the statements, in an autocast region around both."""
    if not _opener(summary.analyser, summary.function):
        return False
    last = last_ordinal(guarded[-1])
    return any(
        run.site.at > last and _is_same(run.text, module) and any(_covers(one, run.site.at) for one in region)
        for region in _regions(summary.function, guarded)
        for run in summary.runs.values()
        if (run.site.path, run.site.unit) == (summary.module.key, summary.function.unit)
    )


def doubt(analyser: Analyser, function: Function, guarded: Body) -> str:
    """A clause if a guard around the statements may leave weights without a graph to others of the same region; ""
    otherwise."""
    opener = _opener(analyser, function)
    if not opener:
        return ""
    beside = any(_calls(one for one in _own(region) if not _in(one, guarded)) for region in _regions(function, guarded))
    within = _is_decorated(function) and _calls(one for one in _own(function.body) if not _in(one, guarded))
    if beside or within or _is_called_in_one(analyser, function, set(), 0):
        where = "autocast" if opener == function.module.key else f"the mixed precision of {opener}"
        return f"under {where}, torch before 2.11 trains no weight that is first used where gradients are off"
    return ""


def _regions(function: Function, guarded: Body) -> Iterator[Body]:
    """The autocast regions of a function that contain the statements."""
    for statement in _around(function.body, guarded[0].at):
        if isinstance(statement, ir.With) and _casts(function, statement) and not _in(statement, guarded):
            yield statement.body


def _opener(analyser: Analyser, function: Function) -> str:
    """A file that opens a region, preferably the function's own; "" if there is none."""
    program = analyser.program
    named = {key for name in _OPENERS for key in program.words.files(name)}
    own = function.module.key
    for key in (own, *(key for key in analyser.facts.partners.together(own) if key in named)) if named else ():
        if any(not _OPENERS.isdisjoint(unit.names) for unit in program.module(key).index.units):
            return str(key)
    return ""


def _is_called_in_one(analyser: Analyser, function: Function, seen: set[tuple[str, str]], depth: int) -> bool:
    """Whether a call of the function is in a region, directly or through callers. True beyond the limit."""
    if function.key in seen:
        return False
    seen.add(function.key)
    try:
        found = calls_of_function(analyser, function)
    except TooManyError:
        return True
    for caller, call in found:
        if call is None or depth >= MAX_DEPTH or _is_decorated(caller):
            return True
        if any(isinstance(one, ir.With) and _casts(caller, one) for one in _around(caller.body, call.at)):
            return True
        if caller.node is not None and _is_called_in_one(analyser, caller, seen, depth + 1):
            return True
    return False


def _is_decorated(function: Function) -> bool:
    return any(_names_it(item) for item in function.decorators)


def _casts(function: Function, statement: ir.With) -> bool:
    """Whether a statement is ``with autocast():``, or enters a variable or attribute that may hold a region."""
    for item in statement.items:
        match item.context:
            case ir.Name(id=name) if name in function.locals:
                values = binders(function, name)
                held = any(param.name == name for param in function.params)
                if held or values is None or any(_names_it(value) for value in values):
                    return True
            case ir.Name(id=name):
                made = function.module.bindings.get(name, ())
                if not made or any(not isinstance(one, ir.Assign) or _names_it(one.value) for one in made):
                    return True
            case ir.Attr():
                return True
            case _ if _names_it(item.context):
                return True
    return False


def _names_it(expr: ir.Expr) -> bool:
    parts = walk_expression(expr)
    names = (part.id if isinstance(part, ir.Name) else part.name if isinstance(part, ir.Attr) else "" for part in parts)
    return any(_REGION.search(name) for name in names)


def _is_same(one: str, other: str) -> bool:
    """Whether one of two sources is the other or a part of it."""
    return f"{one}.".startswith(f"{other}.") or f"{other}.".startswith(f"{one}.")


def _around(body: Body, at: int) -> Iterator[ir.Stmt]:
    """The statements around an ordinal, from the outside in."""
    for statement in body:
        if _covers(statement, at):
            yield statement
            for inner in bodies(statement):
                yield from _around(inner, at)


def _own(body: Body) -> Iterator[ir.Stmt]:
    yield from walk_statements(body, into_definitions=False)


def _in(statement: ir.Stmt, guarded: Body) -> bool:
    return guarded[0].at <= statement.at <= last_ordinal(guarded[-1])


def _covers(statement: ir.Stmt, at: int) -> bool:
    return statement.at <= at <= last_ordinal(statement)


def _calls(statements: Iterable[ir.Stmt]) -> bool:
    parts = (part for one in statements for part in parts_of(one))
    return any(isinstance(part, ir.Call) for part in parts)
