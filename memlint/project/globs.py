"""A gitignore pattern as a regular expression that is matched in time linear in its stars.

Tried in the plain way, ``a*a*a*…b`` takes time exponential in them. Here each star but the last takes the shortest text
after which what stands behind it follows, and never another: where any choice leads to a match, that one does. A
lookahead whose text is then taken by name is how Python's expressions before 3.11 say that a choice is final.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import msgspec

#: no path is longer, so that a longer pattern matches nothing
MAX_LENGTH = 4096
_STAR = ""
_NAMED = {
    "alnum": "a-zA-Z0-9", "alpha": "a-zA-Z", "blank": r" \t", "cntrl": r"\x00-\x1f\x7f", "digit": "0-9",
    "graph": "!-~", "lower": "a-z", "print": " -~", "punct": r"!-/:-@\[-`{-~", "space": r"\s", "upper": "A-Z",
    "xdigit": "0-9a-fA-F",
}  # fmt: skip


class GlobError(Exception):
    """Why a line is an invalid pattern, a clause; "" if it is merely no pattern."""


class Glob(msgspec.Struct, frozen=True):
    """``negated``: it includes again what an earlier line excluded. ``folders``: it matches folders only. ``anchored``:
    it matches the whole path, not its last component."""

    match: re.Pattern[str]
    negated: bool
    folders: bool
    anchored: bool

    def means(self, path: str, name: str, folder: bool) -> bool:
        """Whether it matches a path (relative, ``/`` between components), whose last component is ``name``."""
        return (folder or not self.folders) and self.match.fullmatch(path if self.anchored else name) is not None


def glob(line: str) -> Glob | None:
    """The pattern of a line; None for an empty one or a comment. Raises GlobError."""
    if len(line) > MAX_LENGTH:
        raise GlobError(f"it is longer than {MAX_LENGTH:,} characters")
    text = _stripped(line)
    if not text or text.startswith("#"):
        return None
    negated = text.startswith("!")
    text = text[negated:]
    folders = text.endswith("/") and not text.endswith("\\/")
    text = text.rstrip("/") if folders else text
    anchored = "/" in text
    parts = text.lstrip("/").split("/")
    if parts == [""]:
        if negated:
            raise GlobError("")
        return None
    try:
        return Glob(re.compile(_Translator().path(parts), re.DOTALL), negated, folders, anchored)
    except re.error as error:
        raise GlobError(error.msg) from None


def _stripped(line: str) -> str:
    """The line without trailing spaces, except one after a backslash."""
    text = line.rstrip(" \t\r\n")
    escaped = len(text) - len(text.rstrip("\\"))
    return text + line[len(text)] if escaped % 2 and len(text) < len(line) else text


class _Translator:
    def __init__(self) -> None:
        self._names = 0

    def path(self, parts: Sequence[str]) -> str:
        """The expression of a whole pattern."""
        if len(parts) == 1:
            return self._part(parts[0])
        groups: list[list[str]] = [[]]
        for part in parts:
            if part != "**":
                groups[-1].append(part)
            elif groups[-1] or len(groups) == 1:  # several in a row are one
                groups.append([])
        first, *rest = groups
        found = "/".join(map(self._part, first))
        if not rest:
            return found
        if first:
            found += "/"
        for group in rest[:-1]:
            found += self._final(f"(?:[^/]+/)*?{'/'.join(map(self._part, group))}/")
        last = rest[-1]
        return found + (f"(?:[^/]+/)*{'/'.join(map(self._part, last))}" if last else ".+")

    def _part(self, text: str) -> str:
        """The expression of the text between two slashes."""
        chunks = [""]
        for one in _characters(text):
            if one != _STAR:
                chunks[-1] += one
            elif chunks[-1] or len(chunks) == 1:  # several in a row are one
                chunks.append("")
        first, *rest = chunks
        if not rest:
            return first
        middle = "".join(self._final(f"[^/]*?{chunk}") for chunk in rest[:-1])
        return f"{first}{middle}[^/]*{rest[-1]}(?=/|\\Z)"

    def _final(self, expression: str) -> str:
        """An atomic version of an expression, which matches only in the first way."""
        self._names += 1
        return f"(?=(?P<n{self._names}>{expression}))(?P=n{self._names})"


def _characters(text: str) -> Iterator[str]:
    """The expression of each character that a part means, and `_STAR` for any of them."""
    at = 0
    while at < len(text):
        char = text[at]
        at += 1
        if char == "*":
            yield _STAR
        elif char == "?":
            yield "[^/]"
        elif char == "[" and (found := _class(text, at)) is not None:
            expression, at = found
            yield expression
        elif char == "\\":
            if at == len(text):
                raise GlobError("")
            yield re.escape(text[at])
            at += 1
        else:
            yield re.escape(char)


def _class(text: str, at: int) -> tuple[str, int] | None:
    """The expression of a class whose bracket opens before ``at``, and where it ends; None where it never does."""
    negated = text[at : at + 1] in ("!", "^")
    at += negated
    start, inside = at, ""
    while at < len(text):
        char = text[at]
        if char == "]" and at > start:
            return f"(?!/)[{'^' if negated else ''}{inside}]", at + 1
        if char == "[" and text.startswith("[:", at) and (end := text.find(":]", at + 2)) > 0:
            name = text[at + 2 : end]
            if name not in _NAMED:
                raise GlobError(f"there is no class of characters [:{name[:20]}:]")
            inside += _NAMED[name]
            at = end + 2
            continue
        if char == "\\" and at + 1 < len(text):
            at += 1
            char = "\\" + text[at]
        elif char == "-" and (at == start or text[at + 1 : at + 2] == "]"):
            char = "\\-"
        inside += re.escape(char[-1]) if char != "-" else "-"
        at += 1
    return None
