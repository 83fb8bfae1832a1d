"""What transfer functions ask of the interpreter as a whole: an operand's value, a call's effects, a body's states.

A transfer function stands below the interpreter and gets it from the function state; nothing below imports it.
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
    """The functions of the interpreter. They change the function state and the state that they are given."""

    def evaluate(self, frame: FunctionState, state: State, expr: ir.Expr) -> V:
        """The value of an expression."""

    def evaluate_call(self, frame: FunctionState, state: State, expr: ir.Call) -> V:
        """The value of a call."""

    def call_value(self, frame: FunctionState, state: State, callee: V, args: Args, words: Words, expr: ir.Call) -> V:
        """What a value gives that is called with these arguments."""

    def call_function(
        self,
        frame: FunctionState,
        state: State,
        function: Function,
        args: Args,
        words: Words,
        at: int,
        expr: ir.Call | None,
    ) -> V:
        """What a function of the project gives, by its summary."""

    def block(self, frame: FunctionState, state: State | None, body: tuple[ir.Stmt, ...]) -> State | None:
        """The state behind some statements; None where they do not end."""

    def run(self, frame: FunctionState, state: State, *, backward: bool = False) -> None:
        """Interpret the body of the function, from the state at its beginning. ``backward``: what it returns
        is differentiated by a framework."""
