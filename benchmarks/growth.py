#!/usr/bin/env python3
"""How the cost of linting grows with the size of a program: ``python benchmarks/growth.py [FAMILY ...]``.

Each family (`growth_statements.py`, `growth_functions.py`, `growth_projects.py`) makes programs of one kind in several
sizes. Each program is linted in a process of its own, without a cache, and costs the CPU seconds of that process, what
is imported left out; all sizes of a family are measured one after the other, in alternating rounds. Of neighbouring
sizes, the exponent of the growth is given. Without names, writes ``benchmarks/results/growth.json``. Ends with 1 where
a family of programs that take over a second grows faster than ``--above``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

from growth_projects import FAMILIES
from growth_statements import HEAD, LOOP

HERE = Path(__file__).resolve().parent
# -------------------------------------------------------------------------------------------- measuring

CODE = """
import resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, (5 * 2**30, 5 * 2**30))
import memlint
memlint.lint(["empty"], preview=True)  # (what is imported once does not count)
start = time.process_time()
found = memlint.lint(["program"], preview=True)
print(time.process_time() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, len(found.findings))
print(*(remark for remark in (*found.remarks, *(one.reason for one in found.failures))), sep="\\n")
"""


def measure(files: dict[str, str], limit: float) -> tuple[float, int, int, str] | None:
    """CPU seconds, megabytes, findings and what was said of a program; None where it takes too long or fails."""
    with tempfile.TemporaryDirectory() as folder:
        for name, content in {**files, "pyproject.toml": ""}.items():
            path = Path(folder, "program", name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        empty = Path(folder, "empty", "m.py")
        empty.parent.mkdir()
        empty.with_name("pyproject.toml").touch()
        empty.write_text(HEAD + LOOP, encoding="utf-8")
        environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "PYTHONPATH": str(HERE.parent)}
        command = [sys.executable, "-c", CODE]
        try:
            done = subprocess.run(
                command, cwd=folder, capture_output=True, text=True, timeout=limit, env=environment, check=False
            )
        except subprocess.TimeoutExpired:
            return None
        if done.returncode:
            print(done.stderr[-400:], file=sys.stderr)
            return None
        first, _, said = done.stdout.partition("\n")
        seconds, megabytes, findings = first.split()
        return float(seconds), int(megabytes), int(findings), said.strip()


def grown(name: str, repeat: int, limit: float) -> dict[str, object]:
    """What a family costs at each size, and the exponents between neighbours."""
    make, sizes = FAMILIES[name]
    rows: dict[int, list[tuple[float, int, int, str]]] = {}
    late: list[int] = []
    for _ in range(repeat):
        for n in sizes:
            if late and n >= min(late):
                continue
            found = measure(make(n), limit)
            if found is None:
                late.append(n)
            else:
                rows.setdefault(n, []).append(found)
                if found[0] > limit / 5:
                    break
    costs = {n: statistics.median(row[0] for row in found) for n, found in rows.items()}
    # (what is quick is measured too roughly to tell how it grows: a twentieth of a second is added to both sides)
    exponents = [
        math.log((costs[m] + 0.05) / (costs[n] + 0.05)) / math.log(m / n)
        for n, m in zip(costs, [*costs][1:], strict=False)
    ]
    return {
        "cpu_seconds": {str(n): round(cost, 2) for n, cost in costs.items()},
        "exponents": [round(one, 2) for one in exponents],
        "megabytes": {str(n): max(row[1] for row in found) for n, found in rows.items()},
        "findings": {str(n): found[0][2] for n, found in rows.items()},
        "said": {str(n): found[0][3][:200] for n, found in rows.items() if found[0][3]},
        "too_long": min(late) if late else None,
    }


def is_steep(row: dict[str, object], above: float) -> bool:
    costs, exponents = row["cpu_seconds"], row["exponents"]
    assert isinstance(costs, dict) and isinstance(exponents, list)
    late = row["too_long"] is not None
    return late or any(one > above and cost > 1 for one, cost in zip(exponents, [*costs.values()][1:], strict=True))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="FAMILY")
    parser.add_argument("--repeat", type=int, default=1, help="runs of each program; the median counts")
    parser.add_argument("--limit", type=float, default=120, help="seconds that one program may take")
    parser.add_argument("--above", type=float, default=1.3)
    parser.add_argument("--output", type=Path, default=HERE / "results" / "growth.json")
    arguments = parser.parse_args()
    rows: dict[str, dict[str, object]] = {}
    for name in arguments.names or FAMILIES:
        row = rows[name] = grown(name, arguments.repeat, arguments.limit)
        mark = "!" if is_steep(row, arguments.above) else " "
        print(mark, f"{name:32}", row["cpu_seconds"], row["exponents"], row["findings"], row["said"], flush=True)
    steep = [name for name, row in rows.items() if is_steep(row, arguments.above)]
    result = {
        "command": "python benchmarks/growth.py",
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, {platform.system()}",
        "python": platform.python_version(),
        "runs": arguments.repeat,
        "steep": steep,
        "families": rows,
    }
    if not arguments.names:
        arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(f"{len(steep)} families grow faster than n^{arguments.above:g}:", *steep)
    return 1 if steep else 0


if __name__ == "__main__":
    sys.exit(main())
