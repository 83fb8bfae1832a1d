"""What the engine asks of the analysis, and how it is called."""

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
    """Why a file, or a definition in it, cannot be analysed; line and column count from 1.

    ``parses``: the code is right, and only this definition is left out.
    """

    @property
    def message(self) -> str: ...
    @property
    def line(self) -> int: ...
    @property
    def column(self) -> int: ...
    @property
    def parses(self) -> bool: ...


class Analysis(Protocol):
    """What the code does with memory. ``events`` and ``failures`` speak of linted files, by display path;
    ``errors``, mistakes of memlint, of functions (display path, qualified name), or of whole files (an empty name);
    ``failed``, those of the rules' own detection (display path, code)."""

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
    def close(self) -> None: ...


class Analyse(Protocol):
    """``detectors``: the own detection of the rules that will ask; ``jobs``: worker processes; ``screen``: look only at
    definitions that can matter; ``progress``: who is told how far it is."""

    def __call__(
        self, project: Project, *, detectors: tuple[Detector, ...], jobs: int, screen: bool, progress: Progress
    ) -> Analysis: ...


def analyse_with_flow(
    project: Project, *, detectors: tuple[Detector, ...], jobs: int, screen: bool, progress: Progress
) -> Analysis:
    """Run `memlint.analysis`, with the proofs of fixes; they are imported here, so that a run without files does not
    wait for them."""
    from memlint.analysis import AnalysisOptions, analyse
    from memlint.fix.safety import places

    options = AnalysisOptions(fixes=places, screen=screen, jobs=jobs, detectors=detectors, progress=progress)
    return analyse(project, options)


@contextlib.contextmanager
def one_of_many() -> Iterator[Analyse]:
    """As `analyse_with_flow`; what an analysis needed is let go of at the end: the next one needs as much. (It is taken
    apart first, since the collector would look at every object of it; that finds what still holds itself.)"""
    made: list[Analysis] = []

    def analyse(
        project: Project, *, detectors: tuple[Detector, ...], jobs: int, screen: bool, progress: Progress
    ) -> Analysis:
        made.append(analyse_with_flow(project, detectors=detectors, jobs=jobs, screen=screen, progress=progress))
        return made[-1]

    try:
        yield analyse
    finally:
        while made:
            made.pop().close()
        gc.collect()
