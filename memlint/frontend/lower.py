"""Source text of a unit -> its IR."""

from __future__ import annotations

import libcst as cst

from memlint.frontend.expressions import Lowering
from memlint.frontend.parsing import normalised, with_tree
from memlint.frontend.problem import SyntaxProblem
from memlint.frontend.statements import statements
from memlint.frontend.units import UnitText
from memlint.ir import nodes as ir

__all__ = ["SyntaxProblem", "in_file", "lower"]


def lower(unit: UnitText) -> ir.Unit:
    """What ``unit`` says. Ordinals count in source order, parents first, and are the same in every run.

    Raises SyntaxProblem, with places in the file, where libcst cannot parse the text or it nests too deeply.
    """

    def walk(tree: cst.Module) -> ir.Unit:
        low = Lowering()
        body = statements(low, tree.body)
        return ir.Unit(unit.name, body, low.at)

    try:
        return with_tree(normalised(unit.text), walk)
    except SyntaxProblem as problem:
        raise in_file(problem, unit) from None


def in_file(problem: SyntaxProblem, unit: UnitText) -> SyntaxProblem:
    """``problem`` of the unit's text, placed in the file."""
    return SyntaxProblem(problem.message, problem.line + unit.start_line - 1, problem.column)
