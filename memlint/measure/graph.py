"""What a tensor keeps alive through its autograd graph, read without running an unpack hook.

An unpack hook may recompute a checkpoint or copy from the host: `_raw_saved_*` shows what a node holds, `_saved_*`
would run them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .storages import storages_of

#: of a graph that is larger, only so much is counted
MOST_NODES = 200_000
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
        number = _number(node)
        if number is not None and number in known:
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
            if number is not None:
                known.add(number)
        held, hooked = _held(node, torch)
        found.hooked += hooked
        found.storages += [(number, each) for each in held]
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
        number = _number(node)
        if number in wanted:
            found.setdefault(number, []).extend(storages_of(_held(node, torch)[0], torch))
        stack += [following for following, _ in node.next_functions if following is not None]
    return found


def _number(node: Any) -> Any:
    """What tells a node from others, its number and its type; None for a leaf, which has no number of its own. Each
    thread counts from 0, so the number alone does not."""
    read = getattr(node, "_sequence_nr", None)
    number = None if read is None else read()
    return None if number is None or number >= 2**63 else (number, type(node))


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
