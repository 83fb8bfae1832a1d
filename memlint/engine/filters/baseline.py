"""The baseline: a file of accepted findings, which runs do not report again."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from memlint.config import ConfigError
from memlint.engine.filters.proof import BY as EVIDENCE
from memlint.engine.findings import CONFIDENCE
from memlint.engine.judging import Compared, Linted, Ruling
from memlint.engine.prepared import BASELINE, Prepared
from memlint.engine.rules.selection import ALWAYS
from memlint.evidence import content_hash
from memlint.finding import Confidence, Finding, Span, Suppressed
from memlint.fix.cells import module_span
from memlint.fix.spans import text_of
from memlint.printable import clipped, printable
from memlint.project import Project
from memlint.project.presence import exists
from memlint.reading import MAX_DATA, read_file

VERSION = 1


class Entry(msgspec.Struct, frozen=True):
    """One finding. ``path``: its file, relative to the baseline's folder; ``source``: the first line of its statement,
    for readers. The fingerprint alone decides, and the path only if several entries have the same."""

    path: str
    code: str
    function: str
    source: str
    confidence: Confidence
    fingerprint: str


class _File(msgspec.Struct, frozen=True):
    """``files``: the hash of each file's content, by which a renamed file is recognised."""

    version: int
    findings: tuple[Entry, ...]
    files: dict[str, str] = {}


def read_baseline(file: Path, where: str) -> Baseline:
    """The baseline in a file (an absolute path). Raises ConfigError, beginning with ``where``. Before it is written
    (``--write-baseline``), it may be empty or missing; a file that is no baseline is an error even then, as it must not
    be overwritten."""
    is_written = where == "--write-baseline"
    if not os.path.lexists(file):
        if is_written:
            return Baseline(file, (), {})
        raise ConfigError(f"{where}: there is no file {file}", f"`memlint --write-baseline {file.name}` writes it")
    try:
        raw = read_file(file, MAX_DATA)
    except OSError as error:
        raise ConfigError(f"{where}: {file} cannot be read: {error.strerror}") from None
    if is_written and not raw.strip():
        return Baseline(file, (), {})
    found = _decoded(raw, f"{where}: {file}")
    return Baseline(file, found.findings, found.files)


def _decoded(raw: bytes, said: str) -> _File:
    try:
        data: Any = msgspec.json.decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        merging = ": it holds the marks of a merge conflict" if b"<<<<<<<" in raw else ""
        raise ConfigError(f"{said} is no baseline: {merging[2:] or clipped(str(error))}") from None
    version = data.get("version") if isinstance(data, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise ConfigError(f"{said} is no baseline: it has no `version`")
    if version > VERSION:
        raise ConfigError(
            f"{said} is of version {version}, and this memlint reads version {VERSION}; use the memlint that wrote it"
        )
    try:
        return msgspec.convert(data, _File)
    except (msgspec.ValidationError, RecursionError) as error:
        raise ConfigError(f"{said} is no baseline: {clipped(str(error))}") from None


class Baseline:
    """The content of one file. ``file``: its path; ``entries``: in its order."""

    def __init__(self, file: Path, entries: Sequence[Entry], hashes: dict[str, str]) -> None:
        self.file = file
        self.entries = tuple(entries)
        self.hashes = hashes

    def applied(
        self, linted: Linted, project: Project, ruling: Ruling, folders: Sequence[Path], *, everything: bool = False
    ) -> Linted:
        """The findings of a project, with those in the baseline suppressed. ``everything``: and all others too."""
        matching = _Matching(self, linted, project, ruling, folders)
        found = matching.found()
        findings = tuple(
            _held_back(finding) if (everything or number in found) and _may_be_held_back(finding) else finding
            for number, finding in enumerate(linted.findings)
        )
        # a refuted finding stays refuted, and its entry unchanged
        held = (entry for number, entry in found.items() if _may_be_held_back(linted.findings[number]))
        compared = Compared(tuple(held), tuple(matching.stale(set(found.values()))))
        return msgspec.structs.replace(linted, findings=findings, compared=compared)

    def name(self, path: Path) -> str:
        """The name of a file (absolute path) in the baseline."""
        try:
            text = os.path.relpath(path, self.file.parent)
        except ValueError:  # on another drive
            text = str(path)
        return os.fsencode(text.replace(os.sep, "/")).decode("utf-8", "backslashreplace")

    def place(self, entry: Entry) -> Path:
        """The path of an entry's file."""
        return Path(os.path.normpath(self.file.parent / entry.path.replace("\0", "")))


def _may_be_held_back(finding: Finding) -> bool:
    """Whether a baseline may hold a finding: a suppressed one needs no entry, and an unparsable file is always
    reported."""
    return finding.code != ALWAYS and finding.suppressed is None


def _held_back(finding: Finding) -> Finding:
    return msgspec.structs.replace(finding, suppressed=Suppressed(BASELINE, None))


class _Matching:
    """Finds the entries of a project's findings."""

    def __init__(
        self, baseline: Baseline, linted: Linted, project: Project, ruling: Ruling, folders: Sequence[Path]
    ) -> None:
        self._baseline = baseline
        self._findings = linted.findings
        self._project = project
        self._ruling = ruling
        self._folders = folders
        self._names = {display: baseline.name(project.path(display)) for display in project.linted}
        self._displays = {name: display for display, name in self._names.items()}
        failed = {failure.path for failure in linted.failures}
        broken = {finding.path for finding in linted.findings if finding.code == ALWAYS}
        #: files whose findings may be incomplete; None if any file's may be
        self._unsure = {*failed, *broken} if failed.issubset(project.linted) else None
        self._hashes: dict[str, str] = {}

    def found(self) -> dict[int, int]:
        """The numbers of the findings in the baseline, with those of their entries."""
        open_at: dict[tuple[str, str], list[int]] = {}
        for number, entry in enumerate(self._baseline.entries):
            open_at.setdefault((entry.path, entry.fingerprint), []).append(number)
        found: dict[int, int] = {}
        rest: list[int] = []
        for number, finding in enumerate(self._findings):
            if finding.statement is None or not (_may_be_held_back(finding) or _is_refuted(finding)):
                continue
            same = open_at.get((self._names.get(finding.path, ""), finding.statement.fingerprint))
            if same:
                found[number] = same.pop(0)
            else:
                rest.append(number)
        return found | self._moved(rest, [one for same in open_at.values() for one in same])

    def _moved(self, findings: Iterable[int], entries: Iterable[int]) -> dict[int, int]:
        """As `found`, for findings whose file or function has moved."""
        wanted = {self._print(number) for number in findings}
        by_print: dict[str, list[int]] = {}
        for number in sorted(entries):
            entry = self._baseline.entries[number]
            if entry.fingerprint in wanted and self._has_moved(entry):
                by_print.setdefault(entry.fingerprint, []).append(number)
        found: dict[int, int] = {}
        for number in findings:
            candidates = by_print.get(self._print(number))
            if candidates:
                best = min(candidates, key=lambda one: self._distance(number, one))
                candidates.remove(best)
                found[number] = best
        return found

    def _print(self, number: int) -> str:
        statement = self._findings[number].statement
        return "" if statement is None else statement.fingerprint

    def _has_moved(self, entry: Entry) -> bool:
        """Whether the file of an entry, or the function in it, no longer exists."""
        display = self._displays.get(entry.path)
        if display is None:
            return not exists(self._baseline.place(entry))
        if not self._is_sure(display) or entry.function in ("", "<module>"):
            return False
        name = re.escape(entry.function.rpartition(".")[2])
        return re.search(rf"\bdef\s+{name}\b", self._project.sources[display].text) is None

    def _distance(self, finding: int, entry: int) -> tuple[bool, bool, str]:
        """A sort key, smaller for a more likely match of a finding and an entry: by the file's content and name."""
        path, old = self._findings[finding].path, self._baseline.entries[entry].path
        same = self._baseline.hashes.get(old) == self._hash(path)
        return not same, old.rpartition("/")[2] != self._names[path].rpartition("/")[2], old

    def _hash(self, display: str) -> str:
        if display not in self._hashes:
            self._hashes[display] = _hash_of(self._project, display)
        return self._hashes[display]

    def _is_sure(self, display: str) -> bool:
        return self._unsure is not None and display not in self._unsure

    def stale(self, found: set[int]) -> Iterable[int]:
        """The numbers of the entries that this run would have found if they still existed."""
        for number, entry in enumerate(self._baseline.entries):
            if number not in found and self._is_looked_for(entry):
                yield number

    def _is_looked_for(self, entry: Entry) -> bool:
        selection = self._ruling.selection
        if entry.code in self._ruling.rooms and (
            entry.code not in selection.enabled or CONFIDENCE[entry.confidence] < CONFIDENCE[selection.min_confidence]
        ):
            return False
        display = self._displays.get(entry.path)
        if display is not None:
            return self._is_sure(display) and entry.code not in selection.ignored_in(self._project.path(display))
        place = self._baseline.place(entry)
        return self._unsure is not None and not exists(place) and any(map(place.is_relative_to, self._folders))


def _is_refuted(finding: Finding) -> bool:
    return finding.suppressed is not None and finding.suppressed.by == EVIDENCE


def _hash_of(project: Project, display: str) -> str:
    """The hash of a file's content; "" if it cannot be read."""
    try:
        return content_hash(project.sources.raw(display))
    except OSError:
        return ""


class Ledger(msgspec.Struct, frozen=True):
    """The result of a run for one baseline. ``stale``: the entries without a finding; ``text``: the file without these,
    and with all findings that the run held back by it."""

    baseline: Baseline
    stale: tuple[Entry, ...]
    text: str


def ledgers(parts: Iterable[tuple[Prepared, Linted]]) -> list[Ledger]:
    """The baselines of the projects of a run; several may share one."""
    by_file: dict[Path, list[tuple[Prepared, Linted]]] = {}
    for prepared, linted in parts:
        if prepared.baseline is not None:
            by_file.setdefault(prepared.baseline.file, []).append((prepared, linted))
    return [_ledger(group) for group in by_file.values()]


def _ledger(parts: Sequence[tuple[Prepared, Linted]]) -> Ledger:
    baseline = parts[0][0].baseline
    assert baseline is not None
    found = {number for _, linted in parts for number in linted.compared.found}
    stale = {number for _, linted in parts for number in linted.compared.stale} - found
    entries: dict[tuple[str, str], Entry] = {}
    hashes: dict[str, str] = {}
    for prepared, linted in parts:
        project = prepared.found.project
        for finding in linted.findings:
            if finding.suppressed is not None and finding.suppressed.by == BASELINE:
                entry = _entry(finding, baseline.name(project.path(finding.path)), project)
                entries[entry.path, entry.fingerprint] = entry
                hashes[entry.path] = hashes.get(entry.path) or _hash_of(project, finding.path)
    for number, entry in enumerate(baseline.entries):
        if number not in stale and number not in found:
            entries.setdefault((entry.path, entry.fingerprint), entry)
            hashes.setdefault(entry.path, baseline.hashes.get(entry.path, ""))
    text = _text(entries.values(), hashes)
    return Ledger(baseline, tuple(baseline.entries[number] for number in sorted(stale)), text)


def _entry(finding: Finding, path: str, project: Project) -> Entry:
    statement = finding.statement
    assert statement is not None
    kept = project.sources[finding.path]
    first = module_span(kept.cells, finding.cell, Span(statement.line, 1, statement.line, 1)).line
    lines = text_of(kept.text).lines
    source = lines[first - 1].strip() if first <= len(lines) else ""
    shown = printable(clipped(source))
    return Entry(path, finding.code, statement.function, shown, finding.confidence, statement.fingerprint)


def _text(entries: Iterable[Entry], hashes: dict[str, str]) -> str:
    """JSON with one line per entry, in an order that depends only on the entries."""
    rows = sorted(entries, key=lambda one: (one.path, one.code, one.function, one.source, one.fingerprint))
    findings = ",\n".join(f"    {_spaced(entry)}" for entry in rows)
    files = ",\n".join(f"    {_spaced(name)}: {_spaced(hashes[name])}" for name in sorted(hashes))
    blocks = (f'"findings": [{_lines(findings)}]', f'"files": {{{_lines(files)}}}')
    return f'{{\n  "version": {VERSION},\n  ' + ",\n  ".join(blocks) + "\n}\n"


def _lines(rows: str) -> str:
    return f"\n{rows}\n  " if rows else ""


def _spaced(value: Any) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=0).decode("utf-8")
