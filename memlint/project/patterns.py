"""Matching of paths with gitignore patterns, relative to the folder of the file that contains them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from memlint.printable import clipped
from memlint.project.globs import Glob, GlobError, glob

#: the most patterns of one list
MAX_PATTERNS = 5000


class Patterns(msgspec.Struct, frozen=True):
    """``lines`` are gitignore patterns; ``base`` (absolute) is the folder that they are relative to."""

    base: Path
    lines: tuple[str, ...]

    def match(self, path: Path) -> str | None:
        """The pattern that matches ``path`` or a folder above it, or None."""
        verdict, index = self._check(path, folder=False)
        return self.lines[index] if verdict and index is not None else None

    def verdict(self, path: Path, *, folder: bool) -> bool | None:
        """True if a pattern matches ``path``, False if a ``!pattern`` includes it again, None if none matches."""
        return self._check(path, folder=folder)[0]

    def _check(self, path: Path, *, folder: bool) -> tuple[bool | None, int | None]:
        if not self.lines or not path.is_relative_to(self.base):
            return None, None
        return _matcher(self.lines).check(path.relative_to(self.base).as_posix(), folder)


def mistake(line: str) -> str | None:
    """Why ``line`` is no pattern, or None where it is one."""
    try:
        glob(line)
    except GlobError as error:
        return f"`{clipped(line)}` is no pattern{f': {error}' if str(error) else ''}"
    return None


def first_match(patterns: Iterable[Patterns], path: Path) -> str | None:
    """The first pattern of several lists that matches ``path``."""
    return next((found for one in patterns if (found := one.match(path)) is not None), None)


class _Matcher:
    """The patterns of a list, the last one first, which decides."""

    def __init__(self, lines: tuple[str, ...]) -> None:
        found = ((glob(line), index) for index, line in enumerate(lines))
        self._globs: list[tuple[Glob, int]] = [(one, index) for one, index in found if one is not None][::-1]
        #: for each examined folder, the pattern that excludes all of it
        self._left_out: dict[str, int | None] = {"": None, ".": None}

    def check(self, path: str, folder: bool) -> tuple[bool | None, int | None]:
        """The verdict on a path, and the index of the deciding pattern. Everything in an excluded folder is
        excluded."""
        parent = path.rpartition("/")[0]
        if parent not in self._left_out:
            self._look_at(parent)
        index = self._left_out[parent]
        return (True, index) if index is not None else self._decide(path, folder)

    def _look_at(self, folder: str) -> None:
        """Record the excluding patterns of a folder and of those around it."""
        parts = folder.split("/")
        index = None
        for end in range(1, len(parts) + 1):
            here = "/".join(parts[:end])
            if index is None and here not in self._left_out:
                verdict, by = self._decide(here, True)
                self._left_out[here] = by if verdict else None
            index = self._left_out.setdefault(here, index)

    def _decide(self, path: str, folder: bool) -> tuple[bool | None, int | None]:
        name = path.rpartition("/")[2]
        for one, index in self._globs:
            if one.means(path, name, folder):
                return not one.negated, index
        return None, None


_MATCHERS: dict[tuple[str, ...], _Matcher] = {}


def _matcher(lines: tuple[str, ...]) -> _Matcher:
    found = _MATCHERS.get(lines)
    if found is None:
        found = _MATCHERS[lines] = _Matcher(lines)
    return found
