"""Loops over distinct values: a store under a test for one of them runs in one iteration at most."""

from __future__ import annotations

from memlint.analysis.domain.summary.effects import Store
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.index.mentions import SETTINGS
from memlint.analysis.syntax.bindings import names_bound_by
from memlint.analysis.syntax.syntax import last_name, walk_statements
from memlint.analysis.transfer.loops import member_and_whole
from memlint.analysis.transfer.stores.first_round import statement_of
from memlint.ir import nodes as ir

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
