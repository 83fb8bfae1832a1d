"""Whether ``memlint verify`` is right about each program of fixtures/verify, whose lines say what is so.

    python benchmarks/verify_programs.py --device cpu --python PATH_WITH_TORCH

Writes benchmarks/results/verify_programs_DEVICE.json: a row a run of a program, with the verdicts that stand in the
program and those that were given. Exit 1 where some run disagrees.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "verify")]

import table  # noqa: E402

from memlint import __version__  # noqa: E402

#: of a finding's verdict, what its row keeps
_KEPT = ("hits", "bytes_per_iteration", "host_bytes_per_iteration", "graph_nodes_per_iteration")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--python", default=sys.executable, help="has torch")
    parser.add_argument("-j", "--jobs", type=int, default=2, help="programs side by side")
    parser.add_argument("--only", nargs="+", help="these programs, and write no result")
    args = parser.parse_args()
    chosen = [run for run in table.runs() if not args.only or run.name.split()[0] in args.only]
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        rows = list(pool.map(lambda run: _row(run, args), chosen))
    agree = sum(row["agrees"] for row in rows)
    result = {
        "command": " ".join(["python", "benchmarks/verify_programs.py", *sys.argv[1:]]).replace(args.python, "PYTHON"),
        "memlint": __version__,
        **_versions(args),
        "programs": len({run.script for run in chosen}),
        "runs": len(rows),
        "agree": agree,
        "rows": rows,
    }
    if not args.only:
        target = HERE / "results" / f"verify_programs_{args.device}.json"
        target.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    for row in rows:
        if not row["agrees"]:
            print(json.dumps(row, indent=1))
    print(f"{agree} of {len(rows)} runs agree")
    return int(agree != len(rows))


def _row(run: table.Run, args: argparse.Namespace) -> dict[str, Any]:
    command = [sys.executable, "-m", "memlint", "verify", "--python", args.python]
    began = time.monotonic()
    done = subprocess.run(
        [*command, *table.arguments(run, args.device)],
        cwd=table.PROGRAMS,
        env={**os.environ, "PYTHONPATH": str(ROOT), "MEMLINT_LOCAL_RULES": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - began
    verdicts, unattributed = table.expected(run.script)
    row = {
        "program": run.name,
        "agrees": False,
        "seconds": round(seconds, 1),
        "expected": {"exit": table.expected_exit(run.script), "verdicts": verdicts, "unattributed": unattributed},
    }
    try:
        report = json.loads(done.stdout)
    except ValueError:
        return {**row, "exit": done.returncode, "error": done.stderr[-2000:]}
    verdicts, unattributed = table.said(report)
    row["given"] = {"exit": done.returncode, "verdicts": verdicts, "unattributed": unattributed}
    row["agrees"] = row["given"] == row["expected"]
    row["findings"] = [
        {"place": f"{one['path']}:{one['line']}", "code": one["code"], "verdict": one["verdict"]["verdict"]}
        | {name: one["verdict"][name] for name in _KEPT}
        for one in report["findings"]
    ]
    left = report["unattributed"]
    row["unattributed_bytes_per_iteration"] = left["bytes_per_iteration"] if left["loops"] else 0
    if not row["agrees"]:
        row["report"] = report
        row["error"] = done.stderr[-2000:]
    return row


def _versions(args: argparse.Namespace) -> dict[str, Any]:
    script = (
        "import json, platform, torch; cuda = torch.cuda.is_available(); print(json.dumps({"
        "'python': platform.python_version(), 'torch': torch.__version__, "
        "'cuda': torch.cuda.get_device_name() if cuda else None}))"
    )
    told = json.loads(subprocess.run([args.python, "-c", script], capture_output=True, text=True, check=True).stdout)
    on_cuda = told.pop("cuda")
    device = on_cuda if args.device == "cuda" else platform.processor() or platform.machine()
    return {"device": device, "system": platform.system(), **told}


if __name__ == "__main__":
    raise SystemExit(main())
