"""Which fixes are made at the same time, and what they make together."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlint.finding import Edit, Finding, Fix, Growth, Safety, Span, Suppressed
from memlint.fix.choice import apart, fixable, merged

IMPORT = ("import torch\n", 1, 1)
Row = tuple[str, int, int] | tuple[str, int, int, int, int]


def finding(*rows: Row, line: int = 1, safety: Safety = "safe", suppressed: Suppressed | None = None) -> Finding:
    edits = tuple(
        Edit("a.py", Span(row[1], row[2], *(row[3:] or row[1:3])), row[0])  # type: ignore[arg-type]
        for row in rows
    )
    return Finding(
        code="MEM901", name="toy", severity="warning", confidence="high", message="", path="a.py", line=line, column=1,
        end_line=line, end_column=2, growth=Growth("none", "once"), fix=Fix(safety, f"{line}", None, edits),
        suppressed=suppressed,
    )  # fmt: skip


def test_what_may_be_fixed() -> None:
    safe, unsafe = finding(("x", 9, 1), line=9), finding(("x", 2, 1), line=2, safety="unsafe")
    rest = [
        finding(("x", 1, 1), safety="display"),
        finding(("x", 3, 1), suppressed=Suppressed("noqa", None)),
        finding(),
    ]
    assert fixable([safe, unsafe, *rest], unsafe=False) == [safe]
    assert fixable([safe, unsafe, *rest], unsafe=True) == [unsafe, safe], "in order of place"


def test_an_import_that_two_fixes_want_is_made_once() -> None:
    one, two = finding(IMPORT, (".detach()", 5, 9), line=5), finding(IMPORT, (".detach()", 7, 9), line=7)
    assert apart([one, two]) == [one, two]
    assert [edit.content for edit in merged([one, two])["a.py"]] == ["import torch\n", ".detach()", ".detach()"]


def test_different_imports_at_one_place_wait_for_each_other() -> None:
    one, two = finding(IMPORT, ("x", 5, 9), line=5), finding(("import torch as t\n", 1, 1), ("x", 7, 9), line=7)
    assert apart([one, two]) == [one]


def test_the_same_fix_for_two_findings_is_made_once() -> None:
    one, two = finding(("(", 5, 1), (").x", 5, 9), line=5), finding(("(", 5, 1), (").x", 5, 9), line=6)
    assert apart([one, two]) == [one, two]
    assert [edit.content for edit in merged([one, two])["a.py"]] == ["(", ").x"]


def test_a_fix_takes_all_between_its_edits_and_what_touches_it() -> None:
    block = finding(("with no_grad():\n    ", 5, 1), ("    ", 6, 1), ("    ", 7, 1), line=5)
    inside, touching, beside = (finding(("x", *at), line=at[0]) for at in ((6, 9), (7, 1), (7, 2)))
    assert apart([block, inside, touching, beside]) == [block, beside]
    assert apart([inside, block, touching, beside]) == [inside, touching, beside]


def test_insertions_at_one_place_wait_unless_they_are_the_same_fix() -> None:
    one, two = finding((".x", 5, 9), line=5), finding((".y", 5, 9), line=6)
    assert apart([one, two]) == [one]


Rows = st.lists(
    st.lists(st.tuples(st.just("x"), st.integers(1, 9), st.integers(1, 3)), min_size=1, max_size=3), max_size=8
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(Rows)
def test_of_fixes_that_touch_the_first_is_made(rows: list[list[Row]]) -> None:
    findings = [finding(*fix, line=line) for line, fix in enumerate(rows, 1)]
    expected: list[Finding] = []
    for one in findings:
        reach = [
            [(edit.span.line, edit.span.column) for edit in other.fix.edits] for other in (one, *expected) if other.fix
        ]
        if all(max(reach[0]) < min(taken) or max(taken) < min(reach[0]) for taken in reach[1:]) or any(
            one.fix is not None and other.fix is not None and one.fix.edits == other.fix.edits for other in expected
        ):
            expected.append(one)
    assert apart(findings) == expected


def test_equal_brackets_of_different_fixes_are_both_needed() -> None:
    one, two = finding(("(", 5, 1), (").x", 5, 5), line=5), finding(("(", 5, 1), (").y", 5, 9), line=6)
    assert apart([one, two]) == [one]
