"""Distribution of a project's parts to worker processes, here or on other machines, and the union of their results."""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import multiprocessing.process
import os
import signal
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import msgspec

from memlint.config import ConfigError
from memlint.engine.analysis import one_of_many
from memlint.engine.findings import internal_error
from memlint.engine.judging import Linted, Ruling, judge, merged
from memlint.engine.options import Options, Progress, no_progress
from memlint.engine.workers.parts import ALONE
from memlint.engine.workers.work import Task, WorkerError, tasks, work
from memlint.finding import Failure
from memlint.project import Project
from memlint.project.presence import listed

KILLED = "not checked: the process that analysed it was killed, which is what happens where memory runs out"
#: the most processes that Windows can wait for
MOST = 61
_STAGE = "analysing parts"


class _NoWorkersError(Exception):
    """This machine provides no process, no semaphore, or none that can import memlint."""


def judge_parts(
    ruling: Ruling, project: Project, parts: Sequence[tuple[str, ...]], options: Options, progress: Progress
) -> Linted:
    """As `judge`, part by part: by worker processes, or on other machines if the options say so. Raises ConfigError if
    these cannot be used."""
    progress(_STAGE, 0, len(parts))
    if options.executor is not None:
        from memlint.engine.workers.cluster import cluster

        with cluster(options.executor) as (start, is_loss):
            try:
                return merged(_Crew(start, is_loss).do(tasks(ruling, project, options, parts), progress))
            except _NoWorkersError as error:
                raise ConfigError(f"--executor {options.executor}: no worker can be used: {error}") from None
    workers = min(options.jobs or _cores(), len(parts), MOST)
    if workers > 1 and not multiprocessing.current_process().daemon:
        crew = _Crew(lambda: _processes(workers), lambda error: isinstance(error, BrokenProcessPool))
        try:
            return merged(crew.do(tasks(ruling, project, options, parts), progress))
        except _NoWorkersError as error:
            done = _serial(ruling, project, options, parts, progress)
            return msgspec.structs.replace(done, remarks=(*done.remarks, f"{ALONE}: others could not start: {error}"))
    return _serial(ruling, project, options, parts, progress)


def _serial(
    ruling: Ruling, project: Project, options: Options, parts: Sequence[tuple[str, ...]], progress: Progress
) -> Linted:
    found = []
    for number, part in enumerate(parts):
        progress(_STAGE, number, len(parts))
        with one_of_many() as analyse:
            found.append(judge(ruling, project.part(part), options, _of_part(progress, number, len(parts)), analyse))
    return merged(found)


def _of_part(progress: Progress, number: int, total: int) -> Progress:
    """The progress of one part."""
    return lambda stage, done, of: progress(f"part {number + 1} of {total}: {stage}", done, of)


def _cores() -> int:
    """The processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


class _Crew:
    """Workers, replaced when they are killed. ``start``: creates an executor; ``is_loss``: whether an error means that
    a worker and its task are lost."""

    def __init__(self, start: Callable[[], Executor], is_loss: Callable[[BaseException], bool]) -> None:
        self._start = start
        self._is_loss = is_loss

    def do(self, todo: Sequence[Task], progress: Progress) -> list[Linted]:
        """The result of each task, in order. A task that kills its workers is halved, down to the file that does, which
        is a failure of its own."""
        answers = self._round(todo, progress)
        if not any(answers):
            self._probe()
        # a dying worker may take the work of others along: each lost part gets a worker of its own
        return [self._alone(task) if answer is None else answer for task, answer in zip(todo, answers, strict=True)]

    def _probe(self) -> None:
        """Raises _NoWorkersError if workers end before they do anything."""
        with _safe_path():
            executor = self._start()
        try:
            with _safe_path(), _without_main():
                future = executor.submit(_ready)
            future.result()
        except BrokenProcessPool:
            raise _NoWorkersError("they end at once") from None
        finally:
            executor.shutdown()

    def _alone(self, task: Task) -> Linted:
        answer = self._round([task], no_progress)[0]
        if answer is not None:
            return answer
        if len(task.part) == 1:
            return Linted((), (Failure(task.part[0], KILLED),), ())
        half = len(task.part) // 2
        halves = (task.part[:half], task.part[half:])
        return merged([self._alone(msgspec.structs.replace(task, part=part)) for part in halves])

    def _round(self, todo: Sequence[Task], progress: Progress) -> list[Linted | None]:
        """The results of tasks; None for lost ones."""
        answers: list[Linted | None] = [None] * len(todo)
        executor, futures = self._handed_in(todo)
        try:
            for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
                try:
                    answers[futures[future]] = future.result()
                except WorkerError as error:
                    raise ConfigError(f"a worker cannot be used: {error}") from None
                except ConfigError:
                    raise
                except Exception as error:
                    if not self._is_loss(error):
                        lost, reason = todo[futures[future]].part, internal_error("the analysis", error)
                        answers[futures[future]] = Linted((), tuple(Failure(file, reason) for file in lost), ())
                progress(_STAGE, done, len(todo))
        except BaseException:
            _stop(executor)
            raise
        executor.shutdown(wait=True)
        return answers

    def _handed_in(self, todo: Sequence[Task]) -> tuple[Executor, dict[Future[Linted], int]]:
        """An executor, and the futures of tasks. Raises _NoWorkersError."""
        futures: dict[Future[Linted], int] = {}
        try:
            with _safe_path():
                executor = self._start()
                with _without_main(), contextlib.suppress(BrokenProcessPool):  # missing ones are lost
                    for number, task in enumerate(todo):
                        futures[executor.submit(work, task)] = number
        except (OSError, EOFError, NotImplementedError, RuntimeError) as error:
            raise _NoWorkersError(f"{type(error).__name__}: {error}") from None
        return executor, futures


def _processes(workers: int) -> Executor:
    """Processes of this machine."""
    # a process that is forked from one with threads may hang; a fork server has none
    methods = multiprocessing.get_all_start_methods()
    context = multiprocessing.get_context("forkserver" if "forkserver" in methods else "spawn")
    return ProcessPoolExecutor(workers, mp_context=context, initializer=_begin)


def _ready() -> bool:
    return True


def _begin() -> None:
    """Leave Ctrl-C to the first process; workers end with it, however it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent,), daemon=True).start()


def _follow(parent: multiprocessing.process.BaseProcess) -> None:
    parent.join()
    os._exit(1)


def _stop(executor: Executor) -> None:
    """Terminate the workers at once."""
    if not isinstance(executor, ProcessPoolExecutor):
        executor.shutdown(wait=False)  # on a cluster, this cancels its tasks
        return
    processes = dict(getattr(executor, "_processes", None) or {})
    executor.shutdown(wait=False, cancel_futures=True)
    for process in processes.values():
        process.kill()


@contextlib.contextmanager
def _without_main() -> Iterator[None]:
    """Hide the main module: new processes import it, and it may have no guard against that."""
    with _HIDING:
        main = sys.modules["__main__"]
        sys.modules["__main__"] = types.ModuleType("__main__")
        try:
            yield
        finally:
            sys.modules["__main__"] = main


#: two threads that hide it at the same time would lose it
_HIDING = threading.Lock()


@contextlib.contextmanager
def _safe_path() -> Iterator[None]:
    """Make new processes search Python's own modules in Python's folders, and not in the working directory, which may
    be the linted project. Raises _NoWorkersError if that is impossible."""
    if sys.version_info < (3, 11):
        names = {name.partition(".")[0] for name in listed(Path.cwd()) or ()}
        if taken := sorted(names & sys.stdlib_module_names):
            raise _NoWorkersError(f"{taken[0]} in the working directory would be taken for Python's own module")
    before = os.environ.get("PYTHONSAFEPATH")
    os.environ["PYTHONSAFEPATH"] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop("PYTHONSAFEPATH", None)
        else:
            os.environ["PYTHONSAFEPATH"] = before
