"""Expressions are shown as their author would write them: what is shown means the same."""

from __future__ import annotations

import pytest

from memlint.analysis.syntax.expression_text import text
from memlint.frontend.lower import lower
from memlint.frontend.unit_text import UnitText
from memlint.ir import nodes as ir


@pytest.mark.parametrize(
    "source",
    [
        "(1 - momentum) * old + momentum * new",
        "a - (b - c)",
        "a - b - c",
        "a / (b * c)",
        "-(a + b)",
        "-a ** 2",
        "(-a) ** 2",
        "a ** b ** c",
        "(a ** b) ** c",
        "not (a and b)",
        "(a or b) and c",
        "(a < b) == c",
        "(a + b).mean()",
        "(x if y else z).detach()",
        "x[:, 0]",
        "x[(a, b)[0]]",
        "(a,)",
        "[a, *b]",
        "f(a, key=b + c, **rest)",
        "a & (b | c)",
        "a @ (b + c)",
    ],
)
def test_what_is_shown_means_the_same(source: str) -> None:
    (statement,) = lower(UnitText("", 0, 1, source)).body
    assert isinstance(statement, ir.ExprStmt)
    assert text(statement.value) == source


def test_a_long_expression_is_shortened() -> None:
    (statement,) = lower(UnitText("", 0, 1, " + ".join(["value"] * 40))).body
    assert isinstance(statement, ir.ExprStmt)
    shown = text(statement.value, 30)
    assert len(shown) == 30 and shown.endswith("…")
