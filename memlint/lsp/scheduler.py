"""Scheduling of analyses: one worker process, the last edited document first. Nothing here waits for an analysis:
threads write to the worker and read from it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import BinaryIO, Literal, cast

import msgspec

from memlint.lsp.messages import ANSWERS, Answer, Cancel, Explain, Fix, Lint, Request, read, write

#: the worker's program: it imports from the same path as this process, and nothing from the working directory
_PROGRAM = "import sys; sys.path[:] = {path!r}; from memlint.lsp.worker import main; main()"

#: the seconds after which a cancelled analysis is killed
PATIENCE = 5.0
#: the seconds without typing between a partial answer and the complete analysis
REST = 0.1

Log = Callable[[str], None]


class WorkerGone(Exception):  # noqa: N818
    """The worker ended without an answer. The next request starts another one."""


class Crew:
    """The worker process; it is started when first needed, and again after it was killed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        #: one writing and one reading thread, so that messages do not interleave
        self._writes = ThreadPoolExecutor(1, "memlint-writes")
        self._reads = ThreadPoolExecutor(1, "memlint-reads")
        self._number = 0

    async def ask(self, request: Lint | Fix | Explain) -> Answer:
        """The answer to a request, one at a time; a cancelled one is answered as well. Raises WorkerGone."""
        loop = asyncio.get_running_loop()
        process = self._running()
        try:
            await loop.run_in_executor(self._writes, write, cast(BinaryIO, process.stdin), request)
            answer = await loop.run_in_executor(self._reads, lambda: read(cast(BinaryIO, process.stdout), ANSWERS))
        except (OSError, msgspec.MsgspecError) as error:
            self.stop()
            raise WorkerGone(str(error)) from None
        if answer is None:
            code = await loop.run_in_executor(self._reads, process.wait)
            self._process = None
            raise WorkerGone(_ended(code))
        return answer

    def cancel(self, number: int) -> None:
        """Cancel a running request."""
        if self._process is not None:
            self._writes.submit(_send, cast(BinaryIO, self._process.stdin), Cancel(number))

    def next_number(self) -> int:
        self._number += 1
        return self._number

    def kill(self) -> None:
        """Kill the worker, whose request then raises WorkerGone."""
        if self._process is not None:
            self._process.kill()

    def stop(self) -> None:
        """Stop the worker, and wait for its end."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        """Stop the worker permanently."""
        self.stop()
        self._writes.shutdown(wait=False)
        self._reads.shutdown(wait=False)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            command = [sys.executable, "-c", _PROGRAM.format(path=[place for place in sys.path if place])]
            self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        return self._process


def _send(stream: BinaryIO, message: Request) -> None:
    try:
        write(stream, message)
    except (OSError, ValueError):  # the worker has ended; `ask` notices that
        pass


def _ended(code: int) -> str:
    if code < 0:
        return f"it was killed by signal {-code}, as happens when memory runs out"
    return f"it ended with code {code}"


class _Job(msgspec.Struct):
    """A running analysis; ``uri``: "" for a query. ``stopped``: "again" if something more urgent came, "never" if it is
    no longer needed."""

    uri: str
    number: int
    stopped: Literal["", "again", "never"] = ""


class Scheduler:
    """Schedules the analysis of documents after a pause in typing, and passes the results on.

    ``make``: the current request for a document, None if it is no longer to be analysed (its last argument: whether a
    partial answer will do, which a complete one follows); ``done``: takes the answer; ``log``: takes internal errors.
    """

    def __init__(
        self,
        crew: Crew,
        make: Callable[[str, int, bool], Lint | None],
        done: Callable[[str, Lint, Answer], None],
        log: Log,
    ) -> None:
        self._crew, self._make, self._done, self._log = crew, make, done, log
        self._timers: dict[str, asyncio.TimerHandle] = {}
        #: the documents to be analysed, the next one first
        self._queue: list[str] = []
        #: those of which the current text has a partial answer
        self._partly: set[str] = set()
        self._fixes: list[tuple[Fix, asyncio.Future[Answer]]] = []
        self._query: tuple[Explain, asyncio.Future[Answer]] | None = None
        self._job: _Job | None = None
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def schedule(self, uri: str, delay: float, *, first: bool = True) -> None:
        """Analyse a document in ``delay`` seconds; a further call restarts the delay and cancels a running analysis of
        it. ``first``: before others that wait."""
        self.drop(uri)
        self._start()
        self._timers[uri] = asyncio.get_running_loop().call_later(delay, self._queued, uri, first, first)

    def has(self, uri: str) -> bool:
        """Whether a document is being analysed, or scheduled."""
        running = self._job is not None and self._job.uri == uri and self._job.stopped != "never"
        return running or uri in self._timers or uri in self._queue

    def drop(self, uri: str) -> None:
        """Remove a document."""
        timer = self._timers.pop(uri, None)
        if timer is not None:
            timer.cancel()
        if uri in self._queue:
            self._queue.remove(uri)
        self._partly.discard(uri)
        if self._job is not None and self._job.uri == uri:
            self._stop("never")

    async def fix(self, make: Callable[[int], Fix]) -> Answer:
        """The answer to a request for fixes, before any analysis."""
        self._start()
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._fixes.append((make(self._crew.next_number()), future))
        if self._job is not None and not self._job.stopped:
            self._stop("again")
        self._wake.set()
        return await future

    async def explain(self, make: Callable[[int], Explain]) -> Answer:
        """The answer to a query, after the running analysis. The next query cancels it, and so does an edit."""
        self._start()
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._cancel_query()
        request = make(self._crew.next_number())
        self._query = request, future
        self._wake.set()
        try:
            return await future
        except asyncio.CancelledError:
            if self._query is not None and self._query[1] is future:
                self._query = None
            elif self._job is not None and self._job.number == request.number:
                self._stop("never")
            raise

    def _cancel_query(self) -> None:
        """Cancel the waiting or running query."""
        if self._query is not None:
            request, future = self._query
            self._query = None
            if not future.done():
                future.set_result(Answer(request.number, cancelled=True))
        if self._job is not None and not self._job.uri and not self._job.stopped:
            self._stop("never")

    def _start(self) -> None:
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._work())

    def close(self) -> None:
        """Cancel everything."""
        for timer in self._timers.values():
            timer.cancel()
        if self._task is not None:
            self._task.cancel()
        self._crew.close()

    def _queued(self, uri: str, first: bool, interrupts: bool) -> None:
        self._timers.pop(uri, None)
        self._queue.insert(0 if first else len(self._queue), uri)
        if interrupts and self._job is not None and not self._job.stopped:
            self._stop("again")
        self._wake.set()

    def _stop(self, how: Literal["again", "never"]) -> None:
        assert self._job is not None
        self._job.stopped = how
        self._crew.cancel(self._job.number)
        asyncio.get_running_loop().call_later(PATIENCE, self._overdue, self._job)

    def _overdue(self, job: _Job) -> None:
        """Kill the process of a cancelled analysis that does not end, as all others wait for it."""
        if self._job is job:
            self._crew.kill()

    async def _work(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._fixes or self._query or self._queue:
                try:
                    if self._fixes:
                        await self._fix(*self._fixes.pop(0))
                    elif self._query is not None:
                        (request, future), self._query = self._query, None
                        await self._explain(request, future)
                    else:
                        await self._lint(self._queue.pop(0))
                except Exception:
                    self._log(traceback.format_exc())

    async def _fix(self, request: Fix, future: asyncio.Future[Answer]) -> None:
        try:
            answer = await self._crew.ask(request)
        except WorkerGone as error:
            answer = Answer(request.number, problems=(f"the analysis failed: {error}",))
        if not future.done():
            future.set_result(answer)

    async def _explain(self, request: Explain, future: asyncio.Future[Answer]) -> None:
        self._job = _Job("", request.number)
        try:
            answer = await self._crew.ask(request)
        except WorkerGone:
            answer = Answer(request.number, cancelled=True)
        finally:
            self._job = None
        if not future.done():
            future.set_result(answer)

    async def _lint(self, uri: str) -> None:
        request = self._make(uri, self._crew.next_number(), uri not in self._partly)
        if request is None:
            return
        job = self._job = _Job(uri, request.number)
        try:
            answer = await self._crew.ask(request)
        except WorkerGone as error:
            problem = f"the analysis failed: {error}"
            answer = Answer(request.number, problems=(problem,), cancelled=job.stopped != "")
        finally:
            self._job = None
        if not answer.cancelled:
            self._partly.discard(uri)
            if answer.partial and job.stopped != "never":
                self._partly.add(uri)
                self._timers[uri] = asyncio.get_running_loop().call_later(REST, self._queued, uri, True, False)
            self._done(uri, request, answer)
        elif job.stopped == "again" and uri not in self._queue:
            self._queue.append(uri)
