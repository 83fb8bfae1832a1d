"""What the hits of one flagged place leave behind: generations of storages and graph nodes, by weak reference."""

from __future__ import annotations

import weakref
from typing import Any

from .graph import walk
from .meters import Bytes
from .values import tensors_in


class Token:
    """Lives as long as the graph node whose metadata holds it."""

    __slots__ = ("__weakref__",)


class Generation:
    """What one hit kept at the time. ``iteration``: the run of the innermost loop, and which iteration of it."""

    __slots__ = ("blocks", "iteration", "nodes", "tokens")

    def __init__(self, iteration: tuple[int, int]) -> None:
        self.iteration = iteration
        self.blocks: list[tuple[Any, str]] = []
        self.nodes = 0
        self.tokens: list[Any] = []

    def alive(self) -> Bytes:
        """The bytes of this generation's storages that are still there, by device."""
        found: Bytes = {}
        for reference, device in self.blocks:
            storage = reference()
            if storage is not None:
                found[device] = found.get(device, 0) + storage.nbytes()
        return found

    def nodes_alive(self) -> int:
        """The graph nodes of this generation that are still there; a node keeps all that it was computed from."""
        return self.nodes if any(token() is not None for token in self.tokens) else 0


class Old:
    """The storages of all tensors that were there at one time: data sets, parameters, buffers."""

    def __init__(self, torch: Any) -> None:
        import gc

        self._references: dict[int, Any] = {}
        for each in gc.get_objects():
            # not isinstance: it would ask objects with a `__class__` of their own, some of which import things
            if issubclass(type(each), torch.Tensor):
                storage = storage_of(each)
                if storage is not None:
                    self._references[storage._cdata] = weakref.ref(storage)

    def __contains__(self, storage: Any) -> bool:
        reference = self._references.get(storage._cdata)
        return reference is not None and reference() is storage


class SiteWatch:
    """Follows one site for ``limit`` hits. ``checks``: what was alive at the times when somebody looked."""

    def __init__(self, number: int, limit: int) -> None:
        self.number = number
        self.limit = limit
        self.hits = 0
        self.loops: tuple[int, ...] = ()
        self.generations: list[Generation] = []
        self.recording = False
        self.hooked = 0
        self.cut = False
        self.elsewhere = False
        self.checks: list[dict[str, Any]] = []
        self._nodes: set[int] = set()
        self._blocks: dict[int, Any] = {}

    @property
    def full(self) -> bool:
        """Whether all generations are there (the last one may still be growing)."""
        return len(self.generations) >= self.limit

    def begin(self, iteration: tuple[int, int], loops: tuple[int, ...]) -> bool:
        """A new hit. Whether its values are wanted."""
        self.hits += 1
        self.recording = not self.full
        if self.recording:
            self.loops = loops
            self.generations.append(Generation(iteration))
        return self.recording

    def add(self, value: Any, old: Old, torch: Any) -> None:
        """A value of the current hit: note the storages and nodes that no earlier hit had."""
        generation = self.generations[-1]
        tensors = list(tensors_in(value, torch))
        found = walk(tensors, self._nodes, torch)
        generation.nodes += found.nodes
        self.hooked += found.hooked
        self.cut = self.cut or found.cut
        for root in found.roots:
            token = Token()
            root.metadata[f"memlint {self.number}"] = token
            generation.tokens.append(weakref.ref(token))
        for tensor in found.storages:
            storage = storage_of(tensor)
            if storage is None or storage in old:
                continue
            known = self._blocks.get(storage._cdata)
            if known is None or known() is not storage:
                reference = self._blocks[storage._cdata] = weakref.ref(storage)
                generation.blocks.append((reference, device_of(storage)))

    def check(self, when: str, before: list[Bytes] | None = None) -> None:
        """Note what is alive now. ``before``: what was, before garbage was collected."""
        alive = [generation.alive() for generation in self.generations]
        nodes = [generation.nodes_alive() for generation in self.generations]
        self.checks.append({"when": when, "hits": self.hits, "before": before or alive, "alive": alive, "nodes": nodes})

    def followed(self) -> set[int]:
        """The addresses of the storages that are followed and alive."""
        return {key for key, reference in self._blocks.items() if reference() is not None}

    def data(self) -> dict[str, Any]:
        """All that was measured, as JSON."""
        return {
            "id": self.number,
            "hits": self.hits,
            "loops": list(self.loops),
            "iterations": [list(generation.iteration) for generation in self.generations],
            "made": [generation.nodes for generation in self.generations],
            "checks": self.checks,
            "hooked": self.hooked,
            "cut": self.cut,
        }


def storage_of(tensor: Any) -> Any:
    """The storage of a tensor; None where it has none (sparse, opaque) or where it is on the meta device."""
    try:
        storage = tensor.untyped_storage()
        return None if storage.device.type == "meta" else storage
    except (NotImplementedError, RuntimeError, AttributeError):
        return None


def device_of(storage: Any) -> str:
    device = storage.device
    return device.type if device.index is None else f"{device.type}:{device.index}"
