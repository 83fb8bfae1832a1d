"""Source text of a unit -> its IR."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from memlint.frontend.deep_stack import normalised, on_deep_stack
from memlint.frontend.host import lower_statements
from memlint.frontend.host_expressions import UnknownNodeError
from memlint.frontend.problem import SyntaxProblem
from memlint.frontend.unit_text import UnitText, host_tree
from memlint.ir import nodes as ir

__all__ = ["SyntaxProblem", "in_file", "lower"]


def lower(unit: UnitText, body: Sequence[ast.stmt] | None = None) -> ir.Unit:
    """The IR of ``unit``. Ordinals count in source order, parents first, and are the same in every run.

    ``body``: its statements in the host's tree, if the caller has them. What the host's ``ast`` cannot parse is parsed
    by libcst, which is imported only then. Raises SyntaxProblem, with positions in the file, if neither can parse the
    text, or if it nests too deeply.
    """
    if body is None:
        tree = host_tree(unit.text)
        body = None if tree is None else tree.body
    try:
        if body is not None:
            statements, count = on_deep_stack(normalised(unit.text), lambda: lower_statements(body))
            return ir.Unit(unit.name, statements, count)
    except SyntaxProblem as problem:
        raise in_file(problem, unit) from None
    except UnknownNodeError:
        pass
    return by_libcst(unit)


def by_libcst(unit: UnitText) -> ir.Unit:
    """As `lower`, by libcst."""
    from memlint.frontend.expressions import Lowering
    from memlint.frontend.parsing import with_tree
    from memlint.frontend.statements import statements

    low = Lowering()
    try:
        body = with_tree(normalised(unit.text), lambda tree: statements(low, tree.body))
    except SyntaxProblem as problem:
        raise in_file(problem, unit) from None
    return ir.Unit(unit.name, body, low.at)


def in_file(problem: SyntaxProblem, unit: UnitText) -> SyntaxProblem:
    """``problem`` with its position in the file instead of the unit's text."""
    return SyntaxProblem(problem.message, problem.line + unit.start_line - 1, problem.column)
