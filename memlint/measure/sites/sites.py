"""What the hits of one site leave behind: generations of storages and graph nodes, by weak reference."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Mapping
from types import CodeType
from typing import Any

from ..loops.running import Run
from ..memory.meters import Bytes
from ..retention.graph import MOST_NODES, number, walk
from ..retention.holders import Holders
from ..retention.old import Old
from ..retention.owners import Target
from ..retention.storages import device_of, storage_of, storages_of, strong, without_collections
from ..retention.values import tensors_in
from .generations import Generation, Token, few_of
from .site_runs import SiteRuns, Survivors, check_of, where_freed


class SiteWatch:
    """Follows one site for ``limit`` hits, the first ``warmup`` of which are not judged.

    ``windows``: the checks at the end of windows; ``exits``: the checks at ends of loops around it, the fullest and the
    last; ``end``: the check at the end of the program.

    ``old``: storages that existed before the first hit, and do not count.

    A site that left nothing in its window may do so later, so ``sampling`` checks whether the values of later hits
    stay.

    ``alone``: no loop iteration of the program ends between its hits; a library calls it. ``emptied``: in that case,
    what becomes of the memory that its window kept.

    ``runs``: the same hits and later ones, by the runs of the loop around them.
    """

    def __init__(self, number: int, warmup: int, limit: int) -> None:
        self.number = number
        self.warmup = warmup
        self.limit = limit
        self.hits = 0
        self.loops: tuple[int, ...] = ()
        #: loops of libraries around the last hit
        self.clocks: tuple[int, ...] = ()
        self.generations: list[Generation] = []
        self.recording = False
        self.survives = False
        self.hooked = 0
        self.cut = False
        self.tensors = 0
        self.old: Old | None = None
        #: the number of hits at the last garbage collection at the end of a loop
        self.collected_at = 0
        #: the number of hits at the last `let_go`
        self.let_go_at = 0
        self.windows: list[dict[str, Any]] = []
        self.exits: list[dict[str, Any]] = []
        self.end: dict[str, Any] | None = None
        self.late = Late(limit)
        self.runs = SiteRuns()
        self.comprehension: Run | None = None
        self.stack: tuple[CodeType, ...] = ()
        self.emptied: Survivors | None = None
        self._current: Generation | None = None
        self._walks = False
        #: the holders of its survivors; None if they were not searched
        self.holders: list[dict[str, Any]] | None = None
        self._nodes: set[Any] = set()
        self._blocks: dict[int, Any] = {}
        self._kept: list[Generation] = []
        self._holders = Holders()

    @property
    def full(self) -> bool:
        """Whether there are ``limit`` generations. The last one may still get values."""
        return len(self.generations) >= self.limit

    @property
    def alone(self) -> bool:
        """Whether no iteration of a loop has ended since the first hit that is followed."""
        return self.full and (not self.loops or len({each.iteration for each in self.generations}) == 1)

    def leave_loops(self) -> None:
        """Count hits instead of iterations, because all hits are in one iteration."""
        if not self.loops:
            return
        self.loops = ()
        for place, each in enumerate(self.generations, 1):
            each.iteration = (0, place)

    def follow_emptying(self, paths: Collection[str]) -> None:
        """Follow where the survivors are freed."""
        kept = [each for each in self.generations[self.warmup : -1] if each.stays()]
        self.emptied = Survivors(kept, lambda: self.hits, lambda: where_freed(paths, around=self.stack))

    @property
    def measured(self) -> bool:
        """Whether its windows are complete: the first without survivors, or two."""
        return self.full and bool(self.windows) and (not self.survives or len(self.windows) > 1)

    @property
    def stays(self) -> bool:
        """Whether the survivors of its window survived a second one, too."""
        return len(self.windows) > 1 and _is_left(self.windows[-1], self.warmup)

    @property
    def following(self) -> bool:
        """Whether the values of the current hit are followed."""
        return self._current is not None

    @property
    def sampling(self) -> bool:
        return bool(self.windows) and not self.survives and not self.late.enough

    def begin(self, iteration: tuple[int, int], loops: tuple[int, ...], run: Run | None = None) -> bool:
        """A new hit, in a run of a loop. Returns whether its values are followed."""
        self.hits += 1
        self.recording = not self.full
        in_run = run is not None and self.runs.hit(run)
        if self.recording:
            self.loops = loops
            self._current = Generation(iteration)
            self.generations.append(self._current)
        elif self.sampling:
            self._current = self.late.begin(self.hits, iteration)
        else:
            self._current = Generation(iteration) if in_run else None
        if self._current is not None and in_run:
            self.runs.add(self._current)
        self._walks = self.recording or in_run or self.late.suspect
        return self._current is not None

    def add(self, value: Any, torch: Any) -> None:
        """A value of the current hit: note the storages and nodes that no earlier hit keeps."""
        if self._current is None:
            return
        cut: list[bool] = []
        tensors = list(tensors_in(value, torch, cut))
        self.cut = self.cut or bool(cut)
        self.tensors += len(tensors)
        if self._walks:
            self._follow(self._current, tensors, torch)
        else:
            self._sample(self._current, tensors)

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
        """Note a storage of the hit, held by a graph node or by the value itself. Returns whether it counts for this
        hit: not an old one, nor one of an earlier hit."""
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
        """Note a node of the hit. Returns whether it counts for this hit, not for an earlier one."""
        name = f"memlint {self.number}"
        if name in node.metadata:
            return False
        token = node.metadata[name] = Token(number(node))
        generation.tokens.append(weakref.ref(token))
        return True

    def let_go(self, torch: Any) -> None:
        """Stop counting storages that the values held through their graphs and no longer hold, even if others keep
        them."""
        self.let_go_at = self.hits
        if self.cut:  # nodes may be unknown
            return
        with without_collections():  # strong references here would keep garbage from being freed
            self._let_go(torch)

    def _let_go(self, torch: Any) -> None:
        alive = {
            key: storage
            for key, reference in self._blocks.copy().items()
            if (storage := strong(reference)) is not None and storage._cdata == key
        }
        gone = set(self._holders.let_go(alive, torch))
        for key in gone:
            del self._blocks[key]
        if gone:
            several = (*self.generations, *self.late.generations, *self.runs.generations())
            for generation in {id(each): each for each in several}.values():
                generation.drop(gone)

    def check(self, when: str, before: list[Bytes], elsewhere: Mapping[int, int]) -> None:
        """Note what is live now. ``when``: window, exit or end; the others as for `check_of`."""
        check = check_of(when, self.hits, before, self.generations, elsewhere)
        if when == "window":
            if not self.windows:
                self.survives = _is_left(check, self.warmup)
            self.windows.append(check)
        elif when == "exit":
            self.exits = [max([*self.exits, check], key=_held), check]
        else:
            self.end = check

    def survivors(self) -> list[Target]:
        """Targets for a search of holders: survivors of the window, else of later hits, else of the current run."""
        current = self.runs.current
        several = (self.generations[min(self.warmup, len(self.generations) // 2) :], self.late.generations,
                   [] if current is None else current.generations)  # fmt: skip
        return next((found for each in several if (found := few_of(each))), [])

    def collecting(self, *, begins: bool) -> None:
        """A garbage collection of the program begins or ends: what it frees was in a reference cycle."""
        if begins:
            self._kept = [] if self.windows else [each for each in self.generations if each.is_kept()]
            return
        for generation in self._kept:
            generation.collected = generation.collected or not generation.is_kept()
        self._kept = []

    def followed(self) -> set[int]:
        """The addresses of the live storages that are followed."""
        return {key for key, reference in self._blocks.copy().items() if reference() is not None}

    def data(self) -> dict[str, Any]:
        """All that was measured, as JSON."""
        ends = [] if self.end is None else [self.end]
        return {
            "id": self.number,
            "hits": self.hits,
            "loops": list(self.loops),
            "clocks": list(self.clocks),
            "iterations": [list(generation.iteration) for generation in self.generations],
            "made": [generation.nodes for generation in self.generations],
            "checks": [*self.windows, *self.exits, *ends],
            "hooked": self.hooked,
            "cut": self.cut,
            "tensors": self.tensors,
            "holders": self.holders or [],
            "late": self.late.data(self.hits),
            "runs": self.runs.data(),
            "emptied": None if self.emptied is None else self.emptied.data(),
        }


def _is_left(check: dict[str, Any], warmup: int) -> bool:
    return any(check["alive"][warmup:-2]) or any(check["nodes"][warmup:-2])


def _held(check: dict[str, Any]) -> int:
    return int(sum(sum(alive.values()) for alive in check["alive"]) + sum(check["nodes"]))


class Late:
    """Hits after the window; those whose values are freed are dropped. ``suspect``: values of some have stayed for as
    long as a window, so that new hits are followed as in the window; ``enough``: no more hits are needed."""

    def __init__(self, limit: int) -> None:
        self.generations: list[Generation] = []
        self.suspect = False
        self.enough = False
        self._limit = limit
        self._sampled = 0

    def begin(self, hit: int, iteration: tuple[int, int]) -> Generation:
        """A further hit."""
        self._sampled += 1
        if self._sampled % self._limit == 0:
            self._prune(hit)
        generation = Generation(iteration)
        generation.hit = hit
        self.generations.append(generation)
        return generation

    def _prune(self, hit: int) -> None:
        self.generations = [each for each in self.generations if hit - each.hit < self._limit or each.stays()]
        old = [each for each in self.generations if hit - each.hit >= self._limit]
        self.suspect = bool(old)
        self.enough = sum(each.walked for each in old) > self._limit // 2

    def data(self, hits: int) -> list[dict[str, Any]]:
        """The hits whose values have stayed for as long as a window, as JSON."""
        return [
            {"hit": each.hit, "alive": each.alive(), "nodes": each.nodes_alive(), "walked": each.walked}
            for each in self.generations
            if hits - each.hit >= self._limit and each.stays()
        ]
