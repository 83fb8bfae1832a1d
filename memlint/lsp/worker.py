"""The process that runs the analyses of the server, one request after the other. A cancelled request ends at the next
progress report. A crash of this process does not end the server.
"""

from __future__ import annotations

import gc
import os
import queue
import sys
import threading
import traceback
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import BinaryIO

from memlint.config import ConfigError
from memlint.engine.explaining import Asked
from memlint.engine.fixing.fixing import run_and_fix
from memlint.engine.options import Options, Progress
from memlint.explanation import Explanation
from memlint.finding import Finding
from memlint.lsp.messages import REQUESTS, Answer, Cancel, Explain, Fix, Lint, Request, read, write
from memlint.lsp.projects import Projects
from memlint.project import Project
from memlint.remembered import remember

#: the syntax trees of so many characters of code are kept between requests (about 100 bytes for each character)
REMEMBERED = 1_000_000
#: each so many collections look at all objects, and not only at new ones
THOROUGH = 50


class Superseded(BaseException):
    """Ends a cancelled analysis. Not an `Exception`, which the analysis would catch and report."""


class Worker:
    """Answers requests. ``take`` may be called from another thread."""

    def __init__(self, answers: BinaryIO) -> None:
        self._answers = answers
        self._todo: queue.SimpleQueue[Lint | Fix | Explain] = queue.SimpleQueue()
        self._cancelled: set[int] = set()
        self._projects = Projects(self._collect)
        self._collections = 0

    def take(self, request: Request) -> None:
        """Queue a request, or mark one as cancelled."""
        if isinstance(request, Cancel):
            self._cancelled.add(request.number)
        else:
            self._todo.put(request)

    def work(self) -> None:
        """Answer the next request."""
        request = self._todo.get()
        try:
            answer = self._answer(request)
        except Superseded:
            answer = Answer(request.number, cancelled=True)
        except ConfigError as error:
            answer = Answer(request.number, error=str(error))
        except Exception:  # an internal error, which the server reports to its client
            self._projects.forget()
            answer = Answer(request.number, mistake=traceback.format_exc())
        write(self._answers, answer)
        self._cancelled.discard(request.number)
        self._projects.tidy()

    def _collect(self) -> None:
        """Collect garbage among the objects that are new since the last time: with what stays (modules, rules, the
        indexes of projects) it takes ten times as long. Sometimes all objects are looked at."""
        self._collections += 1
        if self._collections % THOROUGH == 0:
            gc.unfreeze()
        gc.collect()
        gc.freeze()

    def _answer(self, request: Lint | Fix | Explain) -> Answer:
        progress = self._progress(request.number)
        options = Options(
            cwd=Path(request.cwd),
            overrides=request.overrides,
            unsaved={Path(path): content for path, content in request.texts.items()},
            force_exclude=True,
            jobs=1,
            trusting=False,
            more_evidence=tuple(map(Path, request.evidence)) if isinstance(request, Lint) else (),
        )
        path = Path(request.path)
        if isinstance(request, Fix):
            done = run_and_fix([request.path], options, write_files=False, progress=progress)
            fixed = next((change.after for change in done.changes if change.path == path), None)
            return Answer(request.number, fixed=fixed)
        if isinstance(request, Explain):
            return Answer(request.number, explained=self._explained(request, options, progress))
        if request.fresh:
            self._projects.forget()
        if request.quick and (edited := self._projects.lint_edited(path, options, progress)) is not None:
            shown = tuple(one for one in edited[0] if one.suppressed is None)
            return Answer(request.number, findings=shown, paths=_paths(shown, edited[1]), partial=True)
        found, project = self._projects.lint(path, options, progress)
        findings = tuple(one for one in found.result.findings if one.suppressed is None)
        return Answer(
            request.number,
            findings=findings,
            paths={} if project is None else _paths(findings, project),
            problems=tuple(failure.reason for failure in found.result.failures),
            notices=found.notices,
        )

    def _explained(self, request: Explain, options: Options, progress: Progress) -> Explanation | None:
        asked = Asked(request.path, request.line, request.column, cell=request.cell)
        try:
            return self._projects.explain(asked, options, progress)
        except ConfigError:  # there is no code at the position, or the file does not parse
            return None

    def _progress(self, number: int) -> Progress:
        def check(stage: str, done: int, total: int) -> None:
            if number in self._cancelled:
                raise Superseded

        return check


def _paths(findings: Iterable[Finding], project: Project) -> Mapping[str, str]:
    named = set()
    for finding in findings:
        named |= {finding.path, *(step.path for step in finding.trace)}
        for fix in (*finding.alternatives, *([finding.fix] if finding.fix is not None else [])):
            named |= {edit.path for edit in fix.edits}
    return {display: str(project.path(display)) for display in sorted(named & project.sources.keys())}


def main() -> None:
    """Read requests from standard input until it ends, and write answers to standard output."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # accidental prints must not get between the messages
    remember(REMEMBERED)
    gc.disable()  # `Projects.tidy` collects after each analysis
    worker = Worker(answers)

    def listen() -> None:
        while (request := read(sys.stdin.buffer, REQUESTS)) is not None:
            worker.take(request)
        os._exit(0)  # the server is gone

    threading.Thread(target=listen, daemon=True).start()
    while True:
        worker.work()
