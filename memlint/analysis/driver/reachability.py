"""Whether the code of a finding is used, and whether it can run.

A definition that nothing in the project uses is unused, and so is code that no known call reaches. Code in a file that
fails on import, or that always raises, cannot run.
"""

from __future__ import annotations

from memlint.analysis.domain.events import Reached, Site
from memlint.analysis.driver.raising_code import Raising
from memlint.analysis.facts.analyser import Analyser
from memlint.analysis.facts.constant_arguments import ConstantArguments
from memlint.analysis.index.definitions import Class
from memlint.analysis.index.function import Function
from memlint.analysis.reach.broken_files import UNREADABLE, broken_import
from memlint.analysis.reach.known_calls import KnownCalls
from memlint.analysis.reach.unnamed_definitions import Unnamed
from memlint.finding import FAILS


class Reachability:
    """Answers whether sites are used and can run, on demand."""

    def __init__(self, analyser: Analyser) -> None:
        self._program = program = analyser.program
        self._unused = analyser.unused
        self._unnamed = Unnamed(program)
        self._constant_arguments = ConstantArguments(analyser.known_calls)
        self._raising = Raising(program, analyser.known_calls, self._constant_arguments)
        by_text = KnownCalls(program, self._unnamed, by_attributes=True)
        self._constant_arguments_by_text = ConstantArguments(by_text)
        self._raising_by_text = Raising(program, by_text, self._constant_arguments_by_text)

    def of(self, function: Function, site: Site) -> Reached:
        """``function``: the one around the site. Reasons that hold for the whole text come before those that may be
        wrong where code is looked up by computed names."""
        if broken := self._why_broken(site.path):
            return Reached("cannot-run", f"{FAILS}: {broken}", site)
        if raises := self._raising.why(function, site.at):
            return Reached("cannot-run", f"this code raises before it ends: {raises}", site)
        if unused := self._unused.why(function):
            return Reached("unused", unused.reason, _place(unused.what))
        if left_out := self._constant_arguments.why_left_out(function, site.at):
            return Reached("unused", left_out, _place(function))
        if unnamed := self._unnamed.why(function):
            return Reached("unused", f"{_BY_TEXT}{unnamed.reason}", _place(unnamed.what))
        if raises := self._raising_by_text.why(function, site.at):
            return Reached("cannot-run", f"{_BY_TEXT}this code raises before it ends: {raises}", site)
        if left_out := self._constant_arguments_by_text.why_left_out(function, site.at):
            return Reached("unused", f"{_BY_TEXT}{left_out}", _place(function))
        return Reached("used", "", site)

    def _why_broken(self, path: str) -> str:
        """The error because of which a file cannot be imported or run; "" if none is known."""
        if self._program.project.sources[path].rewritten:
            return UNREADABLE
        return broken_import(self._program, path)


_BY_TEXT = "as far as its text tells, "


def _place(what: Function | Class) -> Site:
    """The site of a definition."""
    return Site(what.module.key, what.unit, what.node.at if what.node is not None else 0)
