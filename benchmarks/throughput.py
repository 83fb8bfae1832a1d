#!/usr/bin/env python3
"""How fast the parts of a run are: ``python benchmarks/throughput.py FOLDER…`` (say, unpacked wheels from PyPI).

Lints each folder in a process of its own, on one core, without a cache, and writes CPU seconds and lines a second for
each stage, their shares, and the versions at hand to ``benchmarks/results/throughput.json``. A stage's time is what is
spent in it and in no other. Only the ratios of one run are worth comparing between machines.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
STAGES = ("start", "read", "parse", "lower", "flow", "rules", "rest")


class Clock:
    """CPU time by stage; an inner stage's time is not its caller's."""

    def __init__(self) -> None:
        self.spent = dict.fromkeys(STAGES, 0.0)
        self._running: list[str] = []
        self._since = time.process_time()

    def _switch(self) -> None:
        now = time.process_time()
        if self._running:
            self.spent[self._running[-1]] += now - self._since
        self._since = now

    def timed(self, stage: str, call: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **words: Any) -> Any:
            self._switch()
            self._running.append(stage)
            try:
                return call(*args, **words)
            finally:
                self._switch()
                self._running.pop()

        return run


def measure(folder: Path) -> dict[str, Any]:
    """One run, in this process."""
    import memlint
    from memlint.analysis.driver import run
    from memlint.analysis.index import definitions
    from memlint.analysis.judge import verdicts  # noqa: F401 - loaded before the clock starts
    from memlint.engine import judging
    from memlint.project.source import Sources

    clock = Clock()
    started = time.process_time()
    passed: list[int] = []
    relevant = run.relevant_modules

    def screened(program: Any, keys: list[str], **words: Any) -> frozenset[str]:
        found = relevant(program, keys, **words)
        passed.append(sum(program.module(key).text.count("\n") for key in found))
        return found

    run.relevant_modules = screened
    Sources._load = clock.timed("read", Sources._load)  # type: ignore[method-assign]
    definitions.read = clock.timed("parse", definitions.read)
    definitions.lower = clock.timed("lower", definitions.lower)
    run._analyse = clock.timed("flow", run._analyse)
    judging.ask_rules = clock.timed("rules", judging.ask_rules)
    os.chdir(folder)
    result = clock.timed("rest", memlint.lint)(["."], isolated=True, jobs=1)
    lines = sum(path.read_bytes().count(b"\n") for path in Path().rglob("*.py"))
    return {
        "files": result.summary.files,
        "lines": lines,
        "screened": sum(passed),
        "findings": len(result.findings),
        "seconds": {**clock.spent, "start": started},
    }


def summary(name: str, runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The medians of several runs of one folder."""
    seconds = {stage: statistics.median(run["seconds"][stage] for run in runs) for stage in STAGES}
    work = sum(seconds.values()) - seconds["start"]
    lines, screened = runs[0]["lines"], runs[0]["screened"]
    return {
        "name": name,
        "files": runs[0]["files"],
        "lines": lines,
        "lines_that_pass_the_screen": screened,
        "cpu_seconds": {stage: round(value, 3) for stage, value in seconds.items()},
        "shares": {stage: round(seconds[stage] / work, 3) for stage in STAGES if stage != "start"},
        "lines_a_second": {
            **{stage: round(lines / seconds[stage]) for stage in STAGES if stage != "start" and seconds[stage] > 0.001},
            "all": round(lines / work),
            "all_that_pass_the_screen": round(screened / work),
        },
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the median counts")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "throughput.json")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.folders[0])))
        return
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    runs: dict[str, list[dict[str, Any]]] = {}
    for _ in range(arguments.repeat):  # alternating, so that a machine that slows down slows all of them
        for folder in arguments.folders:
            command = [sys.executable, __file__, "--one", str(folder.resolve())]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, env=environment)
            runs.setdefault(folder.name, []).append(json.loads(done.stdout))
    rows = [summary(name, found) for name, found in runs.items()]
    work = sum(sum(row["cpu_seconds"].values()) - row["cpu_seconds"]["start"] for row in rows)
    result = {
        "command": f"python benchmarks/throughput.py {' '.join(runs)}",
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, {platform.system()}",
        "versions": {"python": platform.python_version(), **{name: version(name) for name in ("libcst", "msgspec")}},
        "runs": arguments.repeat,
        "lines": sum(row["lines"] for row in rows),
        "lines_a_second": round(sum(row["lines"] for row in rows) / work),
        "lines_a_second_that_pass_the_screen": round(sum(row["lines_that_pass_the_screen"] for row in rows) / work),
        "folders": rows,
    }
    arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
