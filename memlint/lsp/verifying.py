"""``memlint verify`` for an open script: it runs the program, so nothing but a person's command starts it."""

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
#: the kind of the action: none that an editor applies by itself
KIND = "memlint.verify"
#: what is run: it imports what this process would, and nothing out of the working directory
_PROGRAM = "import sys; sys.path[:] = {path!r}; from memlint.cli import main; sys.exit(main(sys.argv[1:]))"
#: the exit code of `memlint verify` where the program itself failed
PROGRAM_FAILED = 3
#: seconds that `memlint verify` has to end its program (which it gives five), once both are to stop
PATIENCE = 30.0
#: the last lines of a program that are shown where it fails, and the characters of one
LAST, WIDEST = 20, 200


#: the text of a message, and how grave it is
_Said = tuple[str, types.MessageType]


class _Run(msgspec.Struct):
    """A program that runs. ``stopped``: somebody asked it to end."""

    process: asyncio.subprocess.Process
    token: str | None
    stopped: bool = False


class Verifier:
    """Runs scripts on request, one at a time for each, and keeps what was measured. ``done``: called when there is
    more of that."""

    def __init__(self, session: Session, done: Callable[[], None]) -> None:
        self._session, self._done = session, done
        self._runs: dict[str, _Run | None] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        #: the evidence of each script that was run, by its path
        self._files: dict[str, Path] = {}

    @property
    def evidence(self) -> tuple[str, ...]:
        """The files with what was measured."""
        return tuple(map(str, self._files.values()))

    def start(self, *arguments: Any) -> None:
        """Run the script of a URI, which the client has named by hand."""
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
        """The client's user has asked a run to end."""
        for run in self._runs.values():
            if run is not None and run.token == token:
                self._end(run)

    def finish(self) -> None:
        """Ask all that runs to end."""
        for run in self._runs.values():
            if run is not None:
                self._end(run)

    def close(self) -> None:
        """Let go of all of it, once nobody can be told of anything."""
        for run in self._runs.values():
            if run is not None:
                _signal(run.process, kill=False)  # (it ends the program that it runs)
        if self._folder is not None:
            with contextlib.suppress(OSError):
                self._folder.cleanup()

    async def _verify(self, uri: str, path: Path) -> None:
        token = None
        try:
            token = await self._begin(path)
            said = await self._measured(uri, path, token)
        except Exception as error:  # (whatever it is, the script can be verified again)
            said = f"{path.name} cannot be verified: {error}", types.MessageType.Error
        finally:
            self._runs.pop(uri, None)
            if token is not None:
                self._session.progress(types.ProgressParams(token, types.WorkDoneProgressEnd()))
        self._say(*said)  # (last: whoever reads it may start the next run at once)

    async def _measured(self, uri: str, path: Path, token: str | None) -> _Said:
        """Run a script under ``memlint verify``; what to say of it once the run is over."""
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
        # (`memlint verify` itself sums up on standard output what it has written to the file)
        assert process.stdout is not None and process.stderr is not None
        _, last = await asyncio.gather(self._read(run, process.stdout), self._read(run, process.stderr))
        code = await process.wait()
        if run.stopped:
            return f"the run of {path.name} was stopped", types.MessageType.Info
        if proof.is_file():
            self._files[str(path)] = proof
            self._done()
            return self._summed_up(path, proof, report, code, last)
        self._session.tell(f"verify {path}:\n" + "\n".join(last), types.MessageType.Error)
        why = clipped(last[-1]) if last else f"it ended with code {code}"
        return f"{path.name} cannot be verified: {why}", types.MessageType.Error

    async def _read(self, run: _Run, stream: asyncio.StreamReader) -> list[str]:
        """The last lines of a stream, each of which is shown as it comes."""
        last: list[str] = []
        rest = b""
        while chunk := await stream.read(1 << 16):
            *lines, rest = (rest + chunk)[-(1 << 20) :].replace(b"\r", b"\n").split(b"\n")
            shown = [text[:WIDEST] for line in lines if (text := line.decode("utf-8", "replace").strip())]
            last = [*last, *shown][-LAST:]
            if shown and run.token is not None:
                self._session.progress(types.ProgressParams(run.token, types.WorkDoneProgressReport(message=shown[-1])))
        return [*last, text[:WIDEST]] if (text := rest.decode("utf-8", "replace").strip()) else last

    def _summed_up(self, path: Path, proof: Path, report: Path, code: int, last: list[str]) -> _Said:
        """What was measured, in short; the log has all of it."""
        try:
            found = Counter(record.verdict for record in load(proof, "verify").findings)
            text = report.read_text("utf-8")
        except (ConfigError, OSError) as error:
            return f"what was measured of {path.name} cannot be read: {error}", types.MessageType.Error
        self._session.window_log_message(types.LogMessageParams(types.MessageType.Info, f"verify {path}:\n{text}"))
        counts = ", ".join(f"{found[verdict]} {verdict}" for verdict in WORST if found[verdict])
        said = f"{path.name}: {counts or 'nothing to measure'}"
        if code == PROGRAM_FAILED:
            said += f"; the program failed: {clipped(last[-1]) if last else 'the log has its end'}"
        is_bad = code == PROGRAM_FAILED or not BAD.isdisjoint(found)
        return said, types.MessageType.Warning if is_bad else types.MessageType.Info

    async def _begin(self, path: Path) -> str | None:
        """Show that a run goes on, where the client can do that."""
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
    """Ask a process and those that it started to end, or end them."""
    if process.returncode is not None:
        return
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if os.name == "nt":
            process.kill()
        else:
            os.killpg(process.pid, signal.SIGKILL if kill else signal.SIGINT)
