"""Fingerprints, which identify findings when lines move."""

from __future__ import annotations

import hashlib
import io
import tokenize
from collections import Counter

from memlint.patterns import lazy_pattern

#: the comma that formatters add after the last of several items on separate lines
_LAST_COMMA = lazy_pattern(r",(?=[)\]}])")


class Fingerprints:
    """Computes fingerprints, numbering those that would be equal."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, ...]] = Counter()

    def of(self, code: str, path: str, function: str, statement: str) -> str:
        """16 hexadecimal digits for a finding of ``code`` in ``path`` (from the project's root), in the function of
        this qualified name, at a statement with this source. Line numbers and white space do not matter. To be called
        in source order: the n-th equal statement of a function keeps its number."""
        return self._numbered(code, path, function, "".join(statement.split()))

    def anywhere(self, code: str, function: str, statement: str) -> str:
        """As `of`, independent of the file's name and of the statement's formatting."""
        text = "".join(_without_comments(statement).split())
        return self._numbered(code, function, _LAST_COMMA.sub("", text).replace("'", '"'))

    def _numbered(self, *key: str) -> str:
        self._seen[key] += 1
        parts = "\0".join((*key, str(self._seen[key])))
        return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _without_comments(statement: str) -> str:
    """The statement without the comments between its lines; unchanged if it does not tokenize."""
    if "#" not in statement:
        return statement
    try:
        # a header alone, and indented lines, are no complete program
        tokens = list(tokenize.generate_tokens(io.StringIO(f"({statement}\n)").readline))
    except (tokenize.TokenError, SyntaxError):
        return statement
    return "".join(token.string for token in tokens if token.type != tokenize.COMMENT).strip()[1:-1]
