"""Whether the findings after edits are what they were before, without those that the edits mend."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from memlint.finding import Finding
from memlint.fix.edits import Move

_Same = Callable[[Finding, Finding], bool]


class Regression(msgspec.Struct, frozen=True):
    """What a new run found that it should not have, a clause. ``finding``: the fixed one that is still there, else
    None; ``path``: the file that a new finding is in."""

    reason: str
    path: str
    finding: Finding | None = None


def regressions(
    before: Sequence[Finding],
    after: Sequence[Finding],
    fixed: Sequence[Finding],
    moves: Mapping[str, Move],
    consequences: frozenset[str],
) -> list[Regression]:
    """Findings that are still there (these alone, where there are any), else findings that are new.

    ``consequences``: codes that may come up, since they speak of findings that are gone (of their suppressions).
    """
    lasting = [
        Regression("the finding would still be there", one.path, one)
        for one in fixed
        if any(_same(one, other, moves) for other in after if other.suppressed is None)
    ]
    if lasting:
        return lasting
    mended = set(fixed)
    fresh = _new([one for one in before if one not in mended], after, moves)
    return [
        Regression(f"it would give {one.code} at {one.path}:{one.line}", one.path)
        for one in fresh
        if one.code not in consequences
    ]


def _new(before: Sequence[Finding], after: Iterable[Finding], moves: Mapping[str, Move]) -> list[Finding]:
    """The findings ``after`` that are none of those ``before``: neither at the place that one went to, nor by
    fingerprint.

    Place comes first: a fingerprint counts equal statements, and one of these may be gone.
    """
    known: dict[tuple[str, str, bool], list[Finding]] = {}
    for one in before:
        known.setdefault(_kind(one), []).append(one)
    elsewhere = [one for one in after if not _taken(one, known, lambda old, new: _same(old, new, moves))]
    return [one for one in elsewhere if not _taken(one, known, lambda old, new: old.fingerprint == new.fingerprint)]


def _kind(finding: Finding) -> tuple[str, str, bool]:
    return finding.path, finding.code, finding.suppressed is None


def _taken(finding: Finding, known: Mapping[tuple[str, str, bool], list[Finding]], same: _Same) -> bool:
    rows = known.get(_kind(finding), [])
    for old in rows:
        if same(old, finding):
            rows.remove(old)
            return True
    return False


def _same(old: Finding, new: Finding, moves: Mapping[str, Move]) -> bool:
    if (old.path, old.code) != (new.path, new.code):
        return False
    move = moves.get(old.path)
    if move is None:
        return (old.line, old.column) == (new.line, new.column)
    return move.holds(old.line, old.column, new.line, new.column)
