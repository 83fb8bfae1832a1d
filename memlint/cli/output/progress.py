"""The progress of a long run: a bar on a terminal, after a second; elsewhere a line each half minute, with
``--verbose``."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import TextIO

from memlint.engine.options import Progress, no_progress

#: seconds before a bar is shown, and between two lines
DELAY, PAUSE = 1.0, 30.0


class _State:
    """The current stage. ``done`` of ``total``, 0 if the total is unknown."""

    def __init__(self) -> None:
        self.stage, self.done, self.total = "starting", 0, 0
        self.finished = threading.Event()

    def report(self, stage: str, done: int, total: int) -> None:
        self.stage, self.done, self.total = stage, done, total


@contextlib.contextmanager
def progress_bar(out: TextIO, *, quiet: bool, verbose: bool = False) -> Iterator[Progress]:
    """A function to call with stage, done and total; nothing is shown if ``out`` is no terminal, unless ``verbose``
    requests lines."""
    if quiet or not (out.isatty() or verbose):
        yield no_progress
        return
    state = _State()
    painter = threading.Thread(target=_paint if out.isatty() else _write, args=(out, state), daemon=True)
    painter.start()
    try:
        yield state.report
    finally:
        state.finished.set()
        painter.join()


def _write(out: TextIO, state: _State) -> None:
    started = time.monotonic()
    while not state.finished.wait(PAUSE):
        amount = f" {state.done:,} of {state.total:,}" if state.total else ""
        print(f"memlint: {state.stage}{amount}, {time.monotonic() - started:.0f} s so far", file=out, flush=True)


def _paint(out: TextIO, state: _State) -> None:
    if state.finished.wait(DELAY):
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[amount]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(file=out), transient=True) as bar:
        task = bar.add_task("", total=None, amount="")
        while not state.finished.wait(0.1):
            done, total = state.done, state.total
            amount = f"{done:,} of {total:,}" if total else ""
            bar.update(task, description=state.stage, completed=done, total=total or None, amount=amount)
