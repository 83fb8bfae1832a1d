from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from memlint.frontend.lower import by_libcst, lower
from memlint.frontend.unit_text import UnitText
from memlint.ir import nodes as ir


@pytest.fixture
def say() -> Callable[[str], str]:
    """Source -> its IR in short: names and literals as written, ``Kind(field, …)``, ``[…]`` for tuples, - for None.

    The host's ``ast`` and libcst must say the same, ordinals included.
    """

    def read(source: str) -> str:
        unit = UnitText("", 0, 1, source)
        lowered = lower(unit)
        assert lowered == by_libcst(unit)
        return " ; ".join(map(short, lowered.body))

    return read


def short(value: Any) -> str:
    if value is None:
        return "-"
    if isinstance(value, ir.Name):
        return value.id
    if isinstance(value, ir.Const):
        return value.kind if value.value is None else repr(value.value)
    if isinstance(value, tuple):
        return f"[{', '.join(map(short, value))}]"
    if isinstance(value, msgspec.Struct):
        fields = [short(getattr(value, name)) for name in value.__struct_fields__ if name != "at"]
        return f"{type(value).__name__}({', '.join(fields)})"
    return str(value)
