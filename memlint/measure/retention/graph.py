"""What a tensor keeps alive through its autograd graph, read without running an unpack hook.

An unpack hook may recompute a checkpoint or copy from the host: `_raw_saved_*` shows what a node holds, `_saved_*`
would run them.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .storages import storages_of

#: of a graph that is larger, only so much is counted
MOST_NODES = 200_000
#: tensors that are named as holding a node through their graphs
_NEAREST = 1_000
_NAMES: dict[type, list[str]] = {}
#: the type of the node of a leaf. A function of the program may have a `variable` of its own
_LEAF = "AccumulateGrad"


class Walk:
    """One walk from the values of a hit. ``nodes``: how many were new; ``storages``: the tensors that the values hold,
    each behind what tells the node that holds it, None for those of the values themselves and of leaves; ``roots``: the
    functions that the walk began at; ``hooked``: saved values that are behind a hook; ``cut``: it was too large."""

    def __init__(self) -> None:
        self.nodes = 0
        self.storages: list[tuple[Any, Any]] = []
        self.roots: list[Any] = []
        self.hooked = 0
        self.cut = False


def walk(tensors: list[Any], known: set[Any], torch: Any) -> Walk:
    """Walk the graphs of ``tensors``. ``known`` holds what tells the nodes that were counted before, and gets the new
    ones: what an earlier hit holds is that hit's."""
    found = Walk()
    seen: set[Any] = set()
    stack: list[Any] = []
    for tensor in tensors:
        found.storages.append((None, tensor))
        if tensor.grad_fn is not None:
            found.roots.append(tensor.grad_fn)
            stack.append(tensor.grad_fn)
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        told = number(node)
        if told is not None and told in known:
            continue
        if found.nodes >= MOST_NODES:
            found.cut = True
            break
        if type(node).__name__ == _LEAF:
            variable = node.variable
            found.storages.append((None, variable))  # AccumulateGrad: the parameter, and its gradient, stay with it
            if variable.grad is not None:
                found.storages.append((None, variable.grad))
        else:
            found.nodes += 1
            if told is not None:
                known.add(told)
        held, hooked = _held(node, torch)
        found.hooked += hooked
        found.storages += [(told, each) for each in held]
        stack += [following for following, _ in node.next_functions if following is not None]
    return found


def saved_now(roots: list[Any], wanted: set[Any], torch: Any) -> dict[Any, list[Any]]:
    """The storages that those of the ``wanted`` nodes hold that are met from ``roots`` on, by what tells them."""
    found: dict[Any, list[Any]] = {}
    seen: set[Any] = set()
    stack = [*roots]
    while stack and len(seen) < MOST_NODES:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        told = number(node)
        if told in wanted:
            found.setdefault(told, []).extend(storages_of(_held(node, torch)[0], torch))
        stack += [following for following, _ in node.next_functions if following is not None]
    return found


def function_of(tensor: Any) -> Any:
    """The function that made a tensor; None where there is none."""
    try:
        return tensor.grad_fn
    except RuntimeError:  # one of several views, changed in place
        return None


def held_by_graphs(
    tensors: Iterable[Any], wanted: Mapping[Any, int], torch: Any, until: float
) -> list[tuple[int, Any, str]]:
    """Which of ``tensors`` hold what is wanted through their graphs, the nearest first, and the kind of the node.
    ``wanted``: by what tells a node, or by the address of a storage; ``until``: the end, in this thread's own time."""
    above: dict[Any, list[Any]] = {}
    tops: dict[Any, list[Any]] = {}
    for tensor in tensors:
        if (root := function_of(tensor)) is not None:
            tops.setdefault(root, []).append(tensor)
    found: list[tuple[int, Any]] = []
    seen: set[Any] = set()
    stack = [*tops]
    while stack and len(seen) < MOST_NODES and time.thread_time() < until:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        keys = {number(node), *(storage._cdata for storage in storages_of(_all_held(node, torch), torch))}
        found += [(wanted[key], node) for key in keys if key in wanted]
        for following, _ in node.next_functions:
            if following is not None:
                above.setdefault(following, []).append(node)
                stack.append(following)
    return [(target, tensor, type(node).__name__) for target, node in found for tensor in _nearest(node, above, tops)]


def _all_held(node: Any, torch: Any) -> list[Any]:
    held, _ = _held(node, torch)
    if type(node).__name__ == _LEAF:
        held = [*held, node.variable, *(() if node.variable.grad is None else (node.variable.grad,))]
    return held


def _nearest(node: Any, above: Mapping[Any, list[Any]], tops: Mapping[Any, list[Any]]) -> list[Any]:
    level, seen = [node], {node}
    found: list[Any] = []
    while level and len(found) < _NEAREST:
        found += [tensor for each in level for tensor in tops.get(each, ())]
        level = [each for each in dict.fromkeys(up for one in level for up in above.get(one, ())) if each not in seen]
        seen.update(level)
    return found[:_NEAREST]


def number(node: Any) -> Any:
    """What tells a node from others, its number and its type; None for a leaf, which has no number of its own. Each
    thread counts from 0, so the number alone does not."""
    read = getattr(node, "_sequence_nr", None)
    told = None if read is None else read()
    return None if told is None or told >= 2**63 else (told, type(node))


def _held(node: Any, torch: Any) -> tuple[list[Any], int]:
    """What a node holds, and how much of that is behind a hook."""
    held: list[Any] = []
    hooked = 0
    for saved in _saved(node, torch):
        hooked += getattr(saved, "unpack_hook", None) is not None
        data = getattr(saved, "data", None)
        # a hook may have packed it into anything
        held += data if isinstance(data, (list, tuple)) else () if data is None else (data,)
    if isinstance(node, torch.autograd.function.BackwardCFunction):
        # attributes put on ctx are not freed by backward()
        held += [value for value in _flat(getattr(node, "__dict__", None)) if isinstance(value, torch.Tensor)]
    return held, hooked


def _saved(node: Any, torch: Any) -> Iterator[Any]:
    if isinstance(node, torch.autograd.function.BackwardCFunction):
        names = ["_raw_saved_tensors"]
    else:
        known = _NAMES.get(type(node))
        if known is None:
            known = _NAMES[type(node)] = [name for name in dir(node) if name.startswith("_raw_saved_")]
        names = known
    for name in names:
        try:
            saved = getattr(node, name)
        except RuntimeError:  # backward() has freed it
            continue
        yield from saved if isinstance(saved, (tuple, list)) else () if saved is None else (saved,)


def _flat(value: Any, depth: int = 4) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        if depth:
            for each in value:
                yield from _flat(each, depth - 1)
    else:
        yield value
