"""The storages that existed at a time, which do not count for later hits."""

from __future__ import annotations

import weakref
from typing import Any

from .storages import heap, storage_of, tensors_among


class Old:
    """The storages of all tensors that existed when it was made: data sets, parameters, buffers."""

    def __init__(self, torch: Any) -> None:
        self._references: dict[int, Any] = {}
        for each in tensors_among(heap(), torch):
            storage = storage_of(each)
            if storage is not None:
                self._references[storage._cdata] = weakref.ref(storage)

    def addresses(self) -> set[int]:
        """The addresses of those that are still live."""
        return {key for key, reference in self._references.items() if reference() is not None}

    def __contains__(self, storage: Any) -> bool:
        reference = self._references.get(storage._cdata)
        return reference is not None and reference() is storage
