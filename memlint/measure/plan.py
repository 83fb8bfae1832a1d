"""What is to be measured: written by the parent as JSON, read by the process that runs the program."""

from __future__ import annotations

import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

VERSION = 1


@dataclass(frozen=True)
class SitePlan:
    """A flagged place. Lines and columns count from 1, columns in characters, the end is exclusive. ``loop``: the
    innermost watched loop of its function around it."""

    id: int
    line: int
    column: int
    end_line: int
    end_column: int
    loop: int | None = None


@dataclass(frozen=True)
class LoopPlan:
    """A ``for`` or ``while`` statement whose iterations are counted; ``line`` and ``column`` are its first."""

    id: int
    line: int
    column: int


@dataclass(frozen=True)
class FilePlan:
    """What to put into one file. ``text`` replaces its content, where another version of it is to be run."""

    path: str
    sites: tuple[SitePlan, ...] = ()
    loops: tuple[LoopPlan, ...] = ()
    text: str | None = None


@dataclass(frozen=True)
class Plan:
    """One run of a program.

    ``target`` is the absolute path of a script, or the name of a module where ``module`` is set; ``typed`` is the
    script as the user named it. ``warmup`` and ``window`` count hits of a site and iterations of a loop.
    ``max_steps``: stop once a loop has made as many iterations; ``full``: do not stop when all is measured;
    ``stop_at``: stop at this top of this loop and nowhere else (its id, and which top it is), where another run
    stopped. ``device``: auto, cuda or cpu. ``gpu_memory``: bytes that each device may give. ``seed``: what random
    generators start from, where two runs are compared; ``losses``: keep what ``backward()`` was called on.
    ``picture``: follow what is made to the end of the run. ``output``: the folder that results go to.
    ``own``: the absolute paths of the program's own files.
    ``trace_host``: find the lines of Python that allocate the host memory that grows.
    """

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
