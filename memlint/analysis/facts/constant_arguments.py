"""Tests of parameters that have the same result in all known calls of a function: a switch that is never set."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

from memlint.analysis.index.function import Function
from memlint.analysis.reach.known_calls import KnownCall, KnownCalls
from memlint.analysis.syntax.bindings import assigned_names
from memlint.analysis.syntax.expression_text import text
from memlint.analysis.syntax.syntax import spreads, way_to
from memlint.analysis.transfer.modules.flags import test_value
from memlint.ir import nodes as ir
from memlint.patterns import lazy_pattern

#: kinds of constants whose value is known
_KNOWN = frozenset({"bool", "int", "None", "str"})
#: code that makes an object without naming its class, or initialises one again
_MAKES_ITSELF = lazy_pattern(r"__class__|type\(|\bcls\(|(?<!super\(\))\.__init__\(")
#: through how many callers the calls of a function are followed
MAX_DEPTH = 2


class ConstantArguments:
    """The constants that all calls of a function pass for a parameter, defaults included."""

    def __init__(self, calls: KnownCalls) -> None:
        self._calls = calls
        self._constants: dict[tuple[str, str], dict[str, list[ir.Const]]] = {}
        self._tests: dict[tuple[str, str], dict[int, bool | None]] = {}

    def of(self, function: Function) -> Callable[[ir.Expr], bool | None]:
        """A function that gives the result of a test in all known calls; None if it is unknown or differs."""

        def leaf(part: ir.Expr) -> bool | None:
            answers = {_answer(part, constant) for constant in self._passed(function, _subject(part))}
            return next(iter(answers)) if len(answers) == 1 else None

        known = self._tests.setdefault(function.key, {})

        def decide(test: ir.Expr) -> bool | None:
            if test.at not in known:
                known[test.at] = test_value(test, leaf)
            return known[test.at]

        return decide

    def why_left_out(self, function: Function, at: int) -> str:
        """The test that keeps all known calls from an ordinal of a function, as a clause; "" if a call may reach it."""
        return self._left_out(function, at, MAX_DEPTH)

    def _left_out(self, function: Function, at: int, depth: int) -> str:
        decide = self.of(function)
        for test, holds in _tests_around(function.body, at):
            if decide(test) is (not holds):
                return f"no call of `{function.name}` in this project comes here: `{text(test)}` is {not holds} in each"
        calls = self._calls.of(function) if depth and function.around is None else ()
        ways = [self._left_out(known.caller, known.call.at, depth - 1) for known in calls]
        return ways[0] if ways and all(ways) else ""

    def _passed(self, function: Function, name: str) -> list[ir.Const]:
        """The constants that the calls pass for a parameter; empty if some call passes anything else."""
        if not name or function.node is None or all(param.name != name for param in function.params):
            return []
        if function.key not in self._constants:
            made = function.cls if function.name == "__init__" and function.cls is not None else None
            if made is not None and _MAKES_ITSELF.search(function.module.text):
                return []
            calls = self._calls.of(function) if made is None else self._calls.of_class(made)
            rebound = assigned_names(function.body)[0]
            self._constants[function.key] = {
                param.name: passed
                for param in function.params
                if param.name not in rebound and (passed := _all_passed(function, param, calls))
            }
        return self._constants[function.key].get(name, [])


def _tests_around(body: tuple[ir.Stmt, ...], at: int) -> Iterator[tuple[ir.Expr, bool]]:
    """The tests of the ``if`` statements around an ordinal, and whether they hold there."""
    for (block, number), (inner, _) in itertools.pairwise(way_to(body, at)):
        statement = block[number]
        if isinstance(statement, ir.FunctionDef | ir.ClassDef):
            return
        if isinstance(statement, ir.If):
            yield statement.test, inner is statement.body


def _all_passed(function: Function, param: ir.Param, calls: tuple[KnownCall, ...]) -> list[ir.Const]:
    found: list[ir.Const] = []
    for known in calls:
        call = known.call
        if spreads(call):
            return []
        argument = known.passes(function, param.name) or param.default
        if not isinstance(argument, ir.Const) or argument.kind not in _KNOWN:
            return []
        found.append(argument)
    return found


def _subject(part: ir.Expr) -> str:
    """The name that a test reads; "" for any other test."""
    tested = part.left if isinstance(part, ir.Compare) and len(part.rights) == 1 else part
    return tested.id if isinstance(tested, ir.Name) else ""


def _answer(part: ir.Expr, constant: ir.Const) -> bool | None:
    if isinstance(part, ir.Name):
        return False if constant.kind == "None" else bool(constant.value)
    right = part.rights[0] if isinstance(part, ir.Compare) else None
    if not isinstance(part, ir.Compare) or not isinstance(right, ir.Const) or right.kind not in _KNOWN:
        return None
    same = (constant.kind == "None") == (right.kind == "None") and constant.value == right.value
    if part.ops in (("is",), ("==",)):
        return same
    return not same if part.ops in (("is not",), ("!=",)) else None
