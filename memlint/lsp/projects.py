"""The worker's state of projects between keystrokes: the list of files, their texts and their indexes.

The texts of open files come with each request. The others are checked for changes on the disk each time, which takes a
fraction of the time of reading them.
"""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import msgspec

from memlint.config import OWN_FILE, PYPROJECT
from memlint.engine.analysis import one_of_many
from memlint.engine.explaining import Asked, explain_in
from memlint.engine.judging import Linted
from memlint.engine.options import Options, Progress
from memlint.engine.prepared import Prepared
from memlint.engine.rules.selection import ALWAYS
from memlint.engine.run import Outcome, lint, outcome, prepare
from memlint.explanation import Explanation
from memlint.finding import Finding
from memlint.lsp.edited import Functions, edit_between, functions_of, moved
from memlint.project import Project

#: the most files whose projects are kept, and the seconds after which new files are searched for
MOST, FRESH = 8, 10.0
#: after so many analyses of edited functions in a row their garbage is collected, some 2 MB each
MOST_UNCOLLECTED = 10
#: the most bytes of kept indexes
_MOST_BYTES = 256 << 20

_State = tuple[tuple[int, int], ...]


class _Results:
    """Results about files (`memlint.project.Earlier`), in memory."""

    def __init__(self) -> None:
        self._known: dict[bytes, bytes] = {}
        self._records: dict[str, bytes] = {}
        self._size = 0

    def get(self, digest: bytes) -> bytes | None:
        return self._known.get(digest)

    def put(self, digest: bytes, value: bytes) -> None:
        self._size += len(value)
        if self._size > _MOST_BYTES:
            self._known.clear()
            self._size = len(value)
        self._known[digest] = value

    def get_record(self, name: str) -> bytes | None:
        return self._records.get(name)

    def put_record(self, name: str, value: bytes) -> None:
        if len(value) <= _MOST_BYTES // MOST:
            self._records.pop(name, None)
            self._records[name] = value
            while len(self._records) > 2 * MOST:  # (the words and the facts of each project)
                del self._records[next(iter(self._records))]


class _Whole(msgspec.Struct, frozen=True):
    """The findings in a file of a project. ``given``: the contents of all open files."""

    functions: Functions
    given: Mapping[Path, bytes]
    findings: tuple[Finding, ...]


class _Kept(msgspec.Struct):
    """A project for one of its files. ``project``: with the last contents of open files, ``given``; ``state``: of its
    files on the disk when they were listed, ``when``; ``whole``: the last complete result."""

    prepared: Prepared
    project: Project
    given: Mapping[Path, bytes]
    state: _State
    when: float
    whole: _Whole | None = None


class Projects:
    """Lints and explains files of known projects. ``collect``: collects the garbage of analyses."""

    def __init__(self, collect: Callable[[], object] = gc.collect) -> None:
        self._collect = collect
        self._results = _Results()
        self._kept: dict[tuple[str, bytes], _Kept] = {}
        self._after = contextlib.ExitStack()
        #: how many analyses of edited functions have left their garbage since the last collection
        self._uncollected = 0

    def tidy(self) -> None:
        """Release the memory of the last analysis, while no request waits."""
        self._after.close()
        if not 0 < self._uncollected < MOST_UNCOLLECTED:
            self._uncollected = 0
            self._collect()

    def forget(self) -> None:
        """Search for the files of every project again."""
        self._kept.clear()

    def lint(self, path: Path, options: Options, progress: Progress) -> tuple[Outcome, Project | None]:
        """The result of a run on one file, and the file's project; None if it cannot be linted. Raises ConfigError."""
        started = time.perf_counter()
        kept = self._kept_for(path, options, progress)
        if isinstance(kept, Prepared):
            return outcome([(kept, Linted((), (), ()))], options, started), None
        self._uncollected = 0
        linted = self._linted(kept, options, progress)
        found = outcome([linted], options, started)
        functions = functions_of(_text(kept))
        if functions is not None and not found.result.failures:
            kept.whole = _Whole(functions, kept.given, found.result.findings)
        return found, kept.project

    def lint_edited(self, path: Path, options: Options, progress: Progress) -> tuple[Sequence[Finding], Project] | None:
        """The findings after an edit of the file, if nothing else has changed since it was linted: those in the edited
        functions are new, and the others are moved. None if all has to be analysed."""
        kept = self._kept_for(path, options, progress)
        whole = None if isinstance(kept, Prepared) else kept.whole
        if isinstance(kept, Prepared) or whole is None or _others(whole.given, path) != _others(kept.given, path):
            return None
        functions = functions_of(_text(kept))
        edit = None if functions is None else edit_between(whole.functions, functions)
        if edit is None:
            return None
        self._uncollected += 1
        _, linted = self._linted(kept, options, progress, edit.functions)
        if linted.failures or any(one.code == ALWAYS for one in linted.findings):
            return None
        found = [one for one in linted.findings if edit.touches(one)]
        found += (new for one in whole.findings if not edit.touches(one) and (new := moved(one, edit)) is not None)
        return sorted(found, key=lambda one: (one.line, one.column, one.code)), kept.project

    def _linted(
        self, kept: _Kept, options: Options, progress: Progress, only: frozenset[str] | None = None
    ) -> tuple[Prepared, Linted]:
        analyse = self._after.enter_context(one_of_many(only, collects=False))
        # evidence is about the files on the disk; these are the editor's contents
        found = msgspec.structs.replace(kept.prepared.found, project=kept.project)
        prepared = msgspec.structs.replace(kept.prepared, found=found)
        return prepared, lint(prepared, kept.project, options, progress=progress, analyse=analyse)

    def explain(self, asked: Asked, options: Options, progress: Progress) -> Explanation | None:
        """The explanation of a line; None if the file cannot be linted. Raises ConfigError."""
        kept = self._kept_for(Path(asked.path), options, progress)
        if isinstance(kept, Prepared):
            return None
        self._uncollected = 0
        return explain_in(asked, kept.prepared, kept.project, progress)

    def _kept_for(self, path: Path, options: Options, progress: Progress) -> _Kept | Prepared:
        """The current project for one of its files; what was prepared if the file cannot be linted."""
        key = (str(path), msgspec.msgpack.encode((str(options.cwd), options.overrides)))
        kept = self._kept.pop(key, None)
        if kept is None or not _is_fresh(kept, options):
            prepared = next(iter(prepare([str(path)], options, progress)))
            project = prepared.found.project
            if not project.linted:
                return prepared
            before = kept
            kept = _Kept(prepared, project, options.unsaved, _state(prepared, options), time.monotonic())
            if before is not None and _are_same(before, kept):
                kept.whole = before.whole
        changed = {one: content for one, content in options.unsaved.items() if kept.given[one] != content}
        if changed:
            _update(kept, options.unsaved, changed)
        self._kept[key] = kept
        while len(self._kept) > MOST:
            del self._kept[next(iter(self._kept))]
        kept.project.kept.clear()
        kept.project.earlier = self._results
        return kept


def _text(kept: _Kept) -> str:
    """The text of the linted file; "" for a notebook."""
    source = kept.project.sources[kept.project.linted[0]]
    return "" if source.cells else source.text


def _others(given: Mapping[Path, bytes], path: Path) -> dict[Path, bytes]:
    return {one: content for one, content in given.items() if one != path}


def _update(kept: _Kept, given: Mapping[Path, bytes], changed: Mapping[Path, bytes]) -> None:
    """Update the contents of the project's open files."""
    base = kept.prepared.found.project
    names = {base.path(display): display for display in base.sources}
    contents = {names[path]: content for path, content in given.items() if path in names}
    project = base.with_contents(contents)
    project.sources.keep(kept.project.sources, frozenset(names[path] for path in changed if path in names))
    kept.project, kept.given = project, given


def _is_fresh(kept: _Kept, options: Options) -> bool:
    """Whether the same files are open, and those on the disk are unchanged."""
    if kept.given.keys() != options.unsaved.keys() or time.monotonic() - kept.when > FRESH:
        return False
    return kept.state == _state(kept.prepared, options)


def _are_same(before: _Kept, after: _Kept) -> bool:
    """Whether a project consists of the same files as before, those on the disk unchanged, under the same settings."""
    old, new = before.prepared.found.project, after.prepared.found.project
    same_files = before.state == after.state and list(old.sources) == list(new.sources)
    return same_files and before.prepared.config == after.prepared.config


def _state(prepared: Prepared, options: Options) -> _State:
    """The sizes and times of the files on the disk."""
    project = prepared.found.project
    files = [path for path in map(project.path, project.sources) if path not in options.unsaved]
    files += [project.root / name for name in (PYPROJECT, OWN_FILE)]
    files += [] if prepared.config.file is None else [prepared.config.file]
    return tuple(map(_stamp, files))


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = os.stat(path)  # noqa: PTH116
    except OSError:
        return -1, -1
    return status.st_size, status.st_mtime_ns
