"""The interpreter, as what stands below it is handed it: see `memlint.flow.interpreter.Interpreter`."""

from memlint.flow.call import call_value, evaluate_call
from memlint.flow.evaluate import evaluate
from memlint.flow.functions import call_function
from memlint.flow.interpret import block, run

__all__ = ["block", "call_function", "call_value", "evaluate", "evaluate_call", "run"]
