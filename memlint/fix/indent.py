"""Indentation of statements: of lines that are not inside strings."""

from __future__ import annotations

import functools
import io
import tokenize
from collections import Counter

from memlint.finding import Span
from memlint.fix.spans import Text

_STRINGS = {tokenize.STRING, getattr(tokenize, "FSTRING_MIDDLE", -1), getattr(tokenize, "TSTRING_MIDDLE", -1)}


def indented(text: Text, first: int, last: int, unit: str) -> list[tuple[Span, str]] | None:
    """The edits that indent the lines from ``first`` to ``last`` by one unit; None if they do not tokenize. Comments to
    the left of the block (commented-out code in the first column) stay."""
    inside = _inside_strings(text.whole)
    if inside is None:
        return None
    depth = len(text.indent(first))
    kept = {
        line
        for line in range(first, last + 1)
        if line in inside or (text.lines[line - 1].lstrip().startswith("#") and len(text.indent(line)) < depth)
    }
    return [
        (Span(line, 1, line, 1), unit)
        for line in range(first, last + 1)
        if line not in kept and text.lines[line - 1].strip()
    ]


@functools.lru_cache(maxsize=4)
def _inside_strings(source: str) -> frozenset[int] | None:
    """The lines that begin inside a string, whose blanks are part of its value, or after a backslash in one."""
    kept: set[int] = set()
    opened: list[int] = []
    start, end = getattr(tokenize, "FSTRING_START", -1), getattr(tokenize, "FSTRING_END", -1)
    starts, ends = {start, getattr(tokenize, "TSTRING_START", -1)}, {end, getattr(tokenize, "TSTRING_END", -1)}
    try:
        for token in tokenize.generate_tokens(io.StringIO(source, newline="").readline):
            if token.type == tokenize.STRING:
                kept.update(range(token.start[0] + 1, token.end[0] + 1))
            elif token.type in starts and token.type != -1:
                opened.append(token.start[0])
            elif token.type in ends and token.type != -1:
                kept.update(range(opened.pop() + 1, token.end[0] + 1))
    except (tokenize.TokenError, SyntaxError, IndentationError):
        return None
    return frozenset(kept)


def unit_of(text: Text, indent: str) -> str:
    """The file's unit of indentation: a tab, or the most frequent number of blanks."""
    return "\t" if "\t" in indent else _likely_unit(text.whole, bool(indent))


@functools.lru_cache(maxsize=4)
def _likely_unit(source: str, blanks: bool) -> str:
    """``blanks``: the unit consists of blanks."""
    steps: Counter[str] = Counter()
    before = 0
    for line in Text(source).lines:
        bare = line.lstrip(" ")
        if line.startswith("\t"):
            steps["\t"] += 1
        elif bare.strip():
            depth = len(line) - len(bare)
            if depth > before:
                steps[" " * (depth - before)] += 1
            before = depth
    if blanks:
        steps.pop("\t", None)
    likely = {step: count for step, count in steps.items() if step == "\t" or len(step) in (1, 2, 3, 4, 8)}
    return max(likely, key=lambda step: likely[step]) if likely else "    "
