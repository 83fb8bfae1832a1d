"""``memlint verify`` for an open script. It runs the program, so only a command of the user starts it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import tempfile
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from lsprotocol import types

from memlint.config import ConfigError
from memlint.evidence import WORST, load
from memlint.printable import clipped
from memlint.verifier.model import BAD

if TYPE_CHECKING:
    from memlint.lsp.session import Session

#: the commands, whose argument is the URI of a script
VERIFY, STOP = "memlint.verify", "memlint.stopVerifying"
#: the kind of the action, which no editor applies on its own
KIND = "memlint.verify"
#: the program that is run: it imports from the same path as this process, and nothing from the working directory
_PROGRAM = "import sys; sys.path[:] = {path!r}; from memlint.cli import main; sys.exit(main(sys.argv[1:]))"
#: the exit code of `memlint verify` if the program itself failed
PROGRAM_FAILED = 3
#: seconds that `memlint verify` has to stop itself and its program, before both are killed
PATIENCE = 30.0
#: the last lines of a program that are shown if it fails, and the most characters of a line
LAST, WIDEST = 20, 200


#: the text of a message, and its type
_Said = tuple[str, types.MessageType]


class _Run(msgspec.Struct):
    """A running program. ``stopped``: the user asked it to end."""

    process: asyncio.subprocess.Process
    token: str | None
    stopped: bool = False


class Verifier:
    """Runs scripts on request, each once at a time, and keeps the evidence. ``done``: called after new evidence."""

    def __init__(self, session: Session, done: Callable[[], None]) -> None:
        self._session, self._done = session, done
        self._runs: dict[str, _Run | None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        #: the evidence of each script that was run, by its path
        self._files: dict[str, Path] = {}

    @property
    def evidence(self) -> tuple[str, ...]:
        """The files of evidence."""
        return tuple(map(str, self._files.values()))

    def start(self, *arguments: Any) -> None:
        """Run the script of a URI, the first of ``arguments``."""
        uri = arguments[0] if arguments and isinstance(arguments[0], str) else ""
        document = self._session.documents.get(uri)
        if document is None:
            self._say(f"there is no open script {clipped(uri)}", types.MessageType.Error)
        elif uri in self._runs:
            self._say(f"{document.path.name} is already being verified", types.MessageType.Warning)
        elif not document.saved:
            why = f"save {document.path.name} first: the file is run as it is on the disk"
            self._say(why, types.MessageType.Warning)
        else:
            self._runs[uri] = None
            task = asyncio.get_running_loop().create_task(self._verify(uri, document.path))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def stop(self, *arguments: Any) -> None:
        """End the run of a script."""
        run = self._runs.get(arguments[0]) if arguments and isinstance(arguments[0], str) else None
        if run is not None:
            self._end(run)

    def cancelled(self, token: types.ProgressToken) -> None:
        """End the run whose progress was cancelled."""
        for run in self._runs.values():
            if run is not None and run.token == token:
                self._end(run)

    def finish(self) -> None:
        """Ask all runs to end."""
        for run in self._runs.values():
            if run is not None:
                self._end(run)

    def close(self) -> None:
        """Interrupt all runs and delete the evidence, after the connection has ended."""
        for run in self._runs.values():
            if run is not None:
                _signal(run.process, kill=False)
        if self._folder is not None:
            with contextlib.suppress(OSError):
                self._folder.cleanup()

    async def _verify(self, uri: str, path: Path) -> None:
        token = None
        try:
            token = await self._begin(path)
            said = await self._measured(uri, path, token)
        except Exception as error:  # after any error, the script can be verified again
            said = f"{path.name} cannot be verified: {error}", types.MessageType.Error
        finally:
            self._runs.pop(uri, None)
            if token is not None:
                self._session.progress(types.ProgressParams(token, types.WorkDoneProgressEnd()))
        self._say(*said)  # last, because its reader may start the next run at once

    async def _measured(self, uri: str, path: Path, token: str | None) -> _Said:
        """Run a script under ``memlint verify``. Returns the message for the user."""
        if self._folder is None:
            self._folder = tempfile.TemporaryDirectory(prefix="memlint-lsp-", ignore_cleanup_errors=True)
        name = uuid.uuid4().hex
        proof, report = (Path(self._folder.name) / f"{name}{suffix}" for suffix in (".json", ".txt"))
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-c",
            _PROGRAM.format(path=[place for place in sys.path if place]),
            *(
                "verify",
                str(path),
                "--evidence",
                str(proof),
                "--output-file",
                str(report),
                "--quiet",
                *self._session.settings.verify,
            ),
            cwd=self._session.cwd(path),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
        run = self._runs[uri] = _Run(process, token)
        assert process.stdout is not None and process.stderr is not None
        _, last = await asyncio.gather(self._read(run, process.stdout), self._read(run, process.stderr))
        code = await process.wait()
        if run.stopped:
            return f"the run of {path.name} was stopped", types.MessageType.Info
        if proof.is_file():
            self._files[str(path)] = proof
            self._done()
            return self._summary(path, proof, report, code, last)
        self._session.tell(f"verify {path}:\n" + "\n".join(last), types.MessageType.Error)
        why = clipped(last[-1]) if last else f"it ended with code {code}"
        return f"{path.name} cannot be verified: {why}", types.MessageType.Error

    async def _read(self, run: _Run, stream: asyncio.StreamReader) -> list[str]:
        """The last lines of a stream. Shows the latest line as progress."""
        last: list[str] = []
        rest = b""
        while chunk := await stream.read(1 << 16):
            *lines, rest = (rest + chunk)[-(1 << 20) :].replace(b"\r", b"\n").split(b"\n")
            shown = [text[:WIDEST] for line in lines if (text := line.decode("utf-8", "replace").strip())]
            last = [*last, *shown][-LAST:]
            if shown and run.token is not None:
                self._session.progress(types.ProgressParams(run.token, types.WorkDoneProgressReport(message=shown[-1])))
        return [*last, text[:WIDEST]] if (text := rest.decode("utf-8", "replace").strip()) else last

    def _summary(self, path: Path, proof: Path, report: Path, code: int, last: list[str]) -> _Said:
        """The message with the number of each verdict. Writes the whole report to the log."""
        try:
            found = Counter(record.verdict for record in load(proof, "verify").findings)
            text = report.read_text("utf-8")
        except (ConfigError, OSError) as error:
            return f"what was measured of {path.name} cannot be read: {error}", types.MessageType.Error
        self._session.window_log_message(types.LogMessageParams(types.MessageType.Info, f"verify {path}:\n{text}"))
        counts = ", ".join(f"{found[verdict]} {verdict}" for verdict in WORST if found[verdict])
        said = f"{path.name}: {counts or 'nothing to measure'}"
        if code == PROGRAM_FAILED:
            said += f"; the program failed: {clipped(last[-1]) if last else 'see the log'}"
        is_bad = code == PROGRAM_FAILED or not BAD.isdisjoint(found)
        return said, types.MessageType.Warning if is_bad else types.MessageType.Info

    async def _begin(self, path: Path) -> str | None:
        """Show progress, if the client supports it. Returns its token, else None."""
        window = self._session.client_capabilities.window
        if window is None or not window.work_done_progress:
            return None
        token = f"memlint-verify-{uuid.uuid4().hex}"
        await self._session.window_work_done_progress_create_async(types.WorkDoneProgressCreateParams(token))
        begin = types.WorkDoneProgressBegin(f"memlint verify {path.name}", cancellable=True)
        self._session.progress(types.ProgressParams(token, begin))
        return token

    def _end(self, run: _Run) -> None:
        run.stopped = True
        _signal(run.process, kill=False)
        asyncio.get_running_loop().call_later(PATIENCE, lambda: _signal(run.process, kill=True))

    def _say(self, text: str, kind: types.MessageType) -> None:
        self._session.window_show_message(types.ShowMessageParams(kind, f"memlint: {text}"))


def _signal(process: asyncio.subprocess.Process, *, kill: bool) -> None:
    """Interrupt a process and its children, or kill them."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "nt":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL if kill else signal.SIGINT)
