"""The table at the foot of the terminal leaves the program's own output whole."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from collections.abc import Callable
from pathlib import Path

import pytest
from torch_forks import forks
from torch_programs import LEAK, ROOT
from torch_python import torch_python

pyte = pytest.importorskip("pyte", reason="needs pyte, which shows what a terminal would")

#: a program that talks in all the ways there are, with the table drawn in between
TALK = """\
import sys
from memlint.cli.output.live import Live
from memlint.finding import Finding, Growth
from memlint.verifier.probing.planning import Probes

finding = Finding(
    code="MEM102", name="retained-graph", severity="error", confidence="high", message="", path="train.py", line=12,
    column=1, end_line=12, end_column=2, growth=Growth("device-graph", "per-iteration"),
)
probes = Probes((), {1: finding, 2: finding}, {})


def draw(hits):
    check = {"when": "window", "alive": [{"cpu": 1024 * hits}], "nodes": [0]}
    sites = [{"id": 1, "hits": hits, "checks": [check]}, {"id": 2, "hits": 0, "checks": []}]
    live.show(probes, [{"sites": sites, "loops": [{"tops": hits}]}])


def say(text):
    sys.stdout.write(text)
    sys.stdout.flush()


with Live(quiet=False) as live:
    say("loading: ")
    draw(1)
    say("done\\n")
    for step in range(40):
        say(f"step {step}: ")
        draw(step)
        say(f"loss {step * 2}\\n")
    for percent in (10, 50, 90):
        say(f"\\r{percent}% of the bar")
        draw(percent)
    say("\\n")
    if len(sys.argv) > 1:
        say("waiting")
        input()
print("the report")
"""


def is_waiting(shown: list[str]) -> bool:
    return any(line.startswith("waiting") for line in shown)


def screen_of(
    command: list[str],
    folder: Path,
    rows: int = 24,
    columns: int = 80,
    until: Callable[[list[str]], bool] | None = None,
    **environment: str,
) -> list[str]:
    """What stands on a terminal when a command has ended, or once ``until`` says so of what is shown; what has scrolled
    off comes first."""
    screen = pyte.HistoryScreen(columns, rows, history=10_000)
    stream = pyte.ByteStream(screen)
    own, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TERM": "xterm", "PYTHONWARNINGS": "ignore", **environment}
    environment.pop("NO_COLOR", None)
    process = subprocess.Popen(command, cwd=folder, stdin=its, stdout=its, stderr=its, env=environment)
    os.close(its)
    try:
        while True:
            try:
                read = os.read(own, 65536)
            except OSError:  # the other end is closed
                break
            if not read:
                break
            stream.feed(read)
            if until is not None and until(screen.display):
                break
    finally:
        if until is not None:
            process.terminate()
        process.wait()
        os.close(own)
    above = ["".join(line[column].data for column in range(columns)) for line in screen.history.top]
    return [line.rstrip() for line in (*above, *screen.display)]


def test_all_that_a_program_prints_stays_whole(tmp_path: Path) -> None:
    lines = screen_of([sys.executable, "-c", TALK], tmp_path)
    said = [line for line in lines if line]
    assert said == [
        "loading: done", *(f"step {step}: loss {step * 2}" for step in range(40)), "90% of the bar", "the report"
    ]  # fmt: skip
    assert lines[lines.index("90% of the bar") + 1] == "the report", "nothing is left of the table"


def test_while_it_runs_the_table_stands_at_the_foot(tmp_path: Path) -> None:
    lines = screen_of([sys.executable, "-c", TALK, "wait"], tmp_path, until=is_waiting)
    assert [" ".join(line.split()) for line in lines[-4:]] == [
        "memlint: step 90, 1 of 2 findings measured",
        "site claim hits so far",
        "train.py:12 MEM102: graphs on the device 90 keeps 90.0 KiB of 1 hit",
        "train.py:12 MEM102: graphs on the device 0 not reached yet",
    ]
    assert lines[-8:-4] == ["step 38: loss 76", "step 39: loss 78", "90% of the bar", "waiting"]


@pytest.mark.parametrize(
    ("rows", "columns", "term", "ours"),
    [(12, 80, "xterm", 1), (10, 80, "xterm", 0), (24, 30, "xterm", 0), (24, 80, "dumb", 0)],
)
def test_where_there_is_no_room(tmp_path: Path, rows: int, columns: int, term: str, ours: int) -> None:
    command = [sys.executable, "-c", TALK, "wait"]
    lines = screen_of(command, tmp_path, rows, columns, until=is_waiting, TERM=term)
    assert [line.startswith("memlint: step ") for line in lines].count(True) == ours
    assert not any("train.py" in line for line in lines)


def test_a_program_under_verify(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LEAK.replace('print(f"step', 'time.sleep(0.06)\n        print(f"step'))
    text = (tmp_path / "train.py").read_text()
    (tmp_path / "train.py").write_text(f"import time\n{text}")
    command = [sys.executable, "-m", "memlint", "verify", "train.py", "--isolated", "--full"]
    command += ["--python", forks(torch_python())]

    met = []

    def at_the_foot(shown: list[str]) -> bool:
        foot = [" ".join(line.split()) for line in shown[-4:]]
        met.append(
            foot[0].startswith("memlint: step ")
            and all(
                line.startswith("train.py:13 MEM") and re.search(r" keeps 1\d\d\.\d KiB of 15 hits", line)
                for line in foot[2:]
            )
        )
        return False

    lines = screen_of(command, tmp_path, rows=30, columns=100, until=at_the_foot)
    assert any(met)
    steps = [line for line in lines if line.startswith("step ")]
    assert steps == [f"step {step}" for _ in range(2) for step in range(1, 41)]
    assert any("findings confirmed" in line for line in lines)
    assert not any(line.startswith("memlint: step ") for line in lines)
