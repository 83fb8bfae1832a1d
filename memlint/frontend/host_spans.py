"""The spans of a unit's records by the host's syntax tree: those that libcst gives (a test compares the two), at a
fifth of the cost, and without importing libcst."""

from __future__ import annotations

import ast
import io
import tokenize
import warnings
from bisect import bisect_left
from itertools import accumulate
from typing import Any

from memlint.frontend.deep_stack import normalised, on_deep_stack
from memlint.frontend.host import lower_statements
from memlint.frontend.host_expressions import UnknownNodeError, Walk
from memlint.frontend.problem import SyntaxProblem
from memlint.frontend.span_table import Offsets, SpanTable, line_starts
from memlint.frontend.unit_text import UnitText, host_tree
from memlint.patterns import lazy_pattern
from memlint.remembered import Remembered

#: space, newlines and comments between tokens
_BLANK = lazy_pattern(r"(?:[ \t\f\n]+|\\\n|#[^\n]*)*")
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


class _Recorder(Walk):
    """A walk that records the first and last node of each ordinal."""

    __slots__ = ("nodes",)

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[tuple[ast.AST, ast.AST]] = []

    def enter(self, node: ast.AST, end: ast.AST | None = None) -> int:
        self.nodes.append((node, node if end is None else end))
        return super().enter(node)


def host_spans(unit: UnitText) -> SpanTable | None:
    """The spans of the records of ``lower(unit)``; None if the host's tree does not determine them."""
    found = _offsets(unit.text)
    return None if found is None else SpanTable(unit.start_line, *found)


@Remembered
def _offsets(text: str) -> tuple[list[int], list[Offsets], dict[int, Offsets]] | None:
    """The offsets of the unit's lines, of its records, and of the headers by ordinal; None if they are unknown."""
    text = normalised(text)
    tree = host_tree(text)
    if tree is None:
        return None
    recorder = _Recorder()
    try:
        on_deep_stack(text, lambda: lower_statements(tree.body, recorder))
    except (SyntaxProblem, UnknownNodeError):
        return None
    source = _Source(text)
    spans: list[Offsets] = []
    headers: dict[int, Offsets] = {}
    try:
        for at, (first, last) in enumerate(recorder.nodes):
            spans.append(source.extent(first, last))
            body = getattr(first, "cases", getattr(first, "body", None))
            if isinstance(body, list):
                headers[at] = (spans[at][0], _colon(text, spans[at][0], source.start(body[0])))
    except (_UnsureError, IndexError, SyntaxError, tokenize.TokenError):
        return None
    return source.starts, spans, headers


class _UnsureError(Exception):
    """The host's tree does not determine a span."""


class _Source:
    """The offsets of nodes in the text of a unit, without the brackets around them, as in libcst."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._lines = text.split("\n")
        self.starts = line_starts(text)
        #: for each line with other than ASCII characters: the bytes before each character
        self._bytes: dict[int, list[int]] = {}
        self._slices: set[ast.AST] = set()

    def extent(self, first: ast.AST, last: ast.AST) -> Offsets:
        """From the start of ``first`` to the end of ``last``."""
        start, end = self._own(first)
        if last is first:
            return start, end
        return start, self._behind_closing(self._whole(last)[1])

    def start(self, node: Any) -> int:
        """The start of a statement or case."""
        place = getattr(node, "pattern", node)
        return self._offset(place.lineno, place.col_offset)

    def _own(self, node: Any) -> Offsets:
        start, end = self._whole(node)
        if isinstance(node, ast.GeneratorExp):  # the span includes the brackets of a call
            last = node.generators[-1]
            return self._inside(start, end, last.ifs[-1] if last.ifs else last.iter)
        if isinstance(node, ast.Tuple):
            if self._text[start] == "{":
                raise _UnsureError  # in an f-string, before Python 3.12
            if self._is_in_brackets(node, start):
                return self._inside(start, end, node.elts[-1] if node.elts else None)
            if node in self._slices:  # without the trailing comma
                end = self._behind_closing(self._whole(node.elts[-1])[1])
            return start, end
        if isinstance(node, ast.arg):
            if not self._text.startswith(node.arg, start):
                raise _UnsureError  # Python has normalised the name (NFKC)
            return self._stars(start), start + len(node.arg)
        if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Tuple):
            self._slices.add(node.slice)
        if self._text[end - 1] == ";":  # after the last statement in the body
            while self._text[end - 1] in " \t\f;\\\n":
                end -= 1
        return start, end

    def _whole(self, node: Any) -> Offsets:
        return self._offset(node.lineno, node.col_offset), self._offset(node.end_lineno, node.end_col_offset)

    def _offset(self, line: int, column: int) -> int:
        # columns of `ast` are in bytes
        text, start = self._lines[line - 1], self.starts[line - 1]
        if text.isascii():
            return start + column
        if line not in self._bytes:
            self._bytes[line] = [0, *accumulate(len(character.encode()) for character in text)]
        return start + bisect_left(self._bytes[line], column)

    def _inside(self, start: int, end: int, last: ast.AST | None) -> Offsets:
        """The content of the brackets from ``start`` to ``end``: up to ``last`` and the brackets and comma after it."""
        first = self._behind_blank(start + 1)
        if last is None:
            return first, first
        stop = at = self._whole(last)[1]
        while (at := self._behind_blank(at)) < end - 1:
            if self._text[at] not in "),":
                raise _UnsureError
            stop = at = at + 1
        return first, stop

    def _is_in_brackets(self, node: ast.Tuple, start: int) -> bool:
        """Whether the first bracket is the tuple's, not its first element's."""
        if not node.elts:
            return True
        first, end = self._whole(node.elts[0])
        return self._count("(", start, first) > self._count(")", end, len(self._text))

    def _count(self, bracket: str, at: int, end: int) -> int:
        """The number of brackets in a row from ``at`` on."""
        count = 0
        while (at := self._behind_blank(at)) < end and self._text[at] == bracket:
            count, at = count + 1, at + 1
        return count

    def _behind_closing(self, end: int) -> int:
        at = end
        while (at := self._behind_blank(at)) < len(self._text) and self._text[at] == ")":
            end = at = at + 1
        return end

    def _behind_blank(self, at: int) -> int:
        found = _BLANK.match(self._text, at)
        return at if found is None else found.end()

    def _stars(self, start: int) -> int:
        """The start of a parameter: its stars, else its name."""
        behind = start
        while behind and self._text[behind - 1] in " \t\f\n\\":
            behind -= 1
        line = self._text[self._text.rfind("\n", 0, behind) + 1 : behind]
        code, sharp, _ = line.partition("#")
        if sharp and "*" in (line[-1], code.rstrip()[-1:]):
            raise _UnsureError  # a comment between the star and the name, or one that ends in stars
        return behind - (len(line) - len(line.rstrip("*"))) if line.endswith("*") else start


def _colon(text: str, start: int, body: int) -> int:
    """The offset after the colon that ends the header of a compound statement from ``start`` to its body at
    ``body``."""
    text = text[start:body]
    depth = lambdas = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escapes in the linted code
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            # other types include the text of an f-string, from Python 3.12 on
            what = token.string if token.type in (tokenize.OP, tokenize.NAME) else ""
            if what in _OPENING:
                depth += 1
            elif what in _CLOSING:
                depth -= 1
            elif what == "lambda" and not depth:
                lambdas += 1
            elif what == ":" and not depth:
                if not lambdas:
                    line, column = token.end
                    return start + line_starts(text)[line - 1] + column
                lambdas -= 1
    raise _UnsureError
