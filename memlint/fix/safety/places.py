"""The places of fixes for the judges, as `FixPlaces` declares them."""

from __future__ import annotations

from memlint.fix.safety.blocks import with_places
from memlint.fix.safety.cuts import cut_of
from memlint.fix.safety.gather import gather_of

__all__ = ["cut_of", "gather_of", "with_places"]
