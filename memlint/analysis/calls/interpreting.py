"""The interpreter that lower layers receive.

See `memlint.analysis.domain.summary.interpreter.Interpreter`.
"""

from memlint.analysis.calls.call import call_value, evaluate_call
from memlint.analysis.calls.functions import call_function
from memlint.analysis.transfer.evaluate import evaluate
from memlint.analysis.transfer.interpret import block, run

__all__ = ["block", "call_function", "call_value", "evaluate", "evaluate_call", "run"]
