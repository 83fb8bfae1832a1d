"""Comments that suppress findings, found by the tokenizer (never in a string)."""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterator, Sequence
from typing import Literal

import msgspec

from memlint.patterns import lazy_pattern

_NOQA = lazy_pattern(
    r"#\s*noqa(?:\s*:\s*(?P<codes>[A-Za-z]+\d+\w*(?:[\s,]+[A-Za-z]+\d+\w*)*))?(?!\w)(?P<rest>.*?)(?=#\s*(?:noqa|memlint)\b|$)",
    re.IGNORECASE,
)
_OURS = lazy_pattern(
    r"#\s*memlint\s*:\s*(?P<word>[A-Za-z][\w-]*)\s*(?:\[(?P<codes>[^\]]*)\])?(?P<rest>.*?)(?=#\s*(?:noqa|memlint)\b|$)",
    re.IGNORECASE,
)

#: (from the last `noqa` on: from each of many in a line, the search would take time quadratic in them)
_MAY_BE_OURS = lazy_pattern(r"noqa(?:(?!noqa)[^\n])*\bmem\w*\d|memlint", re.IGNORECASE)

By = Literal["noqa", "ignore", "ignore-file"]


class Suppression(msgspec.Struct, frozen=True):
    """One comment. ``codes`` are as written; empty for a bare ``# noqa``, which means every rule.

    It covers findings that begin on the lines ``first`` to ``last``; ``line`` and ``column`` (from 1) are its own
    place, ``end_column`` the column after it.
    """

    by: By
    codes: tuple[str, ...]
    reason: str | None
    line: int
    column: int
    end_column: int
    first: int
    last: int


class Malformed(msgspec.Struct, frozen=True):
    """An invalid comment for memlint; ``problem`` says why."""

    line: int
    column: int
    end_column: int
    problem: str


class Comments(msgspec.Struct, frozen=True):
    suppressions: tuple[Suppression, ...] = ()
    malformed: tuple[Malformed, ...] = ()


def may_suppress(text: str) -> bool:
    """Whether the text can hold a comment that suppresses anything."""
    lower = text.lower()
    return "noqa" in lower or "memlint" in lower


def may_be_ours(text: str) -> bool:
    """Whether the text may contain a comment for memlint or its rules."""
    return may_suppress(text) and _MAY_BE_OURS.search(text) is not None


def read(text: str, *, ours_only: bool = False, starts: Sequence[int] = ()) -> Comments:
    """The suppressions of a file, up to the position where it does not tokenize. ``starts``: the first lines of cells,
    if there are any: a comment applies to its own cell. ``ours_only``: nothing was found in the file, so other tools'
    comments do not matter. The tokenizer takes a second for 50,000 lines, so two cheap tests come first."""
    if not (may_be_ours(text) if ours_only else may_suppress(text)):
        return Comments()
    suppressions: list[Suppression] = []
    malformed: list[Malformed] = []
    for comment, first, last in _comments(text, starts):
        for found in _parse(comment, first, last):
            if isinstance(found, Malformed):
                malformed.append(found)
            else:
                suppressions.append(found)
    return Comments(tuple(suppressions), tuple(malformed))


def _comments(text: str, starts: Sequence[int]) -> Iterator[tuple[tokenize.TokenInfo, int, int]]:
    """Each comment with the lines that it covers. After code: its statement, if it is on its first or last line, else
    its own line. Alone on a line: the next statement, where decorators and their definition count as one."""
    inside: list[tokenize.TokenInfo] = []
    waiting: list[tokenize.TokenInfo] = []
    first = 0  # line of the statement that is being read; 0 between statements
    decorators = 0  # line of the first decorator above it; 0 for none
    is_decorator = False
    coming = [*reversed(starts)]
    for token in tokens_of(text):
        while coming and token.start[0] >= coming[-1]:
            coming.pop()
            for comment in waiting:
                yield comment, comment.start[0], comment.start[0]
            waiting = []
        if token.type == tokenize.COMMENT:
            (inside if first else waiting).append(token)
        elif token.type == tokenize.NEWLINE:
            last = token.start[0]
            for comment in inside:
                line = comment.start[0]
                yield (comment, first, last) if line in (first, last) else (comment, line, line)
            if is_decorator:
                decorators = decorators or first
            else:
                for comment in waiting:
                    yield comment, decorators or first, last
                waiting, decorators = [], 0
            inside, first = [], 0
        elif not first and token.type not in LAYOUT:
            first, is_decorator = token.start[0], token.string == "@"
    for comment in (*inside, *waiting):
        yield comment, comment.start[0], comment.start[0]


LAYOUT = frozenset({
    tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING, tokenize.ENDMARKER, tokenize.COMMENT,
})  # fmt: skip


def tokens_of(text: str) -> Iterator[tokenize.TokenInfo]:
    """The tokens of a program, up to the position where it does not tokenize."""
    try:
        yield from tokenize.generate_tokens(io.StringIO(text, newline=None).readline)
    except (tokenize.TokenError, SyntaxError, RecursionError):
        return  # newer grammar than this Python's, or broken code: MEM000 speaks of the latter


def _parse(comment: tokenize.TokenInfo, first: int, last: int) -> Iterator[Suppression | Malformed]:
    """The suppressions in one comment; ``# noqa: E501 # memlint: ignore[MEM101]`` has two."""
    text, (line, start) = comment.string, comment.start
    end = start + 1 + len(text)
    for match in _NOQA.finditer(text):
        codes = _split(match["codes"])
        yield Suppression("noqa", codes, _reason(match["rest"]), line, start + 1 + match.start(), end, first, last)
    for match in _OURS.finditer(text):
        column, word, codes = start + 1 + match.start(), match["word"].lower(), _split(match["codes"])
        if word not in ("ignore", "ignore-file"):
            # prose may begin with "memlint:"; a bracket makes it a directive
            if match["codes"] is not None:
                problem = f"unknown directive `{match['word']}`; there are `ignore[…]` and `ignore-file[…]`"
                yield Malformed(line, column, end, problem)
        elif not codes:
            yield Malformed(line, column, end, f"`{word}` names no rule; write `{word}[MEM101]`")
        else:
            by: By = "ignore" if word == "ignore" else "ignore-file"
            yield Suppression(by, codes, _reason(match["rest"]), line, column, end, first, last)


def codes_at(one: Suppression, line: str) -> int:
    """The offset in its line at which the codes of an ``ignore[…]`` end."""
    match = _OURS.match(line, one.column - 1)
    assert match is not None
    return match.end("codes")


def _split(codes: str | None) -> tuple[str, ...]:
    return tuple(code for code in re.split(r"[\s,]+", codes or "") if code)


def _reason(rest: str) -> str | None:
    _, dashes, reason = rest.partition("--")
    return reason.strip() or None if dashes else None
