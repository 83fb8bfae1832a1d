"""What callers hand over: what all calls of a function choose alike, and what the methods of a class collect."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.analysis.domain.recorded_modes import look_up
from memlint.analysis.domain.state import AMBIENT, OFF, ON
from memlint.analysis.domain.summary.effects import CallRecord, Store
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import NONE, NOTHING, UNKNOWN, Path, Ref, V, join
from memlint.analysis.facts.module_facts import context_mode
from memlint.analysis.index.program import Class, Function, in_tests
from memlint.analysis.index.roles_by_name import is_test
from memlint.analysis.syntax.bindings import assigned_names, names_read
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import calls, dotted, is_none
from memlint.analysis.transfer.modules.flags import test_value
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


def freed_by_callers_choice(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether each known call that records also selects the backward that frees the graph: ``step(loader,
    train=True)``, and ``step(loader)`` under no_grad."""
    if store.loop is None or summary.flags:
        return False
    ways = [backward.tests for backward in summary.backwards if store.loop.id in backward.loops and backward.tests]
    recording = [
        record for caller, record in analyser.facts.calls_of(summary.function) if _records(analyser, caller, record)
    ]
    return bool(recording) and all(
        any(all(_holds(record, test) for test in tests) for tests in ways)
        or _freed_with(analyser, summary, store, record)
        for record in recording
    )


def _freed_with(analyser: Analyser, summary: Summary, store: Store, record: CallRecord) -> bool:
    """Whether the graph is freed in a call with these arguments, by the specialised summary."""
    called = analyser.summary(summary.function, record.args, record.trains)
    same = called.stores.get(store.key) if called is not None and called is not summary else None
    return same is not None and same.freed == "yes"


def left_out(analyser: Analyser, summary: Summary, tests: tuple[ir.Expr, ...]) -> bool:
    """Whether no known call reaches the code under these tests: ``if history is not None:``, where each call leaves
    ``history`` at its default. Calls in tests do not count."""
    function = summary.function
    own = {param.name for param in function.params} - assigned_names(function.body)[0]
    if all(own.isdisjoint(names_read(test)) for test in tests):
        return False
    if analyser.facts.is_handed_on(function):
        return False
    records = [
        record
        for caller, record in analyser.facts.calls_of(function)
        if not (caller is summary or is_test(caller.function))
    ]
    return bool(records) and all(any(_passed_over(record, test, own) for test in tests) for record in records)


def _passed_over(record: CallRecord, test: ir.Expr, own: set[str]) -> bool:
    """Whether a test on parameters is false for the arguments of a call, defaults included."""

    def passed(part: ir.Expr) -> bool | None:
        none = isinstance(part, ir.Compare) and part.ops in (("is",), ("is not",)) and is_none(part.rights[0])
        name = part.left if isinstance(part, ir.Compare) and none else part
        value = record.args.get(name.id) if isinstance(name, ir.Name) and name.id in own else None
        if value is None or not value.kinds:
            return None
        if isinstance(part, ir.Compare):
            known = True if value.is_only(NONE) else None if value.may_be(NONE | UNKNOWN) else False
            return known if known is None or part.ops == ("is",) else not known
        return False if value.is_only(NONE) else value.const if isinstance(value.const, bool) else None

    return test_value(test, passed) is False


def frozen_by_callers(analyser: Analyser, summary: Summary, store: Store) -> bool:
    """Whether all callers have frozen every model that made the stored value, so that nothing is recorded:
    ``generator.freeze()``, then ``generator.sample(images)``."""
    models = summary.graphs.models_in(store.entering.src)
    runs = {run.node: run for run in summary.runs.values() if run.node in models}
    return (
        bool(models)
        and models <= set(runs)
        and all(context_mode(analyser, summary, run.module, "frozen") is True for run in runs.values())
    )


def _records(analyser: Analyser, caller: Summary, record: CallRecord) -> bool:
    grad = record.grad
    if grad & AMBIENT:
        grad |= analyser.facts.modes.of(caller.function)
    return bool(grad & ON) or not grad & OFF


def _holds(record: CallRecord, test: ir.Expr) -> bool:
    """Whether a test on parameters is true for the arguments of a call: flags, and the modes of models."""

    def passed(part: ir.Expr) -> bool | None:
        if isinstance(part, ir.Attr) and part.name == "training" and isinstance(part.value, ir.Name):
            module = record.args.get(part.value.id)
            evaluates = look_up(record.modes, module, "", "") if module is not None else None
            return None if evaluates is None else not evaluates
        value = record.args.get(part.id) if isinstance(part, ir.Name) else None
        return value.const if value is not None and isinstance(value.const, bool) else None

    return test_value(test, passed) is True


#: the kinds of callables that are followed
_FOLLOWED = frozenset({"func", "partial"})
#: methods by which a list, a set or a dictionary gets a member
_ADDING = frozenset({"append", "add", "insert", "appendleft"})


def handed_over(analyser: Analyser, function: Function, callee: V) -> frozenset[Ref]:
    """The functions that a member of a collection in an attribute of the method's own object may be (``for hook in
    self.hooks``), or a part of such a member (``for hook, args in self.hooks``); empty where none is known."""
    if function.cls is None or not callee.is_only(UNKNOWN) or len(callee.syms) != 1:
        return frozenset()
    (path,) = callee.syms
    if path.root != f"p:{function.own_name}" or len(path.steps) < 2 or not path.steps[0].startswith("."):
        return frozenset()
    if any(not step.startswith("[") for step in path.steps[1:]):
        return frozenset()
    return _handed(analyser, function.cls, path, of_tests=in_tests(function.module.key))


def _handed(analyser: Analyser, cls: Class, path: Path, *, of_tests: bool) -> frozenset[Ref]:
    """``of_tests``: what tests hand over counts as well, which the program never runs."""
    part = path.steps[-1].strip("[]") if path.steps[-1] != "[]" else ""
    found = NOTHING
    for method in analyser.program.methods(cls):
        for name, place in _all_collected(method).get(path.steps[0][1:], ()):
            if place == part and any(param.name == name for param in method.given):
                found = join(found, _passed(analyser, method, name, of_tests))
    return frozenset(ref for ref in found.refs if ref.kind in _FOLLOWED)


def _passed(analyser: Analyser, method: Function, name: str, of_tests: bool) -> V:
    value = analyser.facts.parameter(method, name, of_tests)
    analyser.summaries.note("parameter", (method.key, name, of_tests), (method, name, of_tests), value)
    return value if value is not None else NOTHING


@kept
def _all_collected(method: Function) -> dict[str, tuple[tuple[str, str], ...]]:
    """By attribute of the method's own object, the variables that it adds to a collection in it, each with its position
    in the tuple that is added; "" where it is added itself."""
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for call in calls(method.body):
        if isinstance(call.func, ir.Attr) and call.func.name in _ADDING and call.args:
            place = call.func.value
            while isinstance(place, ir.Subscript):
                place = place.value
            own, _, attribute = dotted(place).partition(".")
            if own == method.own_name and attribute.isidentifier():
                found[attribute] = (*found.get(attribute, ()), *_names(call.args[-1]))
    return found


def _names(added: ir.Expr) -> Iterator[tuple[str, str]]:
    if isinstance(added, ir.Name):
        yield added.id, ""
    elif isinstance(added, ir.Display) and added.kind == "tuple":
        for number, part in enumerate(added.elements):
            if isinstance(part, ir.Name):
                yield part.id, str(number)
