"""Who keeps what stays, as a report says it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from memlint.verifier.model import Holder


def holders(rows: Iterable[Mapping[str, Any]], shown: Mapping[str, str]) -> tuple[Holder, ...]:
    """The holders that a child wrote. ``shown``: the paths of the program's files as reports show them."""
    return tuple(
        Holder(
            path=row["path"],
            kind=row["kind"],
            where=row["where"],
            file=shown.get(row["file"], row["file"]),
            line=row["line"],
            through=row["through"],
            container=row["container"],
            elements=row["elements"],
            survivors=row["survivors"],
        )
        for row in rows
    )
