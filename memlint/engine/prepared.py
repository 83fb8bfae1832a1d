"""A project that is ready to be linted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from memlint.engine.filters.proof import Proof
from memlint.engine.judging import Ruling
from memlint.project import Discovery

if TYPE_CHECKING:
    from memlint.engine.filters.baseline import Baseline
    from memlint.engine.filters.changed import Changed


#: the value of `Suppressed.by` for a finding in the baseline
BASELINE = "baseline"


class Prepared(Ruling, frozen=True):
    """One project, with everything that is needed to lint it. ``folders``: the given ones."""

    found: Discovery
    proof: Proof
    baseline: Baseline | None = None
    folders: tuple[Path, ...] = ()
    changed: Changed | None = None
