"""The tensors that an autograd graph keeps alive, read without running unpack hooks.

An unpack hook may recompute a checkpoint or copy from the host. Reading `_saved_*` of a node would run it;
`_raw_saved_*` does not."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .storages import storages_of

#: the most nodes of a graph that are visited
MOST_NODES = 200_000
#: the most tensors that are returned as holders of a node through their graphs
_NEAREST = 1_000
_NAMES: dict[type, list[str]] = {}
#: the class of a leaf's node; a function of the program may also have an attribute `variable`
_LEAF = "AccumulateGrad"


class Walk:
    """The result of a walk from the values of a hit. ``nodes``: the number of new nodes; ``storages``: pairs of a key
    (see `number`) and a saved tensor of that node; the key is None for the values themselves and for leaves. ``roots``:
    the nodes that the walk began at; ``hooked``: the number of saved tensors with a hook; ``cut``: the graph was too
    large."""

    def __init__(self) -> None:
        self.nodes = 0
        self.storages: list[tuple[Any, Any]] = []
        self.roots: list[Any] = []
        self.hooked = 0
        self.cut = False


def walk(tensors: list[Any], known: set[Any], torch: Any) -> Walk:
    """Walk the graphs of ``tensors``. ``known``: the keys of nodes that count for an earlier hit; new ones are
    added."""
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
        key = number(node)
        if key is not None and key in known:
            continue
        if found.nodes >= MOST_NODES:
            found.cut = True
            break
        if type(node).__name__ == _LEAF:
            variable = node.variable
            found.storages.append((None, variable))  # the node keeps the parameter and its gradient
            if variable.grad is not None:
                found.storages.append((None, variable.grad))
        else:
            found.nodes += 1
            if key is not None:
                known.add(key)
        held, hooked = _held(node, torch)
        found.hooked += hooked
        found.storages += [(key, each) for each in held]
        stack += _inputs(node)
    return found


def saved_now(roots: list[Any], wanted: set[Any], torch: Any) -> dict[Any, list[Any]]:
    """The storages that ``wanted`` nodes save, by their keys. Nodes that are not reachable from ``roots`` are left
    out."""
    found: dict[Any, list[Any]] = {}
    seen: set[Any] = set()
    stack = [*roots]
    while stack and len(seen) < MOST_NODES:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        key = number(node)
        if key in wanted:
            found.setdefault(key, []).extend(storages_of(_held(node, torch)[0], torch))
        stack += _inputs(node)
    return found


def function_of(tensor: Any) -> Any:
    """A tensor's ``grad_fn``; None if it has none, or if it cannot be computed."""
    try:
        return tensor.grad_fn
    except RuntimeError:  # one of several views, changed in place
        return None


def held_by_graphs(
    tensors: Iterable[Any], wanted: Mapping[Any, int], torch: Any, until: float
) -> list[tuple[int, Any, str]]:
    """The ``tensors`` that hold targets through their graphs, the nearest first: (target, tensor, class of the node).
    ``wanted``: targets by the key of a node or the address of a storage; ``until``: the deadline in `thread_time`."""
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
        for following in _inputs(node):
            above.setdefault(following, []).append(node)
            stack.append(following)
    return [(target, tensor, type(node).__name__) for target, node in found for tensor in _nearest(node, above, tops)]


def _inputs(node: Any) -> list[Any]:
    return [following for following, _ in node.next_functions if following is not None]


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
    """The key of a node: its sequence number and its class, as each thread numbers its nodes from 0. None for a leaf,
    which has no number."""
    read = getattr(node, "_sequence_nr", None)
    count = None if read is None else read()
    return None if count is None or count >= 2**63 else (count, type(node))


def _held(node: Any, torch: Any) -> tuple[list[Any], int]:
    """The tensors that a node saves, and the number of those with a hook."""
    held: list[Any] = []
    hooked = 0
    for saved in _saved(node, torch):
        hooked += getattr(saved, "unpack_hook", None) is not None
        data = getattr(saved, "data", None)
        # a hook may have packed it into any object
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
