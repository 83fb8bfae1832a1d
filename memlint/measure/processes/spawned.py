"""Processes that the program starts: by ``torch.multiprocessing.spawn``, or by a fork.

A spawned process imports the main module again. It gets the same probes and writes its results as a rank, unless it
never runs a watched loop (a worker of a DataLoader). A forked process has copies of its parent's meters, so it is not
measured: it only notes the sites that it reaches, so that they are not reported as never reached.
"""

from __future__ import annotations

import multiprocessing
import os
import runpy
import sys
import threading
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from ..stacks import LAUNCH
from .agreement import Agreement
from .files import write

#: code before that of a spawned process
_FIRST = (
    "import importlib.util as _memlint_util; "
    "_memlint_spec = _memlint_util.spec_from_file_location('_memlint_launch', {launch!r}); "
    "_memlint_launch = _memlint_util.module_from_spec(_memlint_spec); "
    "_memlint_spec.loader.exec_module(_memlint_launch); "
    "_memlint_launch.spawned({plan!r}); "
)


def follow_spawned(plan_path: str) -> None:
    """Give spawned processes the probes of the plan."""
    import multiprocessing.spawn as spawn

    command_line = spawn.get_command_line

    def get_command_line(**options: Any) -> list[str]:
        command = list(command_line(**options))
        if "-c" in command:  # else a frozen program
            at = command.index("-c") + 1
            command[at] = _FIRST.format(launch=LAUNCH, plan=plan_path) + command[at]
        return command

    spawn.get_command_line = get_command_line


class Runpy:
    """Replaces `runpy` in multiprocessing, which imports the main module by it: compiles that with its probes."""

    def __init__(self, compile_file: Callable[[str, bytes], CodeType]) -> None:
        self._compile = compile_file

    def __getattr__(self, name: str) -> Any:
        return getattr(runpy, name)

    def run_path(self, path: str, run_name: str) -> dict[str, Any]:
        with open(path, "rb") as file:
            code = self._compile(path, file.read())
        names: dict[str, Any] = {
            "__name__": run_name,
            "__file__": path,
            "__builtins__": __builtins__,
            "__cached__": None,
            "__doc__": None,
            "__loader__": None,
            "__package__": "",
            "__spec__": None,
        }
        exec(code, names)
        return names


def begin(compile_file: Callable[[str, bytes], CodeType], ended: Callable[[int], None]) -> None:
    """Set up a spawned process. ``ended``: called with its exit code."""
    import multiprocessing.process as process
    import multiprocessing.spawn as spawn

    spawn.runpy = Runpy(compile_file)  # type: ignore[attr-defined]
    bootstrap = process.BaseProcess._bootstrap  # type: ignore[attr-defined]

    def run_and_tell(self: Any, *arguments: Any, **options: Any) -> int:
        code: int = bootstrap(self, *arguments, **options)
        ended(code)
        return code

    process.BaseProcess._bootstrap = run_and_tell  # type: ignore[attr-defined]


def rank_here() -> int | None:
    """This process's rank in torch.distributed; None if that is not initialised."""
    distributed = _distributed()
    return None if distributed is None else int(distributed.get_rank())


def number_here() -> int:
    """The number of this process among its parent's, from 0."""
    identity = multiprocessing.current_process()._identity
    return int(identity[-1]) - 1 if identity else 0


def _distributed() -> Any:
    distributed = sys.modules.get("torch.distributed")
    known = distributed is not None and distributed.is_available() and distributed.is_initialized()
    return distributed if known else None


class Spawned:
    """The agreement for a spawned process. Without a rank it never stops early, as others may wait for it."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._agreement: Agreement | None = None

    def reached(self, loop: int, tops: Mapping[int, int], unreached: Collection[int]) -> bool:
        distributed = _distributed()
        if self._agreement is None and distributed is not None:
            self._agreement = Agreement(self._folder, distributed.get_rank(), distributed.get_world_size())
        return self._agreement is not None and self._agreement.reached(loop, tops, unreached)


class Nothing:
    """Replaces `session.rest.Rest` in a forked process: no loops and sites are counted."""

    loops: Mapping[int, Any] = {}
    sites: Mapping[int, Any] = {}

    def hit(self, site: Any) -> None: ...


class Forked:
    """Replaces the session in a forked process: notes which sites it reaches."""

    active = True
    paths: Collection[str] = ()
    rest = Nothing()

    def __init__(self, folder: str) -> None:
        self.lock = threading.RLock()  # the parent's may be held by a thread that was not forked
        self._folder = Path(folder)
        self._reached: set[int] = set()

    def hit(self, number: int, value: Any, frame: FrameType) -> None:
        if number not in self._reached:
            self._reached.add(number)
            write(self._folder, f"forked-{os.getpid()}", sorted(self._reached))

    def enter(self, number: int, around: tuple[int, ...], frame: FrameType) -> None: ...

    def top(self, number: int, frame: FrameType) -> None: ...

    def exit(self, number: int, frame: FrameType) -> None: ...

    def value(self, number: int, value: Any) -> None: ...

    def begin_comprehension(self, number: int, frame: FrameType) -> None: ...

    def end_comprehension(self, number: int) -> None: ...

    def torch_came(self) -> None: ...

    def broken(self, error: Exception) -> None:
        self.active = False
