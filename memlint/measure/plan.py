"""The plan of a run: what to measure. The parent writes it as JSON, the process that runs the program reads it."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

VERSION = 1


@dataclass(frozen=True)
class SitePlan:
    """A site: the place of a finding. Lines and columns count from 1, columns in characters, the end is exclusive.
    ``loop``: the innermost watched loop around it in its function; None without one."""

    id: int
    line: int
    column: int
    end_line: int
    end_column: int
    loop: int | None = None


@dataclass(frozen=True)
class LoopPlan:
    """A ``for`` or ``while`` statement whose iterations are counted; ``line`` and ``column``: its start."""

    id: int
    line: int
    column: int


@dataclass(frozen=True)
class FilePlan:
    """The probes of one file. ``text``: run this instead of the file's content."""

    path: str
    sites: tuple[SitePlan, ...] = ()
    loops: tuple[LoopPlan, ...] = ()
    text: str | None = None


@dataclass(frozen=True)
class Plan:
    """One run of a program.

    ``target`` is the absolute path of a script, or the name of a module where ``module`` is set; ``typed`` is the
    script as the user named it. ``warmup`` and ``window`` count hits of a site and iterations of a loop. ``max_steps``:
    stop after so many iterations of a loop; ``full``: do not stop when all is measured; ``stop_at``: stop at this top
    of this loop only (its id, and the number of the top), where another run stopped. ``device``: auto, cuda or cpu.
    ``gpu_memory``: the most bytes to allocate on each device. ``seed``: of random generators, if two runs are compared;
    ``losses``: keep the values that ``backward()`` was called on. ``picture``: follow storages to the end of the run,
    for a chart. ``output``: the folder for results. ``own``: the absolute paths of the program's own files.
    ``trace_host``: find the lines of Python that allocate growing host memory."""

    target: str
    arguments: tuple[str, ...]
    files: tuple[FilePlan, ...]
    output: str
    module: bool = False
    typed: str | None = None
    warmup: int = 3
    window: int = 12
    max_steps: int | None = None
    full: bool = False
    stop_at: tuple[int, int] | None = None
    device: str = "auto"
    gpu_memory: int | None = None
    seed: int | None = None
    losses: bool = False
    picture: bool = False
    own: tuple[str, ...] = ()
    trace_host: bool = False
    version: int = field(default=VERSION)

    def dumps(self) -> str:
        return json.dumps(dataclasses.asdict(self))


def loads(text: str) -> Plan:
    """The plan that `Plan.dumps` wrote. Raises ValueError for one of another version."""
    raw: dict[str, Any] = json.loads(text)
    if raw.get("version") != VERSION:
        raise ValueError(f"a plan of version {raw.get('version')}, not {VERSION}")
    files: list[FilePlan] = [
        FilePlan(
            path=row["path"],
            sites=tuple(SitePlan(**site) for site in row["sites"]),
            loops=tuple(LoopPlan(**loop) for loop in row["loops"]),
            text=row["text"],
        )
        for row in raw.pop("files")
    ]
    arguments = tuple(raw.pop("arguments"))
    own = tuple(raw.pop("own"))
    stop_at = raw.pop("stop_at")
    return Plan(
        files=tuple(files),
        arguments=arguments,
        own=own,
        stop_at=None if stop_at is None else (stop_at[0], stop_at[1]),
        **raw,
    )
