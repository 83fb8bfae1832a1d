"""How much slower a program is under ``memlint verify``, and whether it computes the same: in one run, alternating.

    python benchmarks/verify_overhead.py --device cpu --python PATH_WITH_TORCH

``rows`` are of the steps from the third on, by the clock. ``after``: steps behind the last thing that is read, in CPU
time on one core, for each pair of runs the ratio of the median step and of the mean one.

Writes benchmarks/results/verify_overhead_DEVICE.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
PROGRAM = HERE / "programs" / "train_net.py"
#: warm-up of caches, autotuning and the allocator
SKIPPED = 3
#: the window of the default settings ends here
WINDOW = 16
#: what of a leak becomes of its first window is waited for so many steps and seconds
LOOKED_AT = 1_000, 10.0
#: a model, and steps that are timed once all is measured
AFTER = (("mlp650", 600), ("mlp1900", 200), ("mlp2900", 60))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--models", nargs="+", default=["resnet18", "gpt2"])
    parser.add_argument("--pairs", type=int, default=7, help="of runs whose later steps are timed")
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    after: list[dict[str, Any]] = []
    result = {
        "command": " ".join(["python", "benchmarks/verify_overhead.py", *sys.argv[1:]]).replace(args.python, "PYTHON"),
        "machine": {"processor": platform.processor() or platform.machine(), "python": platform.python_version()},
        "torch": _torch(args.python),
        "load": [round(each, 2) for each in os.getloadavg()],
        "rows": rows,
        "after": after,
    }
    target = HERE / "results" / f"verify_overhead_{args.device}.json"

    def add(table: list[dict[str, Any]], row: dict[str, Any]) -> None:  # a run that is cut short has told something
        table.append(row)
        print(json.dumps(row), flush=True)
        target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")

    for model, steps in AFTER if args.pairs else ():
        add(after, _after(model, steps, args))
    for model in args.models:
        add(rows, _measure(model, args))
    return 0


def _measure(model: str, args: argparse.Namespace) -> dict[str, Any]:
    plain: list[dict[str, Any]] = []
    probed: list[dict[str, Any]] = []
    for _ in range(args.rounds):
        plain.append(_program(model, args, verify=False))
        probed.append(_program(model, args, verify=True))

    def median(runs: list[dict[str, Any]], first: int, last: int | None) -> float:
        return statistics.median(second for run in runs for second in run["seconds"][first:last])

    return {
        "model": model,
        "steps": args.steps,
        "rounds": args.rounds,
        "step_ms": round(1000 * median(plain, SKIPPED, None), 3),
        "ratio": round(median(probed, SKIPPED, None) / median(plain, SKIPPED, None), 3),
        "ratio_in_window": round(median(probed, SKIPPED, WINDOW) / median(plain, SKIPPED, WINDOW), 3),
        "total_ratio": round(_total(probed) / _total(plain), 3),
        "same_results": all(_results(run) == _results(plain[0]) for run in (*plain, *probed)),
    }


def _after(model: str, steps: int, args: argparse.Namespace) -> dict[str, Any]:
    """Pairs of runs, one behind the other, the first of them in turn with probes and without."""
    few = _program(model, args, verify=False, steps=30)["cpu_seconds"][SKIPPED:]
    step = statistics.median(few)
    first = WINDOW * 3 + min(LOOKED_AT[0], round(2 * LOOKED_AT[1] / step))
    ratios: list[tuple[float, float]] = []
    each: list[float] = []
    for pair in range(args.pairs):
        runs = {
            verify: _program(model, args, verify=verify, steps=first + steps)["cpu_seconds"][first:]
            for verify in (pair % 2 == 0, pair % 2 == 1)
        }
        each.append(statistics.median(runs[False]))
        ratios.append(
            (statistics.median(runs[True]) / each[-1], statistics.fmean(runs[True]) / statistics.fmean(runs[False]))
        )
    medians, means = (sorted(round(one, 3) for one in column) for column in zip(*ratios, strict=True))
    return {
        "model": model,
        "steps_before": first,
        "steps": steps,
        "step_ms": round(1000 * statistics.median(each), 3),
        "ratio": statistics.median(medians),
        "ratios": medians,
        "mean_ratio": statistics.median(means),
        "mean_ratios": means,
    }


def _total(runs: list[dict[str, Any]]) -> float:
    return statistics.median(sum(run["seconds"][SKIPPED:]) for run in runs)


def _results(run: dict[str, Any]) -> tuple[Any, ...]:
    return run["loss"], run["history"], run["parameters"]


def _program(model: str, args: argparse.Namespace, *, verify: bool, steps: int | None = None) -> dict[str, Any]:
    """One run. ``steps``: other than those asked for, on one core."""
    options = ["--model", model, "--device", args.device, "--steps", str(steps or args.steps)]
    command = [args.python, str(PROGRAM), *options]
    if verify:
        own = [sys.executable, "-m", "memlint", "verify", str(PROGRAM), "--full", "--quiet", "--isolated"]
        command = [*own, "--device", args.device, "--python", args.python, "--", *options]
    environment = {**os.environ, "CUBLAS_WORKSPACE_CONFIG": ":4096:8"}  # which deterministic algorithms ask for
    if steps is not None:
        environment |= {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"seconds"')]
    if len(lines) != 1:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}\n{done.stderr}")
    result: dict[str, Any] = json.loads(lines[0])
    return result


def _torch(python: str) -> str:
    script = (
        "import torch; print(torch.__version__, torch.cuda.get_device_name() if torch.cuda.is_available() else 'cpu')"
    )
    return subprocess.run([python, "-c", script], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    raise SystemExit(main())
