"""Which graph nodes hold the storages of a site: what only nodes hold is let go when backward() frees what they saved.

The storage may live on, kept by another place; it is that place's then. A node cannot be referred to weakly, and what
keeps it may be any tensor computed from it, so all graphs that there are are walked, at the few times of a check.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .graph import function_of, saved_now
from .storages import heap, tensors_among


class Holders:
    """The nodes by the address of a storage. One that a stored tensor is of, or a leaf, is held by no node."""

    def __init__(self) -> None:
        self._nodes: dict[int, set[Any]] = {}

    def new(self, address: int, node: Any) -> None:
        """A storage is noted. ``node``: what tells the node that holds it, None where it is held for as long as the
        value is kept."""
        self._nodes.pop(address, None)
        if node is not None:
            self._nodes[address] = {node}

    def again(self, address: int, node: Any) -> None:
        """A storage that was noted is met in another way."""
        if node is None:
            self._nodes.pop(address, None)
        elif address in self._nodes:
            self._nodes[address].add(node)

    def let_go(self, alive: Mapping[int, Any], torch: Any) -> list[int]:
        """Of the storages that are alive, by address, those that all of their nodes are seen to hold no more. Nodes
        that are not met say nothing."""
        asked = {address: nodes for address, nodes in self._nodes.items() if address in alive}
        if not asked:
            return []
        with torch._C.DisableTorchFunctionSubclass():
            saved = saved_now(_roots(torch), set().union(*asked.values()), torch)
        gone = []
        for address, nodes in asked.items():
            held = [storage for node in nodes for storage in saved.get(node, ())]
            if all(node in saved for node in nodes) and all(each is not alive[address] for each in held):
                gone.append(address)
                del self._nodes[address]
        return gone


def _roots(torch: Any) -> list[Any]:
    """The functions that made the tensors there are."""
    roots = map(function_of, tensors_among(heap(), torch))
    return [root for root in roots if root is not None]
