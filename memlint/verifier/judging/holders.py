"""The holders of remaining memory, as a report shows them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from memlint.verifier.model import Holder


def holders(rows: Iterable[Mapping[str, Any]], shown: Mapping[str, str]) -> tuple[Holder, ...]:
    """The holders that a child wrote. ``shown``: the paths of the program's files as reports show them."""
    return tuple(msgspec.convert({**row, "file": shown.get(row["file"], row["file"])}, Holder) for row in rows)
