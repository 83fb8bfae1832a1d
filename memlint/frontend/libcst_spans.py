"""The spans of a unit's records by libcst, for units whose spans the host's ``ast`` does not determine."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate

import libcst as cst
from libcst._nodes.internal import CodegenState

from memlint.frontend.deep_stack import normalised
from memlint.frontend.expressions import Lowering
from memlint.frontend.lower import in_file
from memlint.frontend.parsing import with_tree
from memlint.frontend.problem import SyntaxProblem
from memlint.frontend.span_table import SpanTable, line_starts
from memlint.frontend.statements import statements
from memlint.frontend.unit_text import UnitText

_Tokens = tuple[int, int]


def libcst_spans(unit: UnitText) -> SpanTable:
    """The spans of the records of ``lower(unit)``. Raises SyntaxProblem if libcst cannot parse it."""
    source = normalised(unit.text)

    def record(tree: cst.Module) -> SpanTable:
        low = _Recorder()
        statements(low, tree.body)
        code = _Code(tree.default_indent, tree.default_newline)
        tree._codegen(code)
        offsets = [0, *accumulate(map(len, code.tokens))]
        text = "".join(code.tokens)
        places = [(offsets[code.spans[first][0]], offsets[code.spans[last][1]]) for first, last in low.nodes]
        headers = {}
        for at, (node, _) in enumerate(low.nodes):
            end = code.header_end(node)
            if end is not None:
                headers[at] = (places[at][0], offsets[end])
        return SpanTable(unit.start_line, line_starts(text), places, headers, _dropped(source, text))

    try:
        return with_tree(source, record)
    except SyntaxProblem as problem:
        raise in_file(problem, unit) from None


def _dropped(source: str, code: str) -> dict[int, int]:
    """By line, the number of characters at its start that libcst does not write: those up to a form feed."""
    if code == source:
        return {}
    pairs = zip(source.split("\n"), code.split("\n"), strict=False)
    return {line: len(was) - len(now) for line, (was, now) in enumerate(pairs, 1) if was != now and was.endswith(now)}


class _Recorder(Lowering):
    """A walk that records the first and last node of each ordinal."""

    __slots__ = ("nodes",)

    def __init__(self) -> None:
        super().__init__()
        self.nodes: list[tuple[cst.CSTNode, cst.CSTNode]] = []

    def enter(self, node: cst.CSTNode, end: cst.CSTNode | None = None) -> int:
        self.nodes.append((node, node if end is None else end))
        return super().enter(node)


class _Code(CodegenState):
    """libcst's code writer, which records the tokens of each node.

    The base class is private to libcst. A test compares the spans with those of libcst's PositionProvider, which takes
    four times as long.
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
