"""Searches the holders of tensors: the shortest path from a root of the program, with the program's names.

The search follows `gc.get_referrers` breadth-first, within limits of objects and of time. The holders of a tensor that
only a graph node holds are those of the tensors that were computed from it. The search keeps no references afterwards.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
import types
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from .graph import function_of, held_by_graphs, number
from .naming import largest, module_of, pattern, ring, shown
from .roots import Roots
from .storages import heap, storages_of, tensors_among, without_collections

#: the most CPU seconds of one search, and of all searches in a process
_ONE, _ALL = 3.0, 12.0
#: the most references between a tensor and a root; the most objects of a search, the most at one distance, and the most
#: referrers of one object
_FAR, _MOST, _WIDE, _EACH = 16, 4_000, 64, 40
#: so many references beyond a root, a better one is searched
_FURTHER = 1
#: the most tensors that hold one target through their graphs and whose holders are searched
_NEAR = 8
_NO_HOLDERS = frozenset({types.FunctionType, types.CodeType, types.BuiltinFunctionType, type, property})
#: the most holders of a group
_NAMED = 4
_OWN = ("_memlint_measure", "memlint.measure")


class Target(NamedTuple):
    """Memory whose holders are searched, and its bytes. ``key``: the `_cdata` of a storage, the key of a graph node
    (see `graph.number`), or ("address", …) of memory on an accelerator. ``kept``: the object of the key, to keep it
    alive."""

    key: Any
    nbytes: int = 0
    kept: Any = None


#: searches the holders of groups of targets; see `Owners.of`
Ask = Callable[[Mapping[int, Sequence[Target]]], dict[int, list[dict[str, Any]]]]


class Owners:
    """Searches holders, within the time for all searches."""

    def __init__(self, torch: Any) -> None:
        self._torch = torch
        self._left = _ALL

    def of(self, wanted: Mapping[int, Sequence[Target]], *, frames: bool = True) -> dict[int, list[dict[str, Any]]]:
        """The holders of each group of targets as JSON, largest first; groups without known holders are left out.
        ``frames``: whether the program still runs; else frames are those of an exception."""
        if self._left <= 0 or not any(wanted.values()):
            return {}
        started = time.thread_time()
        try:  # no collection, which could run finalisers of the program
            with without_collections(), self._torch._C.DisableTorchFunctionSubclass():
                search = _Search(self._torch, started + min(_ONE, self._left), frames)
                search.run([target for targets in wanted.values() for target in targets])
                return {key: found for key, targets in wanted.items() if (found := search.holders(targets))}
        except Exception:  # another thread has changed the objects: the holders are unknown
            return {}
        finally:
            self._left -= time.thread_time() - started


class Found(NamedTuple):
    """A path from a target to a root. ``chain``: the identities of its objects; ``good``: the root is the program's
    own."""

    cost: tuple[int, int]
    good: bool
    chain: tuple[int, ...]
    through: str


class _Search:
    def __init__(self, torch: Any, until: float, frames: bool) -> None:
        self._torch = torch
        self._until = until
        there = heap()
        #: the objects that exist now: all others are the search's own
        self._there = set(map(id, there))
        self._tensors = list(tensors_among(there, torch))
        self._roots = Roots([each for each in there if type(each) is threading.local], frames=frames)
        #: the objects that were found, kept so that their identities stay unique
        self._kept: dict[int, Any] = {}
        self._up: dict[int, list[int]] = {}
        #: the start of each target's search: an object, and the class of the node through which it holds the target
        self._starts: dict[int, list[tuple[int, str]]] = {}

    def run(self, targets: Sequence[Target]) -> None:
        """Find the roots of targets."""
        self._climb(self._direct(targets), targets)
        left = [target for target in targets if self._best(target) is None]
        if left:
            self._climb(self._through_graphs(left), left)
        left = [target for target in left if self._best(target) is None]
        if left and "numpy" in sys.modules:
            self._climb(self._arrays(), left)

    def _direct(self, targets: Sequence[Target]) -> list[Any]:
        """The tensors of the targets' storages, and the parameters whose gradient is one."""
        wanted: dict[Any, list[Target]] = {}
        for target in targets:
            wanted.setdefault(target.key, []).append(target)
        begin: list[Any] = []
        for each in self._tensors:
            root = function_of(each)
            gradient = each.grad if each.is_leaf else None
            for key, through in [
                *((key, "") for key in self._keys(each)),
                *((key, "its gradient") for key in (() if gradient is None else self._keys(gradient))),
                *(((number(root), ""),) if root is not None else ()),
            ]:
                for target in wanted.get(key, ()):
                    self._start(id(target), each, through)
                    begin.append(each)
        return begin

    def _keys(self, tensor: Any) -> Iterator[Any]:
        """The keys of targets in a tensor's memory."""
        for storage in storages_of([tensor], self._torch):
            yield storage._cdata
            if storage.device.type != "cpu":
                yield ("address", storage.data_ptr())

    def _through_graphs(self, targets: Sequence[Target]) -> list[Any]:
        """The tensors that hold targets through their graphs: variables, or else those that any object refers to. Many
        others exist only because a node has saved them."""
        wanted = {target.key: id(target) for target in targets}
        rows = held_by_graphs(self._tensors, wanted, self._torch, self._until)
        near = [row for row in rows if self._roots.cost(row[1]) is not None]
        if {target for target, _, _ in near} != {target for target, _, _ in rows}:
            held = self._held_among([tensor for _, tensor, _ in rows])
            near = [row for row in rows if id(row[1]) in held]
        few: dict[int, int] = {}
        begin: list[Any] = []
        for target, tensor, node in near:
            few[target] = few.get(target, 0) + 1
            if few[target] <= _NEAR:
                self._start(target, tensor, node)
                begin.append(tensor)
        return begin

    def _held_among(self, tensors: list[Any]) -> set[int]:
        """The identities of the tensors that are variables, or that an object refers to."""
        ids = {id(each) for each in tensors}
        held = {id(each) for each in tensors if self._roots.cost(each) is not None}
        for holder in heap():
            if type(holder) not in _NO_HOLDERS and not self._is_own(holder):
                held |= ids.intersection(map(id, gc.get_referents(holder)))
        return held

    def _start(self, target: int, tensor: Any, through: str) -> None:
        self._kept[id(tensor)] = tensor
        self._starts.setdefault(target, []).append((id(tensor), through))

    def _arrays(self) -> list[Any]:
        """The objects that refer to NumPy arrays in the memory of tensors. The arrays themselves are unknown to the
        garbage collector."""
        array = sys.modules["numpy"].ndarray
        found: list[Any] = []
        for holder in heap():
            if time.thread_time() > self._until:
                break
            for each in gc.get_referents(holder) if not self._is_own(holder) else ():
                base = each
                while issubclass(type(base), array):
                    base = base.base
                if base is not each and id(base) in self._kept and id(holder) not in self._kept:
                    self._kept[id(each)], self._kept[id(holder)] = each, holder
                    self._up.setdefault(id(base), []).append(id(each))
                    self._up.setdefault(id(each), []).append(id(holder))
                    found.append(holder)
        return found

    def _climb(self, begin: list[Any], targets: Sequence[Target]) -> None:
        """Follow the referrers of objects until each target has a root, or a limit is reached."""
        level = {id(each): each for each in begin}
        further = _FURTHER
        for _ in range(_FAR):
            self._kept.update(level)
            asked = [each for each in level.values() if not self._roots.is_end(each)]
            if not asked or len(self._kept) > _MOST or time.thread_time() > self._until:
                return
            if all((best := self._best(target)) is not None and best.good for target in targets):
                further -= 1
                if further < 0:
                    return
            level = self._referrers(asked[:_WIDE], level)

    def _referrers(self, asked: list[Any], level: dict[int, Any]) -> dict[int, Any]:
        if not asked:
            return {}
        ids = {id(each) for each in asked}
        found: dict[int, Any] = {}
        holders = gc.get_referrers(*asked)
        for holder in holders:
            if self._is_own(holder):
                continue
            for held in ids.intersection(map(id, gc.get_referents(holder))):
                up = self._up.setdefault(held, [])
                if len(up) < _EACH and id(holder) not in up:
                    up.append(id(holder))
                    if id(holder) not in self._kept:
                        found[id(holder)] = holder
        for each in asked:
            for local in self._roots.thread_locals(each):
                self._up.setdefault(id(each), []).append(id(local))
                found[id(local)] = local
        return found

    def _is_own(self, holder: Any) -> bool:
        kind = type(holder)
        return (
            id(holder) not in self._there
            or id(holder) in self._roots.running
            or kind is types.ModuleType
            or module_of(kind).startswith(_OWN)
        )

    def _best(self, target: Target) -> Found | None:
        """The best path from a target to a root; None if none was found."""
        found: list[Found] = []
        for start, through in self._starts.get(id(target), ()):
            chains: list[tuple[int, ...]] = [(start,)]
            seen = {start}
            for chain in chains:  # grows
                cost = self._roots.cost(self._kept[chain[-1]])
                if cost is not None:
                    found.append(Found((len(chain) + bool(through) + cost[0], cost[1]), cost[0] <= 1, chain, through))
                for holder in self._up.get(chain[-1], ()):
                    if holder not in seen:
                        seen.add(holder)
                        chains.append((*chain, holder))
        return min(found, key=lambda one: one.cost, default=None)

    def holders(self, targets: Sequence[Target]) -> list[dict[str, Any]]:
        """The holders of targets, as JSON."""
        rows: dict[str, dict[str, Any]] = {}
        for target in targets:
            best = self._best(target)
            row = None if best is None else self._row([self._kept[each] for each in best.chain], best.through)
            if row is not None:
                same = rows.setdefault(pattern(row["path"]), {**row, "survivors": 0, "bytes": 0})
                same["path"] = shown(same["path"])
                same["survivors"] += 1
                same["bytes"] += target.nbytes
                if not row["through"]:
                    same["through"] = ""
        return sorted(rows.values(), key=lambda row: (-row["bytes"], -row["survivors"]))[:_NAMED]

    def _row(self, chain: list[Any], through: str) -> dict[str, Any] | None:
        root, said = self._roots.of(chain) or (None, "")
        if root is None:
            return None
        # the dictionary of a module is not a container of the program
        down = chain[::-1] if root.kind != "global" else chain[-2::-1]
        container = largest(down)
        return {
            "path": said,
            "kind": root.kind,
            "where": root.where,
            "file": root.path,
            "line": root.line,
            "through": through,
            "container": None if container is None else type(container).__name__,
            "elements": None if container is None else len(container),
            **self._bounds(chain, said, ring(down)),
        }

    def _bounds(self, chain: list[Any], path: str, bound: deque[Any] | None) -> dict[str, Any]:
        """The ring that bounds the first object of a chain, and its maximal length; {} without one. A tensor with a
        graph is not bounded, as its graph may hold all earlier ones."""
        if bound is None or (isinstance(chain[0], self._torch.Tensor) and function_of(chain[0]) is not None):
            return {}
        up = next(place for place, each in enumerate(chain) if each is bound)
        _, said = self._roots.of(chain[up:]) or (None, path)
        return {"most": bound.maxlen, "ring": said}
