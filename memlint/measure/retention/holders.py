"""The graph nodes that hold the storages of a site. A storage that only nodes hold no longer counts for the site when
backward() has freed it, even if something else keeps it.

Nodes have no weak references, and any tensor that was computed from one may keep it, so each check walks all graphs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .graph import function_of, saved_now
from .storages import heap, tensors_among


class Holders:
    """The keys of nodes (see `graph.number`) by the address of a storage, for storages that only nodes hold."""

    def __init__(self) -> None:
        self._nodes: dict[int, set[Any]] = {}

    def new(self, address: int, node: Any) -> None:
        """Note a storage. ``node``: the key of the node that holds it; None if the value itself holds it."""
        self._nodes.pop(address, None)
        if node is not None:
            self._nodes[address] = {node}

    def again(self, address: int, node: Any) -> None:
        """A noted storage is found again, held by another node or by a value."""
        if node is None:
            self._nodes.pop(address, None)
        elif address in self._nodes:
            self._nodes[address].add(node)

    def let_go(self, alive: Mapping[int, Any], torch: Any) -> list[int]:
        """The addresses of the live storages that none of their nodes holds any more. A node that is not found may hold
        its storages still."""
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
    """The ``grad_fn`` of all tensors that exist."""
    roots = map(function_of, tensors_among(heap(), torch))
    return [root for root in roots if root is not None]
