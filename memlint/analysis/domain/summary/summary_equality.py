"""Equality of two summaries of one function, for early cut-off: if a recomputed summary is equal, those that depend on
it stay valid."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

from memlint.analysis.domain.state import OBJECT_FIELDS, STATE_FIELDS, Obj, State
from memlint.analysis.domain.summary.compact import emptied
from memlint.analysis.domain.summary.effects import LoopState
from memlint.analysis.domain.summary.observations import Observations
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import V

#: fields of a summary that only its interpretation uses, or that follow from its function alone
_TRANSIENT = frozenset({
    "analyser", "applying", "depth", "function", "handlers", "loops", "module", "modules_by_state", "modules_by_use",
    "operands", "outward", "passes", "returns", "spent", "statement", "tests",
})  # fmt: skip
#: fields of a loop: the states that left an iteration
_ROUND = frozenset({"breaks", "continues"})


def same_summary(a: Summary, b: Summary) -> bool:
    """Whether everything that callers, rules and facts read of two summaries of one function is equal."""
    return a.cut_short == b.cut_short and _same_fields(vars(a), vars(b), _TRANSIENT)


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    kind = type(a)
    if kind is not type(b):
        return False
    if kind is V:
        return bool(a == b) and type(a.const) is type(b.const)
    if kind is dict:
        return a.keys() == b.keys() and all(_same(value, b[key]) for key, value in a.items())
    if kind is list or kind is tuple:
        return len(a) == len(b) and all(map(_same, a, b))
    if kind is State or kind is Obj:
        names = STATE_FIELDS if kind is State else OBJECT_FIELDS
        return all(_same(getattr(a, name), getattr(b, name)) for name in names)
    if kind is Observations:
        return _same_fields(vars(a), vars(b))
    if issubclass(kind, Summary):
        return False  # the summaries of unchanged callees are identical objects
    if dataclasses.is_dataclass(kind):
        left_out = _ROUND if kind is LoopState else ()
        return all(_same(getattr(a, name), getattr(b, name)) for name in _fields(kind) if name not in left_out)
    return bool(a == b)


def _same_fields(a: dict[str, Any], b: dict[str, Any], left_out: frozenset[str] = frozenset()) -> bool:
    return all(
        _same(a[name], b[name]) if name in a and name in b else emptied(a[name] if name in a else b[name])
        for name in a.keys() | b.keys()
        if name not in left_out
    )


@functools.cache
def _fields(kind: type[Any]) -> tuple[str, ...]:
    """The fields of a dataclass, without its private ones."""
    return tuple(field.name for field in dataclasses.fields(kind) if not field.name.startswith("_"))
