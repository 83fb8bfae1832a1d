"""Tests that limit how often a point is reached: every few iterations, in the first ones, or up to a limit."""

from __future__ import annotations

import math

from memlint.analysis.domain.state import State
from memlint.analysis.domain.summary.effects import LoopState
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.syntax.bindings import reads_any
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import dotted, walk_expression, walk_statements
from memlint.ir import nodes as ir

#: marks a reset after so few iterations, by a literal, that the growth does not matter
FEW = "few"
#: growth over at most so many iterations, by a literal, does not matter
MAX_PERIOD = 16


def resets_soon(fn: FunctionState) -> bool:
    """Whether the current point is reached once in a small, literal number of iterations."""
    return any(_period(test) <= MAX_PERIOD for test in fn.tests)


def resets_in_time(fn: FunctionState) -> bool:
    """Whether the current point is reached once in some number of iterations: ``step % log_interval == 0``."""
    return any(is_periodic(test.operand if isinstance(test, ir.Unary) else test) for test in fn.tests)


@kept
def is_periodic(test: ir.Expr) -> bool:
    """Whether a test, or a comparison in it, is on a remainder: ``step % n == 0``, ``step % n``."""
    sides = [test, *(part.left for part in walk_expression(test) if isinstance(part, ir.Compare))]
    return any(isinstance(side, ir.Binary) and side.op == "%" and not isinstance(side.left, ir.Const) for side in sides)


def first_rounds(fn: FunctionState) -> bool:
    """Whether the current point is reached in one given iteration or in the first ones: ``i == 0``, ``i < 3``,
    ``len(kept) < limit``, ``kept.size(0) < limit``."""
    return any(_first(part) or _fills(fn, part) for test in fn.tests for part in conjuncts(test))


def few_members(fn: FunctionState) -> bool:
    """Whether the current point is reached while a container has few members, by a literal: ``len(kept) < 10``."""
    return any(
        isinstance(part, ir.Compare)
        and part.ops in (("<",), ("<=",))
        and _measures(part.left)
        and isinstance(limit := part.rights[0], ir.Const)
        and isinstance(limit.value, int)
        and limit.value <= MAX_PERIOD
        for test in fn.tests
        for part in conjuncts(test)
    )


def _measures(expr: ir.Expr) -> bool:
    """Whether an expression is a length: ``len(kept)``, ``kept.size(0)``, ``kept.shape[0]``."""
    if isinstance(expr, ir.Subscript):
        return isinstance(expr.value, ir.Attr) and expr.value.name == "shape" and text(expr.index) == "0"
    if not isinstance(expr, ir.Call):
        return False
    if isinstance(expr.func, ir.Attr):
        return expr.func.name == "size" and [text(arg) for arg in expr.args] == ["0"]
    return isinstance(expr.func, ir.Name) and expr.func.id == "len"


def _fills(fn: FunctionState, test: ir.Expr) -> bool:
    """Whether a test compares a counter that the branch increments: ``if self.count < self.size:``, a pool that is
    filled once."""
    if not isinstance(test, ir.Compare) or test.ops not in (("<",), ("<=",)):
        return False
    counted = text(test.left)
    return any(
        isinstance(inner, ir.AugAssign)
        and inner.op == "+"
        and text(inner.target) == counted
        and isinstance(inner.value, ir.Const)
        for statement in walk_statements(fn.function.body, into_definitions=False)
        if isinstance(statement, ir.If) and any(part is test for part in walk_expression(statement.test))
        for inner in statement.body
    )


@kept
def _ways_out(body: tuple[ir.Stmt, ...]) -> tuple[ir.If, ...]:
    """The ``if`` statements of a loop's body that break."""
    return tuple(
        statement
        for statement in body
        if isinstance(statement, ir.If)
        and any(isinstance(inner, ir.Jump) and inner.kind == "break" for inner in statement.body)
    )


def ends_early(loop: LoopState) -> bool:
    """Whether the loop counts its iterations, or what it collects, and breaks at a limit: ``if i >= limit: break``."""
    return any(_at_limit(loop, statement.test) for statement in _ways_out(loop.body))


def runs_once(loop: LoopState) -> bool:
    """Whether the loop ends in its first iteration, or at the start of the second: ``if i > 0: break``."""
    return any(isinstance(statement, ir.Jump) and statement.kind == "break" for statement in loop.body) or any(
        _counted_to(loop, statement.test) <= (1 if statement is loop.body[0] else 0)
        for statement in _ways_out(loop.body)
    )


def _counted_to(loop: LoopState, test: ir.Expr) -> float:
    """The number of the iteration in which a test on the counter first holds; infinity if unknown."""
    if not isinstance(test, ir.Compare) or not isinstance(test.left, ir.Name) or test.left.id not in loop.counters:
        return math.inf
    limit = test.rights[0].value if isinstance(test.rights[0], ir.Const) else None
    if not isinstance(limit, int) or test.ops[0] not in (">=", ">", "=="):
        return math.inf
    return limit + 1 if test.ops[0] == ">" else limit


def ends_soon(loop: LoopState) -> bool:
    """Whether the loop ends after a few iterations, by a literal: ``if i == 5: break``."""
    return any(
        isinstance(statement.test, ir.Compare)
        and isinstance(limit := statement.test.rights[0], ir.Const)
        and isinstance(limit.value, int)
        and limit.value <= MAX_PERIOD
        and isinstance(statement.test.left, ir.Name)
        and statement.test.left.id in loop.counters
        and statement.test.ops[0] in (">=", ">", "==")
        for statement in _ways_out(loop.body)
    )


def _at_limit(loop: LoopState, test: ir.Expr) -> bool:
    if isinstance(test, ir.BoolOp):
        sides = (_at_limit(loop, test.left), _at_limit(loop, test.right))
        return any(sides) if test.op == "or" else all(sides)
    if not isinstance(test, ir.Compare) or len(test.ops) != 1 or test.ops[0] not in (">=", ">", "=="):
        return False
    counted = test.left.left if isinstance(test.left, ir.Binary) and test.left.op == "+" else test.left
    if isinstance(counted, ir.Call):
        return dotted(counted.func).rsplit(".", 1)[-1] in ("len", "sum", "size", "numel")
    return isinstance(counted, ir.Name) and (
        counted.id in loop.counters
        or any(
            isinstance(statement, ir.AugAssign)
            and isinstance(statement.target, ir.Name)
            and statement.target.id == counted.id
            for statement in walk_statements(loop.body)
        )
    )


def switched(fn: FunctionState, state: State, loop: LoopState) -> bool:
    """Whether the tests around the current point have the same result in each iteration of the loop. What they guard
    then happens in every iteration, or in none because the feature is off."""
    return all(_is_fixed(state, test) and not reads_any(test, loop.bound) for test in fn.tests)


def is_flag(state: State, test: ir.Expr) -> bool:
    """Whether the test reads only attributes that the function does not change (``if self.args.keep:``)."""
    return _is_fixed(state, test) and any(isinstance(part, ir.Attr) for part in walk_expression(test))


def _is_fixed(state: State, test: ir.Expr) -> bool:
    """Whether a test computes nothing, and reads no attribute that the function changes."""
    return not any(
        isinstance(part, ir.Call | ir.Subscript | ir.Compare | ir.Binary)
        or (isinstance(part, ir.Attr) and any(path.steps[-1:] == (f".{part.name}",) for path in state.sym))
        for part in walk_expression(test)
    )


def conjuncts(test: ir.Expr) -> tuple[ir.Expr, ...]:
    """The tests that all hold where a test does: the parts of ``a and b``, or the test itself."""
    return (
        (*conjuncts(test.left), *conjuncts(test.right)) if isinstance(test, ir.BoolOp) and test.op == "and" else (test,)
    )


def _first(test: ir.Expr) -> bool:
    if not isinstance(test, ir.Compare) or len(test.ops) != 1:
        return False
    left, right = test.left, test.rights[0]
    if _measures(left):
        return test.ops[0] in ("<", "<=")
    if not isinstance(left, ir.Name | ir.Attr):
        return False
    name = (left.id if isinstance(left, ir.Name) else left.name).lower()
    if not (
        name in ("i", "j", "k", "n", "b", "it", "ii", "idx", "step", "iteration", "index", "count", "num")
        or name.endswith(("_idx", "_i", "_step", "_index", "idx", "_id", "_count"))
    ):
        return False
    if test.ops[0] == "==":
        return isinstance(right, ir.Const) and isinstance(right.value, int)
    return test.ops[0] in ("<", "<=")


@kept
def _period(test: ir.Expr) -> int:
    """``k`` of ``i % k == c``; a large number for another test."""
    for part in walk_expression(test):
        if (
            isinstance(part, ir.Binary)
            and part.op == "%"
            and isinstance(part.right, ir.Const)
            and isinstance(part.right.value, int)
        ):
            return part.right.value
        if isinstance(part, ir.Attr) and part.name == "sync_gradients":
            return 1  # Accelerate's: the last of the few batches of one optimizer step
    return 1 << 30
