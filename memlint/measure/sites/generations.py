"""What one hit of a flagged place kept: storages and graph nodes, by weak reference."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

from ..memory.meters import Bytes
from ..retention.owners import Target
from ..retention.storages import strong

#: hits that must leave something before anybody is asked who keeps it
_FEWEST = 3


class Token:
    """Lives as long as the graph node whose metadata holds it. ``node``: what tells that from others."""

    __slots__ = ("__weakref__", "node")

    def __init__(self, node: Any) -> None:
        self.node = node


class Generation:
    """What one hit kept at the time. ``iteration``: the run of the innermost loop, and which iteration of it.
    ``size``: the bytes of its storages when it kept them. ``collected``: Python's own collections of garbage have freed
    them since."""

    __slots__ = ("blocks", "collected", "hit", "iteration", "nodes", "size", "tokens", "walked")

    def __init__(self, iteration: tuple[int, int]) -> None:
        self.iteration = iteration
        self.blocks: list[tuple[Any, str]] = []
        self.nodes = 0
        self.tokens: list[Any] = []
        self.hit = 0
        self.walked = False
        self.size: Bytes = {}
        self.collected = False

    def uncollected(self) -> Bytes:
        """What would be alive had no garbage been collected."""
        return dict(self.size) if self.collected else self.alive()

    @property
    def kept_something(self) -> bool:
        """Whether the hit kept anything at all."""
        return bool(self.blocks or self.tokens)

    def stays(self) -> bool:
        """Whether any of it is still there."""
        return bool(self.alive()) or bool(self.nodes_alive())

    def sample(self) -> Any:
        """One thing of it that is still there: a storage, else what lives as long as a graph node."""
        there = (reference() for reference in (*(each for each, _ in self.blocks), *self.tokens))
        return next((each for each in there if each is not None), None)

    def survivors(self) -> list[Target]:
        """Of what is still there, the value itself, the largest that it keeps, and its graph node."""
        storages = [storage for reference, _ in self.blocks if (storage := strong(reference)) is not None]
        few = [*storages[:1], max(storages[1:], key=lambda storage: storage.nbytes(), default=None)]
        found = [Target(each._cdata, each.nbytes(), each) for each in few if each is not None]
        nodes = [token.node for reference in self.tokens if (token := reference()) is not None]
        return found + [Target(node) for node in nodes[:1] if node is not None]

    def is_kept(self) -> bool:
        """Whether the first of its storages, that of the value itself, is still there."""
        return bool(self.blocks) and self.blocks[0][0]() is not None

    def alive(self, elsewhere: Container[int] = ()) -> Bytes:
        """The bytes of this generation's storages that are still there, by device. Not those of ``elsewhere``, by
        address."""
        found: Bytes = {}
        for reference, device in self.blocks:
            storage = reference()
            if storage is not None and storage._cdata not in elsewhere:
                nbytes = storage.nbytes()
                if nbytes:
                    found[device] = found.get(device, 0) + nbytes
        return found

    def drop(self, storages: Container[int]) -> None:
        """Count these storages, by address, no more: others keep them."""
        kept = []
        for reference, device in self.blocks:
            storage = reference()
            if storage is not None and storage._cdata in storages:
                self.size[device] = max(0, self.size.get(device, 0) - storage.nbytes())
            else:
                kept.append((reference, device))
        self.blocks = kept

    def addresses(self) -> Iterator[int]:
        """Of its storages that are still there."""
        storages = (reference() for reference, _ in self.blocks)
        return (storage._cdata for storage in storages if storage is not None)

    def nodes_alive(self) -> int:
        """The graph nodes of this generation that are still there; a node keeps all that it was computed from."""
        return self.nodes if any(token() is not None for token in self.tokens) else 0


def few_of(generations: list[Generation]) -> list[Target]:
    """What a few of several hits keep, an early one, a middle and a late one. What the latest keep may still be in
    use."""
    kept = [each for each in generations[:-2] if each.stays()]
    if len(kept) < _FEWEST:
        return []
    return [target for each in (kept[0], kept[len(kept) // 2], kept[-1]) for target in each.survivors()]
