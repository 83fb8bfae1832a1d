"""The exact bytes of CPU tensors: each storage that an operation allocates, until it is freed.

Other storages (NumPy arrays, loaded files, those of other threads and of compiled code) are not counted: an operation
that uses one does not tell when it was allocated.
"""

from __future__ import annotations

import functools
import sys
import weakref
from collections.abc import Callable
from types import CodeType
from typing import Any

#: a frame as its code and last instruction; the line is computed when it is shown
Frame = tuple[CodeType, int]
_DEPTH = 64


class Born:
    """A live storage. ``tick``: when it was allocated, by the caller's clock; ``stack``: where, innermost frame
    first."""

    __slots__ = ("nbytes", "reference", "stack", "tick")

    def __init__(self, nbytes: int, tick: int, stack: tuple[Frame, ...], reference: Any) -> None:
        self.nbytes = nbytes
        self.tick = tick
        self.stack = stack
        self.reference = reference


class Ledger:
    """Live storages by address, with their total and peak in bytes. ``tick``: the caller's clock; ``stacks``: whether
    stacks are recorded, of up to ``depth`` frames."""

    def __init__(self, depth: int = _DEPTH) -> None:
        self.alive: dict[int, Born] = {}
        self.total = 0
        self.peak = 0
        self.tick = 0
        self.stacks = False
        self._depth = depth

    def made(self, storage: Any) -> None:
        """Count a storage that an operation has returned, if it is new."""
        key = storage._cdata
        if key in self.alive:
            self.shown(storage)
            return
        if storage.device.type != "cpu":  # of a fake tensor
            return
        nbytes = storage.nbytes()
        reference = weakref.ref(storage, functools.partial(self._died, key))
        self.alive[key] = Born(nbytes, self.tick, self._origin() if self.stacks else (), reference)
        self._grown(nbytes)

    def _origin(self) -> tuple[Frame, ...]:
        """The stack that allocates a storage."""
        return _stack_from(5, self._depth)  # without _stack_from, this function, made, look and the mode

    def shown(self, storage: Any) -> None:
        """Update the size of a storage after a view or an in-place operation, which may resize it."""
        known = self.alive.get(storage._cdata)
        if known is not None:
            nbytes = storage.nbytes()
            if nbytes != known.nbytes:
                known.nbytes, before = nbytes, known.nbytes
                self._grown(nbytes - before)

    def _grown(self, nbytes: int) -> None:
        self.total += nbytes
        if self.total > self.peak:
            self.peak = self.total

    def _died(self, key: int, _: object) -> None:
        self.total -= self.alive.pop(key).nbytes


def _stack_from(depth: int, most: int) -> tuple[Frame, ...]:
    """The ``most`` innermost frames, without the first ``depth`` of them."""
    frames: list[Frame] = []
    frame = sys._getframe(depth)
    while frame is not None and len(frames) < most:
        frames.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back  # type: ignore[assignment]
    return tuple(frames)


def lines(frame: Frame) -> int:
    """The line of a frame."""
    code, last = frame
    line = code.co_firstlineno
    if hasattr(code, "co_positions"):
        positions = list(code.co_positions())
        return positions[last // 2][0] or line if last // 2 < len(positions) else line
    import dis

    for offset, number in dis.findlinestarts(code):
        if offset > last:
            break
        line = number
    return line


def tracker(ledger: Ledger, torch: Any) -> Any:
    """A dispatch mode that fills ``ledger``. It ignores the internals of torch.compile; otherwise torch would not
    compile under it."""
    from torch.utils._python_dispatch import TorchDispatchMode

    aliases: dict[Any, bool] = {}
    tensor = torch.Tensor
    # copy.deepcopy, pickle and torch.load give a tensor a storage by these: an alias by the schema, but it may be new
    gives = {torch.ops.aten.set_.source_Storage_storage_offset, torch.ops.aten.set_.source_Storage}

    def look(value: Any, note: Callable[[Any], None]) -> None:
        if isinstance(value, tensor) and value.is_cpu:
            try:
                note(value.untyped_storage())
            except (NotImplementedError, RuntimeError):  # sparse and opaque tensors have none
                pass

    class Tracker(TorchDispatchMode):  # type: ignore[misc]
        @classmethod
        def ignore_compile_internals(cls) -> bool:
            return True

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any | None = None) -> Any:
            out = func(*args, **(kwargs or {}))
            alias = aliases.get(func)
            if alias is None:
                alias = aliases[func] = _is_alias(func) and func not in gives
            note = ledger.shown if alias else ledger.made
            if isinstance(out, (tuple, list)):
                for each in out:
                    if isinstance(each, (tuple, list)):
                        for inner in each:
                            look(inner, note)
                    else:
                        look(each, note)
            else:
                look(out, note)
            return out

    return Tracker()


def _is_alias(function: Any) -> bool:
    schema = getattr(function, "_schema", None)
    return schema is not None and any(result.alias_info is not None for result in schema.returns)
