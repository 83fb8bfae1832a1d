"""What a finding is recognised by when lines move."""

from __future__ import annotations

import hashlib
from collections import Counter


class Fingerprints:
    """Hands out fingerprints, counting the occurrences of what would else be the same."""

    def __init__(self) -> None:
        self._seen: Counter[tuple[str, ...]] = Counter()

    def of(self, code: str, path: str, function: str, statement: str) -> str:
        """16 hexadecimal digits for a finding of ``code`` in ``path`` (from the project's root), in the function of
        this qualified name, at a statement of this source. Line numbers and white space play no part.

        Call it in the order of the source: the n-th equal statement of a function keeps its number.
        """
        key = (code, path, function, "".join(statement.split()))
        self._seen[key] += 1
        parts = "\0".join((*key, str(self._seen[key])))
        return hashlib.sha256(parts.encode("utf-8", "surrogatepass")).hexdigest()[:16]
