"""The storages and graph nodes that one hit of a site keeps, by weak reference."""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Any

from ..memory.meters import Bytes
from ..retention.owners import Target
from ..retention.storages import strong

#: the least hits with survivors before holders are searched
_FEWEST = 3


class Token:
    """Stored in the metadata of a graph node, so it lives as long as that. ``node``: the key of the node."""

    __slots__ = ("__weakref__", "node")

    def __init__(self, node: Any) -> None:
        self.node = node


class Generation:
    """What one hit keeps. ``iteration``: the run of the innermost loop, and the iteration in it. ``size``: the bytes of
    its storages at the hit, by device. ``collected``: a garbage collection of the program has freed them since."""

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
        """The bytes that would be live without the program's garbage collections, by device."""
        return dict(self.size) if self.collected else self.alive()

    @property
    def kept_something(self) -> bool:
        """Whether the hit kept anything at all."""
        return bool(self.blocks or self.tokens)

    def stays(self) -> bool:
        """Whether any of it is still live."""
        return bool(self.alive()) or bool(self.nodes_alive())

    def sample(self) -> Any:
        """A live object of it: a storage, else the token of a graph node; None without one."""
        there = (reference() for reference in (*(each for each, _ in self.blocks), *self.tokens))
        return next((each for each in there if each is not None), None)

    def survivors(self) -> list[Target]:
        """Targets for a search of holders: the value's storage, the largest other one, and a graph node, as far as
        live."""
        storages = [storage for reference, _ in self.blocks if (storage := strong(reference)) is not None]
        few = [*storages[:1], max(storages[1:], key=lambda storage: storage.nbytes(), default=None)]
        found = [Target(each._cdata, each.nbytes(), each) for each in few if each is not None]
        nodes = [token.node for reference in self.tokens if (token := reference()) is not None]
        return found + [Target(node) for node in nodes[:1] if node is not None]

    def is_kept(self) -> bool:
        """Whether its first storage, that of the value itself, is still live."""
        return bool(self.blocks) and self.blocks[0][0]() is not None

    def alive(self, elsewhere: Container[int] = ()) -> Bytes:
        """The bytes of its live storages by device, without those at the addresses ``elsewhere``."""
        found: Bytes = {}
        for reference, device in self.blocks:
            storage = reference()
            if storage is not None and storage._cdata not in elsewhere:
                nbytes = storage.nbytes()
                if nbytes:
                    found[device] = found.get(device, 0) + nbytes
        return found

    def drop(self, storages: Container[int]) -> None:
        """Stop counting the storages at these addresses, which others keep."""
        kept = []
        for reference, device in self.blocks:
            storage = reference()
            if storage is not None and storage._cdata in storages:
                self.size[device] = max(0, self.size.get(device, 0) - storage.nbytes())
            else:
                kept.append((reference, device))
        self.blocks = kept

    def addresses(self) -> Iterator[int]:
        """The addresses of its live storages."""
        storages = (reference() for reference, _ in self.blocks)
        return (storage._cdata for storage in storages if storage is not None)

    def nodes_alive(self) -> int:
        """The number of its live graph nodes: all or none, as a node keeps those that it was computed from."""
        return self.nodes if any(token() is not None for token in self.tokens) else 0


def few_of(generations: list[Generation]) -> list[Target]:
    """The survivors of three hits with survivors: an early, a middle and a late one, without the last two, which may
    still be in use."""
    kept = [each for each in generations[:-2] if each.stays()]
    if len(kept) < _FEWEST:
        return []
    return [target for each in (kept[0], kept[len(kept) // 2], kept[-1]) for target in each.survivors()]
