"""What an attribute of an object of unknown class may be, by what the project's classes keep under its name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from memlint.analysis.domain.values import MODULE, NONE, NOTHING, UNKNOWN, V, join
from memlint.analysis.index.program import in_tests

if TYPE_CHECKING:
    from memlint.analysis.facts.analyser import Analyser
    from memlint.analysis.index.program import Class

#: where more files or classes have the name, nobody looks through them all
MAX_FILES = 40
MAX_CLASSES = 8


def held_module(analyser: Analyser, name: str) -> V | None:
    """A module, where each of the few classes that keep something under the name keeps one there: ``learner.critic``.
    (What nothing is known of in one class is told by the others.)"""
    known = analyser.facts.held
    if name not in known:
        known[name] = None  # asked again by a constructor on the way
        known[name] = _held_module(analyser, name)
    return known[name]


def _held_module(analyser: Analyser, name: str) -> V | None:
    found, sure = NOTHING, False
    for cls in _keepers(analyser, name):
        value = analyser.attribute(cls, name)
        if value.kinds & ~(MODULE | NONE | UNKNOWN):
            return None
        sure = sure or (bool(value.kinds & MODULE) and not value.kinds & UNKNOWN)
        found = join(found, value)
    return V(MODULE, refs=found.refs) if sure else None


def _keepers(analyser: Analyser, name: str) -> list[Class]:
    """The classes whose methods assign the attribute, where they are few."""
    program = analyser.program
    files = [key for key in program.words.files(name) if not in_tests(key)]
    if len(files) > MAX_FILES:
        return []
    found: list[Class] = []
    for key in files:
        module = program.module(key)
        for one in module.index.definitions:
            if one.kind == "class" and name in module.index.units[one.unit].stores:
                cls = module.cls(one.name)
                found += [cls] if cls is not None else []
        if len(found) > MAX_CLASSES:
            return []
    return found
