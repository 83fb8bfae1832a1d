"""The grad modes in which functions are called: directly, by name, or by code to which they are passed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from memlint.analysis.domain.state import AMBIENT, GUARDS, OFF, ON
from memlint.analysis.index.program import Class, Function, Module, in_tests

if TYPE_CHECKING:
    from memlint.analysis.domain.summary.effects import CallRecord
    from memlint.analysis.domain.summary.summary import Summary
    from memlint.analysis.facts.facts import Facts


_Key = tuple[str, str]


def _is_of_tests(module: Module) -> bool:
    """Whether a file's functions are run by a test runner only, and not as a program."""
    if not in_tests(module.key):
        return False
    text = module.text
    starts = "__main__" in text and "unittest.main" not in text and "pytest.main" not in text
    return not starts


def _without_tests(records: list[tuple[Function, int]]) -> list[tuple[Function, int]]:
    return [record for record in records if not _is_of_tests(record[0].module)]


def _hand_down(found: dict[_Key, int], inherits: dict[_Key, set[_Key]], changed: list[_Key]) -> None:
    """Join the grad modes of functions to those of the functions that they call in their own mode."""
    while changed:
        key = changed.pop()
        for inner in inherits.get(key, ()):
            if found[key] & ~found[inner]:
                found[inner] |= found[key]
                changed.append(inner)


class CalledModes:
    """Facts about grad modes by function, computed once for the known calls."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.program = facts.analyser.program
        self._known: dict[_Key, int] = {}
        #: (caller, grad mode) of each call of a method on an unknown receiver, by method name
        self._named: dict[str, list[tuple[Function, int]]] = {}
        #: (caller, grad mode) of each time that a function is passed to unresolved code
        self._handed: dict[_Key, list[tuple[Function, int]]] = {}

    def learn(self, summaries: Iterable[Summary]) -> None:
        """Take the unresolved calls from all summaries."""
        self.forget()
        for summary in summaries:
            for name, grad in summary.named:
                self._named.setdefault(name, []).append((summary.function, grad))
            for key, grad in summary.handed_on:
                self._handed.setdefault(key, []).append((summary.function, grad))

    def forget(self) -> None:
        """Drop all answers, so that they are computed again."""
        self._known.clear()
        self._named.clear()
        self._handed.clear()

    def of(self, function: Function) -> int:
        """The join of the grad modes in which a function is called, over any number of calls. ON if no caller is known,
        joined with AMBIENT for a module's forward, which torch calls for an unknown caller."""
        if function.key not in self._known:
            self._known.update(self._around(function))
        return self._known[function.key]

    def of_call(self, caller: Summary, record: CallRecord) -> int:
        """The grad modes of a call, with the caller's in place of AMBIENT."""
        return self.of(caller.function) if record.grad == AMBIENT else record.grad

    def _around(self, function: Function) -> dict[_Key, int]:
        """The grad modes of a function and of its transitive callers that call it in their own mode."""
        found = {function.key: 0}
        inherits: dict[_Key, set[_Key]] = {}
        todo = [function]
        while todo:
            callee = todo.pop()
            records = self.calls(callee)
            grads = OFF if not self._calls(callee) and self._may_be_guarded(callee) else 0
            grads |= 0 if records and not self._is_run_by_framework(callee) else ON
            for caller, grad in records:
                grads |= grad & (ON | OFF)
                if not grad & AMBIENT:
                    continue
                if caller.key in self._known:
                    grads |= self._known[caller.key]
                    continue
                inherits.setdefault(caller.key, set()).add(callee.key)
                if caller.key not in found:
                    found[caller.key] = 0
                    todo.append(caller)
            found[callee.key] = grads
        _hand_down(found, inherits, list(found))
        # functions that only call each other have no known caller outside, so that the default holds
        alone = [key for key, grads in found.items() if not grads]
        found.update(dict.fromkeys(alone, ON))
        _hand_down(found, inherits, alone)
        return found

    def calls(self, function: Function) -> list[tuple[Function, int]]:
        """(caller, grad mode) of each call that decides a function's grad mode: those of `_calls`, or else of the code
        to which it is passed: what a library gets in a guarded block is meant to run in it."""
        return self._calls(function) or self._handed_over(function)

    def _is_run_by_framework(self, function: Function) -> bool:
        """Whether a framework calls the function in training as well, beside the calls that are known."""
        hook = self.facts.analyser.hook(function)
        return hook is not None and hook.grad == "ambient" and not hook.own

    def _may_be_guarded(self, function: Function) -> bool:
        """Whether project code that gets the function as a value may turn grad mode off and call it."""
        return self.facts.is_handed_on(function) and any(map(self.program.words.files, GUARDS))

    def _calls(self, function: Function) -> list[tuple[Function, int]]:
        """(caller, grad mode) of each call of a function. For a method without known calls, those of the method that it
        overrides, or else those by its name on objects of unknown class."""
        known = self.facts.calls_of(function)
        direct = [(summary.function, record.grad) for summary, record in known if summary.function.key != function.key]
        # calls in tests count only if there is no other call
        records = _without_tests(direct)
        if not records and function.cls is not None and function.name != "__init__":
            # a call of the overridden method may run the override
            order, _ = self.program.ancestors(function.cls)
            inherited = [
                (summary.function, record.grad)
                for cls in order
                if cls.key != function.cls.key and function.name in cls.methods
                for summary, record in self.facts.calls_of(cls.methods[function.name])
                if not self._is_beside(summary.function, function.cls, cls)
            ]
            records, direct = _without_tests(inherited), direct or inherited
        if not direct and function.cls is not None:
            direct = self._named.get(function.name, [])
            records = _without_tests(direct)
        return records or direct

    def _handed_over(self, function: Function) -> list[tuple[Function, int]]:
        """(caller, grad mode) of each time that a function, or the method that it overrides, is passed to unresolved
        code."""
        if function.cls is None:
            return self._handed.get(function.key, [])
        return [
            (caller, grad)
            for cls in self.program.ancestors(function.cls)[0]
            if function.name in cls.methods
            for caller, grad in self._handed.get(cls.methods[function.name].key, ())
            if cls is function.cls or not self._is_beside(caller, function.cls, cls)
        ]

    def _is_beside(self, caller: Function, cls: Class, base: Class) -> bool:
        """Whether the caller is a method of a sibling class, which shares only the base: its ``self`` is no object of
        this class."""
        other = caller.cls
        if other is None or other is cls:
            return False
        above = self.program.ancestors
        return base in above(other)[0] and other not in above(cls)[0] and cls not in above(other)[0]
