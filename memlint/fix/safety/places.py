"""Where a change belongs that fixes what a judge has found, as it asks (`FixPlaces`)."""

from __future__ import annotations

from memlint.fix.safety.blocks import with_places
from memlint.fix.safety.cuts import cut_of
from memlint.fix.safety.gather import gather_of

__all__ = ["cut_of", "gather_of", "with_places"]
