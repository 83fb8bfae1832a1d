"""Whether the findings after edits equal those before, except for the fixed ones."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from memlint.finding import Finding, Severity, shown_place
from memlint.fix.cells import module_place
from memlint.fix.edits import Move
from memlint.project import cell_at

_Known = Callable[[Finding, Finding], bool]


class Regression(msgspec.Struct, frozen=True):
    """An unexpected finding of a new run. ``finding``: the fixed one, if it is still there (``lasting``), or a new one.
    ``reason``: a clause."""

    reason: str
    finding: Finding
    lasting: bool = False


def regressions(
    before: Sequence[Finding],
    after: Sequence[Finding],
    fixed: Sequence[Finding],
    moves: Mapping[str, Move],
    consequences: frozenset[str],
) -> list[Regression]:
    """The fixed findings that are still there (only these, if there are any), else new findings. ``consequences``:
    codes that may appear, as they are about findings that are gone (unused suppressions). Where a finding that was not
    fixed itself disappears, one that it covered may appear (a stored tensor, once its graph is gone), if it is no more
    severe."""
    lasting = [
        Regression("the finding would still be there", one, lasting=True)
        for one in fixed
        if any(_same(one, other, moves) for other in after if other.suppressed is None)
    ]
    if lasting:
        return lasting
    done = set(fixed)
    fresh = _new([one for one in before if one not in done], after, moves)
    return [
        Regression(f"it would give {one.code} at {_place_before(one, moves)}", one)
        for one in fresh
        if one.code not in consequences
    ]


def _new(before: Sequence[Finding], after: Iterable[Finding], moves: Mapping[str, Move]) -> list[Finding]:
    """The findings ``after`` that match none ``before``, neither by the mapped position nor by fingerprint, and that
    none of them covered. Positions are compared first: a fingerprint numbers equal statements, of which one may be
    gone."""
    rest: dict[str, list[Finding]] = {}
    for one in before:
        rest.setdefault(one.path, []).append(one)
    for known in (
        lambda old, new: _kind(old) == _kind(new) and _at_place(old, new, moves),
        lambda old, new: _kind(old) == _kind(new) and old.fingerprint == new.fingerprint,
        lambda old, new: _covered(old, new) and _at_place(old, new, moves),
    ):
        after = [one for one in after if not _taken(one, rest.get(one.path, []), known)]
    return list(after)


def _place_before(finding: Finding, moves: Mapping[str, Move]) -> str:
    """The line of a finding in the file before it is edited."""
    move = moves.get(finding.path)
    if move is not None:
        line = move.origin(*module_place(move.cells_after, finding))
        cell = cell_at(move.cells, line)
        number, line = (None, line) if cell is None else (cell.number, line - cell.line + 1)
        finding = msgspec.structs.replace(finding, cell=number, line=line)
    return shown_place(finding, column=False)


def _kind(finding: Finding) -> tuple[str, bool]:
    return finding.code, finding.suppressed is None


def _covered(old: Finding, new: Finding) -> bool:
    severities: tuple[Severity, ...] = ("error", "warning", "note")
    visible = old.suppressed is None or new.suppressed is not None
    return visible and severities.index(old.severity) <= severities.index(new.severity)


def _taken(finding: Finding, rest: list[Finding], known: _Known) -> bool:
    for old in rest:
        if known(old, finding):
            rest.remove(old)
            return True
    return False


def _same(old: Finding, new: Finding, moves: Mapping[str, Move]) -> bool:
    return (old.path, old.code) == (new.path, new.code) and _at_place(old, new, moves)


def _at_place(old: Finding, new: Finding, moves: Mapping[str, Move]) -> bool:
    move = moves.get(old.path)
    if move is None:
        return (old.cell, old.line, old.column) == (new.cell, new.line, new.column)
    return move.holds(*module_place(move.cells, old), *module_place(move.cells_after, new))
