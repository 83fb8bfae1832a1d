"""What callers hand to the methods of a class that collect it in an attribute: ``trainer.register(hook)``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from memlint.analysis.domain.values import NOTHING, UNKNOWN, Path, Ref, V, join
from memlint.analysis.index.program import Class, Function, in_tests
from memlint.analysis.syntax.memo import kept
from memlint.analysis.syntax.syntax import calls, dotted
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser

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
