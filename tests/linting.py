"""Lints one file that a test writes, for tests that ask for a part of what is found."""

from __future__ import annotations

from pathlib import Path

import memlint


def codes_in(folder: Path, source: str, name: str = "train.py") -> list[str]:
    """The codes of the findings of a file of that name, in order."""
    return [item.code for item in findings_in(folder, source, name)]


def severities_in(folder: Path, source: str, code: str) -> list[str]:
    """The severities of the findings of one code in a file, in order."""
    return [item.severity for item in findings_in(folder, source) if item.code == code]


def findings_in(folder: Path, source: str, name: str = "train.py") -> tuple[memlint.Finding, ...]:
    """The findings of a file of that name, in order."""
    (folder / name).write_text(source)
    result = memlint.lint([folder])
    assert not result.failures
    return result.findings


def why(finding: memlint.Finding) -> str:
    """What the trace of a finding says."""
    return "; ".join(step.message for step in finding.trace)
