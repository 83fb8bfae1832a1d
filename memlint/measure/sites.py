"""What the hits of one flagged place leave behind: generations of storages and graph nodes, by weak reference."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Container, Iterator, Mapping
from typing import Any

from .graph import MOST_NODES, walk
from .holders import Holders
from .meters import Bytes
from .storages import device_of, storage_of, storages_of
from .values import tensors_in


class Token:
    """Lives as long as the graph node whose metadata holds it."""

    __slots__ = ("__weakref__",)


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


class Old:
    """The storages of all tensors that were there at one time: data sets, parameters, buffers."""

    def __init__(self, torch: Any) -> None:
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
    """Follows one site for ``limit`` hits, of which ``warmup`` are not judged.

    ``windows``: what was alive when a window was over; ``exits``: when a loop around it ended, the fullest and the
    last; ``end``: when the program had ended.

    ``old``: what was there before it was reached, and counts for nothing here.

    A place that left nothing in its window may do so now and then: later hits are looked at too, at first by no more
    than whether they stay (``sampling``).
    """

    def __init__(self, number: int, warmup: int, limit: int) -> None:
        self.number = number
        self.warmup = warmup
        self.limit = limit
        self.hits = 0
        self.loops: tuple[int, ...] = ()
        self.generations: list[Generation] = []
        self.recording = False
        self.survives = False
        self.hooked = 0
        self.cut = False
        self.tensors = 0
        self.old: Old | None = None
        #: the hits that there were when garbage was collected for it at the end of a loop
        self.collected_at = 0
        #: and when it was last asked which storages its values hold no more
        self.let_go_at = 0
        self.windows: list[dict[str, Any]] = []
        self.exits: list[dict[str, Any]] = []
        self.end: dict[str, Any] | None = None
        self.late = Late(limit)
        self._nodes: set[Any] = set()
        self._blocks: dict[int, Any] = {}
        self._kept: list[Generation] = []
        self._holders = Holders()

    @property
    def full(self) -> bool:
        """Whether all generations are there (the last one may still be growing)."""
        return len(self.generations) >= self.limit

    @property
    def sampling(self) -> bool:
        return bool(self.windows) and not self.survives and not self.late.enough

    def begin(self, iteration: tuple[int, int], loops: tuple[int, ...]) -> bool:
        """A new hit. Whether its values are wanted."""
        self.hits += 1
        self.recording = not self.full
        if self.recording:
            self.loops = loops
            self.generations.append(Generation(iteration))
        elif self.sampling:
            self.late.begin(self.hits, iteration)
        return self.recording

    def add(self, value: Any, torch: Any) -> None:
        """A value of the current hit: note the storages and nodes that no earlier hit had."""
        cut: list[bool] = []
        tensors = list(tensors_in(value, torch, cut))
        self.cut = self.cut or bool(cut)
        self.tensors += len(tensors)
        if self.recording:
            self._follow(self.generations[-1], tensors, torch)
        elif self.late.generations:
            if self.late.suspect:
                self._follow(self.late.generations[-1], tensors, torch)
            else:
                self._sample(self.late.generations[-1], tensors)

    def _follow(self, generation: Generation, tensors: list[Any], torch: Any) -> None:
        if len(self._nodes) > MOST_NODES:
            self._nodes.clear()
        found = walk(tensors, self._nodes, torch)
        generation.walked = True
        generation.nodes += found.nodes
        self.hooked += found.hooked
        self.cut = self.cut or found.cut
        for root in found.roots:
            self._token(generation, root)
        for node, tensor in found.storages:
            for storage in storages_of([tensor], torch):
                if self._block(generation, storage, node):
                    device = device_of(storage)
                    generation.size[device] = generation.size.get(device, 0) + storage.nbytes()

    def _sample(self, generation: Generation, tensors: list[Any]) -> None:
        for tensor in tensors:
            if tensor.grad_fn is not None and self._token(generation, tensor.grad_fn):
                generation.nodes = 1
            storage = storage_of(tensor)
            if storage is not None:
                self._block(generation, storage)

    def _block(self, generation: Generation, storage: Any, node: Any = None) -> bool:
        """Note a storage as the hit's, held by a graph node or by the value itself. Whether it is: not what was there
        before, nor what an earlier hit had."""
        if self.old is not None and storage in self.old:
            return False
        known = self._blocks.get(storage._cdata)
        if known is not None and known() is storage:
            self._holders.again(storage._cdata, node)
            return False
        self._holders.new(storage._cdata, node)
        reference = self._blocks[storage._cdata] = weakref.ref(storage)
        generation.blocks.append((reference, device_of(storage)))
        return True

    def _token(self, generation: Generation, node: Any) -> bool:
        """Note a node as the hit's. Whether it is: a node keeps the token of the first hit that had it."""
        name = f"memlint {self.number}"
        if name in node.metadata:
            return False
        token = node.metadata[name] = Token()
        generation.tokens.append(weakref.ref(token))
        return True

    def let_go(self, torch: Any) -> None:
        """Forget the storages that the values held through their graphs and hold no more, though others keep them."""
        self.let_go_at = self.hits
        if self.cut:  # there may be nodes that were not seen
            return
        alive = {
            key: storage
            for key, reference in self._blocks.copy().items()
            if (storage := reference()) is not None and storage._cdata == key
        }
        gone = set(self._holders.let_go(alive, torch))
        for key in gone:
            del self._blocks[key]
        for generation in (*self.generations, *self.late.generations) if gone else ():
            generation.drop(gone)

    def check(self, when: str, before: list[Bytes], elsewhere: Mapping[int, int]) -> None:
        """Note what is alive now. ``before``: what was, before garbage was collected; ``elsewhere``: the storages
        that count for another site, with its number."""
        alive = [generation.alive() for generation in self.generations]
        nodes = [generation.nodes_alive() for generation in self.generations]
        own = [sum(generation.alive(elsewhere).values()) for generation in self.generations]
        # a name for each site that has some of it as well
        check = {"when": when, "hits": self.hits, "before": before, "alive": alive, "nodes": nodes, "own": own}
        check["shared_with"] = [
            sorted({elsewhere[key] for key in generation.addresses() if key in elsewhere})
            for generation in self.generations
        ]
        if when == "window":
            if not self.windows:
                self.survives = any(alive[self.warmup : -2]) or any(nodes[self.warmup : -2])
            self.windows.append(check)
        elif when == "exit":
            self.exits = [max([*self.exits, check], key=_held), check]
        else:
            self.end = check

    def collecting(self, *, begins: bool) -> None:
        """Python is about to collect garbage, or has: what dies meanwhile was in a cycle."""
        if begins:
            self._kept = [] if self.windows else [each for each in self.generations if each.is_kept()]
            return
        for generation in self._kept:
            generation.collected = generation.collected or not generation.is_kept()
        self._kept = []

    def followed(self) -> set[int]:
        """The addresses of the storages that are followed and alive."""
        return {key for key, reference in self._blocks.copy().items() if reference() is not None}

    def data(self) -> dict[str, Any]:
        """All that was measured, as JSON."""
        ends = [] if self.end is None else [self.end]
        return {
            "id": self.number,
            "hits": self.hits,
            "loops": list(self.loops),
            "iterations": [list(generation.iteration) for generation in self.generations],
            "made": [generation.nodes for generation in self.generations],
            "checks": [*self.windows, *self.exits, *ends],
            "hooked": self.hooked,
            "cut": self.cut,
            "tensors": self.tensors,
            "late": self.late.data(self.hits),
        }


def _held(check: dict[str, Any]) -> int:
    return int(sum(sum(alive.values()) for alive in check["alive"]) + sum(check["nodes"]))


class Late:
    """Hits behind the window, of which those are kept whose values stay. ``suspect``: some have stayed for as long as a
    window, so that from now on they are followed as those of the window were; ``enough``: no more are needed."""

    def __init__(self, limit: int) -> None:
        self.generations: list[Generation] = []
        self.suspect = False
        self.enough = False
        self._limit = limit
        self._sampled = 0

    def begin(self, hit: int, iteration: tuple[int, int]) -> None:
        """A further hit."""
        self._sampled += 1
        if self._sampled % self._limit == 0:
            self._prune(hit)
        generation = Generation(iteration)
        generation.hit = hit
        self.generations.append(generation)

    def _prune(self, hit: int) -> None:
        self.generations = [each for each in self.generations if hit - each.hit < self._limit or _stays(each)]
        old = [each for each in self.generations if hit - each.hit >= self._limit]
        self.suspect = bool(old)
        self.enough = sum(each.walked for each in old) > self._limit // 2

    def data(self, hits: int) -> list[dict[str, Any]]:
        """The hits that have stayed for as long as a window."""
        return [
            {"hit": each.hit, "alive": each.alive(), "nodes": each.nodes_alive(), "walked": each.walked}
            for each in self.generations
            if hits - each.hit >= self._limit and _stays(each)
        ]


def _stays(generation: Generation) -> bool:
    return bool(generation.alive()) or bool(generation.nodes_alive())
