"""The other method of an object that empties the place which a store fills: usually at the end of an epoch."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.analysis.domain.summary.effects import Store
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import Path
from memlint.analysis.index.program import Function
from memlint.analysis.judge.described import self_name
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import calls, dotted
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

#: hooks that frameworks call once
_ONCE = frozenset({"configure_optimizers", "on_fit_start", "prepare_data", "setup"})


def emptied_by(analyser: Analyser, summary: Summary, store: Store) -> str:
    """The name of a method that empties the attribute which this function fills, and that a framework or the project
    calls; "" if none is found."""
    place, function = store.place, summary.function
    if not isinstance(place, Path) or place.root != f"p:{self_name(function)}" or len(place.steps) != 1:
        return ""
    for method in _others(analyser, function):
        other = analyser.summary(method)
        if other is None:
            continue
        hooked = other.hook is not None and other.hook.every in ("iteration", "epoch")
        if not hooked and not analyser.facts.attributes.is_called(method.name):
            continue
        if Path(f"p:{self_name(method)}", place.steps) in other.notes.cleared or _empties_by_name(method.body):
            return method.name
    return ""


def _others(analyser: Analyser, function: Function) -> Iterator[Function]:
    order, _ = analyser.program.ancestors(function.cls) if function.cls is not None else ([], None)
    for cls in order:
        yield from (one for one in cls.methods.values() if one.name not in _ONCE | {"__init__", function.name})


@kept
def _empties_by_name(body: tuple[ir.Stmt, ...]) -> bool:
    """Whether a body empties an attribute with a computed name: ``getattr(self, f"{phase}_outputs").clear()``."""
    named = (call.func.value for call in calls(body) if isinstance(call.func, ir.Attr) and call.func.name == "clear")
    return any(
        isinstance(one, ir.Call)
        and dotted(one.func) == "getattr"
        and len(one.args) > 1
        and not isinstance(one.args[1], ir.Const)
        for one in named
    )
