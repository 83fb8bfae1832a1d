"""The interface between engine and analysis."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator, Mapping, Sequence
from typing import Protocol

from memlint.analysis.domain.detector import Detector
from memlint.analysis.domain.events import Event, Reached, Site
from memlint.engine.options import Progress
from memlint.finding import Span
from memlint.project import Project


class Problem(Protocol):
    """Why a file, or a definition in it, cannot be analysed; line and column count from 1. ``parses``: the code is
    valid, and only this definition is left out."""

    @property
    def message(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...
    @property
    def parses(self) -> bool: ...


class Analysis(Protocol):
    """The result of the analysis. ``events`` and ``failures``: of linted files, by display path; ``errors``: internal
    errors in functions (display path, qualified name) or whole files (an empty name); ``failed``: errors in rules' own
    detection (display path, code). ``keep`` stores what was read of the project for later runs."""

    @property
    def events(self) -> Mapping[str, tuple[Event, ...]]: ...
    @property
    def failures(self) -> Sequence[tuple[str, Problem]]: ...
    @property
    def remarks(self) -> Sequence[str]: ...
    @property
    def errors(self) -> Mapping[tuple[str, str], Exception]: ...
    @property
    def failed(self) -> Mapping[tuple[str, str], Exception | SystemExit]: ...

    def span(self, site: Site) -> Span: ...
    def extent(self, site: Site) -> Span: ...
    def statement(self, site: Site) -> tuple[Span, str]: ...
    def qualified_name(self, site: Site) -> str: ...
    def reach(self, site: Site) -> Reached: ...
    def dated(self, path: str) -> str: ...
    def keep(self) -> None: ...
    def close(self) -> None: ...


class Analyse(Protocol):
    """``detectors``: the rules' own detection; ``jobs``: worker processes; ``screen``: analyse only modules that can
    matter; ``progress``: is called with the progress."""

    def __call__(
        self, project: Project, *, detectors: tuple[Detector, ...], jobs: int, screen: bool, progress: Progress
    ) -> Analysis: ...


def analyse_with_flow(
    project: Project,
    *,
    detectors: tuple[Detector, ...],
    jobs: int,
    screen: bool,
    progress: Progress,
    only: frozenset[str] | None = None,
) -> Analysis:
    """Run `memlint.analysis` with the proofs of fixes. Both are imported here, so that a run without files does not
    load them. ``only``: the qualified names of the functions whose events are needed; None for all."""
    from memlint.analysis import AnalysisOptions, analyse
    from memlint.fix.safety import places

    options = AnalysisOptions(fixes=places, screen=screen, jobs=jobs, detectors=detectors, progress=progress, only=only)
    return analyse(project, options)


@contextlib.contextmanager
def one_of_many(only: frozenset[str] | None = None, *, collects: bool = True) -> Iterator[Analyse]:
    """As `analyse_with_flow`, for many analyses in one process: the memory of one is released at the end. (It is taken
    apart explicitly, as the collector would examine every object; that finds the remaining cycles. ``collects``: it
    runs here, and not later in the caller.)"""
    made: list[Analysis] = []

    def analyse(
        project: Project, *, detectors: tuple[Detector, ...], jobs: int, screen: bool, progress: Progress
    ) -> Analysis:
        one = analyse_with_flow(project, detectors=detectors, jobs=jobs, screen=screen, progress=progress, only=only)
        made.append(one)
        return one

    try:
        yield analyse
    finally:
        while made:
            made.pop().close()
        if collects:
            gc.collect()
