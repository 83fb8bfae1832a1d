"""Attributes of objects of unknown class, by what the project's classes assign under the name."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from memlint.analysis.domain.values import INSTANCE, MODULE, NONE, NOTHING, UNKNOWN, V, join
from memlint.analysis.index.program import in_tests
from memlint.analysis.index.receivers import may_mean
from memlint.ir import nodes as ir

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser
    from memlint.analysis.index.program import Class, Function

#: most files, and most classes, of a name that are searched
MAX_FILES = 40
MAX_CLASSES = 8


def held_module(analyser: Analyser, name: str, call: ir.Call, asker: Function) -> V | None:
    """A module, where each of the few classes that assign the attribute assigns a module, and the object of a call
    in a function may be of one of them: ``learner.critic``; else None. (A class whose value is unknown does not
    contradict.)"""
    known = analyser.facts.held
    if name not in known:
        known[name] = None  # a constructor that is interpreted on the way may ask again
        known[name] = _held_module(analyser, name)
    found = known[name]
    is_assigned = analyser.facts.attributes.is_assigned
    if found is None or not any(may_mean(analyser.program, asker, call, cls, is_assigned) for cls in found.keepers):
        return None
    return found.value


class Held(NamedTuple):
    """The modules that classes hold under an attribute, and those classes."""

    value: V
    keepers: tuple[Class, ...]


def _held_module(analyser: Analyser, name: str) -> Held | None:
    found, sure, keepers = NOTHING, False, []
    for cls in _keepers(analyser, name):
        value = analyser.attribute(cls, name)
        own = INSTANCE if value.kinds & MODULE else 0  # an instance of a project class
        if value.kinds & ~(MODULE | own | NONE | UNKNOWN):
            return None
        sure = sure or (bool(value.kinds & MODULE) and not value.kinds & UNKNOWN)
        keepers += [cls] if value.kinds & MODULE else []
        found = join(found, value)
    return Held(V(MODULE | found.kinds & INSTANCE, refs=found.refs), tuple(keepers)) if sure else None


def _keepers(analyser: Analyser, name: str) -> list[Class]:
    """The classes whose methods assign the attribute; empty where there are many."""
    files = [key for key in analyser.program.words.files(name) if not in_tests(key)]
    found = analyser.facts.attributes.classes_with(name) if len(files) <= MAX_FILES else ()
    keepers = [cls for cls in found if not in_tests(cls.module.key)]
    return keepers if len(keepers) <= MAX_CLASSES else []
