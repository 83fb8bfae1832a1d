"""Stores in one round only, and variables that are unbound before a loop, which each round assigns as the first did."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from memlint.analysis.domain.summary.effects import LoopState, Store
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Source
from memlint.analysis.index.mentions import SETTINGS
from memlint.analysis.syntax.bindings import assigned_names, names_bound_by, names_read, targets
from memlint.analysis.syntax.memo import kept, kept_for
from memlint.analysis.syntax.syntax import (
    bodies,
    dotted,
    last_name,
    loops_around,
    parts_of,
    statement_at,
    walk_expression,
    walk_statements,
    way_to,
)
from memlint.analysis.transfer.loops import member_and_whole
from memlint.ir import nodes as ir

#: functions whose result is the same in every round if their arguments are
_PLAIN = frozenset({"all", "any", "bool", "callable", "hasattr", "isinstance", "issubclass", "len", "str", "type"})


def statement_of(summary: Summary, loop: LoopState) -> ir.For | ir.While | None:
    """The statement of a loop of the function; None for a loop of a comprehension or of a callee."""
    return _loops_of(summary.function.body).get(loop.id)


@kept
def _loops_of(body: tuple[ir.Stmt, ...]) -> dict[Source, ir.For | ir.While]:
    loops = (one for one in walk_statements(body, into_definitions=False) if isinstance(one, ir.For | ir.While))
    return {("loop", one.at): one for one in loops}


@kept_for
def begun_anew(function: tuple[ir.Stmt, ...], loop: ir.For | ir.While) -> frozenset[str]:
    """The names that each round of a loop assigns before it reads them. They are unbound when the first round
    begins, and no test around their assignments differs between the rounds of this loop or of those around it (``if
    kind == "a": loss = …`` and ``if kind == "b": loss = …``, then ``loss.backward()``)."""
    if statement_at(function, loop.at) is not loop:
        return frozenset()
    bound, written = _changed_by(next(iter(loops_around(function, loop.at)), loop))
    assigned: dict[str, list[tuple[bool, bool]]] = {}
    first_assigned: dict[str, int] = {}
    read_first: set[str] = set()
    answers: dict[int, bool] = {}

    def tells(test: ir.Expr) -> bool:
        if id(test) not in answers:
            answers[id(test)] = _tells_rounds_apart(test, bound, written)
        return answers[id(test)]

    for statement, apart, loose in _under_tests(loop.body, tells):
        if not isinstance(statement, ir.AugAssign):  # an augmented assignment reads the variable
            for name in names_bound_by(statement):
                assigned.setdefault(name, []).append((apart, loose))
                first_assigned.setdefault(name, statement.at)
        for part in parts_of(statement):
            if isinstance(part, ir.Name) and (apart or part.at < first_assigned.get(part.id, part.at + 1)):
                read_first.add(part.id)  # read in some rounds alone, or before it is given a value
            elif isinstance(part, ir.IfExp) and tells(part.test):
                read_first |= names_read(part)
    own = names_bound_by(loop)
    return frozenset(
        name
        for name, tests in assigned.items()
        if name not in own
        and name not in read_first
        and not _may_be_bound(function, loop, name)
        and not all(loose for _, loose in tests)
        and not any(apart for apart, _ in tests)
    )


def _under_tests(body: tuple[ir.Stmt, ...], tells: Callable[[ir.Expr], bool]) -> Iterator[tuple[ir.Stmt, bool, bool]]:
    """The statements of a body in order, each with two flags: a test around it differs between rounds; something
    other than a test may skip it."""
    todo = [(statement, False, False) for statement in reversed(body)]
    while todo:
        statement, apart, loose = todo.pop()
        yield statement, apart, loose or isinstance(statement, ir.For)
        if isinstance(statement, ir.FunctionDef | ir.ClassDef):
            continue
        if isinstance(statement, ir.If):
            apart = apart or tells(statement.test)
        else:
            loose = loose or not isinstance(statement, ir.With)
        for block in reversed(bodies(statement)):
            todo.extend((inner, apart, loose) for inner in reversed(block))


def _may_be_bound(body: tuple[ir.Stmt, ...], loop: ir.Stmt, name: str) -> bool:
    """Whether some statement may have bound the name when the loop begins for the first time."""
    way = way_to(body, loop.at)
    for (block, number), (inner, _) in itertools.pairwise((*way, ((), 0))):
        statement = block[number]
        if _first_bound(block).get(name, number) < number:
            return True
        if statement is loop:
            return False
        if name in names_bound_by(statement):
            return True
        if isinstance(statement, ir.Try) and inner is not statement.body and name in assigned_names(statement.body)[0]:
            return True
    return False


@kept
def _first_bound(block: tuple[ir.Stmt, ...]) -> dict[str, int]:
    """By name, the position of the first statement of a block that binds it, in the statement or in its blocks."""
    found: dict[str, int] = {}
    for number, statement in enumerate(block):
        inner = () if isinstance(statement, ir.FunctionDef | ir.ClassDef) else bodies(statement)
        for name in names_bound_by(statement).union(*(assigned_names(one)[0] for one in inner)):
            found.setdefault(name, number)
    return found


@kept
def _changed_by(loop: ir.For | ir.While) -> tuple[frozenset[str], set[str]]:
    """The names that a loop and its body bind, and the attributes (dotted) that the body writes."""
    bound = names_bound_by(loop).union(*(assigned_names(block)[0] for block in bodies(loop)))
    written = {
        dotted(target)
        for statement in walk_statements(loop.body)
        for target in targets(statement)
        if isinstance(target, ir.Attr)
    }
    return frozenset(bound), written


def _tells_rounds_apart(test: ir.Expr, bound: frozenset[str], written: set[str]) -> bool:
    """Whether a test may differ between rounds: it reads what the loop changes, or calls a function."""
    for part in walk_expression(test):
        if isinstance(part, ir.Name) and part.id in bound:
            return True
        if isinstance(part, ir.Attr) and dotted(part) in written:
            return True
        if isinstance(part, ir.Call) and dotted(part.func) not in _PLAIN:
            return True
    return False


#: calls that keep the values distinct
_SAME = frozenset({"list", "tuple", "array", "asarray", "sorted", "set", "reversed"})
#: most variables between a loop and the literal that it runs over
_MAX_NAMES = 3


def in_one_round(summary: Summary, store: Store) -> bool:
    """Whether a store runs in one round at most: ``if key == "depth":`` in a loop over ``["depth", "pose"]``, or
    over a setting that lists each value once."""
    if store.loop is None or not store.tests:
        return False
    loop = statement_of(summary, store.loop)
    if not isinstance(loop, ir.For):
        return False
    target, values = member_and_whole(loop)
    if not isinstance(target, ir.Name) or any(
        target.id in names_bound_by(inner) for inner in walk_statements(loop.body)
    ):
        return False
    return any(_asks_for(test, target.id) for test in store.tests) and _are_distinct(summary, values, _MAX_NAMES)


def _asks_for(test: ir.Expr, name: str) -> bool:
    """Whether a test, or one operand of its conjunction, is ``name == literal``."""
    if isinstance(test, ir.BoolOp) and test.op == "and":
        return _asks_for(test.left, name) or _asks_for(test.right, name)
    if not isinstance(test, ir.Compare) or test.ops != ("==",):
        return False
    return isinstance(test.left, ir.Name) and test.left.id == name and _constant(test.rights[0]) is not None


def _constant(expr: ir.Expr) -> object:
    """A literal's value, with its sign; None for another expression."""
    if isinstance(expr, ir.Unary) and expr.op == "-" and isinstance(expr.operand, ir.Const):
        return ("-", expr.operand.value)
    return expr.value if isinstance(expr, ir.Const) else None


def _are_distinct(summary: Summary, values: ir.Expr, depth: int) -> bool:
    """Whether an iterable surely has no value twice: a display of literals, a setting, or what leads to one by
    ``depth`` variables."""
    if isinstance(values, ir.Display):
        found = [_constant(item) for item in values.elements]
        return None not in found and len(set(found)) == len(found)
    if isinstance(values, ir.Subscript):
        return isinstance(values.index, ir.Slice) and _are_distinct(summary, values.value, depth)
    if isinstance(values, ir.Call):
        return (
            len(values.args) == 1 and last_name(values.func) in _SAME and _are_distinct(summary, values.args[0], depth)
        )
    if isinstance(values, ir.Attr):
        return SETTINGS.fullmatch(last_name(values.value)) is not None
    if isinstance(values, ir.Name) and depth:
        values_of_name = _assigned_values(summary, values.id)
        return bool(values_of_name) and all(
            one is not None and _are_distinct(summary, one, depth - 1) for one in values_of_name
        )
    return False


def _assigned_values(summary: Summary, name: str) -> list[ir.Expr | None]:
    """The values that a local variable is assigned; None among them for another binding, empty for a parameter or a
    variable of another scope."""
    if name not in summary.function.locals or any(param.name == name for param in summary.function.params):
        return []
    return [
        statement.value
        if isinstance(statement, ir.Assign)
        and all(isinstance(target, ir.Name) for target in statement.targets)
        and not isinstance(statement.value, ir.Name)
        else None
        for statement in walk_statements(summary.function.body, into_definitions=False)
        if name in names_bound_by(statement)
    ]
