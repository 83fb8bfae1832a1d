"""The rows of benchmarks/run.py: what is run in each, and which goals it is held against."""

from __future__ import annotations

import ctypes
import functools
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from speed_setup import FILES, SAMPLES, Work, lines_of

#: what each linter is told, in the folder that it checks
CHECK = ["check", "--isolated", "--exit-zero", "--quiet"]
COMMANDS = {
    "memlint": ["memlint", *CHECK, "--no-cache", "."],
    "torch-preflight": ["torch-preflight", "check", "--quiet", "."],
    "torchfix": ["torchfix", "."],
    "flake8": ["flake8", "--isolated", "--select=E9", "."],
    "ruff": ["ruff", "check", "--isolated", "--no-cache", "--exit-zero", "--quiet", "."],
}
#: lines of the largest tree that a linter is shown
LARGEST = {"torch-preflight": 150_000, "torchfix": 150_000}
#: where the row of one edited file edits: in the body of a method that the classes of many other files inherit
EDITED = "transformers/models/llama/modeling_llama.py"
AFTER = "        hidden_states = self.input_layernorm(hidden_states)\n"
#: CPU seconds that a round must take in all before it is no longer repeated five times as often
SHORT = 8.0
#: of prctl(2)
_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Case:
    """One command in one folder. ``before`` is called before each run, and not measured."""

    name: str
    command: Sequence[str]
    folder: Path
    environment: dict[str, str] = field(default_factory=dict)
    before: Callable[[], None] | None = None
    linter: str = "memlint"


@dataclass(frozen=True)
class Bench:
    """``runs``: of each case, more of short ones; ``patience``: seconds after which a case is not repeated."""

    work: Work
    runs: int
    patience: float

    def linter(self, name: str, tree: Path) -> Case:
        command, *words = COMMANDS[name]
        return Case(name, [str(self.work.bin(name) / command), *words], tree, linter=name)

    def memlint(self, name: str, tree: Path, *words: str, cache: Path | None = None, **more: Any) -> Case:
        """With a cache at ``cache``, or none."""
        command = [str(self.work.bin("memlint") / "memlint"), *CHECK, *([] if cache else ["--no-cache"])]
        environment = {"MEMLINT_CACHE_DIR": str(cache)} if cache else {}
        return Case(name, [*command, *(words or ["."])], tree, environment, **more)

    def cache(self, name: str) -> Path:
        return self.work.folder / "caches" / name

    def fill(self, case: Case) -> None:
        """Run a case once, unmeasured, so that its cache is filled."""
        _once(case, self.work.folder / "last-output.txt")

    def alternate(self, cases: Sequence[Case], more: int = 1) -> list[dict[str, Any]]:
        """The cases in turns, so that a machine that slows down slows all of them. ``more``: times as many runs."""
        found: dict[str, list[dict[str, float]]] = {case.name: [] for case in cases}
        wanted, turn = self.runs * more, 0
        while turn < wanted:
            for case in cases:
                if sum(run["wall"] for run in found[case.name]) <= self.patience:
                    found[case.name].append(_once(case, self.work.folder / "last-output.txt"))
                    last = found[case.name][-1]
                    print(f"  {case.name}: {last['cpu']:.3f} s CPU, {last['wall']:.3f} s", flush=True)
            turn += 1
            if turn == 1 and sum(runs[0]["cpu"] for runs in found.values()) < SHORT:
                wanted *= 5
        return [_summary(case, found[case.name]) for case in cases]


def _once(case: Case, output: Path) -> dict[str, float]:
    """One run: CPU seconds of the process and of all that it started, wall time, and the largest memory that one of
    these processes had. Its output goes to a file, which is read for what would make the run void."""
    if case.before is not None:
        case.before()
    environment = {**os.environ, **case.environment}
    with output.open("wb") as out:
        started = time.perf_counter()
        child = subprocess.Popen(case.command, cwd=case.folder, env=environment, stdout=out, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - started
    left = _left_behind()
    child.returncode = os.waitstatus_to_exitcode(status)
    said = output.read_text("utf-8", "replace")
    void = " 0 file" in said[-300:] and any(case.folder.rglob("*.py"))  # linters leave out folders of some names
    if child.returncode not in (0, 1) or void or "Traceback" in said[-3000:]:
        raise SystemExit(f"{case.name} in {case.folder} failed with {child.returncode}: {said[-2000:]}")
    every = [used, *left]
    return {
        "cpu": sum(one.ru_utime + one.ru_stime for one in every),
        "wall": wall,
        "memory": max(one.ru_maxrss for one in every) * 1024,
    }


def _left_behind() -> list[Any]:
    """What was used by processes that a command did not wait for, once they are done: the one that starts workers
    (multiprocessing's fork server) ends behind the command, and their time is counted to it."""
    used = []
    while True:
        try:
            used.append(os.wait4(-1, 0)[2])
        except ChildProcessError:
            return used


def adopt_orphans() -> None:
    """Make processes whose parents are gone children of this one (Linux), so that `_left_behind` sees them."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _summary(case: Case, runs: list[dict[str, float]]) -> dict[str, Any]:
    files, lines = lines_of(case.folder)
    found: dict[str, Any] = {
        "name": case.name,
        "linter": case.linter,
        "files": files,
        "lines": lines,
        "runs": len(runs),
    }
    for key in ("cpu", "wall"):
        found[key] = round(statistics.median(run[key] for run in runs), 4)
        found[f"{key}_min"] = round(min(run[key] for run in runs), 4)
    return found | {"memory": round(max(run["memory"] for run in runs))}


def timm(bench: Bench) -> list[dict[str, Any]]:
    tree = bench.work.tree("timm")
    return bench.alternate([bench.linter(name, tree) for name in COMMANDS])


def cold(bench: Bench) -> list[dict[str, Any]]:
    cache, tree = bench.cache("transformers"), bench.work.tree("transformers")
    empty = lambda: shutil.rmtree(cache, ignore_errors=True)  # noqa: E731
    return bench.alternate([bench.memlint("cold", tree, cache=cache, before=empty)])


def warm(bench: Bench) -> list[dict[str, Any]]:
    case = bench.memlint("warm", bench.work.tree("transformers"), cache=bench.cache("transformers"))
    bench.fill(case)
    return bench.alternate([case])


def edited(bench: Bench) -> list[dict[str, Any]]:
    tree = bench.work.tree("transformers")
    file = tree / EDITED
    text = file.read_text("utf-8")
    if AFTER not in text:
        raise SystemExit(f"{EDITED} has no line to edit after")

    def edit() -> None:  # another one each time, so that no cache has seen it
        line = f"        scale_{time.time_ns()} = 2 * len(kwargs)\n"
        file.write_text(text.replace(AFTER, AFTER + line, 1), "utf-8")

    cache = bench.cache("transformers")
    bench.fill(bench.memlint("whole", tree, cache=cache))
    try:
        return bench.alternate([bench.memlint("edited", tree, cache=cache, before=edit)])
    finally:
        file.write_text(text, "utf-8")


def script(bench: Bench) -> list[dict[str, Any]]:
    tree, cache = bench.work.script(), bench.cache("script")
    first = bench.memlint("cold", tree, "train.py")
    second = bench.memlint("warm", tree, "train.py", cache=cache)
    bench.fill(second)
    return bench.alternate([first, second])


def plugin(bench: Bench) -> list[dict[str, Any]]:
    tree, words = bench.work.torch_free(), ["--isolated", "module.py"]
    both, alone = (str(bench.work.bin(name) / "flake8") for name in ("flake8-memlint", "flake8"))
    cases = [Case("with memlint", [both, *words], tree), Case("alone", [alone, *words], tree, linter="flake8")]
    return bench.alternate(cases, more=4)


def growth(bench: Bench) -> list[dict[str, Any]]:
    names = ["empty", *(f"{count} files" for count in FILES), "one file", "its lines in 100 files"]
    return bench.alternate([bench.memlint(name, bench.work.grown(name)) for name in names])


def peak(bench: Bench) -> list[dict[str, Any]]:
    return bench.alternate([bench.linter("memlint", bench.work.tree("timm", "transformers"))])


def torch(bench: Bench) -> list[dict[str, Any]]:
    tree = bench.work.tree("torch")
    return bench.alternate([bench.linter(name, tree) for name in ("memlint", "flake8", "ruff")])


def sample(bench: Bench, lines: int) -> list[dict[str, Any]]:
    tree = bench.work.sample(lines)
    return bench.alternate([bench.linter(name, tree) for name in COMMANDS if lines <= LARGEST.get(name, lines)])


def whole(bench: Bench) -> list[dict[str, Any]]:
    """What is to be seen beside memlint's time of the row `peak`."""
    return bench.alternate([bench.linter(name, bench.work.tree("timm", "transformers")) for name in ("flake8", "ruff")])


@dataclass(frozen=True)
class Row:
    """``title``: what the issue calls it. ``goals``: see `compared`."""

    title: str
    measure: Callable[[Bench], list[dict[str, Any]]]
    goals: Callable[[dict[str, dict[str, Any]]], Iterator[dict[str, Any]]]


def _goal(what: str, value: float, unit: str, goal: float, floor: float | None = None) -> dict[str, Any]:
    """A measured value that should be at most ``goal``, and must be at most ``floor``."""
    said = "met" if value <= goal else "floor" if floor is not None and value <= floor else "missed"
    return {"what": what, "value": round(value, 5), "unit": unit, "goal": goal, "floor": floor, "said": said}


def _timm_goals(cases: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    goals = {"torch-preflight": (1 / 40, 1 / 12), "flake8": (1 / 3, 1.0), "ruff": (8.0, None)}
    for name, (goal, floor) in goals.items():
        yield _goal(f"CPU, of that of {name}", cases["memlint"]["cpu"] / cases[name]["cpu"], "times", goal, floor)


def _script_goals(cases: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    yield _goal("wall, cold", cases["cold"]["wall"], "s", 0.5, 0.8)
    yield _goal("wall, warm", cases["warm"]["wall"], "s", 0.2, 0.3)


def _plugin_goals(cases: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    more = cases["with memlint"]["cpu"] - cases["alone"]["cpu"]
    yield _goal("CPU over that of flake8 alone", more * 1000, "ms", 1.0, 3.0)


def _growth_goals(cases: dict[str, dict[str, Any]]) -> Iterator[dict[str, Any]]:
    costs = [_cost(cases, f"{count} files") for count in FILES]
    spread = (max(costs) - min(costs)) / (max(costs) + min(costs))
    yield _goal("CPU a thousand lines, apart from their middle", spread * 100, "%", 10.0)
    ratio = _cost(cases, "one file") / _cost(cases, "its lines in 100 files")
    yield _goal("CPU of one file of 50,000 lines, of that of its lines in 100 files", ratio, "times", 1.3)


def _cost(cases: dict[str, dict[str, Any]], name: str) -> float:
    """CPU seconds a thousand lines, without those of a run on nothing."""
    return float(1000 * (cases[name]["cpu"] - cases["empty"]["cpu"]) / cases[name]["lines"])


def _one(what: str, case: str, key: str, unit: str, goal: float, floor: float) -> Any:
    scale = 1e-6 if unit == "MB" else 1
    return lambda cases: iter([_goal(what, cases[case][key] * scale, unit, goal, floor)])


ROWS = {
    "plugin": Row("a torch-free file through the flake8 plugin", plugin, _plugin_goals),
    "script": Row("one 300-line training script with its project imports", script, _script_goals),
    "growth": Row("growth", growth, _growth_goals),
    "timm": Row("timm, cold, no cache", timm, _timm_goals),
    "cold": Row("transformers, cold", cold, _one("CPU", "cold", "cpu", "s", 25, 60)),
    "warm": Row("transformers, warm, nothing changed", warm, _one("wall", "warm", "wall", "s", 0.6, 1.0)),
    "edited": Row("transformers, one file edited", edited, _one("wall", "edited", "wall", "s", 1.0, 2.0)),
    "peak": Row("peak memory on 1.3 M lines", peak, _one("of a process", "memlint", "memory", "MB", 300, 500)),
    "torch": Row("torch's own sources, cold", torch, lambda cases: iter(())),
    "whole": Row("CPU time of 1.3 M lines", whole, lambda cases: iter(())),
    **{
        f"sample-{lines}": Row(
            f"CPU time of {lines:,} lines", functools.partial(sample, lines=lines), lambda _: iter(())
        )
        for lines in SAMPLES
    },
}


def measured(name: str, bench: Bench) -> dict[str, Any]:
    """One row as the results hold it."""
    load, row = round(os.getloadavg()[0], 1), ROWS[name]
    cases = row.measure(bench)
    goals = list(row.goals({case["name"]: case for case in cases}))
    print(json.dumps(goals), flush=True)
    return {"row": name, "title": row.title, "load": load, "cases": cases, "goals": goals}
