"""What a finding is recognised by when lines move."""

from __future__ import annotations

import hashlib
import io
import tokenize
from collections import Counter

from memlint.patterns import lazy_pattern

#: what formatters put behind the last of several items, once each has its own line
_LAST_COMMA = lazy_pattern(r",(?=[)\]}])")


class Fingerprints:
    """Hands out fingerprints, counting the occurrences of what would else be the same."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, ...]] = Counter()

    def of(self, code: str, path: str, function: str, statement: str) -> str:
        """16 hexadecimal digits for a finding of ``code`` in ``path`` (from the project's root), in the function of
        this qualified name, at a statement of this source. Line numbers and white space play no part.

        Call it in the order of the source: the n-th equal statement of a function keeps its number.
        """
        return self._numbered(code, path, function, "".join(statement.split()))

    def anywhere(self, code: str, function: str, statement: str) -> str:
        """As `of`, whatever the file is called, and however a formatter writes the statement."""
        text = "".join(_without_comments(statement).split())
        return self._numbered(code, function, _LAST_COMMA.sub("", text).replace("'", '"'))

    def _numbered(self, *key: str) -> str:
        self._seen[key] += 1
        parts = "\0".join((*key, str(self._seen[key])))
        return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _without_comments(statement: str) -> str:
    """The statement without the comments between its lines; as it is where the tokenizer gives up."""
    if "#" not in statement:
        return statement
    try:
        # (a header alone, and lines that are indented as they stand in their block, are no whole program)
        tokens = list(tokenize.generate_tokens(io.StringIO(f"({statement}\n)").readline))
    except (tokenize.TokenError, SyntaxError):
        return statement
    return "".join(token.string for token in tokens if token.type != tokenize.COMMENT).strip()[1:-1]
