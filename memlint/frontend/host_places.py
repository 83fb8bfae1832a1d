"""Where records are by the host's syntax tree, for definitions that the host's ``ast`` reads and libcst does not."""

from __future__ import annotations

import ast
import io
import tokenize
from itertools import accumulate
from typing import Any

from memlint.frontend.host import lower_statements
from memlint.frontend.host_expressions import UnknownNodeError, Walk
from memlint.frontend.problem import SyntaxProblem
from memlint.frontend.room import normalised, with_room
from memlint.frontend.units import UnitText, host_tree

#: offsets of the first character and behind the last one
_Extent = tuple[int, int]
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


class _Recorder(Walk):
    """A walk that remembers the first and last node behind each ordinal."""

    __slots__ = ("nodes",)

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[tuple[ast.AST, ast.AST]] = []

    def enter(self, node: ast.AST, end: ast.AST | None = None) -> int:
        self.nodes.append((node, node if end is None else end))
        return super().enter(node)


def host_places(unit: UnitText) -> tuple[list[int], list[_Extent], dict[int, _Extent]] | None:
    """The offsets at which the unit's lines start, and by ordinal the extents of its records and of the headers of
    compound ones; None where the host's tree does not tell. Brackets around a tuple are part of it here."""
    text = normalised(unit.text)
    tree = host_tree(text)
    if tree is None:
        return None
    recorder = _Recorder()
    try:
        with_room(text, lambda: lower_statements(tree.body, recorder))
    except (SyntaxProblem, UnknownNodeError):
        return None
    lines, starts = text.split("\n"), _line_starts(text)

    def offset(line: int, column: int) -> int:
        # the host counts columns in bytes
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode(errors="replace"))

    spans: list[_Extent] = []
    headers: dict[int, _Extent] = {}
    for at, (first, last) in enumerate(recorder.nodes):
        start, end = _place(first), _place(last)
        spans.append((offset(start[0], start[1]), offset(end[2], end[3])))
        if isinstance(getattr(first, "cases", getattr(first, "body", None)), list):
            headers[at] = (spans[at][0], _colon(text, spans[at]))
    return starts, spans, headers


def _line_starts(text: str) -> list[int]:
    return [0, *accumulate(len(line) + 1 for line in text.split("\n")[:-1])]


def _place(node: Any) -> tuple[int, int, int, int]:
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset


def _colon(text: str, extent: _Extent) -> int:
    """Behind the colon that ends the header of a compound statement."""
    text = text[extent[0] : extent[1]]
    depth = lambdas = 0
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.string in _OPENING:
            depth += 1
        elif token.string in _CLOSING:
            depth -= 1
        elif token.string == "lambda" and not depth:
            lambdas += 1
        elif token.string == ":" and not depth:
            if not lambdas:
                line, column = token.end
                return extent[0] + _line_starts(text)[line - 1] + column
            lambdas -= 1
    return extent[1]
