"""Measurement of the rules: each rule's `probe.py` shows what the rule claims, and that its good form does not."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from memlint import __version__
from memlint.config import Config, ConfigError, nearest
from memlint.engine.rules.rooms import Room, load_rooms, own_rooms
from memlint.measure import launch
from memlint.verifier.processes.child import python_for, scratch_folder, terminable

PROBE = "probe.py"
VERSION = 1
#: the least factor by which a bad variant must need more memory or time, for a claim of peak or time to be true
LEAST_RATIO = 1.2

#: called with the code of each rule when it begins
Watch = Callable[[str], None]


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One pair of variants, as measured (see memlint.measure.rule_probes). ``shown``: the bad one shows what the rule
    claims and the good one does not; ``reason``: why not, else empty."""

    case: str
    claim: str
    shown: bool
    reason: str
    bad: dict[str, Any]
    good: dict[str, Any]


class Probed(msgspec.Struct, frozen=True):
    """A rule's cases; ``error`` if its probe did not run."""

    code: str
    name: str
    cases: tuple[Case, ...] = ()
    error: str = ""

    @property
    def shown(self) -> bool:
        return not self.error and all(case.shown for case in self.cases)


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One run. ``machine``: device, hardware, python, torch and system."""

    version: int
    command: str
    memlint: str
    machine: dict[str, str]
    warmup: int
    iterations: int
    rules: tuple[Probed, ...]


def probed_rooms(words: Sequence[str], config: Config) -> list[Room]:
    """The rules of these codes or names, or all with a probe. Raises ConfigError."""
    rooms = load_rooms(config.rule_paths, config.closed_rules)
    if not words:
        return [room for room in rooms.values() if _probe(room).is_file() and not room.closed]
    chosen = []
    for word in words:
        name = word.lower().replace("_", "-")
        room = next((each for code, each in rooms.items() if word.upper() == code or name == each.meta.name), None)
        if room is None:
            known = [*rooms, *(each.meta.name for each in rooms.values())]
            raise ConfigError(f"unknown rule `{word}`{nearest(word, known)}; `memlint rule` lists all rules")
        if not _probe(room).is_file():
            raise ConfigError(f"{room.meta.code} has no {PROBE}: there is nothing to measure")
        if room.closed:
            raise ConfigError(f"{room.meta.code} is a rule of this project: its probe runs with --local-rules only")
        chosen.append(room)
    return list(dict.fromkeys(chosen))


def _probe(room: Room) -> Path:
    return room.folder / PROBE


def measure(
    rooms: Sequence[Room],
    *,
    device: str,
    python: str | None,
    warmup: int,
    window: int,
    command: str,
    watch: Watch,
    timeout: float | None = None,
) -> Measured:
    """Run the probes of rules in a child with torch; a probe that ends the child affects only its own rule. Raises
    ConfigError if nothing can be measured."""
    interpreter = python_for(python)
    machine: dict[str, str] = {}
    done: dict[str, Probed] = {}
    left = list(rooms)
    while left:
        rows, end = _run(left, interpreter, device, warmup, window, watch, timeout)
        for row in rows:
            if "reason" in row:
                raise ConfigError(str(row["reason"]))
            machine = row.get("machine", machine)
        done |= _read(rows, left)
        running = [str(row["started"]) for row in rows if "started" in row]
        if not running:
            raise ConfigError(f"the probes cannot be run by {interpreter}: it {end}")
        if running[-1] not in done:
            room = next(room for room in left if room.meta.code == running[-1])
            done[running[-1]] = Probed(room.meta.code, room.meta.name, error=f"the process {end}")
        left = [room for room in left if room.meta.code not in done]
    return Measured(
        version=VERSION,
        command=command,
        memlint=__version__,
        machine=machine,
        warmup=warmup,
        iterations=window,
        rules=tuple(done[room.meta.code] for room in rooms),
    )


def _run(
    rooms: Sequence[Room], python: str, device: str, warmup: int, window: int, watch: Watch, timeout: float | None
) -> tuple[list[dict[str, Any]], str]:
    """The rows of one child, and how it ended."""
    with scratch_folder() as folder:
        output = Path(folder) / "rows.jsonl"
        output.touch()
        named = [{"code": room.meta.code, "path": str(_probe(room).absolute())} for room in rooms]
        job = {"device": device, "warmup": warmup, "window": window, "output": str(output), "rules": named}
        file = Path(folder) / "job.json"
        file.write_text(json.dumps(job), encoding="utf-8")
        with terminable():
            process = subprocess.Popen(
                [python, launch.__file__, "--rule-probes", str(file)], stdout=sys.stderr.fileno()
            )
            try:
                end = _wait(process, output, watch, timeout)
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()
        return _rows(output), end


def _wait(process: subprocess.Popen[bytes], output: Path, watch: Watch, timeout: float | None) -> str:
    """How the child ended; ``timeout``: seconds for one rule."""
    told, waited = "", 0.0
    while True:
        try:
            code = process.wait(0.2)
        except subprocess.TimeoutExpired:
            started = [row["started"] for row in _rows(output) if "started" in row]
            waited += 0.2
            if started and started[-1] != told:
                told, waited = started[-1], 0.0
                watch(told)
            if timeout is not None and waited > timeout:
                return f"took longer than {timeout:g} seconds"
            continue
        return f"was ended by signal {-code}" if code < 0 else f"ended with exit code {code}"


def _rows(output: Path) -> list[dict[str, Any]]:
    # the last line may be incomplete
    return [json.loads(line) for line in output.read_text("utf-8").split("\n")[:-1]]


def _read(rows: Sequence[Mapping[str, Any]], rooms: Sequence[Room]) -> dict[str, Probed]:
    names = {room.meta.code: room.meta.name for room in rooms}
    found = {}
    for row in rows:
        if "code" in row:
            cases = tuple(_judged(case) for case in row.get("cases", ()))
            found[row["code"]] = Probed(row["code"], names[row["code"]], cases, row.get("error", ""))
    return found


def _judged(row: Mapping[str, Any]) -> Case:
    reason = why_not(row["claim"], row["bad"], row["good"])
    return Case(case=row["case"], claim=row["claim"], shown=not reason, reason=reason, bad=row["bad"], good=row["good"])


def why_not(claim: str, bad: Mapping[str, Any], good: Mapping[str, Any]) -> str:
    """Why a pair does not show its claim; "" if it does. A claim of device or host memory is one of growth: in each
    iteration of the bad variant and in none of the good one. One of peak or time is a ratio."""
    if claim in ("device", "host"):
        key, what = {"device": ("bytes_per_iteration", "bytes"), "host": ("graph_nodes_per_iteration", "graph nodes")}[
            claim
        ]
        if bad[key]["min"] <= 0:
            return f"bad keeps no {what} in some iteration"
        if good[key]["max"] > 0:
            return f"good keeps {good[key]['max']:,} {what} in some iteration"
        return ""
    key, what = {"peak": ("peak_bytes", "at once"), "time": ("seconds_per_iteration", "of the time")}[claim]
    ratio = bad[key] / good[key] if good[key] else float("inf")
    return "" if ratio >= LEAST_RATIO else f"bad needs only {ratio:.2f} times as much {what}"


def default_output(measured: Measured) -> Path | None:
    """The file for a run of all rules: in a checkout, ``benchmarks/results/rules-DEVICE.json``."""
    folder = own_rooms().parent / "benchmarks" / "results"
    return folder / f"rules-{slug(measured.machine)}.json" if folder.is_dir() else None


def slug(machine: Mapping[str, str]) -> str:
    """cpu, or the accelerator's model as in file names: h200, geforce-rtx-4090."""
    if machine["device"] == "cpu":
        return "cpu"
    words = machine["hardware"].lower().replace("/", " ").split()
    return "-".join(word for word in words if word not in ("nvidia", "amd", "instinct")) or machine["device"]
