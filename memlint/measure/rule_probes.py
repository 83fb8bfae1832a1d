"""Measures rules' probes, the `probe.py` in a rule's folder: ``python launch.py --rule-probes JOB``.

A probe has pairs of generator functions, ``bad(device)`` and ``good(device)``, ``bad_case`` and ``good_case``: endless
loops that yield once an iteration. ``CLAIMS`` says for each case what the bad variant wastes (one of `KINDS`).
``ACCELERATOR_ONLY`` names the cases that are skipped on a CPU. The title of a variant is the first line of its
docstring.
"""

from __future__ import annotations

import contextlib
import gc
import importlib.util
import itertools
import json
import platform
import statistics
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

from .memory.host import host_meter
from .memory.meters import allocator_reason
from .memory.tracker import Ledger, tracker
from .retention.graph import walk
from .retention.values import tensors_in

KINDS = ("device", "host", "peak", "time")
#: iterations before the measurement, in which libraries allocate their workspaces
_REHEARSED = 2
#: the number of times that bad and good are timed in turn
_TURNS = 3

Variant = Callable[[str], Iterator[None]]


class ProbeError(Exception):
    """An error in a probe, or a device that cannot be measured."""


def main(job_path: str) -> int:
    """Measure the rules of a job. Writes a line of JSON for the machine, and lines for each rule as soon as it is
    measured."""
    with open(job_path, encoding="utf-8") as file:
        job: dict[str, Any] = json.load(file)
    sys.path.pop(0)  # this folder, so that a probe's imports do not find its modules
    import torch

    gc.collect()
    gc.freeze()  # torch's objects are excluded from the collection after each iteration
    torch.set_num_threads(1)  # enough for small tensors, and reproducible

    with open(job["output"], "a", encoding="utf-8") as out:

        def tell(row: dict[str, Any]) -> None:
            out.write(json.dumps(row) + "\n")
            out.flush()

        try:
            device = _device(job["device"], torch)
        except ProbeError as error:
            tell({"reason": str(error)})
            return 2
        tell({"machine": _machine(device, torch)})
        for rule in job["rules"]:
            tell({"started": rule["code"]})
            bench = Bench(device, job["warmup"], job["window"], torch)
            try:
                tell({"code": rule["code"], "cases": _cases(rule, bench)})
            except ProbeError as error:
                tell({"code": rule["code"], "error": str(error)})
            except (Exception, SystemExit):
                tell({"code": rule["code"], "error": traceback.format_exc(limit=-3).strip()})
    return 0


def _device(wanted: str, torch: Any) -> str:
    there = torch.cuda.is_available()
    if wanted == "cuda" and not there:
        raise ProbeError("torch finds no CUDA device")
    if wanted == "cpu" or not there:
        return "cpu"
    if (reason := allocator_reason(torch)) is not None:
        raise ProbeError(reason)
    torch.cuda.init()
    return "cuda"


def _machine(device: str, torch: Any) -> dict[str, str]:
    name = torch.cuda.get_device_name() if device == "cuda" else _processor()
    return {
        "device": device,
        "hardware": name,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "system": f"{platform.system()} {platform.machine()}",
    }


def _processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return next(line.partition(":")[2].strip() for line in file if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _cases(rule: dict[str, str], bench: Bench) -> list[dict[str, Any]]:
    probe = _load(rule["path"], rule["code"])
    claims = getattr(probe, "CLAIMS", None)
    if not isinstance(claims, dict) or not claims:
        raise ProbeError('probe.py needs CLAIMS, such as {"": "device"} for bad() and good()')
    cases = []
    for case, claim in claims.items():
        if claim not in KINDS:
            raise ProbeError(f"CLAIMS: {claim!r} is none of {', '.join(KINDS)}")
        if bench.device == "cpu" and case in getattr(probe, "ACCELERATOR_ONLY", ()):
            continue
        bad, good = (_variant(probe, kind, case) for kind in ("bad", "good"))
        row: dict[str, Any] = {"case": case, "claim": claim}
        for kind, variant in (("bad", bad), ("good", good)):
            row[kind] = {"title": _title(variant), **bench.measure(variant)}
        if claim == "time":
            for kind, seconds in zip(("bad", "good"), bench.time(bad, good), strict=True):
                row[kind]["seconds_per_iteration"] = seconds
        cases.append(row)
    return cases


def _load(path: str, code: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"memlint_probe_{code.lower()}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _variant(probe: ModuleType, kind: str, case: str) -> Variant:
    name = f"{kind}_{case}" if case else kind
    found = getattr(probe, name, None)
    if not callable(found):
        raise ProbeError(f"probe.py has no {name}(device)")
    return found  # type: ignore[no-any-return]


def _title(variant: Variant) -> str:
    return (variant.__doc__ or variant.__name__).strip().splitlines()[0]


class Bench:
    """Runs variants: once for their bytes, once for their graphs, and in turn for their time, since each measurement
    would disturb the others."""

    def __init__(self, device: str, warmup: int, window: int, torch: Any) -> None:
        self.device = device
        self._warmup = warmup
        self._window = window
        self._torch = torch
        self._host = host_meter()

    def measure(self, variant: Variant) -> dict[str, Any]:
        """The bytes that an iteration leaves after a garbage collection, and the peak above the bytes at the start."""
        self._run(variant, _REHEARSED)
        return {**self._bytes(variant), "graph_nodes_per_iteration": self._nodes(variant)}

    def time(self, bad: Variant, good: Variant) -> list[float]:
        """The median seconds of an iteration of each."""
        seconds: dict[Variant, list[float]] = {bad: [], good: []}
        for _ in range(_TURNS):
            for variant in (bad, good):
                steps = self._begin(variant)
                for number in range(self._warmup + self._window):
                    before = time.perf_counter()
                    next(steps)
                    self._wait()
                    if number >= self._warmup:
                        seconds[variant].append(time.perf_counter() - before)
                _close(steps)
        return [statistics.median(seconds[variant]) for variant in (bad, good)]

    def _begin(self, variant: Variant) -> Iterator[None]:
        gc.collect()
        self._torch.manual_seed(0)
        steps = variant(self.device)
        if not hasattr(steps, "gi_frame"):
            raise ProbeError(f"{variant.__name__}(device) is no generator: it must yield once an iteration")
        return steps

    def _run(self, variant: Variant, iterations: int) -> None:
        steps = self._begin(variant)
        for _ in range(iterations):
            _step(steps, variant)
        _close(steps)
        del steps
        gc.collect()

    def _bytes(self, variant: Variant) -> dict[str, Any]:
        ledger = Ledger()
        before = self._live(ledger)
        live, host = [], []
        with tracker(ledger, self._torch) if self.device == "cpu" else contextlib.nullcontext():
            steps = self._begin(variant)
            for number in range(self._warmup + self._window + 1):
                if number == self._warmup:
                    self._reset_peak(ledger)
                _step(steps, variant)
                gc.collect()
                live.append(self._live(ledger))
                host.append(0 if self._host is None else self._host() - ledger.total)
            peak = self._live(ledger, "peak") - before
            _close(steps)
        gained = _gained(live[self._warmup :])
        least, most = min(gained), max(gained)
        return {
            "bytes_per_iteration": {"min": least, "max": most, "exact": least if least == most else None},
            "host_bytes_per_iteration": (
                None if self._host is None else (host[-1] - host[self._warmup]) // self._window
            ),
            "peak_bytes": peak,
        }

    def _live(self, ledger: Ledger, which: str = "current") -> int:
        """The live bytes of tensors on the device; on a CPU, of those in the ledger."""
        if self.device == "cpu":
            return ledger.total if which == "current" else ledger.peak
        index = self._torch.cuda.current_device()
        return int(self._torch._C._cuda_memoryStats(index)["requested_bytes"]["all"][which])

    def _reset_peak(self, ledger: Ledger) -> None:
        if self.device == "cpu":
            ledger.peak = ledger.total
        else:
            self._torch.cuda.reset_peak_memory_stats()

    def _nodes(self, variant: Variant) -> dict[str, int]:
        """The gain of autograd nodes in an iteration that the generator's variables hold."""
        counts = []
        steps: Any = self._begin(variant)
        for number in range(self._warmup + self._window + 1):
            _step(steps, variant)
            if number >= self._warmup:
                found = walk(list(tensors_in(steps.gi_frame.f_locals, self._torch)), set(), self._torch)
                counts.append(found.nodes)
        _close(steps)
        gained = _gained(counts)
        return {"min": min(gained), "max": max(gained)}

    def _wait(self) -> None:
        if self.device == "cuda":
            self._torch.cuda.synchronize()


def _gained(readings: list[int]) -> list[int]:
    return [after - before for before, after in itertools.pairwise(readings)]


def _close(steps: Any) -> None:
    steps.close()


def _step(steps: Iterator[None], variant: Variant) -> None:
    try:
        next(steps)
    except StopIteration:
        raise ProbeError(f"{variant.__name__}(device) ended: it must go on for as long as it is asked") from None
