"""Which object a function works on: whether two methods may use one object, and whether callers keep what they pass."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.domain.values import NOTHING, UNKNOWN, Path
from memlint.analysis.index.program import Class, Function, Program
from memlint.analysis.syntax.syntax import calls_named

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser


#: the most classes that are examined; with more of them, two methods may run on one object
MAX_BELOW = 64


class Holder(NamedTuple):
    """The object whose attribute a place is. ``classes``: those that it is an instance of, None for unknown; or, where
    it is the function's own object, ``method``: the function, on whose class or a subclass it runs."""

    classes: tuple[Class, ...] | None = None
    method: Function | None = None


def holder(analyser: Analyser, function: Function, path: Path) -> Holder:
    """The holder of the attribute at ``path``, in terms of ``function``."""
    if function.cls is None or not function.own_name or path.root != f"p:{function.own_name}":
        return Holder()
    if len(path.steps) == 1:
        return Holder(method=function)
    classes = [function.cls]
    for step in path.steps[:-1]:
        values = [analyser.attribute(cls, step[1:]) for cls in classes]
        refs = [ref for value in values for ref in value.refs]
        found = [analyser.cls(ref) if ref.kind == "instance" else None for ref in refs]
        known = all(value.refs and not value.kinds & UNKNOWN for value in values)
        if not step.startswith(".") or not known or None in found or _is_set_elsewhere(analyser, classes, step[1:]):
            return Holder()
        classes = [cls for cls in found if cls is not None]
    return Holder(tuple(classes))


def _is_set_elsewhere(analyser: Analyser, classes: list[Class], name: str) -> bool:
    """Whether code outside of some classes and their ancestors assigns an attribute of this name, of any object."""
    own = {(one.module.key, one.unit) for cls in classes for one in analyser.program.ancestors(cls)[0]}
    return not own.issuperset(analyser.facts.attributes.assigning_units(name))


def may_be_same(program: Program, one: Holder, other: Holder) -> bool:
    """Whether two holders may be one object; unknown counts as yes."""
    if one.method is not None and other.method is not None:
        return _may_run_on_one(program, one.method, other.method)
    if one.method is not None:
        one, other = other, one
    if one.classes is None or (other.classes is None and other.method is None):
        return True
    if other.method is not None:
        return any(_runs_on(program, other.method, cls) for cls in one.classes)
    return not {cls.key for cls in one.classes}.isdisjoint(cls.key for cls in other.classes or ())


def _runs_on(program: Program, method: Function, cls: Class) -> bool:
    """Whether a method may run on an instance of a class: the class has or inherits it, and does not replace it."""
    bases, outside = program.ancestors(cls)
    if method.cls is None or (
        all(base.key != method.cls.key for base in bases)
        and method.cls.node.name not in {name.rsplit(".", 1)[-1] for name in outside}
    ):
        return False
    own = program.method(cls, method.name)
    return own is None or own.key == method.key or _calls_on(own, method.name)


def _may_run_on_one(program: Program, one: Function, other: Function) -> bool:
    """Whether two methods may run on one object: one that both classes, or a class below both, define."""
    if one.cls is None or other.cls is None or one.key == other.key:
        return True
    classes = list(itertools.islice(itertools.chain((one.cls, other.cls), program.below(one.cls)), MAX_BELOW))
    return len(classes) == MAX_BELOW or any(
        _runs_on(program, one, cls) and _runs_on(program, other, cls) for cls in classes
    )


def _calls_on(method: Function, name: str) -> bool:
    """Whether a method calls one of that name, as an override that extends the inherited method does."""
    return any(True for _ in calls_named(method.body, {name}))


def is_given_anew(analyser: Analyser, summary: Summary, place: Path) -> bool:
    """Whether a place is inside an argument that is a different object in each call: the batch of a module's forward
    (``batch["x"]``), or an object that no known caller keeps between calls."""
    function = summary.function
    params = {f"p:{param.name}": param.name for param in function.given}
    if place.root not in params:
        return False
    works = function.name in ("forward", "__call__") or summary.hook is not None
    return works or not _is_kept_by_callers(analyser, function, params[place.root], set())


def is_some_member(path: Path) -> bool:
    """Whether a path goes through an arbitrary member of a container: an iterator's next item, an indexed sample."""
    return "[]" in path.steps


def _is_kept_by_callers(
    analyser: Analyser, function: Function, name: str, seen: set[tuple[tuple[str, str], str]]
) -> bool:
    """Whether some caller passes the same object for a parameter again and again: an attribute, a module variable, or
    an object from before the loop around the call."""
    seen.add((function.key, name))
    for caller, record in analyser.facts.calls_of(function):
        value = record.args.get(name, NOTHING)
        held = caller.last.heap if caller.last is not None else {}
        if any((obj := held.get(key)) is not None and obj.loops != record.loops for key in value.objs):
            return True
        params = {f"p:{param.name}": param.name for param in caller.function.given}
        for path in value.syms:
            if is_some_member(path):
                continue
            if path.root not in params or record.counts:
                return True
            inner = params[path.root]
            if (caller.function.key, inner) not in seen and _is_kept_by_callers(analyser, caller.function, inner, seen):
                return True
    return False
