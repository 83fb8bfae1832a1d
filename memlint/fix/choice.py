"""Which fixes are applied, and which of them together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from memlint.finding import Edit, Finding, Fix, is_fixable

#: cell, line, column
_At = tuple[int, int, int]
#: the rank of a rule's fixes, by its code
Rank = Callable[[str], int]


def fixable(findings: Iterable[Finding], unsafe: bool) -> list[Finding]:
    """The findings whose fix is to be applied, in order of place, without suppressed ones."""
    found = [one for one in findings if is_fixable(one, unsafe)]
    return sorted(found, key=lambda one: (one.path, one.cell or 0, one.line, one.column, one.code))


def first(findings: Sequence[Finding], rank: Rank) -> Sequence[Finding]:
    """The findings of the lowest rank, which may be the cause of others that then disappear."""
    lowest = min((rank(one.code) for one in findings), default=0)
    return [one for one in findings if rank(one.code) == lowest]


def apart(findings: Iterable[Finding]) -> list[Finding]:
    """The first findings whose fixes do not collide; the others wait until these are applied.

    A fix occupies everything between its first and its last edit in a file, and what touches it: the code between (an
    indented block) means something else afterwards. Equal fixes, and fixes that add the same import, do not collide.
    """
    taken: list[Finding] = []
    fixes: set[tuple[Edit, ...]] = set()
    ranges: dict[str, list[tuple[_At, _At]]] = {}
    imports: set[Edit] = set()
    for finding in findings:
        assert finding.fix is not None
        if finding.fix.edits not in fixes:
            wanted = _ranges(finding.fix, imports)
            if any(
                _touch(one, other) for path, rows in wanted.items() for one in rows for other in ranges.get(path, ())
            ):
                continue
            for path, rows in wanted.items():
                ranges.setdefault(path, []).extend(rows)
            fixes.add(finding.fix.edits)
            imports.update(edit for edit in finding.fix.edits if _adds_import(edit))
        taken.append(finding)
    return taken


def merged(findings: Iterable[Finding]) -> dict[str, list[Edit]]:
    """The edits of fixes that are `apart`, by path; an edit that several of them share is made once."""
    fixes = dict.fromkeys(finding.fix.edits for finding in findings if finding.fix is not None)
    imports: set[Edit] = set()
    edits: dict[str, list[Edit]] = {}
    for fix in fixes:
        for edit in fix:
            if edit not in imports:
                edits.setdefault(edit.path, []).append(edit)
            if _adds_import(edit):
                imports.add(edit)
    return edits


def _ranges(fix: Fix, made: set[Edit]) -> dict[str, list[tuple[_At, _At]]]:
    """The ranges that a fix occupies, by path. Added imports are ranges of their own; edits in ``made`` occupy
    nothing."""
    ranges: dict[str, list[tuple[_At, _At]]] = {}
    hulls: dict[str, tuple[_At, _At]] = {}
    for edit in fix.edits:
        cell = edit.cell or 0
        start, end = (cell, edit.span.line, edit.span.column), (cell, edit.span.end_line, edit.span.end_column)
        if not _adds_import(edit):
            low, high = hulls.get(edit.path, (start, end))
            hulls[edit.path] = min(low, start), max(high, end)
        elif edit not in made:
            ranges.setdefault(edit.path, []).append((start, end))
    for path, hull in hulls.items():
        ranges.setdefault(path, []).append(hull)
    return ranges


def _touch(one: tuple[_At, _At], other: tuple[_At, _At]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _adds_import(edit: Edit) -> bool:
    span, line = edit.span, edit.content.strip()
    return (
        (span.line, span.column) == (span.end_line, span.end_column)
        and line != edit.content.strip(" \t")
        and len(line.splitlines()) == 1
        and line.startswith(("import ", "from "))
    )
