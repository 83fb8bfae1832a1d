"""The time and the parts of each device's peak memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from memlint.verifier.model import Peak

#: the largest ratio at which the parts of a lower peak are reported for a higher one
_NEAR = 1.1


def peaks(measured: Mapping[str, Any], names: Mapping[int, str]) -> Iterator[Peak]:
    """The peaks of one process. ``names``: of its loops, by their ids."""
    for row in measured.get("peaks", ()):
        kept = row["kept"] if row["bytes"] <= _NEAR * row["known_at"] else None
        parts = {} if kept is None else dict(kept)
        rest = row["bytes"] - sum(parts.values())
        if rest < 0:  # allocated unobserved, by another thread or before the first step
            parts = {}
        phase = "evaluation" if not row["grad"] else "training" if parts.get("gradients") else ""
        yield Peak(
            device=row["device"],
            bytes=row["bytes"],
            step=row["step"],
            loop=names.get(row["loop"], ""),
            phase=phase,
            parts={**parts, "rest": rest} if parts else {},
        )
