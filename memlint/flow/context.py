"""The functions of other files that are analysed beside the linted ones, for what they say of these.

What a function keeps, runs or differentiates is judged by who calls it: under which grad mode, with what, in which
loop. Most functions of a project do nothing of that kind, and nobody is asked about them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from memlint.flow.analyser import Analyser
from memlint.flow.frame import Frame
from memlint.flow.program import Function, Program
from memlint.flow.screen import relevant_modules

#: units of other files that are read to learn how a function is called
MAX_CALLERS = 12
#: what a function may note of itself that hangs on its callers
_NOTES = (
    "blind_backward", "blocks", "dropped", "drawn", "gradients", "hooks", "inert", "left_rounds", "loaders", "logged",
    "metrics", "on_context", "outside", "owned", "rebound", "retained", "stale",
)  # fmt: skip


def callers_of(analyser: Analyser, functions: Sequence[Function], linted: Iterable[str]) -> list[Function]:
    """Functions of files that are not linted which call one of these by name, where their grad mode and arguments are
    of interest."""
    program = analyser.program
    asking = [function for function in functions if _hangs_on_callers(analyser, analyser.summary(function), function)]
    called = _Called(asking)
    if not called.names:
        return []
    inside = set(linted)
    naming = {key for name in called.names for key in program.words.files(name)}
    others = [key for key in program.project.sources if key not in inside and key in naming]
    found: dict[str, list[tuple[str, int]]] = {}
    for key in sorted(relevant_modules(program, others)):
        for number, unit in enumerate(program.module(key).index.units):
            for name in unit.calls & called.names:
                if called.may_be_meant(program, key, name):
                    found.setdefault(name, []).append((key, number))
    units = {place for places in found.values() if len(places) <= MAX_CALLERS for place in places}
    callers: list[Function] = []
    for key, number in sorted(units):
        module = program.module(key)
        module.build(number)
        if number == 0:
            callers.append(module.main)
        callers += [function for function in list(module.functions.values()) if function.unit == number]
    return callers


def _hangs_on_callers(analyser: Analyser, frame: Frame | None, function: Function) -> bool:
    """Whether what may be said of a function is not told by itself alone."""
    if function.node is None or (frame is not None and frame.hook is not None):
        return False  # nobody of the project calls them
    if frame is None or frame.cut_short or frame.stores or frame.backwards or frame.yields:
        return True
    part = function.cls is not None and analyser.program.is_module(function.cls)
    if any(run.loop is not None or not part for run in frame.runs.values()):
        return True  # (a module that runs its parts is itself run by somebody, and is judged there)
    return any(getattr(frame.notes, note) for note in _NOTES)


class _Called:
    """``names``: by which functions, and the classes of methods, are called."""

    def __init__(self, functions: Sequence[Function]) -> None:
        methods = {
            function.name
            for function in functions
            if not function.name.startswith("__") and function.name != "forward" and "." in function.qual
        }
        #: definitions that a name of their module means
        self._tops: dict[str, set[tuple[str, str]]] = {}
        for function in functions:
            top = function.cls if function.cls is not None else function
            if "." not in top.qual:
                self._tops.setdefault(top.qual, set()).add(top.key)
        inner = {
            function.cls.node.name for function in functions if function.cls is not None and "." in function.cls.qual
        }
        self._anywhere = methods | inner
        self.names = self._anywhere | self._tops.keys()

    def may_be_meant(self, program: Program, key: str, name: str) -> bool:
        """Whether the name in a file may be one of these: another definition of the same name is not."""
        if name in self._anywhere:
            return True
        index = program.module(key).index
        imported = (each.asname or each.name or each.module.split(".", 1)[0] for each in index.imports)
        if name not in {definition.name for definition in index.definitions} and name not in imported:
            return True  # a member of a module, or nothing that can be told
        kind, what = program.find(program.module(key), name)
        return kind not in ("class", "function") or what is None or what.key in self._tops[name]
