"""Values of literals and of device names, and the functions that a value refers to."""

from __future__ import annotations

import functools
from collections.abc import Iterator

from memlint.analysis.domain.values import ACCELERATOR, ANYWHERE, CPU, DATA, NONE_VALUE, SCALAR, V


@functools.lru_cache(maxsize=1 << 12)
def constant(kind: str, value: object) -> V:
    """The value of a literal. ``kind`` distinguishes ``True`` from 1."""
    if kind == "None":
        return NONE_VALUE
    return V(DATA, size=SCALAR, const=value, device=device_word(value) if isinstance(value, str) else ANYWHERE)


def device_word(name: str) -> int:
    """The device of a literal such as ``"cuda:0"``; `ANYWHERE` for another text."""
    if name.startswith("cpu"):
        return CPU
    return ACCELERATOR if name.startswith(("cuda", "xpu", "mps", "npu", "hip")) else ANYWHERE


def referred_functions(value: V) -> Iterator[tuple[str, str]]:
    """The keys of the project functions that a value is, or is a partial function of."""
    for ref in value.refs:
        if ref.kind == "func":
            yield ref.key, ref.name
        elif ref.kind == "partial" and ref.self_ is not None:
            yield from referred_functions(ref.self_)
