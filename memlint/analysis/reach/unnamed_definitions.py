"""Definitions of an application that none of its used code names, but that unknown code may use: another project that
installs it, or code that loads files and finds attributes by computed names.

The reason says that it is not certain.
"""

from __future__ import annotations

import functools
import re

from memlint.analysis.index.bases import is_entered
from memlint.analysis.index.definitions import Class, Module
from memlint.analysis.index.function import Function
from memlint.analysis.index.loading import is_imported, is_loaded
from memlint.analysis.index.mentions import FINDERS, finds_attributes
from memlint.analysis.index.program import in_tests
from memlint.analysis.index.programs import has_program, is_collected, is_of_hub, is_program
from memlint.analysis.reach.broken_files import broken_import
from memlint.analysis.reach.names_in_strings import in_strings
from memlint.analysis.reach.unused_definitions import Idle, Unused
from memlint.project.published import has_users


class Unnamed(Unused):
    """The definitions that nothing in the project names, computed on demand."""

    def why(self, function: Function) -> Idle | None:
        found = super().why(function)
        if found is None and (left := self._why_left_lying(function)):
            return Idle(left, function)
        return found

    def _why_left_lying(self, function: Function) -> str:
        """The reason for the definitions of a file that is no program and that nothing imports (``model_old.py``); ""
        if some code may use the file."""
        module, stem = function.module, function.module.key.rpartition("/")[2].removesuffix(".py")
        if function.node is None or self._is_library(module):
            return ""
        if self._loaded is None or is_loaded(module, self._loaded) or not module.index.complete:
            return ""
        if is_imported(self._program, module) or is_collected(module.key) or in_tests(module.key):
            return ""
        if is_program(self._program, module.key) or self._program.project.notebooks.mention(stem):
            return ""
        if self._may_be_lost(module, function.qual.partition(".")[0]) or is_of_hub(self._program, module.key):
            return ""
        if any(self._may_be_entered(module, one.name) for one in module.index.definitions if one.bases):
            return ""  # a server may be started with the file's name
        sources = self._program.project.sources
        mention = re.compile(rf"[\"'/.]{re.escape(stem)}[\"':]|\b{re.escape(stem)}\.py\b")
        if any(stem in (text := sources[key].text) and mention.search(text) for key in sources if key != module.key):
            return ""
        return "nothing in this project imports this file"

    def _may_be_entered(self, module: Module, name: str) -> bool:
        cls = module.cls(name)
        return cls is not None and is_entered(self._program, cls)

    def _may_be_lost(self, module: Module, name: str) -> bool:
        """Whether some file imports the name from a module that is not found."""
        others = (self._program.module(key) for key in self._program.words.files(name) if key != module.key)
        return any(
            item.name == name and self._leads_to(other, item, module, name)
            for other in others
            for item in other.index.imports
        )

    def _uses(self, key: str, module: Module, name: str) -> bool:
        return super()._uses(key, module, name) and not broken_import(self._program, key)

    def _calls(self, key: str, cls: Class, name: str) -> bool:
        return super()._calls(key, cls, name) and not broken_import(self._program, key)

    def _is_library(self, module: Module) -> bool:
        """As there; but a training program that is packaged only for convenience has no users."""
        return super()._is_library(module) and (has_users(self._program.project) or not has_program(self._program))

    def _meanings(self, other: Module, module: Module, name: str) -> tuple[frozenset[str], bool]:
        bound, attribute = super()._meanings(other, module, name)
        return bound, attribute or (self._loaded is None and other is not module)

    def _may_load(self, module: Module) -> bool:
        return self._loaded is not None and is_loaded(module, self._loaded)

    def _may_be_loaded(self, module: Module, what: Function | Class) -> bool:
        """Whether code may find the definition by a computed name: programs select classes so, but functions by
        attributes."""
        if self._loaded is None:
            return not isinstance(what, Function)
        return is_loaded(module, self._loaded)

    def _is_in_strings(self, name: str, what: Function | Class) -> bool:
        """Whether a string may look the definition up. A string that is looked up holds the name alone; a message has
        other words. For a module's definitions, the code that looks names up decides."""
        whole = (isinstance(what, Function) and what.cls is not None) or self._looks_up
        strings = in_strings(self._program)
        return name in strings.behind or name in (strings.alone if whole else strings.found)

    @functools.cached_property
    def _looks_up(self) -> bool:
        """Whether some code finds attributes of unnamed objects by computed names."""
        finders = {key for finder in FINDERS for key in self._program.words.files(finder)}
        return any(finds_attributes(self._program.module(key).text, False) for key in sorted(finders))

    def _finders(self, near: set[str]) -> list[str]:
        return [key for key in super()._finders(near) if key in near]
