"""The work of one worker: lint one part of a project. Arguments and results are plain values, so that it may run in any
process that can read the project's files."""

from __future__ import annotations

import pickle
import secrets
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec

from memlint import __version__
from memlint.config import Config
from memlint.engine.analysis import one_of_many
from memlint.engine.collection import no_collection
from memlint.engine.judging import Linted, Ruling, judge, ruling_of
from memlint.engine.options import Options, no_progress
from memlint.engine.store.shelf import Shelf
from memlint.project import Project


class Task(msgspec.Struct, frozen=True):
    """A part of a project to be linted. ``run``: identifies the tasks of one run, as others may see other contents;
    ``project``: the pickled project, which they share; ``root``: its folder, for messages."""

    run: str
    project: bytes
    part: tuple[str, ...]
    config: Config
    options: Options
    root: Path
    version: str = __version__


class WorkerError(Exception):
    """The worker cannot do its task; the message says why."""


#: the run and the project of the last task, with the parsed files
_held: tuple[str, Project] | None = None
#: the analysis has memos for one run, and a process may have several threads with tasks
_one_at_a_time = threading.Lock()


def tasks(ruling: Ruling, project: Project, options: Options, parts: Sequence[tuple[str, ...]]) -> list[Task]:
    """A task for each part."""
    run, pickled = secrets.token_hex(8), pickle.dumps(project)
    # standard input is among the project's contents
    slim = msgspec.structs.replace(options, stdin=None)
    return [Task(run, pickled, part, ruling.config, slim, project.root) for part in parts]


def work(task: Task) -> Linted:
    """Lint a part. Raises WorkerError."""
    if task.version != __version__:
        raise WorkerError(f"it has memlint {__version__}, where {task.version} is asked for")
    with _one_at_a_time, no_collection():
        project = _project(task)
        ruling = ruling_of(task.config, task.options)
        try:
            with one_of_many() as analyse:
                return judge(ruling, project.part(task.part), task.options, no_progress, analyse)
        finally:
            if isinstance(project.earlier, Shelf):
                project.earlier.close()


def _project(task: Task) -> Project:
    global _held
    if _held is None or _held[0] != task.run:
        if not task.root.is_dir():
            raise WorkerError(f"it has no folder {task.root}: all workers must see the project's files at one path")
        _held = None
        project: Project = pickle.loads(task.project)
        if task.options.cache:
            project.earlier = Shelf(task.root)
        _held = task.run, project
    return _held[1]
