"""Where the records of a unit are in its file."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate

import libcst as cst
from libcst._nodes.internal import CodegenState

from memlint.finding import Span
from memlint.frontend.expressions import Lowering
from memlint.frontend.host_places import host_places
from memlint.frontend.lower import in_file
from memlint.frontend.parsing import with_tree
from memlint.frontend.problem import SyntaxProblem
from memlint.frontend.room import normalised
from memlint.frontend.statements import statements
from memlint.frontend.units import UnitText

_Tokens = tuple[int, int]


class SpanTable:
    """Spans of a unit's records by their ordinal, in the file's lines and columns.

    A span holds no comment, newline or parenthesis around the record. That of a decorated definition starts
    at ``def`` or ``class``.
    """

    def __init__(
        self,
        start_line: int,
        lines: list[int],
        dropped: dict[int, int],
        spans: list[_Tokens],
        headers: dict[int, _Tokens],
    ) -> None:
        self._start_line = start_line
        self._lines = lines
        self._dropped = dropped
        self._spans = spans
        self._headers = headers

    def __len__(self) -> int:
        return len(self._spans)

    def __getitem__(self, at: int) -> Span:
        """The whole extent of a record. Raises IndexError for an ordinal that the unit did not use."""
        return self._span(*self._spans[at])

    def header(self, at: int) -> Span:
        """The header of a compound statement or handler up to its colon (``for x in y:``); the span of any other."""
        return self._span(*self._headers.get(at, self._spans[at]))

    def _span(self, start: int, end: int) -> Span:
        line, column = self._position(start)
        end_line, end_column = self._position(end)
        return Span(line, column, end_line, end_column)

    def _position(self, offset: int) -> tuple[int, int]:
        line = bisect_right(self._lines, offset)
        return line + self._start_line - 1, offset - self._lines[line - 1] + 1 + self._dropped.get(line, 0)


def placed(unit: UnitText, count: int) -> SpanTable:
    """As `spans`, for a unit of ``count`` ordinals; where libcst does not read what the host's ``ast`` did, by that.
    Where the two number a definition's records each in its way, all are at its first line."""
    try:
        table = spans(unit)
        if len(table) == count:
            return table
    except SyntaxProblem:
        pass
    places = host_places(unit)
    if places is None or len(places[1]) != count:
        return SpanTable(unit.start_line, [0], {}, [(0, 0)] * count, {})
    lines, extents, headers = places
    return SpanTable(unit.start_line, lines, {}, extents, headers)


def spans(unit: UnitText) -> SpanTable:
    """Where each record of ``lower(unit)`` is. Raises SyntaxProblem where libcst cannot parse it."""

    source = normalised(unit.text)

    def record(tree: cst.Module) -> SpanTable:
        low = _Recorder()
        statements(low, tree.body)
        code = _Code(tree.default_indent, tree.default_newline)
        tree._codegen(code)
        offsets = [0, *accumulate(map(len, code.tokens))]
        text = "".join(code.tokens)
        lines = [0, *[i + 1 for i, character in enumerate(text) if character == "\n"]]
        places = [(offsets[code.spans[first][0]], offsets[code.spans[last][1]]) for first, last in low.nodes]
        headers = {}
        for at, (node, _) in enumerate(low.nodes):
            end = code.header_end(node)
            if end is not None:
                headers[at] = (places[at][0], offsets[end])
        return SpanTable(unit.start_line, lines, _dropped(source, text), places, headers)

    try:
        return with_tree(source, record)
    except SyntaxProblem as problem:
        raise in_file(problem, unit) from None


def _dropped(source: str, code: str) -> dict[int, int]:
    """Line -> characters at its start that libcst did not write again: those up to a form feed."""
    if code == source:
        return {}
    pairs = zip(source.split("\n"), code.split("\n"), strict=False)
    return {line: len(was) - len(now) for line, (was, now) in enumerate(pairs, 1) if was != now and was.endswith(now)}


class _Recorder(Lowering):
    """A walk that remembers the first and last node behind each ordinal."""

    __slots__ = ("nodes",)

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[tuple[cst.CSTNode, cst.CSTNode]] = []

    def enter(self, node: cst.CSTNode, end: cst.CSTNode | None = None) -> int:
        self.nodes.append((node, node if end is None else end))
        return super().enter(node)


class _Code(CodegenState):
    """libcst's code writer, noting which tokens each node wrote.

    The class is private to libcst; a test holds the spans against its PositionProvider, which takes four
    times as long.
    """

    def __init__(self, default_indent: str, default_newline: str) -> None:
        super().__init__(default_indent=default_indent, default_newline=default_newline)
        self.spans: dict[cst.CSTNode, _Tokens] = {}
        self._starts: list[int] = []
        self._bodies: dict[cst.CSTNode, int] = {}

    def before_codegen(self, node: cst.CSTNode) -> None:
        self._starts.append(len(self.tokens))

    def after_codegen(self, node: cst.CSTNode) -> None:
        start = self._starts.pop()
        if isinstance(node, cst.BaseSuite):
            self._bodies[node] = start
        if node not in self.spans:
            self.spans[node] = (start, len(self.tokens))

    @contextmanager
    def record_syntactic_position(
        self, node: cst.CSTNode, *, start_node: cst.CSTNode | None = None, end_node: cst.CSTNode | None = None
    ) -> Iterator[None]:
        start = len(self.tokens)
        yield
        first = start if start_node is None else self.spans[start_node][0]
        last = len(self.tokens) if end_node is None else self.spans[end_node][1]
        self.spans[node] = (first, last)

    def header_end(self, node: cst.CSTNode) -> int | None:
        """The token after the colon that opens the node's body; None for nodes without one."""
        if isinstance(node, cst.Match):
            return self._colon_before(self.spans[node.cases[0]][0]) if node.cases else None
        body = getattr(node, "body", None)
        return self._bodies.get(body) if isinstance(body, cst.BaseSuite) else None

    def _colon_before(self, token: int) -> int:
        while self.tokens[token - 1] != ":":
            token -= 1
        return token
