"""Runs the program in a child process, and reads its measurements."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from memlint.config import ConfigError
from memlint.measure import launch
from memlint.measure.plan import Plan

#: seconds that a program may take to end after a request
_GRACE = 5.0
#: seconds that the other ranks, and the exit of the program, may take after a rank was stopped or has failed
_REST = 30.0
_POLL = 0.2
#: the last bytes of a failing program's output that a silent run shows
_SHOWN = 8_192

#: called while the program runs, with what is measured so far, by rank
Watch = Callable[[Sequence[Mapping[str, Any]]], None]


class Ran(msgspec.Struct, frozen=True):
    """``measured``: what each rank wrote, in order. ``exit``: the program's exit code, negative for a signal.
    ``timed_out``, ``interrupted``: why it was ended. ``left``: so was the rest, a rank having stopped long before.
    ``forked``: the sites that were reached in processes that the program forked, where nothing is measured.
    """

    measured: tuple[dict[str, Any], ...]
    exit: int
    timed_out: bool = False
    interrupted: bool = False
    left: bool = False
    forked: frozenset[int] = frozenset()


def python_for(named: str | None) -> str:
    """The Python that runs the program: the given one, else the active environment's. Raises ConfigError if it has no
    torch."""
    python = named or _active()
    check = "import importlib.util, sys; sys.exit(0 if importlib.util.find_spec('torch') else 3)"
    try:
        done = subprocess.run([python, "-c", check], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError(f"--python: {python} cannot be run: {error}") from None
    if done.returncode == 3:
        raise ConfigError(
            f"there is no torch in the environment of {python}; install it there (`{python} -m pip install torch`), or "
            "name the program's environment by --python PATH"
        )
    if done.returncode:
        raise ConfigError(
            f"--python: {python} is no Python that works: {(done.stderr.strip().splitlines() or ['it failed'])[-1]}"
        )
    return python


def find_module(python: str, name: str, cwd: Path) -> Path | None:
    """The file of a module that an interpreter runs by -m; None if it has none."""
    ask = (
        "import importlib.util as u, sys\n"
        "spec = u.find_spec(sys.argv[1])\n"
        "if spec is not None and spec.submodule_search_locations is not None:\n"
        "    spec = u.find_spec(sys.argv[1] + '.__main__')\n"
        "print(spec.origin if spec is not None and spec.has_location else '')"
    )
    command = [python, "-c", ask, name]
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    found = done.stdout.strip().split("\n")[-1]
    return Path(found) if done.returncode == 0 and found else None


def _active() -> str:
    """The interpreter of the environment that is active; memlint itself may live in another one."""
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        prefix = os.environ.get(variable)
        if prefix and Path(prefix).resolve() != Path(sys.prefix).resolve():
            for name in ("bin/python", "Scripts/python.exe", "python.exe"):
                if (Path(prefix) / name).exists():
                    return str(Path(prefix) / name)
    return sys.executable


def run_program(
    plan: Plan,
    python: str,
    *,
    watch: Watch,
    timeout: float | None = None,
    ranks: int | None = None,
    to_stderr: bool = False,
    environment: Mapping[str, str] | None = None,
    shared: Path | None = None,
    silent: bool = False,
) -> Ran:
    """Run the program of a plan to its end. ``ranks``: that many processes, by torchrun. ``to_stderr``: what it prints
    goes to standard error, since standard output is the report's. ``shared``: the folder for results, where others run
    more ranks of the same program; what these measured is in the result as well. ``silent``: what it prints is
    kept, and the end of it shown where the program fails."""
    with contextlib.ExitStack() as stack:
        folder = str(shared or stack.enter_context(scratch_folder()))
        plan = dataclasses.replace(plan, output=folder)
        file = Path(folder) / f"plan-{os.getpid()}.json"
        file.write_text(plan.dumps(), encoding="utf-8")
        start = [python]
        if ranks is not None:
            start += ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={ranks}"]
        command = [*start, launch.__file__, str(file)]
        how, interrupted = "ended", False
        kept = stack.enter_context(tempfile.TemporaryFile()) if silent else None
        with terminable():
            process = subprocess.Popen(
                command,
                stdout=kept or (sys.stderr.fileno() if to_stderr else None),
                stderr=kept,
                env={**os.environ, **(environment or {})},
                start_new_session=True,
            )
            try:
                how = _wait(process, Path(folder), watch, timeout)
            except KeyboardInterrupt:
                interrupted = True
            finally:
                # a stopped program may have left workers that it would have ended itself
                stopped = any(one["end"]["kind"] == "stopped" for one in read_ranks(Path(folder)))
                _end(process, hard=not interrupted and how == "ended" and not stopped)
        if kept is not None and process.returncode > 0:
            _show_end(kept)
        return Ran(
            tuple(read_ranks(Path(folder))),
            process.returncode,
            how == "timeout",
            interrupted,
            how == "left",
            read_forked(Path(folder)),
        )


def _show_end(kept: IO[bytes]) -> None:
    """The end of a failed program's output."""
    kept.seek(max(0, kept.seek(0, os.SEEK_END) - _SHOWN))
    sys.stderr.flush()
    os.write(sys.stderr.fileno(), kept.read())


def scratch_folder() -> tempfile.TemporaryDirectory[str]:
    """Where a child finds what it is to do, and puts what it has measured."""
    return tempfile.TemporaryDirectory(prefix="memlint-", ignore_cleanup_errors=True)


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """Forward a request to terminate to the program."""

    def interrupt(number: int, frame: object) -> None:
        raise KeyboardInterrupt

    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    try:
        before = [
            (number, signal.signal(number, interrupt))
            for number in numbers
            if signal.getsignal(number) != signal.SIG_IGN
        ]
    except ValueError:  # only possible in the main thread
        yield
        return
    try:
        yield
    finally:
        for number, handler in before:
            signal.signal(number, handler)


def _wait(process: subprocess.Popen[bytes], folder: Path, watch: Watch, timeout: float | None) -> str:
    """Wait for the end of the program: "ended" by itself, "timeout", or "left": a rank that was stopped, or failed,
    comes to no collective any more, and threads may wait for ever for one that was stopped."""
    until = None if timeout is None else time.monotonic() + timeout
    gone: float | None = None
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_POLL)
            return "ended"
        measured = read_ranks(folder)
        watch(measured)
        ends = [one["end"]["kind"] for one in measured]
        if "stopped" in ends or (len(ends) > 1 and "failed" in ends):
            gone = gone or time.monotonic()
            if time.monotonic() > gone + _REST:
                return "left"
        if until is not None and time.monotonic() > until:
            return "timeout"


def _end(process: subprocess.Popen[bytes], *, hard: bool) -> None:
    """Leave no process behind: request the end first, if the program still runs."""
    try:
        if process.poll() is None and not hard:
            _signal(process, signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired, KeyboardInterrupt):  # a second Ctrl-C ends it at once
                process.wait(_GRACE)
    finally:
        if process.poll() is None or not hard:
            _signal(process, signal.SIGKILL)
        process.wait()


def _signal(process: subprocess.Popen[bytes], number: signal.Signals) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, number)


def read_ranks(folder: Path) -> list[dict[str, Any]]:
    """What the ranks that share a folder have written so far, in order."""
    found = []
    for path in sorted(folder.glob("rank-*.json")):
        try:
            found.append(json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError):  # being replaced
            continue
    own = [one for one in found if any(loop["tops"] for loop in one["loops"]) or any(s["hits"] for s in one["sites"])]
    if own and len(found) > len(own) and any(folder.glob("rank-spawned-*.json")):
        found = own  # the process that only spawned the others is no rank
    return sorted(found, key=lambda one: int(one["rank"]))


def read_forked(folder: Path) -> frozenset[int]:
    """The sites that forked processes of a program reached."""
    found: set[int] = set()
    for path in folder.glob("forked-*.json"):
        with contextlib.suppress(OSError, ValueError):
            found |= set(json.loads(path.read_text(encoding="utf-8")))
    return frozenset(found)
