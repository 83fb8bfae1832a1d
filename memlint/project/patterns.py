"""Which paths a list of patterns means: gitignore syntax, relative to the folder of the file that wrote them."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec


class Patterns(msgspec.Struct, frozen=True):
    """``lines`` are gitignore patterns; ``base`` (absolute) is the folder that they are relative to."""

    base: Path
    lines: tuple[str, ...]

    def match(self, path: Path) -> str | None:
        """The pattern that means ``path`` or a folder above it, or None."""
        verdict, index = self._check(path, folder=False)
        return self.lines[index] if verdict and index is not None else None

    def verdict(self, path: Path, *, folder: bool) -> bool | None:
        """True where ``path`` is meant, False where a ``!pattern`` takes it back, None where nothing speaks of it."""
        return self._check(path, folder=folder)[0]

    def _check(self, path: Path, *, folder: bool) -> tuple[bool | None, int | None]:
        if not self.lines or not path.is_relative_to(self.base):
            return None, None
        relative = path.relative_to(self.base).as_posix()
        result = _spec(self.lines).check_file(relative + "/" if folder else relative)
        return result.include, result.index


def mistake(line: str) -> str | None:
    """Why ``line`` is no pattern, or None where it is one."""
    try:
        _spec((line,))
    except re.error as error:
        return f"`{line}` is no pattern: {error.msg}"
    except ValueError:
        return f"`{line}` is no pattern"
    return None


def first_match(patterns: Iterable[Patterns], path: Path) -> str | None:
    """The first pattern of several lists that means ``path``."""
    return next((found for one in patterns if (found := one.match(path)) is not None), None)


_SPECS: dict[tuple[str, ...], GitIgnoreSpec] = {}


def _spec(lines: tuple[str, ...]) -> GitIgnoreSpec:
    spec = _SPECS.get(lines)
    if spec is None:
        from pathspec import GitIgnoreSpec

        with warnings.catch_warnings():
            # of `[[:space:]]`, which Python's expressions do not know
            warnings.simplefilter("ignore", FutureWarning)
            spec = _SPECS[lines] = GitIgnoreSpec.from_lines(lines)
    return spec
