"""A report as evidence for the linter."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from memlint import __version__
from memlint.evidence import Document, Measured, Record, content_hash
from memlint.project import find_root
from memlint.verifier.model import Report, Verified


def document(report: Report, paths: Mapping[str, Path], hashes: Mapping[str, str], cwd: Path) -> Document:
    """The measurements by finding. ``paths`` and ``hashes``: the program's files by display path, and the hashes of the
    linted contents; a finding with a file that has changed while the program ran is left out."""
    files = _Files(paths, hashes, cwd)
    records = (_record(one, files) for one in report.verified)
    run = report.run
    return Document(
        memlint=__version__,
        run=Measured(run.python, run.torch, run.device, run.meter, run.warmup, run.window, run.end),
        findings=tuple(record for record in records if record is not None),
    )


def _record(one: Verified, files: _Files) -> Record | None:
    finding, verdict = one.finding, one.verdict
    root = find_root(files.path(finding.path), files.cwd)
    hashes: dict[str, str] = {}
    for display in (finding.path, *(step.path for step in finding.trace)):
        found = files.hash(display)
        if found is None:
            return None
        hashes[_relative(files.path(display), root)] = found
    return Record(
        fingerprint=finding.fingerprint,
        code=finding.code,
        path=_relative(files.path(finding.path), root),
        verdict=verdict.verdict,
        reason=verdict.reason,
        device=verdict.device,
        bytes_per_iteration=verdict.bytes_per_iteration,
        host_bytes_per_iteration=verdict.host_bytes_per_iteration,
        graph_nodes_per_iteration=verdict.graph_nodes_per_iteration,
        held_bytes=verdict.held_bytes,
        hits=verdict.hits,
        files=hashes,
    )


def _relative(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else path.as_posix()


class _Files:
    """The files of the program and of the traces, with their current contents."""

    def __init__(self, paths: Mapping[str, Path], linted: Mapping[str, str], cwd: Path) -> None:
        self.cwd = cwd
        self._paths = paths
        self._linted = linted
        self._now: dict[str, str | None] = {}

    def path(self, display: str) -> Path:
        return self._paths.get(display, self.cwd / display)

    def hash(self, display: str) -> str | None:
        """The hash of a file; None if it is gone, or differs from the linted one."""
        if display not in self._now:
            try:
                self._now[display] = content_hash(self.path(display).read_bytes())
            except OSError:
                self._now[display] = None
        now = self._now[display]
        return now if self._linted.get(display, now) == now else None
