"""The analysis of a project: summaries on demand, call-site facts, events of the linted files."""

from __future__ import annotations

import itertools
import sys
import threading
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

import msgspec

from memlint.analysis.calls import interpreting
from memlint.analysis.domain.detector import Detector
from memlint.analysis.domain.events import Event, Reached, Site
from memlint.analysis.domain.fix_places import FixPlaces
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.driver.caller_context import callers_of
from memlint.analysis.driver.reachability import Reachability
from memlint.analysis.facts.analyser import Analyser
from memlint.analysis.index.definitions import functions_named, functions_of
from memlint.analysis.index.program import Function, Program
from memlint.analysis.index.screen import relevant_modules
from memlint.analysis.judge.reasons import Observer
from memlint.analysis.reach.broken_files import dated
from memlint.analysis.syntax.memo import forget
from memlint.analysis.syntax.syntax import parts, walk_statements
from memlint.finding import Span
from memlint.frontend.problem import SyntaxProblem, outdated
from memlint.patterns import NEWLINE
from memlint.project.source import decode

if TYPE_CHECKING:
    from memlint.frontend.span_table import SpanTable


class AnalysisOptions(msgspec.Struct, frozen=True, kw_only=True):
    """``fixes``: places fixes and proves them safe; ``screen``: analyse only modules that can matter; ``detectors``:
    detection by the rules themselves; ``progress``: called with a stage, the work done and the total; ``observer``: is
    notified of dropped candidates, and may query the analysis at the end; ``only``: the qualified names of functions of
    the linted files, whose events alone are needed (and of "<module>" for its own statements)."""

    fixes: FixPlaces
    screen: bool = True
    jobs: int = 1
    detectors: tuple[Detector, ...] = ()
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None
    observer: Observer | None = None
    only: frozenset[str] | None = None


class Analysis:
    """The events in the linted files, and queries about their sites."""

    def __init__(
        self,
        analyser: Analyser,
        events: Mapping[str, tuple[Event, ...]],
        failures: Sequence[tuple[str, SyntaxProblem]],
        remarks: Sequence[str],
    ) -> None:
        self.events = events
        self.failures = failures
        self.remarks = remarks
        self.errors: Mapping[tuple[str, str], Exception] = analyser.errors
        self.failed: Mapping[tuple[str, str], Exception | SystemExit] = analyser.failed
        self.analyser = analyser
        self._program = analyser.program
        self._tables: dict[tuple[str, int], SpanTable] = {}
        #: by file and unit: the ordinals of its statements in order
        self._statements: dict[tuple[str, int], list[int]] = {}
        #: the lines of the last queried file
        self._split: dict[str, list[str]] = {}
        self._around: dict[tuple[str, int], _Around] = {}
        self._reach = Reachability(analyser)

    def keep(self) -> None:
        """Store for later runs what was read of all files."""
        self._program.keep()

    def close(self) -> None:
        """Release everything; no query is possible afterwards."""
        forget()
        self.analyser.close()

    def table(self, site: Site) -> SpanTable:
        key = (site.path, site.unit)
        if key not in self._tables:
            # imported here, as only reported sites need source positions
            from memlint.frontend.spans import spans_of

            module = self._program.module(site.path)
            self._tables[key] = spans_of(module.units[site.unit], module.lowered(site.unit).count)
        return self._tables[key]

    def _statement_at(self, site: Site) -> int:
        key = (site.path, site.unit)
        if key not in self._statements:
            unit = self._program.module(site.path).lowered(site.unit)
            self._statements[key] = [statement.at for statement in walk_statements(unit.body)]
        begun = bisect_right(self._statements[key], site.at)
        return self._statements[key][begun - 1] if begun else site.at

    def span(self, site: Site) -> Span:
        """The source range of a site; for a compound statement, that of its header."""
        table = self.table(site)
        return table.header(site.at)

    def extent(self, site: Site) -> Span:
        """The source range of a site, including the body of a compound statement."""
        return self.table(site)[site.at]

    def statement(self, site: Site) -> tuple[Span, str]:
        """The statement around a site (the header of a compound one) and its source."""
        table = self.table(site)
        span = table.header(self._statement_at(site))
        lines = self._lines(site.path)[span.line - 1 : span.end_line]
        if not lines:
            return span, ""
        lines[-1] = lines[-1][: span.end_column - 1]
        lines[0] = lines[0][span.column - 1 :]
        return span, "\n".join(lines)

    def reach(self, site: Site) -> Reached:
        """Whether the code of a site is used and can run, with the reason."""
        return self._reach.of(self.function_at(site), site)

    def dated(self, path: str) -> str:
        """The sign that a file is written for torch before 0.4, which has no grad mode; "" for none."""
        return dated(self._program, path)

    def qualified_name(self, site: Site) -> str:
        """The qualified name of the function around a site, "<module>" at the top."""
        return self.function_at(site).qual

    def _lines(self, path: str) -> list[str]:
        if path not in self._split:
            self._split = {path: NEWLINE.split(self._program.module(path).text)}  # (file by file)
        return self._split[path]

    def function_at(self, site: Site) -> Function:
        """The innermost function around a site."""
        module = self._program.module(site.path)
        inside = module.by_place.get(site.unit, {})
        key = (site.path, site.unit)
        if key not in self._around or len(self._around[key].starts) < len(inside):
            self._around[key] = _Around(inside)
        return self._around[key].of(site.at) or module.main


class _Around:
    """The functions of one unit by their ordinals, for the search of the innermost one."""

    def __init__(self, functions: Mapping[int, Function]) -> None:
        self.starts = sorted(functions)
        self._functions = functions
        self._ends: list[int] = []
        #: the index of the function around each one, -1 for none
        self._outer: list[int] = []
        for place, start in enumerate(self.starts):
            self._ends.append(_last(functions[start]))
            outer = place - 1
            while outer >= 0 and self._ends[outer] < start:
                outer = self._outer[outer]
            self._outer.append(outer)

    def of(self, at: int) -> Function | None:
        """The innermost function around an ordinal of the unit."""
        place = bisect_right(self.starts, at) - 1
        while place >= 0 and self._ends[place] < at:
            place = self._outer[place]
        return self._functions[self.starts[place]] if place >= 0 else None


def _last(function: Function) -> int:
    """The last ordinal in a function's body."""
    inside = itertools.chain(walk_statements(function.body), parts(function.body, into_definitions=True))
    return max((one.at for one in inside), default=0)


def analyse(project: Any, options: AnalysisOptions) -> Analysis:
    """Analyse the linted files of a project, with all of it as context."""
    result: list[Any] = []

    def work() -> None:
        try:
            result.append(_analyse(project, options))
        except BaseException as error:
            result.append(error)

    # deep call chains of the analysed program mean deep recursion here
    limit, size = sys.getrecursionlimit(), threading.stack_size()
    sys.setrecursionlimit(max(limit, 50_000))
    threading.stack_size(512 * 1024 * 1024)
    try:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        thread.join()
    finally:
        forget()
        sys.setrecursionlimit(limit)
        threading.stack_size(size)
    if isinstance(result[0], BaseException):
        raise result[0]
    found: Analysis = result[0]
    return found


def _may_have_events(summary: Summary, paths: AbstractSet[str]) -> bool:
    """Whether a function may have events in one of these files: in its own, in a loop where a callee stores something,
    or for model runs that its callers' judgement needs."""
    if summary.module.key in paths or summary.runs:
        return True
    return any(store.site.path in paths for store in summary.stores.values())


def _analyse(project: Any, options: AnalysisOptions) -> Analysis:
    analyser = Analyser(project, interpreting, options.detectors)
    linted = list(project.linted)
    lower = options.only is None
    targets = relevant_modules(analyser.program, linted, lower=lower) if options.screen else linted
    functions: list[Function] = []
    for done, key in enumerate(linted):
        options.progress("reading files", done, len(linted))
        module = analyser.program.module(key)
        if key in targets or not module.index.complete:
            try:
                found_in = functions_of(module) if options.only is None else functions_named(module, options.only)
            except Exception as error:
                module.mistake = error
                continue
            functions += found_in if key in targets else ()
    _summarise(analyser, functions, "analysing functions", options)
    options.progress("looking for callers", 0, 0)
    context = callers_of(analyser, functions, linted if options.only is None else ())
    _summarise(analyser, context, "analysing callers", options)
    analyser.renew()
    _summarise(analyser, (*functions, *context), "analysing functions again", options)
    analyser.settle()
    analyser.observer = options.observer
    judged = None if options.only is None else {function.key for function in (*functions, *context)}
    events = _judged(analyser, linted, judged, options)
    failures = list(_failures(analyser.program, linted, targets))
    analyser.errors.update(analyser.program.mistakes())
    analysis = Analysis(analyser, events, failures, sorted(set(analyser.remarks)))
    if options.observer is not None:
        options.observer.finish(analysis)
    return analysis


def _judged(
    analyser: Analyser, linted: Sequence[str], only: AbstractSet[tuple[str, str]] | None, options: AnalysisOptions
) -> dict[str, tuple[Event, ...]]:
    """The events of the linted files, in order. An internal error loses the events of one function. ``only``: the
    functions to be judged; None for all."""
    from memlint.analysis.judge.verdicts import judge

    events: dict[str, list[Event]] = {key: [] for key in linted}
    summaries = list(analyser.general_summaries())
    for done, summary in enumerate(summaries):
        options.progress("judging", done, len(summaries))
        try:
            relevant = only is None or _written_in(summary.function) in only
            relevant = relevant and _may_have_events(summary, events.keys())
            found = [*_detected(analyser, summary), *judge(analyser, summary, options.fixes)] if relevant else []
        except Exception as error:
            analyser.errors[summary.function.key] = error
            continue
        finally:
            summary.graphs.forget()
            summary.compact()
        for event in found:
            if event.site.path in events:
                events[event.site.path].append(event)
    return {
        key: tuple(sorted(found, key=lambda event: (event.site, type(event).__name__))) for key, found in events.items()
    }


def _written_in(function: Function) -> tuple[str, str]:
    """The key of a function; for a lambda, of the function around it."""
    return (function.module.key, function.qual.partition(".<lambda ")[0])


def _failures(program: Program, linted: Iterable[str], targets: Collection[str]) -> Iterator[tuple[str, SyntaxProblem]]:
    """Why linted files, or definitions in them, could not be analysed."""
    project = program.project
    for key in linted:
        module = program.module(key)
        problem = module.problem
        # a file that the screen leaves out may be too deep to lower, and need not be
        if problem is not None and (key in targets or not module.index.complete):
            yield key, problem
        elif project.sources[key].rewritten and not project.sources[key].cells:
            try:
                old = outdated(decode(project.sources.raw(key)))
            except Exception as error:  # it has changed meanwhile, or is gone
                module.mistake = error
                continue
            if old is not None:
                yield key, old


def _detected(analyser: Analyser, summary: Summary) -> Iterator[Event]:
    """What the rules' own detection finds in one function. A mistake in it costs what that rule finds there."""
    for detector in analyser.detectors:
        try:
            yield from detector.events(analyser, summary)
        except (Exception, SystemExit) as error:  # a rule is a program, and may fail in any way
            analyser.failed.setdefault((summary.module.key, detector.code), error)


def _summarise(analyser: Analyser, functions: Sequence[Function], stage: str, options: AnalysisOptions) -> None:
    """Make the summary of each; a mistake of ours costs the function that it was made for."""
    for done, function in enumerate(functions):
        options.progress(stage, done, len(functions))
        try:
            analyser.summary(function)
        except Exception as error:
            analyser.errors[function.key] = error
