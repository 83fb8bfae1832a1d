"""From findings to the probes in the program's files."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from memlint.finding import Finding
from memlint.measure.plan import FilePlan, LoopPlan, SitePlan
from memlint.verifier.probing.targets import innermost_loops, loops_to_watch


class Target(msgspec.Struct, frozen=True):
    """The program to run. ``name``: the absolute path of a script, or a module's name if ``module`` is set; ``script``:
    the file of either. ``arguments``: the program's own. ``typed``: the script as given. ``starts``: the user's files
    and folders that an installed module runs."""

    name: str
    module: bool
    script: Path
    arguments: tuple[str, ...]
    typed: str | None = None
    starts: tuple[Path, ...] = ()


class Probes(msgspec.Struct, frozen=True):
    """``files``: what the child puts in. ``findings``: by the ids of their sites. ``loops``: places (path as shown,
    line) by the ids of loops. ``own``: the program's files."""

    files: tuple[FilePlan, ...]
    findings: Mapping[int, Finding]
    loops: Mapping[int, tuple[str, int]]
    own: tuple[str, ...] = ()


def probes(
    texts: Mapping[str, str],
    paths: Mapping[str, Path],
    findings: Iterable[Finding],
    changed: frozenset[str] = frozenset(),
    loops_in: Mapping[str, Sequence[tuple[int, int]]] | None = None,
    numbers: Iterator[int] | None = None,
) -> Probes:
    """The probes of a program. ``texts`` and ``paths``: its files by display path. ``changed``: those whose text is not
    what is on the disk. ``loops_in``: the loops to watch, where they are known already. ``numbers``: new ones for the
    probes, from 1 where none are given."""
    by_path: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.path in texts and finding.suppressed is None:
            by_path.setdefault(finding.path, []).append(finding)
    flagged = {path: [finding.line for finding in there] for path, there in by_path.items()}
    watched = loops_to_watch(texts, flagged) if loops_in is None else loops_in
    files: list[FilePlan] = []
    sites: dict[int, Finding] = {}
    loops: dict[int, tuple[str, int]] = {}
    numbers = itertools.count(1) if numbers is None else numbers
    for path, text in texts.items():
        tops: list[LoopPlan] = []
        for line, column in watched.get(path, ()):
            number = next(numbers)
            loops[number] = (path, line)
            tops.append(LoopPlan(number, line, column))
        there: list[SitePlan] = []
        ids = {(top.line, top.column): top.id for top in tops}
        around = innermost_loops(text, list(ids), flagged.get(path, ()))
        for finding in by_path.get(path, ()):
            number = next(numbers)
            sites[number] = finding
            place = finding.line, finding.column, finding.end_line, finding.end_column
            there.append(SitePlan(number, *place, loop=ids[around[finding.line]] if finding.line in around else None))
        if there or tops or path in changed:
            files.append(FilePlan(str(paths[path]), tuple(there), tuple(tops), text if path in changed else None))
    return Probes(tuple(files), sites, loops, tuple(map(str, paths.values())))
