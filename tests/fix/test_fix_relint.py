"""What a new run may find after a fix."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from memlint.engine.rules.rooms import load_rooms
from memlint.finding import Edit, Finding, Growth, Severity, Span, Suppressed
from memlint.fix.choice import first
from memlint.fix.edits import Move, place, splice
from memlint.fix.relint import regressions

TEXT = "one()\ntwo()\n"
NONE: Mapping[str, Move] = {}


def finding(code: str, line: int, severity: Severity = "warning", path: str = "a.py", **more: object) -> Finding:
    return Finding(
        code=code, name="", severity=severity, confidence="high", message="", path=path, line=line, column=1,
        end_line=line, end_column=6, growth=Growth("none", "once"), fingerprint=f"{code}{line}", **more,
    )  # fmt: skip


def reasons(
    before: list[Finding], after: list[Finding], fixed: list[Finding], moves: Mapping[str, Move] = NONE
) -> list:
    return [one.reason for one in regressions(before, after, fixed, moves, frozenset({"MEM001"}))]


FIXED = finding("MEM201", 1)


def test_the_fixed_one_must_go() -> None:
    assert reasons([FIXED], [], [FIXED]) == []
    assert reasons([FIXED], [FIXED], [FIXED]) == ["the finding would still be there"]


@pytest.mark.parametrize(
    ("new", "said"),
    [
        (finding("MEM102", 2), "it would give MEM102 at a.py:2"),
        (finding("MEM102", 2, path="b.py"), "it would give MEM102 at b.py:2"),
        (finding("MEM104", 1), "it would give MEM104 at a.py:1"),
        (finding("MEM401", 2, "note"), "it would give MEM401 at a.py:2"),
    ],
)
def test_nothing_new_may_come(new: Finding, said: str) -> None:
    assert reasons([FIXED], [new], [FIXED]) == [said]


def test_a_comment_that_suppressed_what_is_gone_may_be_spoken_of() -> None:
    assert reasons([FIXED], [finding("MEM001", 2)], [FIXED]) == []


def test_what_was_suppressed_must_not_show() -> None:
    hidden = finding("MEM102", 2, suppressed=Suppressed("noqa", None))
    assert reasons([FIXED, hidden], [finding("MEM102", 2)], [FIXED]) == ["it would give MEM102 at a.py:2"]
    assert reasons([FIXED, hidden], [finding("MEM104", 2)], [FIXED]) == ["it would give MEM104 at a.py:2"]
    assert reasons([FIXED, hidden], [hidden], [FIXED]) == []


def test_what_a_vanished_finding_covered_may_come_to_light_if_it_is_no_worse() -> None:
    error, warning = finding("MEM102", 2, "error"), finding("MEM104", 2)
    assert reasons([FIXED, error], [warning], [FIXED]) == []
    assert reasons([FIXED, warning], [error], [FIXED]) == ["it would give MEM102 at a.py:2"]
    assert reasons([FIXED, error], [warning, finding("MEM302", 2)], [FIXED]) == ["it would give MEM302 at a.py:2"]


def test_findings_move_with_the_text() -> None:
    placed = place(TEXT, [Edit("a.py", Span(1, 1, 1, 1), "import torch\n")])
    moves = {"a.py": Move(TEXT, placed, splice(TEXT, placed))}
    other = finding("MEM102", 2)
    assert reasons([FIXED, other], [finding("MEM102", 3)], [FIXED], moves) == []
    assert reasons([FIXED, other], [finding("MEM102", 3), finding("MEM102", 1)], [FIXED], moves) == [
        "it would give MEM102 at a.py:1"
    ]
    assert reasons([FIXED], [finding("MEM104", 3)], [FIXED], moves) == ["it would give MEM104 at a.py:2"]
    assert reasons([FIXED], [finding("MEM201", 2)], [FIXED], moves) == ["the finding would still be there"]


def test_the_fixes_of_the_lowest_rank_come_first() -> None:
    rank = {code: room.meta.fix_rank for code, room in load_rooms().items()}.__getitem__
    cause, others = finding("MEM202", 2), [finding("MEM102", 1), finding("MEM301", 3)]
    assert first([others[0], cause, others[1]], rank) == [cause], "grad mode before what it causes"
    assert first(others, rank) == others
    assert first([], rank) == []
