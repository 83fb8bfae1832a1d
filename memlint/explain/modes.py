"""The grad mode of a statement, what sets it, and what repeats the statement."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from memlint.analysis.domain.events import Loop, Site
from memlint.analysis.domain.state import AMBIENT, GUARDS, OFF, ON
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.facts.repeats import layer_code, repeated
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import last_name, withs_around
from memlint.analysis.transfer.modules.guards import decorated_grad, is_guard
from memlint.explain.watch import Recording
from memlint.explanation import GradMode
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser
    from memlint.analysis.index.program import Function

#: a position in words: `line 4`
PlaceOf = Callable[[Site], str]
#: the most callers that are named
_NAMED = 3
_MODES: dict[int, GradMode] = {ON: "on", OFF: "off", ON | OFF: "on or off"}


def grad_mode(
    analyser: Analyser, summary: Summary, recording: Recording, statement: ir.Stmt, place_of: PlaceOf
) -> tuple[GradMode, str]:
    """The grad mode at a statement, and what sets it."""
    state, function = recording.before.get(statement.at), summary.function
    if state is not None:
        grad = state.grad
    elif is_header(statement):
        grad = summary.entry
    else:
        return "unknown", "the analysis does not come here"
    if grad & AMBIENT:
        return _of_callers(analyser, summary, grad, place_of)
    mode = _MODES.get(grad, "unknown")
    for block in reversed(withs_around(function.body, statement.at)):
        for item in block.items:
            called = item.context.func if isinstance(item.context, ir.Call) else item.context
            if is_guard(summary, function, item.context) or last_name(called) in (*GUARDS, "enable_grad"):
                return mode, f"`with {text(item.context)}` at {place_of(summary.site(block.at))} decides it"
    if grad != summary.entry:
        return mode, f"a call in `{function.name}` before this line sets it (`torch.set_grad_enabled`)"
    if function.decorators and decorated_grad(summary, function) != AMBIENT:
        shown = " and ".join(f"`@{text(item)}`" for item in function.decorators)
        return mode, f"{shown} on `{function.name}` decides it"
    if summary.hook is not None and summary.hook.grad in ("on", "off"):
        return mode, f"the framework that calls `{function.name}` decides it"
    if function.node is None:
        return mode, "module level: nothing has turned it off"
    return mode, "the file turns it off for good (`torch.set_grad_enabled(False)`)"


def is_header(statement: ir.Stmt) -> bool:
    """Whether the statement is the function's own definition, which stands for its body."""
    return isinstance(statement, ir.FunctionDef)


def _of_callers(analyser: Analyser, summary: Summary, grad: int, place_of: PlaceOf) -> tuple[GradMode, str]:
    function = summary.function
    calls = analyser.facts.calls_of(function)
    own = grad & (ON | OFF)
    told = own | analyser.facts.modes.of(function)
    mode = _MODES.get(told & (ON | OFF), "unknown")
    if summary.answers and not calls:
        return mode, f"the runtime that calls `{function.name}` for each request leaves it as it is"
    if summary.hook is not None and not summary.answers:
        return "on", f"the framework that calls `{function.name}` leaves it on in training"
    if layer_code(analyser, function) and not calls:
        return "unknown", f"whoever runs the module decides it: `{function.name}` is called by torch"
    if not calls:
        return mode, _of_unresolved_calls(analyser, function)
    by: dict[int, list[str]] = {}
    for caller, record in calls:
        one = record.grad & (ON | OFF) | (analyser.facts.modes.of(caller.function) if record.grad & AMBIENT else 0)
        by.setdefault(one & (ON | OFF), []).append(f"`{caller.function.name}` ({place_of(caller.site(record.at))})")
    said = [f"{_MODES.get(one, 'unknown')} in {_some(places)}" for one, places in sorted(by.items())]
    return mode, f"the callers of `{function.name}` decide it: {'; '.join(said)}"


def _of_unresolved_calls(analyser: Analyser, function: Function) -> str:
    """What decides the grad mode of a function without a resolved call: calls of its name on objects of unknown class,
    or the code to which it is passed."""
    by: dict[int, list[str]] = {}
    for caller, grad in analyser.facts.modes.calls(function):
        one = grad & (ON | OFF) | (analyser.facts.modes.of(caller) if grad & AMBIENT else 0)
        by.setdefault(one & (ON | OFF), []).append(f"`{caller.name}`")
    if not by:
        return f"no caller of `{function.name}` is known, so the default holds; a caller in the project would tell"
    said = [f"{_MODES.get(one, 'unknown')} in {_some(names)}" for one, names in sorted(by.items())]
    return f"unresolved calls of `{function.name}` decide it: {'; '.join(said)}"


def _some(places: list[str]) -> str:
    shown = list(dict.fromkeys(places))
    more = f" and {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
    return ", ".join(shown[:_NAMED]) + more


def loops(
    analyser: Analyser, summary: Summary, recording: Recording, statement: ir.Stmt, place_of: PlaceOf
) -> Iterator[str]:
    """The loops and callers that repeat a statement, the outermost first."""
    function = summary.function
    if function.node is not None:
        if summary.hook is not None and summary.hook.every:
            article = "an" if summary.hook.every in ("iteration", "epoch") else "a"
            yield f"each call of `{function.name}` by the framework: once {article} {summary.hook.every}"
        elif repeated(analyser, function) is not None:
            yield f"each call of `{function.name}`: a caller calls it in a loop"
    for one in recording.loops.get(statement.at, ()):
        yield _loop(one.loop, one.counts, place_of)


def _loop(loop: Loop, counts: bool, place_of: PlaceOf) -> str:
    over = {
        "loader": "once a batch of a data loader",
        "epochs": "once an epoch",
        "modules": "once a module",
        "time": "once a time step",
        "rows": "once a row",
    }.get(loop.over, "how often is unknown")
    if loop.trips is not None:
        over = f"{loop.trips} times"
    if not counts:
        over += "; not counted as iterations over data"
    return f"`{loop.text}` at {place_of(loop.site)}: {over}"
