"""A run that fixes: lint, apply fixes in memory, write those that hold, report the rest."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence

import msgspec

from memlint.config import ConfigError
from memlint.engine.analysis import Analyse, analyse_with_flow
from memlint.engine.collection import no_collection
from memlint.engine.filters.proof import without_silence
from memlint.engine.findings import internal_error
from memlint.engine.fixing.passes import CONSEQUENCES, Applied, Lint, apply_all
from memlint.engine.judging import Linted
from memlint.engine.options import Options, Progress, no_progress
from memlint.engine.prepared import Prepared
from memlint.engine.run import Outcome, lint, outcome, prepare, takes_unsafe
from memlint.finding import Failure, Finding, Refusal
from memlint.fix.cells import is_as_read
from memlint.fix.files import Change, WriteError, is_written, obstacle, write
from memlint.fix.spans import EditError
from memlint.project import Project
from memlint.temporary import sweep


class Interrupted(KeyboardInterrupt):
    """Ctrl-C before everything was written. ``written``: the files that were fixed by then; ``unwritten``: the
    unchanged ones; both by display path, and empty if it was not known yet what to write."""

    def __init__(self, written: tuple[str, ...] = (), unwritten: tuple[str, ...] = ()) -> None:
        super().__init__()
        self.written, self.unwritten = written, unwritten


class Fixed(msgspec.Struct, frozen=True):
    """The result of fixing. ``outcome``: the remaining findings. ``changes``: the files that were written (or would
    be), including standard input. ``fixed``: the fixed findings, as they were reported. ``refused``: fixes that did not
    hold, which are not written."""

    outcome: Outcome
    changes: tuple[Change, ...]
    fixed: tuple[Finding, ...]
    refused: tuple[Refusal, ...]


def run_and_fix(
    paths: Sequence[str],
    options: Options,
    *,
    write_files: bool = True,
    only: Collection[str] | None = None,
    progress: Progress = no_progress,
    analyse: Analyse = analyse_with_flow,
) -> Fixed:
    """As `run`, and apply the fixes. Nothing is written before all of them are checked, nor without ``write_files``.
    ``only``: the fingerprints of the findings to fix; None for all.

    Files that cannot be written are failures of the result. Raises ConfigError, and `Interrupted` in place of
    KeyboardInterrupt once files are written.
    """
    started = time.perf_counter()
    parts: list[tuple[Prepared, Linted]] = []
    changes: list[Change] = []
    applied: list[Applied] = []
    with no_collection():
        work = [
            _Work(prepared, options, write_files=write_files, progress=progress, analyse=analyse)
            for prepared in prepare(paths, options, progress)
        ]
        if write_files:
            sweep(path for one in work for path in one.prepared.found.temporary)
        before = [finding for one in work for finding in one.linted.findings]
        for one in work:
            one.apply(only)
        wanted = [change for one in work for change in one.files()] if write_files else []
        try:
            for one in work:
                changes += one.write()
                applied.append(one.applied)
                parts.append((one.prepared, one.linted))
        except KeyboardInterrupt:
            # checked in the files, as the interrupt may have come just after the last write
            written = {change.display for change in wanted if is_written(change)}
            rest = {change.display for change in wanted} - written
            raise Interrupted(tuple(sorted(written)), tuple(sorted(rest))) from None
    after = [finding for _, part in parts for finding in part.findings]
    gone, told = _count(before) - _count(after), _consequences(after) - _consequences(before)
    done = outcome([(prepared, _unproved(part, changes)) for prepared, part in parts], options, started)
    refused = {refusal.finding for one in applied for refusal in one.refused}
    result = msgspec.structs.replace(
        done.result,
        # a fix that does not hold is no fix
        findings=tuple(
            msgspec.structs.replace(finding, fix=None, alternatives=()) if finding in refused else finding
            for finding in done.result.findings
        ),
        fixed=gone + max(told, 0),
    )
    return Fixed(
        msgspec.structs.replace(done, result=result),
        tuple(sorted(changes, key=lambda change: change.display)),
        tuple(finding for one in applied for finding in one.fixed),
        tuple(refusal for one in applied for refusal in one.refused),
    )


def _unproved(linted: Linted, changes: Iterable[Change]) -> Linted:
    """The findings without evidence on changed files, which is about the original ones."""
    changed = frozenset(change.display for change in changes)
    return msgspec.structs.replace(linted, findings=without_silence(linted.findings, changed))


class _Work:
    """The fixing of one project. ``linted`` and ``applied``: the current results."""

    def __init__(
        self, prepared: Prepared, options: Options, *, write_files: bool, progress: Progress, analyse: Analyse
    ) -> None:
        def again(project: Project) -> Linted:
            def checking(stage: str, done: int, total: int) -> None:
                progress("checking the fixes", done, total)

            return lint(prepared, project, options, progress=checking, analyse=analyse)

        self.prepared = prepared
        self.linted = lint(prepared, prepared.found.project, options, progress=progress, analyse=analyse)
        self.applied = Applied((), (), {})
        self._lint: Lint = again
        self._unsafe = takes_unsafe(prepared, options)
        self._write_files = write_files
        #: the bytes of the files with fixes, as they were analysed, or why these cannot be replaced
        self._originals: dict[str, bytes | str] = {}

    @property
    def _project(self) -> Project:
        return self.prepared.found.project

    def apply(self, only: Collection[str] | None) -> None:
        """Apply the fixes that hold, in memory. ``only``: fingerprints. An internal error loses the fixes of this
        project."""
        try:
            self._mend(only)
        except ConfigError:
            raise
        except Exception as error:
            failure = Failure(str(self._project.root), internal_error("the fixing of this project", error))
            self.linted = msgspec.structs.replace(self.linted, failures=(*self.linted.failures, failure))

    def _mend(self, only: Collection[str] | None) -> None:
        rooms = self.prepared.rooms
        self.applied = apply_all(
            self._project,
            self.linted,
            self._lint,
            rank=lambda code: rooms[code].meta.fix_rank,
            unsafe=self._unsafe,
            blocked=self._is_blocked,
            only=only,
        )
        self.linted = self.applied.linted or self.linted

    def files(self) -> list[Change]:
        """The changes to be written."""
        given = self._project.sources.is_given
        return [change for group in self._groups() for change in group if not given(change.display)]

    def write(self) -> list[Change]:
        """Write the files and return what was written (or would be), standard input among it."""
        written: list[Change] = []
        lost: dict[str, str] = {
            display: reason for display, reason in self._originals.items() if isinstance(reason, str)
        }
        for group in self._groups():
            try:
                if self._write_files:
                    write([change for change in group if not self._project.sources.is_given(change.display)])
                written += group
            except WriteError as error:
                lost |= {change.display: _said(error, change) for change in group}
        if len(written) < len(self.applied.changed):
            done = {change.display for change in written}
            self.linted = self._lint(self._project.with_contents({one.display: one.after for one in written}))
            kept = tuple(one for one in self.applied.fixed if done.issuperset(_paths(one)))
            self.applied = msgspec.structs.replace(self.applied, fixed=kept)
        failures = tuple(Failure(display, f"not fixed: {reason}") for display, reason in sorted(lost.items()))
        self.linted = msgspec.structs.replace(self.linted, failures=(*self.linted.failures, *failures))
        return written

    def _is_blocked(self, display: str) -> bool:
        if display not in self._originals and display in self._project.sources:
            self._originals[display] = self._original(display)
        return isinstance(self._originals.get(display), str)

    def _original(self, display: str) -> bytes | str:
        source, given = self._project.sources[display], self._project.sources.is_given(display)
        if self._write_files and not given and (reason := obstacle(source.path, self._project.root)) is not None:
            return reason
        try:
            raw = self._project.sources.raw(display)
            same = is_as_read(source, raw)
        except (EditError, OSError, SyntaxError, LookupError, ValueError) as error:
            return str(error)
        return raw if same else "it has changed since it was read"

    def _groups(self) -> list[list[Change]]:
        """The changed files, grouped by the fixes that edit several of them."""
        groups: list[set[str]] = []
        for paths in [{path} for path in self.applied.changed] + [_paths(one) for one in self.applied.fixed]:
            apart = [group for group in groups if not group & paths]
            groups = [*apart, paths.union(*(group for group in groups if group & paths))]
        return [[self._change(display) for display in sorted(group)] for group in groups]

    def _change(self, display: str) -> Change:
        before = self._originals[display]
        assert isinstance(before, bytes)
        return Change(self._project.path(display), display, before, self.applied.changed[display])


def _said(error: WriteError, change: Change) -> str:
    return error.reason if error.change == change else f"{error.change.display}: {error.reason}"


def _paths(finding: Finding) -> set[str]:
    return set() if finding.fix is None else {edit.path for edit in finding.fix.edits}


def _count(findings: Iterable[Finding]) -> int:
    return sum(finding.suppressed is None for finding in findings)


def _consequences(findings: Iterable[Finding]) -> int:
    return sum(finding.suppressed is None and finding.code in CONSEQUENCES for finding in findings)
