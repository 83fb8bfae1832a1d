#!/usr/bin/env python3
"""How fast memlint is beside other linters, and whether that is as fast as it should be:

    python benchmarks/run.py --measure          benchmarks/results/speed.json and docs/speed.png
    python benchmarks/run.py --write            docs/speed.md from that file
    python benchmarks/run.py                    says whether the page is what the file gives

Everything is built in a work folder: packages of PyPI in pinned versions, unpacked, and each linter in a virtual
environment of its own, since flake8 runs every plugin that is installed beside it. Linters run in turns. A row is
written once it is measured; ``--only ROW…`` measures some anew and keeps the others, where machine and versions are
the same. Each row names the commit of memlint that it was measured with.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import speed_page  # noqa: E402
from speed_rows import ROWS, Bench, adopt_orphans, measured  # noqa: E402
from speed_setup import PACKAGES, PEERS, ROOT, Work  # noqa: E402


def machine() -> dict[str, Any]:
    """What the figures depend on, beside the versions."""
    models = [line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    memory = [int(line.split()[1]) for line in _lines("/proc/meminfo") if line.startswith("MemTotal")]
    return {
        "cpu": models[0] if models else platform.processor() or platform.machine(),
        "cpus": os.cpu_count(),
        "memory_gib": round(memory[0] / 2**20) if memory else None,
        "system": f"{platform.system()} {platform.machine()}",
    }


def _lines(path: str) -> list[str]:
    return Path(path).read_text("utf-8").splitlines() if Path(path).exists() else []


def versions(work: Work) -> dict[str, str]:
    """Of all that takes part, but for memlint."""
    parts = work.versions("memlint", ("libcst", "msgspec"))
    return {"python": platform.python_version(), **PEERS, **PACKAGES, **parts}


def commit() -> str:
    """Memlint's own version; a plus sign where files of it differ from what was committed."""
    head = subprocess.check_output(["git", "rev-parse", "--short=10", "HEAD"], cwd=ROOT, text=True).strip()
    changed = subprocess.check_output(["git", "status", "--porcelain", "memlint", "rules"], cwd=ROOT, text=True)
    return head + "+" * bool(changed.strip())


def measure(bench: Bench, out: Path, only: list[str] | None) -> None:
    """Measure the rows and write each one once it is there."""
    about = {"machine": machine(), "versions": versions(bench.work)}
    old = json.loads(out.read_text("utf-8")) if out.exists() and only else {}
    kept = old.get("rows", []) if all(old.get(key) == about[key] for key in about) else []
    rows = {row["row"]: row for row in kept}
    adopt_orphans()
    for name in only or ROWS:
        print(name, flush=True)
        rows[name] = {**measured(name, bench), "memlint": commit()}
        ordered = [rows[known] for known in ROWS if known in rows]
        result = {"command": "python benchmarks/run.py --measure", **about, "rows": ordered}
        out.write_text(json.dumps(result, indent=1) + "\n", "utf-8")


def draw(work: Work, out: Path) -> None:
    """The plot, by a Python that has what draws it."""
    subprocess.run([work.bin("plot") / "python", HERE / "speed_plot.py", out], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true", help="measure, draw, and write the results")
    parser.add_argument("--only", nargs="+", choices=ROWS, metavar="ROW", help=f"measure these of {', '.join(ROWS)}")
    parser.add_argument("--runs", type=int, default=3, help="runs of each command, five times as many of short ones")
    parser.add_argument("--patience", type=float, default=600, help="seconds after which one is not repeated")
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "speed", help="folder for all that is built")
    parser.add_argument("--out", type=Path, default=speed_page.RESULT)
    parser.add_argument("--plot", action="store_true", help="draw the plot again")
    parser.add_argument("--write", action="store_true", help="write the page")
    args = parser.parse_args()
    if args.measure or args.only:
        measure(Bench(Work(args.work), args.runs, args.patience), args.out, args.only)
    if args.plot or args.measure or args.only:
        draw(Work(args.work), args.out)
    if not speed_page.RESULT.exists():
        print(f"{speed_page.RESULT.name}: not there; run `python benchmarks/run.py --measure`")
        return 1
    wanted = speed_page.page()
    if args.write:
        speed_page.PAGE.write_text(wanted, "utf-8")
    same = speed_page.PAGE.exists() and speed_page.PAGE.read_text("utf-8") == wanted
    print(f"{speed_page.PAGE.name}: {'is' if same else 'differs from'} what was measured")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
