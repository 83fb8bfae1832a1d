"""The files of a program: its script, and the modules of the project that it imports."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from pathlib import Path

from memlint.engine.options import Options, no_progress
from memlint.engine.run import prepare
from memlint.frontend.index import index
from memlint.project import Project


def program_files(starts: Sequence[Path], options: Options) -> tuple[Path, ...]:
    """The scripts (or the files of folders), and the files of their project that they import, directly or not. Raises
    ConfigError."""
    found: dict[Path, None] = dict.fromkeys(start for start in starts if not start.is_dir())
    for prepared in prepare([str(start) for start in starts], options, no_progress):
        project = prepared.found.project
        for display in project.linted:
            for name in _reached(display, project):
                found[project.path(name)] = None
    return tuple(found)


def _reached(start: str, project: Project) -> list[str]:
    found, waiting = {start: None}, deque([start])
    while waiting:
        display = waiting.popleft()
        source = project.sources[display]
        if source.unreadable is not None:
            continue
        for imported in index(source.text).imports:
            names = [imported.module]
            if imported.name is not None:
                names.append(f"{imported.module}.{imported.name}" if imported.module else imported.name)
            if not imported.level:  # importing a module also imports its packages
                parts = imported.module.split(".")
                names += [".".join(parts[:count]) for count in range(1, len(parts))]
            for name in names:
                target = project.resolve(name, display, imported.level)
                if target is not None and target not in found:
                    found[target] = None
                    waiting.append(target)
    return list(found)
