"""What transfer functions need of the whole interpreter: an operand's value, a call's effects, a body's states.

A transfer function is in a layer below the interpreter and gets it from the function state; nothing below imports
it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from memlint.analysis.domain.state import State
    from memlint.analysis.domain.summary.function_state import FunctionState
    from memlint.analysis.domain.values import Args, V, Words
    from memlint.analysis.index.function import Function
    from memlint.ir import nodes as ir


class Interpreter(Protocol):
    """The functions of the interpreter. They change the function state and the state that they get."""

    def evaluate(self, fn: FunctionState, state: State, expr: ir.Expr) -> V:
        """The value of an expression."""

    def evaluate_call(self, fn: FunctionState, state: State, expr: ir.Call) -> V:
        """The value of a call."""

    def call_value(self, fn: FunctionState, state: State, callee: V, args: Args, words: Words, expr: ir.Call) -> V:
        """The result of calling a value with these arguments."""

    def call_function(
        self,
        fn: FunctionState,
        state: State,
        function: Function,
        args: Args,
        words: Words,
        at: int,
        expr: ir.Call | None,
    ) -> V:
        """The result of calling a project function, by its summary."""

    def block(self, fn: FunctionState, state: State | None, body: tuple[ir.Stmt, ...]) -> State | None:
        """The state after some statements; None if control does not reach their end."""

    def run(self, fn: FunctionState, state: State, *, backward: bool = False) -> None:
        """Interpret the body of the function from its entry state. ``backward``: a framework runs a backward through
        what it returns."""
