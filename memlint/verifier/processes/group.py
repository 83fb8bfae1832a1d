"""Ranks that were started outside: ``torchrun --nproc-per-node 2 -m memlint verify …`` starts one memlint a rank.

Each runs its own rank of the program, with the environment that it was given; all write into one folder of this host.
The first of the host puts them together and reports; the others print nothing, wait for that, and end with its exit
code: torchrun ends all ranks as soon as one ends with another code than 0.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import stat
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from memlint.config import ConfigError
from memlint.measure.processes.agreement import launched
from memlint.measure.processes.files import read, write
from memlint.verifier.processes.child import Ran, read_forked, read_ranks

#: seconds that one rank's memlint waits for another's
_LIMIT = 90.0
#: seconds that the first waits until the others have noticed its end
_LEAVING = 3.0
_POLL = 0.1


class Group(msgspec.Struct, frozen=True):
    """The ranks of one host. ``rank``: this one's number in the whole program; ``local``: on this host, from 0;
    ``count``: how many there are on this host; ``world``: on all. ``folder``: the shared one."""

    rank: int
    local: int
    count: int
    world: int
    folder: Path

    @property
    def leads(self) -> bool:
        """Whether this is the rank that reports."""
        return self.local == 0

    def meet(self) -> Path:
        """The folder, created if missing. Raises ConfigError if it cannot be used."""
        try:
            self.folder.mkdir(mode=0o700, exist_ok=True)
            about = self.folder.lstat()
        except OSError as error:
            raise ConfigError(f"the ranks cannot meet in {self.folder}: {error.strerror}") from None
        if not stat.S_ISDIR(about.st_mode) or (hasattr(os, "getuid") and about.st_uid != os.getuid()):
            raise ConfigError(f"the ranks cannot meet in {self.folder}: it is another user's")
        return self.folder

    def gathered(self, ran: Ran) -> Ran:
        """The measurements of all ranks of this host; waits until they have ended, within the limit. ``ran``: this
        rank's own."""
        self._tell(f"ended-{self.local}", [ran.exit, ran.timed_out, ran.interrupted, ran.left])
        if not self.leads:
            return ran
        _until(lambda: all(read(self.folder, f"ended-{local}") is not None for local in range(self.count)))
        ends = [end for local in range(self.count) if (end := read(self.folder, f"ended-{local}")) is not None]
        codes = sorted((int(end[0]) for end in ends if end[0]), key=lambda code: (code < 0, abs(code)))
        return Ran(
            tuple(read_ranks(self.folder)),
            codes[0] if codes else 0,
            any(end[1] for end in ends),
            any(end[2] for end in ends),
            any(end[3] for end in ends),
            read_forked(self.folder),
        )

    def finish(self, code: int) -> None:
        """Pass the exit code of the first rank, which has reported, to the others, and remove the folder."""
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # sent as soon as another rank ends with the same code
        self._tell("done", code)
        _until(lambda: len(list(self.folder.glob("left-*.json"))) >= self.count - 1, _LEAVING)
        shutil.rmtree(self.folder, ignore_errors=True)

    def code(self, own: int) -> int:
        """The exit code of a rank that does not report: the first one's, or its ``own`` where that does not come."""
        _until(lambda: read(self.folder, "done") is not None)
        told = read(self.folder, "done")
        self._tell(f"left-{self.local}", True)
        return own if told is None else int(told)

    def _tell(self, name: str, data: Any) -> None:
        with contextlib.suppress(FileNotFoundError):  # the first has ended and removed the folder
            write(self.folder, name, data)


def group(environment: Mapping[str, str] = os.environ) -> Group | None:
    """The ranks of this process's group; None if it is alone."""
    one = launched(environment)
    if one is None:
        return None
    # ranks of one host have one parent, and another start has another
    parts = (environment.get("TORCHELASTIC_RUN_ID", ""), environment.get("MASTER_PORT", ""), str(os.getppid()),
             environment.get("TORCHELASTIC_RESTART_COUNT", "0"))  # fmt: skip
    name = re.sub(r"[^A-Za-z0-9.-]", "_", "-".join(parts))
    folder = Path(tempfile.gettempdir()) / f"memlint-{os.getuid() if hasattr(os, 'getuid') else 0}-{name}"
    return Group(one.rank, one.local, one.here, one.world, folder)


def _until(true: Any, limit: float = _LIMIT) -> None:
    until = time.monotonic() + limit
    while not true() and time.monotonic() < until:
        time.sleep(_POLL)
