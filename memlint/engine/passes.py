"""Fixes made pass by pass on the files of one project in memory, each checked by a new run before it counts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import msgspec

from memlint.engine.run import Linted
from memlint.finding import Edit, Finding
from memlint.fix.choice import apart, first, fixable, merged
from memlint.fix.edits import EditError, Move, place, splice
from memlint.fix.files import encode
from memlint.fix.relint import Regression, regressions
from memlint.fix.text import harm
from memlint.project import Project

#: a comment that suppressed what a fix mended may go, but the fix is none the worse for it
CONSEQUENCES = frozenset({"MEM001"})

Lint = Callable[[Project], Linted]


class State(msgspec.Struct, frozen=True):
    """A project as it would be. ``changed``: what its changed files then hold, by display path."""

    project: Project
    linted: Linted
    changed: Mapping[str, bytes]


class Refusal(msgspec.Struct, frozen=True):
    """A fix that was not made, and why, a clause."""

    finding: Finding
    reason: str


class Mended(msgspec.Struct, frozen=True):
    """``fixed``: what the fixes that hold were for, each as it was found; ``changed``: what the files then hold, by
    display path; ``linted``: what is then found in them."""

    fixed: tuple[Finding, ...]
    refused: tuple[Refusal, ...]
    changed: Mapping[str, bytes]
    linted: Linted | None = None


class _Blame(msgspec.Struct, frozen=True):
    """Why fixes do not hold together. ``suspects``: those among which the culprits are; ``sure``: all of them are."""

    reason: str
    suspects: frozenset[Finding]
    sure: bool = False


def mend(project: Project, linted: Linted, lint: Lint, *, unsafe: bool, blocked: Callable[[str], bool]) -> Mended:
    """Make the fixes of a project, in memory. ``blocked``: whether a file (by display path) cannot be written.

    Fixes that keep each other waiting take a pass each; every pass leaves fewer findings than the one before. A fix
    that was refused is tried again after others were made, so a second run would change nothing.
    """
    state = State(project, linted, {})
    fixed: list[Finding] = []
    refused: dict[Finding, str] = {}
    while True:
        wanted = [
            one
            for one in fixable(state.linted.findings, unsafe)
            if one not in refused and not any(blocked(edit.path) for edit in _edits(one))
        ]
        if not wanted:
            break
        state, made, failed = _accept(apart(first(wanted)), state, lint)
        fixed += made
        refused = {} if made else refused | failed
    kept = tuple(Refusal(one, reason) for one, reason in refused.items())
    return Mended(tuple(fixed), kept, state.changed, state.linted)


_Accepted = tuple[State, list[Finding], dict[Finding, str]]


def _accept(findings: Sequence[Finding], base: State, lint: Lint) -> _Accepted:
    """The state with as many of the fixes as hold, these, and the reasons why the others do not."""
    if not findings:
        return base, [], {}
    tried = _try(findings, base, lint)
    if isinstance(tried, State):
        return tried, list(findings), {}
    if len(findings) == 1:
        return base, [], {findings[0]: tried.reason}
    suspects = [one for one in findings if one in tried.suspects] or list(findings)
    others = [one for one in findings if one not in suspects]
    if tried.sure:
        state, made, failed = _accept(others, base, lint)
        return state, made, {**dict.fromkeys(suspects, tried.reason), **failed}
    one_half, other_half = (
        (others, suspects) if others else (suspects[: len(suspects) // 2], suspects[len(suspects) // 2 :])
    )
    state, made, failed = _accept(one_half, base, lint)
    state, more, failed_too = _accept(other_half, state, lint)
    return state, made + more, {**failed, **failed_too}


def _try(findings: Sequence[Finding], base: State, lint: Lint) -> State | _Blame:
    """The state with all of the fixes, or what speaks against it."""
    changed, moves = dict(base.changed), dict[str, Move]()
    for path, edits in merged(findings).items():
        suspects = frozenset(one for one in findings if any(edit.path == path for edit in _edits(one)))
        source = base.project.sources.get(path)
        if source is None or not source.linted or source.unreadable is not None:
            return _Blame(f"{path} is not among the linted files", suspects, sure=True)
        try:
            placed = place(source.text, edits)
            after = splice(source.text, placed)
            changed[path] = encode(base.project.sources.raw(path), after)
        except (EditError, OSError) as error:
            return _Blame(str(error), suspects)
        reason = harm(source.text, after)
        if reason is not None:
            return _Blame(reason, suspects)
        moves[path] = Move(source.text, placed, after)
    project = base.project.with_contents(changed)
    linted = lint(project)
    broken = [failure for failure in linted.failures if failure not in base.linted.failures]
    if broken:
        return _Blame(f"{broken[0].path} could not be analysed: {broken[0].reason}", frozenset(findings))
    found = regressions(base.linted.findings, linted.findings, findings, moves, CONSEQUENCES)
    return _blamed(found, findings) if found else State(project, linted, changed)


def _blamed(found: Sequence[Regression], findings: Sequence[Finding]) -> _Blame:
    reason = found[0].reason
    lasting = frozenset(one.finding for one in found if one.finding is not None)
    if lasting:
        return _Blame(reason, lasting, sure=True)
    return _Blame(reason, frozenset(one for one in findings if any(edit.path == found[0].path for edit in _edits(one))))


def _edits(finding: Finding) -> tuple[Edit, ...]:
    return () if finding.fix is None else finding.fix.edits
