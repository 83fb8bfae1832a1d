"""Runs programs and writes down what they compute and keep: ``python measured.py OUT.pt FILE…``.

Each file has ``run() -> dict``. It runs three times from the same seed: as it is, for its values, and under meters for
what is alive at most of saved tensors (bytes), of graphs (nodes) and of storages (bytes), and for all bytes ever made.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import random
import sys
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Meter:
    """Counts what is alive. ``peak``: the most of it that was alive at once; ``made``: all that there ever was."""

    def __init__(self) -> None:
        self.alive = self.peak = self.made = 0

    def add(self, owner: object, amount: int) -> None:
        self.alive += amount
        self.made += amount
        self.peak = max(self.peak, self.alive)
        weakref.finalize(owner, self._gone, amount)

    def _gone(self, amount: int) -> None:
        self.alive -= amount


class Saved:
    """What autograd saves for backward, in place of the tensor itself."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor


class Token:
    """Lives in the metadata of a node, and as long as the node."""


class Storages(TorchDispatchMode):
    """Counts the bytes of each storage that an operation makes."""

    def __init__(self, meter: Meter) -> None:
        super().__init__()
        self.meter = meter
        self._known: weakref.WeakSet[Any] = weakref.WeakSet()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                storage = leaf.untyped_storage()
                if storage not in self._known:
                    self._known.add(storage)
                    self.meter.add(storage, storage.nbytes())
        return result


@contextlib.contextmanager
def nodes_counted(meter: Meter) -> Iterator[None]:
    """Counts the nodes of each graph that a backward goes through, from there on."""
    backward: Callable[..., None] = torch.Tensor.backward

    def counted(tensor: torch.Tensor, *args: Any, **words: Any) -> None:
        todo = [tensor.grad_fn]
        while todo:
            node = todo.pop()
            if node is not None and "token" not in node.metadata:
                node.metadata["token"] = token = Token()
                meter.add(token, 1)
                todo += [following for following, _ in node.next_functions]
        return backward(tensor, *args, **words)

    torch.Tensor.backward = counted  # type: ignore[method-assign]
    try:
        yield
    finally:
        torch.Tensor.backward = backward  # type: ignore[method-assign]


def measured(path: Path) -> dict[str, Any]:
    spec = importlib.util.spec_from_file_location(path.parent.name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    values = _seeded(module.run)
    saved, nodes, storages = Meter(), Meter(), Meter()

    def pack(tensor: torch.Tensor) -> Saved:
        holder = Saved(tensor)
        saved.add(holder, tensor.nbytes)
        return holder

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda holder: holder.tensor), nodes_counted(nodes):
        _seeded(module.run)
    with Storages(storages):
        _seeded(module.run)
    return {
        "values": values,
        "memory": {"saved": saved.peak, "nodes": nodes.peak, "storages": storages.peak, "made": storages.made},
    }


def _seeded(run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    random.seed(0)
    torch.manual_seed(0)
    gc.collect()
    gc.disable()  # what only a collection frees is alive
    result = run()
    gc.enable()
    assert torch.is_grad_enabled()
    return result


if __name__ == "__main__":
    torch.set_num_threads(1)
    out, *files = sys.argv[1:]
    torch.save({file: measured(Path(file)) for file in files}, out)
