"""A progress bar on a terminal, for runs that take more than a second."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import TextIO

from memlint.engine.options import Progress, no_progress

#: seconds before anything is shown
DELAY = 1.0


@contextlib.contextmanager
def progress_bar(out: TextIO, *, quiet: bool) -> Iterator[Progress]:
    """A function to call with stage, done and total; nothing is shown where ``out`` is no terminal."""
    if quiet or not out.isatty():
        yield no_progress
        return
    state = ["starting", 0, 0]
    finished = threading.Event()
    painter = threading.Thread(target=_paint, args=(out, state, finished), daemon=True)
    painter.start()

    def progress(stage: str, done: int, total: int) -> None:
        state[:] = [stage, done, total]

    try:
        yield progress
    finally:
        finished.set()
        painter.join()


def _paint(out: TextIO, state: list[str | int], finished: threading.Event) -> None:
    if finished.wait(DELAY):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TimeElapsedColumn())
    with Progress(*columns, console=Console(file=out), transient=True) as bar:
        task = bar.add_task("", total=None)
        while not finished.wait(0.1):
            stage, done, total = state
            bar.update(task, description=str(stage), completed=int(done), total=int(total) or None)
