"""Fixes that are applied pass by pass to the files of one project in memory, each checked by a new run."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

import msgspec

from memlint.engine.comments.silence import UNUSED
from memlint.engine.judging import Linted
from memlint.finding import Edit, Finding, Refusal
from memlint.fix.cells import cells_after, place_in, write_back
from memlint.fix.choice import Rank, apart, first, fixable, merged
from memlint.fix.edits import Move, splice
from memlint.fix.relint import Regression, regressions
from memlint.fix.spans import EditError
from memlint.fix.text import harm
from memlint.project import Project

#: a suppression of a fixed finding may become unused, which does not speak against the fix
CONSEQUENCES = frozenset({UNUSED})

#: how many uncovered findings are fixed together with a fix
MAX_FOLLOWING = 8

Lint = Callable[[Project], Linted]


class State(msgspec.Struct, frozen=True):
    """A project after fixes. ``changed``: the contents of its changed files, by display path."""

    project: Project
    linted: Linted
    changed: Mapping[str, bytes]


class Applied(msgspec.Struct, frozen=True):
    """``fixed``: the fixed findings, as they were reported; ``changed``: the contents of changed files, by display
    path; ``linted``: the findings in them."""

    fixed: tuple[Finding, ...]
    refused: tuple[Refusal, ...]
    changed: Mapping[str, bytes]
    linted: Linted | None = None


class _Blame(msgspec.Struct, frozen=True):
    """Why fixes do not hold together. ``suspects``: the findings of which some are to blame; ``sure``: all of them are.
    ``uncovered``: the new findings against them."""

    reason: str
    suspects: frozenset[Finding]
    sure: bool = False
    uncovered: tuple[Finding, ...] = ()


def apply_all(
    project: Project,
    linted: Linted,
    lint: Lint,
    *,
    rank: Rank,
    unsafe: bool,
    blocked: Callable[[str], bool],
    only: Collection[str] | None = None,
) -> Applied:
    """Apply the fixes of a project in memory. ``blocked``: whether a file (by display path) cannot be written.
    ``only``: the fingerprints of the findings to fix, together with those that their fixes uncover; None for all.

    Colliding fixes take a pass each; every pass leaves fewer findings than the one before. A refused fix is tried again
    after others were applied, so that a second run would change nothing.
    """
    passes = _Passes(lint, unsafe, blocked)
    state = State(project, linted, {})
    fixed: list[Finding] = []
    refused: dict[Finding, str] = {}
    while wanted := [
        one
        for one in passes.wanted(state.linted.findings)
        if one not in refused and (only is None or one.fingerprint in only)
    ]:
        state, made, failed = passes.accept(apart(first(wanted, rank)), state)
        fixed += made
        refused = {} if made else refused | failed
    kept = tuple(Refusal(one, reason) for one, reason in refused.items())
    return Applied(tuple(fixed), kept, state.changed, state.linted)


class _Held(msgspec.Struct, frozen=True):
    """Fixes that hold, and the project after them."""

    state: State
    made: tuple[Finding, ...]


_Accepted = tuple[State, list[Finding], dict[Finding, str]]


class _Passes:
    """How fixes are tried: the linter, and which fixes are allowed."""

    def __init__(self, lint: Lint, unsafe: bool, blocked: Callable[[str], bool]) -> None:
        self._lint, self._unsafe, self._blocked = lint, unsafe, blocked

    def wanted(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings whose fix is to be applied and can be written."""
        return [
            one for one in fixable(findings, self._unsafe) if not any(self._blocked(edit.path) for edit in _edits(one))
        ]

    def accept(self, findings: Sequence[Finding], base: State) -> _Accepted:
        """The state after as many of the fixes as hold, those, and the reasons against the others."""
        if not findings:
            return base, [], {}
        tried = self._try(findings, base, MAX_FOLLOWING)
        if isinstance(tried, _Held):
            return tried.state, list(tried.made), {}
        if len(findings) == 1:
            return base, [], {findings[0]: tried.reason + self._remedy(findings, base, tried)}
        suspects = [one for one in findings if one in tried.suspects] or list(findings)
        others = [one for one in findings if one not in suspects]
        if tried.sure:
            state, made, failed = self.accept(others, base)
            return state, made, {**dict.fromkeys(suspects, tried.reason), **failed}
        half = len(suspects) // 2
        parts = (others, suspects) if others else (suspects[:half], suspects[half:])
        state, made, failed = self.accept(parts[0], base)
        state, more, failed_too = self.accept(parts[1], state)
        return state, made + more, {**failed, **failed_too}

    def _remedy(self, findings: Sequence[Finding], base: State, blame: _Blame) -> str:
        """How the user can get a fix that uncovers what only an unsafe fix solves; empty if that does not hold."""
        bold = _Passes(self._lint, True, self._blocked)
        if self._unsafe or not blame.uncovered or not bold.wanted(blame.uncovered):
            return ""
        held = bold._try(findings, base, MAX_FOLLOWING)
        return ", which --unsafe-fixes would fix with it" if isinstance(held, _Held) else ""

    def _try(self, findings: Sequence[Finding], base: State, following: int) -> _Held | _Blame:
        """The state after all of the fixes, or the reason against them. A fix that uncovers another finding (the next
        call that lacks the same guard) holds if that one's fix does on top of it, up to ``following`` times."""
        edited = _edited(findings, base)
        if isinstance(edited, _Blame):
            return edited
        changed, moves = edited
        project = base.project.with_contents(changed)
        linted = self._lint(project)
        broken = [failure for failure in linted.failures if failure not in base.linted.failures]
        if broken:
            return _Blame(f"{broken[0].path} could not be analysed: {broken[0].reason}", frozenset(findings))
        state = State(project, linted, changed)
        found = regressions(base.linted.findings, linted.findings, findings, moves, CONSEQUENCES)
        if not found:
            return _Held(state, tuple(findings))
        fresh = [one.finding for one in found if not one.lasting]
        if following and fresh and apart(self.wanted(fresh)) == fresh:
            then = self._try(fresh, state, following - 1)
            if isinstance(then, _Held):
                return _Held(then.state, (*findings, *then.made))
        return _blamed(found, findings)


def _edited(findings: Sequence[Finding], base: State) -> tuple[dict[str, bytes], dict[str, Move]] | _Blame:
    """The contents of the changed files after the fixes, and the mapping of positions; or the reason against them."""
    changed, moves = dict(base.changed), dict[str, Move]()
    for path, edits in merged(findings).items():
        suspects = frozenset(one for one in findings if any(edit.path == path for edit in _edits(one)))
        source = base.project.sources.get(path)
        if source is None or not source.linted or source.unreadable is not None:
            return _Blame(f"{path} is not among the linted files", suspects, sure=True)
        try:
            placed = place_in(source, edits)
            after = splice(source.text, placed)
            changed[path] = write_back(source, base.project.sources.raw(path), placed)
            cells = cells_after(source, changed[path], after)
        except (EditError, OSError) as error:
            return _Blame(str(error), suspects)
        reason = harm(source.text, after)
        if reason is not None:
            return _Blame(reason, suspects)
        moves[path] = Move(source.text, placed, after, source.cells, cells)
    return changed, moves


def _blamed(found: Sequence[Regression], findings: Sequence[Finding]) -> _Blame:
    reason, path = found[0].reason, found[0].finding.path
    lasting = frozenset(one.finding for one in found if one.lasting)
    if lasting:
        return _Blame(reason, lasting, sure=True)
    suspects = frozenset(one for one in findings if any(edit.path == path for edit in _edits(one)))
    return _Blame(reason, suspects, uncovered=tuple(one.finding for one in found))


def _edits(finding: Finding) -> tuple[Edit, ...]:
    return () if finding.fix is None else finding.fix.edits
