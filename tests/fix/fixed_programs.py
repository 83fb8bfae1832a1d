"""Small programs whose fixes are looked at."""

from __future__ import annotations

from pathlib import Path

import memlint
from memlint.finding import Finding


def findings(folder: Path, text: str | dict[str, str], code: str) -> list[Finding]:
    """What is found of one rule in a program that is a project of its own."""
    files = {"train.py": text} if isinstance(text, str) else text
    for path, content in {"pyproject.toml": "", **files}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(content, encoding="utf-8")
    result = memlint.lint([folder], isolated=True, preview=True, min_confidence="low")
    assert not result.failures, result.failures
    return [finding for finding in result.findings if finding.code == code]


def safety(folder: Path, text: str | dict[str, str], code: str) -> str:
    """The safety of the one fix for a rule: safe, unsafe, or "none" where there is a finding and no fix."""
    found = {"none" if one.fix is None else one.fix.safety for one in findings(folder, text, code)}
    assert len(found) == 1, found
    return found.pop()
