"""Evidence of earlier measurements for findings: bytes if they confirmed one, suppression if they refuted it."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from memlint.config import Config
from memlint.evidence import SILENT, WORST, Record, content_hash, load
from memlint.finding import Finding, Suppressed, shown_place
from memlint.project import Project
from memlint.reading import leads_out, most_of, read_file

#: the value of `Suppressed.by` for a refuted finding
BY = "evidence"


class Proof:
    """The records of all evidence files of one project."""

    def __init__(self, records: Iterable[Record] = ()) -> None:
        self._records: dict[str, list[Record]] = {}
        for record in records:
            if record.verdict not in SILENT:
                self._records.setdefault(record.fingerprint, []).append(record)

    def applied(self, findings: Sequence[Finding], project: Project) -> tuple[list[Finding], list[str]]:
        """The findings with their evidence, and remarks on outdated evidence. ``project``: the one whose contents were
        linted; a finding that a comment suppresses stays suppressed by it."""
        if not self._records:
            return list(findings), []
        contents = _Contents(project)
        found: list[Finding] = []
        remarks: list[str] = []
        for finding in findings:
            judged = [
                (record, contents.changed(finding, record)) for record in self._records.get(finding.fingerprint, ())
            ]
            remarks += (
                f"evidence for {finding.code} at {shown_place(finding, column=False)} is not used: {reason}"
                for reason in dict.fromkeys(reason for _, reason in judged if reason is not None)
            )
            found.append(_with(finding, [record for record, reason in judged if reason is None]))
        return found, remarks


def read_proof(config: Config, given: tuple[Path, ...] | None, more: tuple[Path, ...] = ()) -> Proof:
    """The evidence of a configuration, or ``given`` in place of it, with ``more``. Raises ConfigError."""
    where = "--evidence" if given is not None else f"{config.file}: `evidence`"
    paths = config.evidence if given is None else given
    return Proof(record for path in (*paths, *more) for record in load(path, where).findings)


def without_silence(findings: Iterable[Finding], changed: frozenset[str]) -> tuple[Finding, ...]:
    """The findings after files were changed (by display path), for which their evidence no longer holds."""
    return tuple(
        msgspec.structs.replace(
            finding,
            evidence=None,
            suppressed=None if finding.suppressed is not None and finding.suppressed.by == BY else finding.suppressed,
        )
        if finding.evidence is not None and not changed.isdisjoint(_paths(finding))
        else finding
        for finding in findings
    )


def _with(finding: Finding, records: Sequence[Record]) -> Finding:
    if not records:
        return finding
    worst = min(records, key=lambda record: WORST.index(record.verdict))
    suppressed = finding.suppressed
    if worst.verdict == "refuted" and suppressed is None:
        suppressed = Suppressed(BY, worst.reason)
    return msgspec.structs.replace(finding, evidence=worst.as_evidence(), suppressed=suppressed)


def _paths(finding: Finding) -> set[str]:
    return {finding.path, *(step.path for step in finding.trace)}


class _Contents:
    """The current files of one project."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._hashes: dict[str, str | None] = {}

    def changed(self, finding: Finding, record: Record) -> str | None:
        """Why a record is about another version of the finding's files; None if it is not."""
        project = self._project
        own = {project.relative(path): path for path in _paths(finding) if path in project.sources}
        if finding.path not in own.values() or len(own) < len(_paths(finding)):
            return "its trace leads out of the project"
        for name in sorted({*own, *record.files}):
            if name not in record.files:
                return f"its trace now leads through {name}, which was not measured"
            if self._hash(name, own.get(name)) != record.files[name]:
                return f"{name} has changed since it was measured"
        return None

    def _hash(self, name: str, display: str | None) -> str | None:
        if name not in self._hashes:
            project = self._project
            try:
                self._hashes[name] = content_hash(
                    project.sources.raw(display) if display is not None else self._beside(project.root, name)
                )
            except OSError:
                self._hashes[name] = None
        return self._hashes[name]

    @staticmethod
    def _beside(root: Path, name: str) -> bytes:
        """The content of a file of the project that is no source. Raises OSError, also for one outside."""
        if leads_out(root / name, root):
            raise OSError(errno.EINVAL, "it lies outside of the project")
        return read_file(root / name, most_of(name))
