"""Which of several methods a call may mean, by how many values it asks for."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from memlint.analysis.domain.call_arity import fitting
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Ref
from memlint.analysis.index.definitions import Module
from memlint.analysis.index.indexes import Indexes
from memlint.analysis.syntax.syntax import calls
from memlint.project import Sources

TEXT = """
def two(x):
    if x:
        return x, 1
    return 2, x


def three(x):
    return x, 1, 2


def any_number(x):
    return some(x)


def spread(x):
    return (*x, 1)


def later(x):
    yield x, 1, 2


def use(f, x):
    {asked}
"""


@pytest.mark.parametrize(
    ("asked", "left"),
    [
        ("a, b = f(x)", {"two", "any_number", "spread", "later"}),
        ("a, b, c = f(x)", {"three", "any_number", "spread", "later"}),
        ("a, *b = f(x)", {"two", "three", "any_number", "spread", "later"}),
        ("a = f(x)", {"two", "three", "any_number", "spread", "later"}),
        ("for a, b in f(x): print(a)", {"two", "three", "any_number", "spread", "later"}),
    ],
)
def test_the_functions_that_fit(asked: str, left: set[str]) -> None:
    assert _fitting(asked, {"two", "three", "any_number", "spread", "later"}) == left


def test_where_none_fits_all_may_be_meant() -> None:
    assert _fitting("a, b, c, d = f(x)", {"two", "three"}) == {"two", "three"}


def _fitting(asked: str, names: set[str]) -> set[str]:
    content = TEXT.replace("{asked}", asked).encode()
    sources = Sources({"a.py": Path("a.py")}, frozenset({"a.py"}), {"a.py": content})
    module = Module("a.py", Indexes(sources))
    functions = {name: module.function(name) for name in names}
    use: Any = module.function("use")
    analyser = SimpleNamespace(function=lambda ref: functions[ref.name])
    frame = cast(Summary, SimpleNamespace(function=use, analyser=analyser))
    refs = frozenset(Ref("func", "a.py", name) for name in names)
    call = next(call for call in calls(use.body) if getattr(call.func, "id", "") == "f")
    return {ref.name for ref in fitting(frame, refs, call)}
