"""What the practices that articles on the memory of PyTorch recommend save, and what they cost, each measured by a pair
of programs (benchmarks/programs/practice_pairs.py) with and without it, at two sizes, each in its own process:

    python benchmarks/practices.py --measure        where CUDA is: benchmarks/results/practices_h200.json
    python benchmarks/practices.py --write          docs/practices.md from that file, without torch
    python benchmarks/practices.py                  says whether the page is what the file gives

Peaks are those of the caching allocator, from the end of the set-up on. A step's time is the median of stretches of
steps, with the device synchronized around each stretch. Another run says whether the bytes are the same again.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import multiprocessing
import os
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULT = HERE / "results" / "practices_h200.json"
PAGE = HERE.parent / "docs" / "practices.md"
SIZES = ("small", "large")
WARM_UP, STRETCHES, STEPS = 3, 3, 5
#: practices whose programs start together
AT_ONCE = 2
LIMIT_SECONDS = 60
#: mallopt: blocks from here on come from the kernel, and go back to it when they are freed
_M_MMAP_THRESHOLD, _BLOCK = -3, 65536
#: name, size, whether with the practice, stretches
Case = tuple[str, str, bool, int]
sys.path.insert(0, str(HERE / "programs"))


def measure(name: str, size: str, used: bool, stretches: int) -> dict[str, Any]:
    """What one program takes, in this process."""
    import practice_pairs as pairs
    import torch

    host, steps = name in pairs.HOST, pairs.STEPS.get(name, STEPS)
    if host:
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _BLOCK)
    torch.manual_seed(0)
    program = getattr(pairs, name)(size, used)
    next(program)
    cuda = torch.cuda.is_initialized()
    if cuda:
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
    for _ in range(WARM_UP):
        next(program)
        start = pairs.mark(start=True)
    seconds = []
    for _ in range(stretches):
        begun = _now(cuda)
        for _ in range(steps):
            next(program)
        seconds.append((_now(cuda) - begun) / steps)
        pairs.mark()
    found: dict[str, Any] = {"seconds": round(statistics.median(seconds), 6)}
    if host:
        return found | {"host": pairs.mark() - start}
    return found | {"allocated": torch.cuda.max_memory_allocated(), "reserved": torch.cuda.max_memory_reserved()}


def _now(cuda: bool) -> float:
    import torch

    if cuda:
        torch.cuda.synchronize()
    return time.perf_counter()


def turns(cases: list[Case]) -> list[dict[str, Any] | None]:
    """What each program takes, one after the other; None where one failed. All have their CUDA context before the first
    begins, since that takes longer than most programs. Each is a fork of this process, which has imported torch and not
    touched the device, or a new process where its environment is another.
    """
    import practice_pairs as pairs

    context = multiprocessing.get_context("fork")
    forks: list[tuple[Any, Any] | None] = []
    for case in cases:
        if case[2] and case[0] in pairs.ENVIRONMENT:
            forks.append(None)
            continue
        here, there = context.Pipe()
        forks.append((here, context.Process(target=_fork, args=(there, case))))
        forks[-1][1].start()
        there.close()
    for fork in filter(None, forks):
        _answer(fork[0])
    found = []
    for case, fork in zip(cases, forks, strict=True):
        if fork is None:
            found.append(_fresh(case, pairs.ENVIRONMENT[case[0]]))
            continue
        found.append(_answer(fork[0], go=True))
        fork[1].kill()
        fork[1].join()
    return found


def _fork(pipe: Any, case: Case) -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.init()
    pipe.send(None)
    pipe.recv()
    pipe.send(measure(*case))


def _answer(pipe: Any, go: bool = False) -> dict[str, Any] | None:
    try:
        if go:
            pipe.send(None)
        return pipe.recv() if pipe.poll(LIMIT_SECONDS) else None
    except (EOFError, OSError):
        return None


def _fresh(case: Case, environment: dict[str, str]) -> dict[str, Any] | None:
    command = [sys.executable, __file__, "--program", *(str(part) for part in case)]
    try:
        said = subprocess.check_output(command, env={**os.environ, **environment}, text=True, timeout=LIMIT_SECONDS)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
        return None
    found: dict[str, Any] = json.loads(said.splitlines()[-1])
    return found


def rows_of(names: list[str]) -> list[dict[str, Any]]:
    cases = [(name, size, used) for name in names for size in SIZES for used in (False, True)]
    runs = turns([(*case, stretches) for stretches in (STRETCHES, 1) for case in cases])
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for (name, size, used), timed, again in zip(cases, runs[: len(cases)], runs[len(cases) :], strict=True):
        if not timed or not again:
            print(f"failed: {name} {size} {used}", file=sys.stderr)
            continue
        row = rows.setdefault((name, size), {"practice": name, "size": size, "same_bytes": True})
        row["with" if used else "without"] = timed
        row["same_bytes"] &= all(timed.get(key) == again.get(key) for key in ("allocated", "reserved"))
    return [row for row in rows.values() if "without" in row and "with" in row]


def _machine() -> dict[str, Any]:
    """The device and the versions, asked for by another process: forks of one that has touched CUDA cannot use it."""
    script = (
        "import json, torch; cuda = torch.cuda; print(json.dumps({'device': cuda.get_device_name(), "
        "'devices': cuda.device_count(), 'versions': {'torch': torch.__version__, 'cuda': torch.version.cuda}}))"
    )
    found: dict[str, Any] = json.loads(subprocess.check_output([sys.executable, "-c", script], text=True))
    found["versions"]["python"] = platform.python_version()
    return found


def measure_all(out: Path, only: list[str] | None) -> int:
    """Writes the file anew after each few practices, so that a run which is cut short leaves what it had."""
    import practice_pairs as pairs

    begun, machine = time.perf_counter(), _machine()
    known = [one.__name__ for one in pairs.PRACTICES if pairs.DEVICES.get(one.__name__, 1) <= machine["devices"]]
    result = {"command": "python benchmarks/practices.py --measure", **machine}
    result |= {"warm_up": WARM_UP, "stretches": STRETCHES, "steps": STEPS, "rows": []}
    if only and out.exists():  # the others stay as they are, where it is the same machine
        old = json.loads(out.read_text("utf-8"))
        same = all(old[key] == machine[key] for key in ("device", "versions"))
        result["rows"] = [row for row in old["rows"] if same and row["practice"] not in only]
    names = [name for name in known if not only or name in only]
    for first in range(0, len(names), AT_ONCE):
        result["rows"] += rows_of(names[first : first + AT_ONCE])
        result["rows"].sort(key=lambda row: known.index(row["practice"]))
        out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")
        print(f"{time.perf_counter() - begun:.0f} s: {len(result['rows'])} rows", flush=True)
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="run the programs, and write the results")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="measure these, and keep the other rows")
    parser.add_argument("--out", type=Path, default=RESULT)
    parser.add_argument("--write", action="store_true", help="write the page")
    parser.add_argument("--program", nargs=4, metavar=("NAME", "SIZE", "USED", "STRETCHES"), help="run one program")
    args = parser.parse_args()
    if args.program:
        name, size, used, stretches = args.program
        print(json.dumps(measure(name, size, used == "True", int(stretches))))
        return 0
    if args.measure:
        return measure_all(args.out, args.only)
    if not RESULT.exists():
        print(f"{RESULT.name}: not there; run `python benchmarks/practices.py --measure` where CUDA is")
        return 1
    from practices_page import page

    wanted = page()
    if args.write:
        PAGE.write_text(wanted, "utf-8")
    same = PAGE.exists() and PAGE.read_text("utf-8") == wanted
    print(f"{PAGE.name}: {'is' if same else 'differs from'} what was measured")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
