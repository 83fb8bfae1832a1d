"""What memlint says: findings, their traces and growth, and the files that could not be read."""

from __future__ import annotations

from typing import Literal

import msgspec

from memlint.patterns import lazy_pattern

Severity = Literal["error", "warning", "note"]
Confidence = Literal["high", "medium", "low"]
#: in which memory a finding grows
Memory = Literal["device-graph", "device-tensor", "host", "none"]
#: how it grows
GrowthKind = Literal["per-iteration", "per-epoch", "once", "peak", "time"]
Safety = Literal["safe", "unsafe", "display"]
#: whether anything in the project is seen to use the code of a finding, and whether that code can run at all
Reach = Literal["used", "unused", "cannot-run"]
#: how the reason begins of what stands in a file that cannot be loaded
FAILS = "this file fails as it is loaded"


_NUMBER = lazy_pattern(r"@[0-9]+(?::[0-9]+)?")
_ORDER: dict[Confidence, int] = {"low": 0, "medium": 1, "high": 2}


def weakest(*confidences: Confidence) -> Confidence:
    """The lowest of several confidences: a chain is as strong as its weakest link."""
    return min(confidences, key=_ORDER.__getitem__)


class Span(msgspec.Struct, frozen=True, gc=False):
    """A range of source text. Lines and columns count from 1, columns in characters; the end is exclusive
    in columns (the column after the last character)."""

    line: int
    column: int
    end_line: int
    end_column: int


class TraceStep(msgspec.Struct, frozen=True, gc=False):
    """One place on the way from where a value was made to where it is kept; ``cell``: as of a `Finding`."""

    path: str
    line: int
    column: int
    message: str
    cell: int | None = None


class Growth(msgspec.Struct, frozen=True, gc=False):
    """The claim about bytes: which memory grows, and how."""

    memory: Memory
    kind: GrowthKind


class Edit(msgspec.Struct, frozen=True, gc=False):
    """Replace the text of ``span`` in ``path`` by ``content``; ``cell``: as of a `Finding`."""

    path: str
    span: Span
    content: str
    cell: int | None = None


class Fix(msgspec.Struct, frozen=True, gc=False):
    """``title``: what it does, a sentence's predicate. ``doubt``: why it is not safe, a clause; None where it is."""

    safety: Safety
    title: str
    doubt: str | None
    edits: tuple[Edit, ...]


class Suppressed(msgspec.Struct, frozen=True, gc=False):
    """``by``: the comment that suppressed the finding (noqa, ignore, ignore-file), and ``reason`` what follows ``--``;
    or evidence, and how a measurement refuted it; or the baseline, which gives no reason."""

    by: str
    reason: str | None


class PerIteration(msgspec.Struct, frozen=True, gc=False):
    """Bytes that an iteration leaves: the least and the most over the window, ``exact`` where all were equal, and the
    ``mean``: of a place that is reached now and then, most iterations leave nothing."""

    min: int
    max: int
    exact: int | None
    mean: int = 0


class Evidence(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """What an earlier ``memlint verify`` measured of this finding, in the words of its verdict."""

    verdict: str
    reason: str = ""
    device: str | None = None
    bytes_per_iteration: PerIteration | None = None
    host_bytes_per_iteration: int | None = None
    graph_nodes_per_iteration: int | None = None


class Statement(msgspec.Struct, frozen=True, gc=False):
    """The statement around a finding (a compound one's header): the qualified name of the function around it
    ("<module>" at the top; numbered if it is defined again later), its lines, and a fingerprint in which the name of
    the file plays no part."""

    function: str
    line: int
    end_line: int
    fingerprint: str


def unnumbered(name: str) -> str:
    """A qualified name as it is written in the code, without the numbers that tell redefinitions apart."""
    return _NUMBER.sub("", name)


class Finding(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One finding. ``path`` is relative to the working directory where it lies below it, else absolute.

    ``message``: the fact, the memory and how it grows, one sentence of at most `memlint.wording.MOST` characters.
    ``trace``: why. ``help``: what to do, a sentence without a period.
    ``cell`` is the cell of a notebook, counted from 1 among all of its cells, in which lines count from 1 as well; None
    in other files. ``fingerprint`` does not change when lines move. ``alternatives``:
    other fixes, which are shown and never applied. ``reach_reason``: why it is not "used", a clause, which the
    last step of the trace says as well.
    """

    code: str
    name: str
    severity: Severity
    confidence: Confidence
    message: str
    help: str = ""
    path: str
    line: int
    column: int
    end_line: int
    end_column: int
    cell: int | None = None
    growth: Growth
    reach: Reach = "used"
    reach_reason: str = ""
    trace: tuple[TraceStep, ...] = ()
    fix: Fix | None = None
    alternatives: tuple[Fix, ...] = ()
    evidence: Evidence | None = None
    suppressed: Suppressed | None = None
    fingerprint: str = ""
    statement: Statement | None = None


def shown_place(place: Finding | TraceStep, path: str | None = None, *, column: bool = True) -> str:
    """``train.py:12:5``, ``train.ipynb:cell 3:2:5``: where a finding or a step is, for people and their editors.
    ``path``: what its file is called, where that is another name than its own."""
    cell = "" if place.cell is None else f"cell {place.cell}:"
    return f"{path or place.path}:{cell}{place.line}" + (f":{place.column}" if column else "")


class Failure(msgspec.Struct, frozen=True, gc=False):
    """A file that could not be read or analysed, and why."""

    path: str
    reason: str


class Skipped(msgspec.Struct, frozen=True, gc=False):
    """A file that was found and left out, and why ("gitignored", "excluded by …", "not Python")."""

    path: str
    reason: str


class HeldBack(msgspec.Struct, frozen=True, gc=False):
    """How many findings are not shown: those of less confidence than is asked for, those of preview rules, those in
    unused code where the configuration ignores it, and those on lines that have not changed (``--since``). Each is what
    would be shown if this alone were asked for."""

    medium_confidence: int = 0
    low_confidence: int = 0
    preview: int = 0
    unused_code: int = 0
    unchanged_lines: int = 0


class Summary(msgspec.Struct, frozen=True, gc=False):
    """Suppressed findings count as ``suppressed`` alone. ``seconds`` is wall time. ``silenced_by_evidence``: how many
    findings measurements refuted; ``baselined``: how many are in the baseline."""

    files: int
    skipped: int
    errors: int
    warnings: int
    notes: int
    seconds: float
    suppressed: int = 0
    silenced_by_evidence: int = 0
    held_back: HeldBack = HeldBack()
    baselined: int = 0


#: how a remark ends that names a function of a linted file which was not followed to its end (see docs/limits.md)
CUT_SHORT = "too much to follow, cut short"


class Result(msgspec.Struct, frozen=True):
    """What one run of the linter gives: findings in order of path, line, column and code.

    ``fixed``: how many more there were before they were fixed; None where nothing was to be fixed. ``takes_unsafe``:
    the paths of findings whose unsafe fixes ``--fix`` makes, too, by the configuration of their project; all of them
    where the command line says so (``asked_unsafe``).
    """

    findings: tuple[Finding, ...]
    failures: tuple[Failure, ...]
    skipped: tuple[Skipped, ...]
    summary: Summary
    #: what was cut short, and other things worth a line with --verbose
    remarks: tuple[str, ...] = ()
    fixed: int | None = None
    takes_unsafe: frozenset[str] = frozenset()
    asked_unsafe: bool = False

    @property
    def cut_short(self) -> tuple[str, ...]:
        """The functions that were not followed to their end, as ``FILE: NAME``: more may be wrong with them."""
        return tuple(remark.removesuffix(f": {CUT_SHORT}") for remark in self.remarks if remark.endswith(CUT_SHORT))

    def is_fixable(self, finding: Finding) -> bool:
        """Whether ``--fix`` would make the finding's fix."""
        return is_fixable(finding, finding.path in self.takes_unsafe)


class Refusal(msgspec.Struct, frozen=True):
    """A fix that was not made, since it would not have held, and why, a clause."""

    finding: Finding
    reason: str


class FixResult(msgspec.Struct, frozen=True):
    """What `memlint.apply_fixes` gives. ``result``: what remains, as `memlint.lint` would say. ``fixed``: what was
    fixed, each as it was found. ``refused``: fixes that were tried and not made. ``changed``: the files that were
    written (or would be), as the findings name them. ``diff``: their changes as a unified diff, in the bytes of the
    files, as ``patch -p0`` takes it."""

    result: Result
    fixed: tuple[Finding, ...]
    refused: tuple[Refusal, ...]
    changed: tuple[str, ...]
    diff: bytes


def is_fixable(finding: Finding, unsafe: bool) -> bool:
    """Whether ``--fix`` would make the finding's fix (``unsafe``: with ``--unsafe-fixes``)."""
    if finding.fix is None or finding.suppressed is not None or not finding.fix.edits:
        return False
    return finding.fix.safety == "safe" or (unsafe and finding.fix.safety == "unsafe")
