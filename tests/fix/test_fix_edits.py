"""Edits on text: made as a simple reference makes them, with the newlines and places of the text."""

from __future__ import annotations

import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlint.finding import Edit, Span
from memlint.fix.edits import Move, place, splice
from memlint.fix.spans import EditError, Text

CHARACTERS = st.lists(st.sampled_from("ab é名\U0001f600\t\x0c\n"), max_size=40).map("".join)
ANY_SPEED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def span(text: str, start: int, end: int) -> Span:
    r"""Offsets as lines and columns, for a text whose newlines are \n."""
    line, end_line = text.count("\n", 0, start) + 1, text.count("\n", 0, end) + 1
    return Span(line, start - text.rfind("\n", 0, start), end_line, end - text.rfind("\n", 0, end))


def edit(text: str, start: int, end: int, content: str) -> Edit:
    return Edit("a.py", span(text, start, end), content)


def reference(text: str, edits: list[tuple[int, int, str]]) -> str:
    """Each character with what is written before it; those that are replaced are gone."""
    before = [""] * (len(text) + 1)
    kept = [*text, ""]
    for start, end, content in sorted(edits, key=lambda one: (one[0], one[1])):
        before[start] += content
        for at in range(start, end):
            kept[at] = ""
    return "".join(before[at] + kept[at] for at in range(len(text) + 1))


@st.composite
def texts_and_edits(draw: st.DrawFn) -> tuple[str, list[tuple[int, int, str]]]:
    text = draw(CHARACTERS)
    cuts = sorted(draw(st.lists(st.integers(0, len(text)), max_size=8)))
    pairs = zip(cuts[::2], cuts[1::2], strict=False)
    return text, [(start, end, draw(CHARACTERS)) for start, end in pairs]


@ANY_SPEED
@given(texts_and_edits())
def test_edits_apart_are_made_as_the_reference_makes_them(drawn: tuple[str, list[tuple[int, int, str]]]) -> None:
    text, edits = drawn
    made = splice(text, place(text, [edit(text, *one) for one in edits]))
    assert made == reference(text, edits)


@ANY_SPEED
@given(CHARACTERS, st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.just("x")), max_size=4))
def test_edits_that_overlap_are_no_edits(text: str, drawn: list[tuple[int, int, str]]) -> None:
    edits = [(min(a, b, len(text)), min(max(a, b), len(text)), content) for a, b, content in drawn]
    overlap = any(one[0] < other[1] and other[0] < one[1] for at, one in enumerate(edits) for other in edits[at + 1 :])
    if overlap:
        with pytest.raises(EditError, match="overlap"):
            place(text, [edit(text, *one) for one in edits])
    else:
        assert splice(text, place(text, [edit(text, *one) for one in edits])) == reference(text, edits)


@ANY_SPEED
@given(texts_and_edits(), st.sampled_from(["\r\n", "\r"]))
def test_newlines_are_those_of_the_file(drawn: tuple[str, list[tuple[int, int, str]]], newline: str) -> None:
    text, edits = drawn
    foreign = text.replace("\n", newline)
    made = splice(foreign, place(foreign, [edit(text, *one) for one in edits]))
    if "\n" in text:
        assert made == reference(text, edits).replace("\n", newline)


@pytest.mark.parametrize(
    ("text", "line", "expected"),
    [
        ("a\r\nb\nc", 1, "X\r\nY\r\na\r\nb\nc"),
        ("a\r\nb\nc", 2, "a\r\nX\nY\nb\nc"),
        ("a\r\nb\nc", 3, "a\r\nb\nX\nY\nc"),
        ("a\rb\r\nc", 1, "X\rY\ra\rb\r\nc"),
        ("a", 1, "X\nY\na"),
        ("", 1, "X\nY\n"),
    ],
)
def test_inserted_lines_take_the_newline_of_the_line_they_stand_on(text: str, line: int, expected: str) -> None:
    at = Edit("a.py", Span(line, 1, line, 1), "X\r\nY\n")
    assert splice(text, place(text, [at])) == expected


@pytest.mark.parametrize(
    "at", [Span(0, 1, 1, 1), Span(1, 0, 1, 1), Span(1, 4, 1, 4), Span(4, 1, 4, 1), Span(2, 1, 1, 1)]
)
def test_places_that_the_text_does_not_have(at: Span) -> None:
    with pytest.raises(EditError):
        place("ab\nc\n", [Edit("a.py", at, "x")])


def test_insertions_at_one_place_keep_their_order() -> None:
    at = Span(1, 2, 1, 2)
    assert splice("ab", place("ab", [Edit("a.py", at, "1"), Edit("a.py", at, "2")])) == "a12b"


@ANY_SPEED
@given(texts_and_edits(), st.data())
def test_a_place_goes_where_the_text_around_it_goes(
    drawn: tuple[str, list[tuple[int, int, str]]], data: st.DataObject
) -> None:
    """A mark beside a character that no edit touches goes with it; a place in a replaced range is all the new text."""
    text, edits = drawn
    placed = place(text, [edit(text, *one) for one in edits])
    after = splice(text, placed)
    at = data.draw(st.integers(0, len(text)))
    old = span(text, at, at)
    move = Move(text, placed, after)
    held = [
        offset
        for offset in range(len(after) + 1)
        if move.holds(old.line, old.column, span(after, offset, offset).line, span(after, offset, offset).column)
    ]
    touching = [one for one in edits if one[0] <= at <= one[1]]
    length = sum(len(content) for _, _, content in touching)
    first = len(reference(text[: min((one[0] for one in touching), default=at)], [
        one for one in edits if one[1] <= at and one not in touching
    ]))  # fmt: skip
    assert held == list(range(first, first + length + 1))


@ANY_SPEED
@given(texts_and_edits(), st.data())
def test_a_place_comes_from_the_line_that_it_was_on(
    drawn: tuple[str, list[tuple[int, int, str]]], data: st.DataObject
) -> None:
    """What stays comes from its own line, what is written from the line that it is written on."""
    text, edits = drawn
    placed = place(text, [edit(text, *one) for one in edits])
    after = splice(text, placed)
    move = Move(text, placed, after)
    at = data.draw(st.integers(0, len(text)))
    new = len(reference(text[:at], [one for one in edits if one[1] <= at]))
    if not any(start <= at < end for start, end, _ in edits):
        kept = span(after, new, new)
        assert move.origin(kept.line, kept.column) == span(text, at, at).line
    for start, end, content in edits:
        if (start, end) == (at, at) and [one for one in edits if one[0] <= at <= one[1]] == [(start, end, content)]:
            for offset in range(new - len(content), new):
                written = span(after, offset, offset)
                assert move.origin(written.line, written.column) == span(text, at, at).line


@ANY_SPEED
@given(st.lists(st.sampled_from("a \x0c\x0b\x1c\x85\u2028\r\n"), max_size=20).map("".join))
def test_lines_and_places_are_those_of_python(text: str) -> None:
    """What rules plan by lines is written by offsets: both must mean the same character of the file."""
    read = Text(text)
    assert read.lines == io.StringIO(text, newline="").readlines()
    at = 0
    for number, line in enumerate(read.lines, 1):
        for column, character in enumerate(line.rstrip("\r\n"), 1):
            assert text[read.offset(number, column)] == character
        assert read.line(at) == read.line(at + len(line) - 1) == number
        at += len(line)
        assert line.endswith(read.newline(number)) or number == len(read.lines)
