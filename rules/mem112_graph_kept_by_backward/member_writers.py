"""Methods that write a member of their object where no call of them is followed."""

from __future__ import annotations

from collections.abc import Iterator

from memlint.sdk.project import Analyser, Class, Function, TooManyError, functions_naming
from memlint.sdk.syntax import calls, ir, last_name, parts, unpacked_targets, walk_statements, with_lambdas

#: methods that run where the object is made
_MAKERS = frozenset({"__init__", "__post_init__"})
#: methods by which a member may be another one than the last that was assigned
_LOOKUPS = frozenset({"__new__", "__getattr__", "__getattribute__", "__setattr__"})
#: methods that change a container
_CHANGES = frozenset({"append", "appendleft", "extend", "insert", "add", "update", "setdefault"})
#: functions that assign members by names
_BY_NAME = frozenset({"setattr", "__setattr__", "vars"})


def may_be_written(analyser: Analyser, cls: Class, name: str, user: Function) -> bool:
    """Whether a method may write a member while ``user`` runs, beside those that it calls: a method that Python calls
    (``__exit__``, ``__next__``), or one that another function names (to register a hook, in a callback)."""
    for one in analyser.program.ancestors(cls)[0]:
        for method in one.methods.values():
            if method.name in _LOOKUPS or "cached_property" in method.decorator_names:
                return True
            if method.name in _MAKERS or not _writes(method, name):
                continue
            if method.name.startswith("__") or _is_named(analyser, method, user):
                return True
    return False


def _writes(method: Function, name: str) -> bool:
    places = [target for part in walk_statements(method.body) for target in unpacked_targets(part)]
    for call in calls(method.body, into_definitions=True):
        if last_name(call.func) in _BY_NAME:
            return True
        if isinstance(call.func, ir.Attr) and (call.func.name.endswith("_") or call.func.name in _CHANGES):
            places.append(call.func.value)
    return any(part.name in (name, "__dict__") for place in places for part in _members(place))


def _members(place: ir.Expr) -> Iterator[ir.Attr]:
    """The attributes on the way to a place: ``self.rows`` and ``self.rows.data`` of ``self.rows.data[0]``."""
    while isinstance(place, ir.Attr | ir.Subscript | ir.Call):
        if isinstance(place, ir.Attr):
            yield place
        place = place.func if isinstance(place, ir.Call) else place.value


def _is_named(analyser: Analyser, method: Function, user: Function) -> bool:
    """Whether a function other than ``user`` names a method, beside calls where the object is made."""
    try:
        functions = list(functions_naming(analyser, method.name))
    except TooManyError:
        return True
    for one in functions:
        if one is user:
            continue
        called = {call.func.at for call in calls(one.body)} if one.name in _MAKERS else set()
        everywhere = with_lambdas(parts(one.body))
        named = (part for part in everywhere if isinstance(part, ir.Attr) and part.name == method.name)
        if any(part.at not in called for part in named):
            return True
    return False
