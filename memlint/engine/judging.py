"""The findings in the linted files of one project."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import msgspec

from memlint.config import Config, ConfigError
from memlint.engine.analysis import Analyse, Analysis, Problem
from memlint.engine.cells import in_cells
from memlint.engine.comments.silence import silence
from memlint.engine.findings import CONFIDENCE, Raw, ask_rules, fingerprinted, internal_error, meta_finding
from memlint.engine.options import Options, Progress
from memlint.engine.prefilter import nothing_to_say
from memlint.engine.rules.rooms import Room, detectors_of, load_rooms
from memlint.engine.rules.selection import ALWAYS, Selection, choose
from memlint.finding import Failure, Finding, HeldBack, Severity
from memlint.project import Cell, Project

#: the most failing analyses of a project before the remaining files are given up, as each takes time
MAX_FAILED = 64


class Ruling(msgspec.Struct, frozen=True):
    """The settings for a project: its configuration, all rules, and those that run."""

    config: Config
    rooms: Mapping[str, Room]
    selection: Selection


class Compared(msgspec.Struct, frozen=True):
    """The entries of the baseline (by number) that were found again, and those that are stale."""

    found: tuple[int, ...] = ()
    stale: tuple[int, ...] = ()


class Linted(msgspec.Struct, frozen=True):
    """The findings of one project."""

    findings: tuple[Finding, ...]
    failures: tuple[Failure, ...]
    remarks: tuple[str, ...]
    held_back: HeldBack = HeldBack()
    compared: Compared = Compared()


def added_up(counts: Iterable[HeldBack]) -> HeldBack:
    """The sum of the findings held back in several files or projects."""
    rows = [msgspec.structs.astuple(one) for one in counts]
    return HeldBack(*map(sum, zip(*rows, strict=True)))


def ruling_of(config: Config, options: Options) -> Ruling:
    """The settings by a configuration and the command line. Raises ConfigError."""
    rooms = load_rooms(config.rule_paths, config.closed_rules)
    return Ruling(config, rooms, choose(rooms, config, options.overrides))


def says_nothing(project: Project, options: Options) -> bool:
    return options.parsed and options.screen and nothing_to_say(project)


def merged(found: Sequence[Linted]) -> Linted:
    """The findings of the parts of one project together."""
    return Linted(
        tuple(finding for one in found for finding in one.findings),
        tuple(dict.fromkeys(failure for one in found for failure in one.failures)),
        tuple(sorted({remark for one in found for remark in one.remarks})),
        added_up(one.held_back for one in found),
    )


def judge(ruling: Ruling, project: Project, options: Options, progress: Progress, analyse: Analyse) -> Linted:
    """The findings of a project's linted files, before evidence is applied."""
    unreadable = {
        display: source.unreadable
        for display in project.linted
        if (source := project.sources[display]).unreadable is not None
    }
    failures = tuple(Failure(display, reason) for display, reason in unreadable.items())
    if len(failures) == len(project.linted) or says_nothing(project, options):
        return Linted((), failures, ())
    parts = _Judge(ruling, options, progress, analyse).parts(project)
    unread = tuple(f"{display} was not read: {reason}" for display, reason in project.sources.unread.items())
    return merged([Linted((), failures, unread), *parts])


class _Judge:
    """Analyses a project, and runs the rules. An internal error affects only the file in which it happened."""

    def __init__(self, ruling: Ruling, options: Options, progress: Progress, analyse: Analyse) -> None:
        self._ruling = ruling
        self._options = options
        self._progress = progress
        self._analyse = analyse
        #: how many more analyses may fail before files are given up
        self._patience = MAX_FAILED

    def parts(self, project: Project) -> list[Linted]:
        """The findings of a project's linted files. If the analysis as a whole raises, the files are halved, down to
        those for which it does."""
        self._progress("analysing", 0, 0)
        selection = self._ruling.selection
        try:
            analysis = self._analyse(
                project,
                detectors=detectors_of(self._ruling.rooms, selection.enabled | selection.preview),
                jobs=self._options.jobs,
                screen=self._options.screen,
                progress=self._progress,
            )
        except ConfigError:
            raise
        except Exception as error:
            self._patience -= 1
            linted = project.linted
            if len(linted) == 1 or self._patience <= 0:
                reason = internal_error("the analysis", error)
                return [Linted((), tuple(Failure(display, reason) for display in linted), ())]
            half = len(linted) // 2
            return [*self.parts(project.part(linted[:half])), *self.parts(project.part(linted[half:]))]
        return [self._asked(project, analysis)]

    def _asked(self, project: Project, analysis: Analysis) -> Linted:
        failures = [
            Failure(display, internal_error(f"the analysis of {name}" if name else "the reading of this file", mistake))
            for (display, name), mistake in analysis.errors.items()
        ]
        findings: list[Finding] = []
        held: list[HeldBack] = []
        broken: dict[str, list[Raw]] = {}
        for display, problem in analysis.failures:
            broken.setdefault(display, []).append(_unparsed(display, problem))
        for done, display in enumerate(project.linted):
            self._progress("asking the rules", done, len(project.linted))
            source = project.sources[display]
            if source.unreadable is not None:
                continue
            own = [_unparsed(display, problem, source.cell(problem.line)) for problem in source.problems]
            try:
                said = self._said_of(display, project, analysis, [*broken.get(display, []), *own])
            except Exception as error:
                said = Linted((), (Failure(display, internal_error("what is said of this file", error)),), ())
            findings += said.findings
            failures += said.failures
            held.append(said.held_back)
        analysis.keep()
        return Linted(tuple(findings), tuple(failures), tuple(analysis.remarks), added_up(held))

    def _said_of(self, display: str, project: Project, analysis: Analysis, broken: list[Raw]) -> Linted:
        """The findings of one file, and the rules that failed on it."""
        rooms, selection, source = self._ruling.rooms, self._ruling.selection, project.sources[display]

        def ask(codes: frozenset[str]) -> tuple[list[Raw], list[Failure]]:
            events = analysis.events.get(display, ())
            return ask_rules(display, events, rooms, codes, analysis, project.sources, self._ruling.config)

        raws, problems = ask(selection.enabled)
        ignored = selection.ignored_in(project.path(display))
        ran = selection.enabled - ignored
        raws = [raw for raw in (*raws, *broken) if raw.finding.code in ran]
        raws = silence(source, raws, rooms, ran, not broken and not problems)
        # failures of preview rules are reported only to those who enable them
        more, _ = ask(selection.preview - ignored)
        more = silence(source, more, rooms, frozenset(), False) if more else more
        fingerprints = fingerprinted(raws, project.relative)
        findings = [
            in_cells(_as_configured(raw.finding, self._ruling), project.sources)
            for raw in fingerprints
            if self._is_shown(raw.finding)
        ]
        return Linted(tuple(findings), tuple(problems), (), self._held_back([*raws, *more]))

    def _is_shown(self, finding: Finding) -> bool:
        """Whether a finding is shown by the configuration."""
        if CONFIDENCE[finding.confidence] < CONFIDENCE[self._ruling.selection.min_confidence]:
            return False
        return finding.reach != "unused" or self._ruling.config.unused_code != "ignore"

    def _held_back(self, raws: Iterable[Raw]) -> HeldBack:
        """The number of findings that are not shown, each counted under the single reason for that."""
        least = CONFIDENCE[self._ruling.selection.min_confidence]
        counts: Counter[str] = Counter()
        for finding in (raw.finding for raw in raws if raw.finding.suppressed is None):
            ways = []
            if CONFIDENCE[finding.confidence] < least:
                ways.append(f"{finding.confidence}_confidence")
            if finding.reach == "unused" and self._ruling.config.unused_code == "ignore":
                ways.append("unused_code")
            if finding.code in self._ruling.selection.preview:
                ways.append("preview")
            if len(ways) == 1:
                counts[ways[0]] += 1
        return HeldBack(**counts)


def _unparsed(display: str, problem: Problem, cell: Cell | None = None) -> Raw:
    """``cell``: of a notebook, if the whole cell and nothing else was left out."""
    what, line = ("file", problem.line) if cell is None else ("cell", problem.line - cell.line + 1)
    message = f"this {what} does not parse because of line {line}: {problem.message}"
    advice = "exclude the file if it is not meant to be Python (`exclude` in the configuration)"
    if cell is not None:
        advice = "the other cells were checked"
    elif problem.parses:
        message, advice = f"this was not checked: {problem.message}", "split it"
    finding = meta_finding(ALWAYS, display, message, advice, problem.line, problem.column, problem.column + 1)
    return Raw(finding, "", problem.message)


def _as_configured(finding: Finding, ruling: Ruling) -> Finding:
    """A finding with the configured severity and fixes."""
    is_fixable = finding.code in ruling.selection.fixable
    return msgspec.structs.replace(
        finding,
        severity=_severity(finding, ruling),
        fix=finding.fix if is_fixable else None,
        alternatives=finding.alternatives if is_fixable else (),
    )


def _severity(finding: Finding, ruling: Ruling) -> Severity:
    if finding.reach == "cannot-run" or (finding.reach == "unused" and ruling.config.unused_code == "note"):
        return "note"
    return ruling.selection.severity.get(finding.code, finding.severity)
