"""One run: paths in, a `Result` out."""

from __future__ import annotations

import os.path
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from memlint import config as configuration
from memlint.config import Config, ConfigError
from memlint.engine.analysis import Analyse, analyse_with_flow
from memlint.engine.collection import no_collection
from memlint.engine.filters.proof import BY, read_proof
from memlint.engine.findings import internal_error
from memlint.engine.judging import Linted, Ruling, added_up, judge, ruling_of, says_nothing
from memlint.engine.options import Options, Progress, no_progress
from memlint.engine.prepared import BASELINE, Prepared
from memlint.engine.rules.rooms import own_rooms
from memlint.engine.rules.trust import is_trusted, said_of
from memlint.engine.workers.parts import ALONE, parts_of
from memlint.finding import FAILS, Failure, Finding, Result, Skipped, Summary
from memlint.project import Discovery, Named, Project, apart, discover, find_root, list_context
from memlint.project.presence import is_dir
from memlint.project.published import standing
from memlint.temporary import sweep

if TYPE_CHECKING:
    from memlint.engine.filters.baseline import Baseline
    from memlint.engine.filters.changed import Changed

STDIN = "-"


class Outcome(msgspec.Struct, frozen=True):
    """``said``: skipped files that the user had given. ``notices``: messages about the configuration. ``parts``: the
    projects, each with its findings."""

    result: Result
    said: tuple[Skipped, ...]
    notices: tuple[str, ...]
    parts: tuple[tuple[Prepared, Linted], ...] = ()


def run(
    paths: Sequence[str],
    options: Options,
    *,
    progress: Progress = no_progress,
    analyse: Analyse = analyse_with_flow,
) -> Outcome:
    """Lint ``paths`` (files, folders, or ``-`` for standard input), each as part of its project.

    Raises ConfigError where the configuration or the command line is wrong. What is wrong with single files
    or rules is in the result's failures.
    """
    started = time.perf_counter()
    with no_collection():
        parts = []
        for prepared in prepare(paths, options, progress):
            if options.cache:
                sweep(prepared.found.temporary)
            linted = lint(prepared, prepared.found.project, options, progress=progress, analyse=analyse)
            parts.append((prepared, linted))
    return outcome(parts, options, started)


def prepare(paths: Sequence[str], options: Options, progress: Progress) -> Iterator[Prepared]:
    """The projects of ``paths``, in order. Raises ConfigError."""
    groups: dict[Path, list[Named]] = {}
    roots: dict[Path, Path] = {}
    for named in _named(paths, options):
        # files in one folder belong to one project
        place = named.path if is_dir(named.path) else named.path.parent / "*"
        if place not in roots:
            roots[place] = find_root(named.path, options.cwd)
        groups.setdefault(roots[place], []).append(named)
    for root, files in sorted(groups.items()):
        yield from _project(root, files, options, progress)


def outcome(parts: Sequence[tuple[Prepared, Linted]], options: Options, started: float) -> Outcome:
    """The result of all projects. ``started``: when the run began, by `time.perf_counter`."""
    findings = tuple(sorted((finding for _, part in parts for finding in part.findings), key=_place))
    suppressed = [None if finding.suppressed is None else finding.suppressed.by for finding in findings]
    counted = [finding.severity for finding in findings if finding.suppressed is None]
    said = tuple(row for prepared, _ in parts for row in prepared.found.said)
    rows = {*said, *(row for prepared, _ in parts for row in (*prepared.found.skipped, *_foreign(prepared.found)))}
    result = Result(
        findings=findings,
        failures=tuple(failure for prepared, part in parts for failure in (*prepared.found.failures, *part.failures)),
        skipped=tuple(sorted(rows, key=lambda row: row.path)),
        summary=Summary(
            files=sum(_readable(prepared.found) for prepared, _ in parts),
            skipped=len(rows),
            errors=counted.count("error"),
            warnings=counted.count("warning"),
            notes=counted.count("note"),
            seconds=round(time.perf_counter() - started, 3),
            suppressed=sum(by not in (None, BY, BASELINE) for by in suppressed),
            silenced_by_evidence=suppressed.count(BY),
            held_back=added_up(part.held_back for _, part in parts),
            baselined=suppressed.count(BASELINE),
        ),
        remarks=tuple(remark for _, part in parts for remark in part.remarks),
        takes_unsafe=frozenset(
            finding.path for prepared, part in parts if takes_unsafe(prepared, options) for finding in part.findings
        ),
        asked_unsafe=options.unsafe_fixes is True,
    )
    notices = dict.fromkeys(notice for prepared, _ in parts for notice in _notices(prepared))
    return Outcome(result, said, tuple(notices), tuple(parts))


def _notices(prepared: Prepared) -> Iterator[str]:
    if prepared.config.closed_rules:
        yield said_of(prepared.config.closed_rules, prepared.found.project.root)
    yield from prepared.selection.notices


def takes_unsafe(prepared: Prepared, options: Options) -> bool:
    """Whether unsafe fixes are to be applied in a project."""
    return prepared.config.unsafe_fixes if options.unsafe_fixes is None else options.unsafe_fixes


def _named(paths: Sequence[str], options: Options) -> Iterable[Named]:
    for path in paths:
        if not path:  # a script whose variable is empty
            raise ConfigError("a path is empty; `.` is the working directory")
        if path == STDIN:
            content = options.stdin if options.stdin is not None else sys.stdin.buffer.read()
            yield Named(options.stdin_path, content)
        else:
            place = absolute(path, options.cwd)
            yield Named(place, options.unsaved.get(place))


def absolute(path: str, cwd: Path) -> Path:
    """An absolute path without ``.`` and ``..``; symlinks are kept, so that messages show the given name."""
    return Path(os.path.normpath(cwd / path))


def settings(root: Path, options: Options) -> Config:
    """The configuration of the project at ``root``, with the command line's excludes. Raises ConfigError."""
    file = None if options.isolated else options.config or configuration.find(root)
    config = Config() if file is None else configuration.load(file, root)
    allowed = options.local_rules or (
        bool(config.rule_paths) and options.trusting and is_trusted(root, config.rule_paths)
    )
    if config.rule_paths and not allowed:
        config = msgspec.structs.replace(config, rule_paths=(), closed_rules=config.rule_paths)
    exclude = config.exclude if options.exclude is None else (options.exclude,)
    if options.extend_exclude is not None:
        exclude = (*exclude, options.extend_exclude)
    return msgspec.structs.replace(config, exclude=exclude)


def local_rules(cwd: Path, *, asked: bool = False) -> Config:
    """The configuration of the project around a folder, whose rules are needed. Raises ConfigError."""
    root = find_root(cwd, cwd)
    return settings(root, Options(cwd=cwd, local_rules=asked))


def configured(root: Path, options: Options) -> Ruling:
    """The settings for the project at ``root``. Raises ConfigError."""
    return ruling_of(settings(root, options), options)


def _project(root: Path, named: Sequence[Named], options: Options, progress: Progress) -> Iterator[Prepared]:
    ruling = configured(root, options)
    config = ruling.config
    proof = read_proof(config, options.evidence, options.more_evidence)
    baseline = _baseline(config, options)
    folders = tuple(one.path for one in named if one.content is None and is_dir(one.path))
    progress("finding files", 0, 0)
    listing = list_context(root, named, options.cwd)
    for group in apart(named, listing, options.cwd) if options.each else [named]:
        found = discover(
            root,
            group,
            cwd=options.cwd,
            excludes=config.exclude,
            force_exclude=options.force_exclude,
            import_roots=config.import_roots,
            listing=listing,
            unsaved=options.unsaved,
        )
        changed = _changed(found.project, options)
        yield Prepared(config, ruling.rooms, ruling.selection, found, proof, baseline, folders, changed)


def _baseline(config: Config, options: Options) -> Baseline | None:
    """The baseline of the command line, or of the configuration. Raises ConfigError."""
    file = options.baseline or config.baseline
    if file is None or not options.with_baseline:
        return None
    from memlint.engine.filters.baseline import read_baseline

    where = f"{config.file}: `baseline`" if options.baseline is None else "--baseline"
    return read_baseline(Path(os.path.normpath(file)), "--write-baseline" if options.new_baseline else where)


def _changed(project: Project, options: Options) -> Changed | None:
    """What ``--since`` asks for. Raises ConfigError."""
    if options.since is None:
        return None
    from memlint.engine.filters.changed import Changed

    return Changed(project, None if options.since is True else options.since)


def _readable(found: Discovery) -> int:
    sources = found.project.sources
    return sum(sources[display].unreadable is None and not sources[display].foreign for display in found.project.linted)


def _foreign(found: Discovery) -> Iterator[Skipped]:
    """The notebooks that are in another language."""
    for display in found.project.linted:
        source = found.project.sources[display]
        if source.foreign:
            yield Skipped(display, f"a notebook in {source.foreign}")


def lint(prepared: Prepared, project: Project, options: Options, *, progress: Progress, analyse: Analyse) -> Linted:
    """The findings of a project's linted files. ``project``: the prepared one, possibly with other contents. An
    internal error that concerns no single file is a failure of the project: other projects of the run go on."""
    try:
        return _lint(prepared, project, options, progress=progress, analyse=analyse)
    except ConfigError:
        raise
    except Exception as error:
        return Linted((), (Failure(str(project.root), internal_error("the linting of this project", error)),), ())


def _lint(prepared: Prepared, project: Project, options: Options, *, progress: Progress, analyse: Analyse) -> Linted:
    if options.cache and project is prepared.found.project and analyse is analyse_with_flow:
        judged = _remembered(prepared, options, progress)
    else:
        judged = _judge(prepared, project, options, progress, analyse)
    # fixes are tried on changed contents; evidence is about the original ones
    findings, stale = prepared.proof.applied(judged.findings, prepared.found.project)
    linted = msgspec.structs.replace(judged, findings=tuple(findings), remarks=(*judged.remarks, *stale))
    if prepared.baseline is not None:
        linted = prepared.baseline.applied(linted, project, prepared, prepared.folders, everything=options.new_baseline)
    if prepared.changed is not None:
        linted = prepared.changed.applied(linted, project)
    return linted


def _judge(prepared: Prepared, project: Project, options: Options, progress: Progress, analyse: Analyse) -> Linted:
    if analyse is analyse_with_flow:
        parts = parts_of(project)
        if len(parts) > 1 and not says_nothing(project, options):
            from memlint.engine.workers.pool import judge_parts

            return judge_parts(prepared, project, parts, options, progress)
    return judge(prepared, project, options, progress, analyse)


def _remembered(prepared: Prepared, options: Options, progress: Progress) -> Linted:
    """The stored result of an earlier run on the same contents, or else that of this run."""
    from memlint.engine.store.cache import Cache
    from memlint.engine.store.shelf import Shelf

    project = prepared.found.project
    if says_nothing(project, options):
        return _judge(prepared, project, options, progress, analyse_with_flow)
    cache, key = Cache(project.root, Linted), _key(prepared, options, project.sources.digest)
    judged = cache.get(key)
    if judged is not None:
        cache.remarks.append(f"nothing has changed in {project.root}: its findings are those of an earlier run")
    else:
        shelf = project.earlier = Shelf(project.root)
        judged = _judge(prepared, project, options, progress, analyse_with_flow)
        shelf.close()
        cache.remarks.extend(shelf.remarks)
        # internal errors and unreadable files are retried, and so are files that were written meanwhile, and results
        # that depend on a file that is no source (a compiled module that is not built yet)
        lasting = not judged.failures and not any(FAILS in finding.reach_reason for finding in judged.findings)
        lasting = lasting and not any(remark.startswith(ALONE) for remark in judged.remarks)
        if lasting and not project.sources.changed and _key(prepared, options, project.sources.digest_now) == key:
            cache.put(key, judged)
    return msgspec.structs.replace(judged, remarks=(*judged.remarks, *cache.remarks))


def _key(prepared: Prepared, options: Options, digest: Callable[[str], bytes]) -> bytes:
    """A hash of everything that the findings of a project depend on. ``digest``: of a file, by key."""
    from memlint.engine.store.cache import Key, files_below

    project, config = prepared.found.project, prepared.config
    key = Key()
    key.add((project.root, project.import_roots, project.linted, project.newest_torch, project.said_torch))
    key.add((config, options.overrides, options.screen, options.parsed))
    key.add((standing(project, project.sources), project.notebooks.state()))
    for place in (own_rooms(), *config.rule_paths):
        key.add(tuple(files_below(place)))
    stated = set(project.notebooks.paths)
    contents: list[tuple[str, bytes]] = []
    for display in project.sources:
        if project.path(display) in stated and not project.sources.is_given(display):
            continue
        contents.append((display, digest(display)))
    key.add(contents)
    return key.digest()


def _place(finding: Finding) -> tuple[str, int, int, int, str]:
    return finding.path, finding.cell or 0, finding.line, finding.column, finding.code
