"""What one tensor operation gives: its graph, size, device and storage."""

from __future__ import annotations

from memlint.flow.frame import Frame
from memlint.flow.state import OFF, State
from memlint.flow.values import (
    ACCELERATOR,
    ANYWHERE,
    BATCH,
    CPU,
    DATA,
    EMPTY,
    SCALAR,
    SOME_SIZE,
    TENSOR,
    TENSORS,
    TREE,
    UNKNOWN,
    Source,
    Sources,
    V,
)


def tensor_op(
    frame: Frame, state: State, key: Source, inputs: list[V], shown: str, *, what: str = "", size: int | None = None,
    certain: bool = False,
) -> V:
    """The result of an operation that autograd records where an input is attached.

    ``certain``: the result is a tensor whatever the inputs are. Operations on scalars save nothing worth a node:
    their result has the inputs' sources.
    """
    sources: Sources = EMPTY
    kinds = TENSOR if certain else 0
    largest = SCALAR
    device = 0
    bare = False
    for value in inputs:
        sources |= value.src
        bare = bare or value.bare
        kinds |= value.kinds & (TENSOR | UNKNOWN | DATA) | (TENSOR if value.kinds & TREE else 0)
        if value.kinds & (TENSORS | UNKNOWN):
            largest = max(largest, value.size)
            device |= value.device & (CPU | ACCELERATOR)
    if kinds & TENSOR:
        kinds &= ~(UNKNOWN | DATA)
    elif kinds & UNKNOWN:
        kinds &= ~DATA
    given = largest if size is None else size
    at = key if isinstance(key, int) else key[0]  # type: ignore[index]
    if not sources or state.grad == OFF:
        return V(kinds or UNKNOWN, size=given, device=device or ANYWHERE, store=frozenset((key,)))
    if largest == SCALAR or (largest == SOME_SIZE and not kinds & TENSOR):
        return V(kinds, sources, bare=bare, size=given, device=device or ANYWHERE, store=frozenset((key,)))
    src = frame.record(state, key, at, what or shown, sources)
    return V(kinds, src, bare=bare, size=given, device=device or ANYWHERE, store=frozenset((key,)))


def cut(value: V, kinds: int | None = None, size: int | None = None) -> V:
    """The value without its graph."""
    return V(
        (value.kinds & (TENSORS | UNKNOWN) or TENSOR) if kinds is None else kinds,
        size=value.size if size is None else size,
        device=value.device,
        store=value.store,
    )


def moved(value: V, device: int) -> V:
    """The value on another device: the same graph."""
    return value.but(device=device)


def device_named(name: object) -> int:
    """The device of a literal such as ``"cuda:0"``."""
    if not isinstance(name, str):
        return ACCELERATOR if isinstance(name, int) and not isinstance(name, bool) else ANYWHERE
    return CPU if name.startswith("cpu") else ACCELERATOR if name.startswith(("cuda", "xpu", "mps", "npu", "hip")) else ANYWHERE


def batch_tree(device: int = ANYWHERE) -> V:
    """A batch of a loader: tensors of batch size without a graph, in any arrangement."""
    return V(TREE, size=BATCH, device=device)
