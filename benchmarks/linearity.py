#!/usr/bin/env python3
"""Whether the cost of a line is the same in small and large projects: ``python benchmarks/linearity.py``.

Builds projects of 100, 300, 1,000 and 3,000 files out of the training code in ``fixtures/`` (each copy under names of
its own, so that nothing is shared), one file of 50,000 lines and the same lines in 100 files, and lints each in a
process of its own, without a cache. Writes CPU seconds a thousand lines and their ratios, with the machine, to
``benchmarks/results/linearity.json``. Only the ratios are worth comparing between machines.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = sorted(path for path in (HERE.parent / "fixtures").glob("mem*/*.py") if "__future__" not in path.read_text())
_DEFINITION = re.compile(r"^(?:def|class) (\w+)", re.MULTILINE)


def copy_of(text: str, number: int) -> str:
    """The source with its top-level definitions renamed, and its main block left out: one copy among many."""
    text = text.split('if __name__ == "__main__"', 1)[0]
    for name in sorted(set(_DEFINITION.findall(text)), key=len, reverse=True):
        text = re.sub(rf"\b{name}\b", f"{name}_{number}", text)
    return text


def many_files(folder: Path, count: int) -> int:
    """``count`` files in packages of 50; the lines written."""
    lines = 0
    for number in range(count):
        package = folder / f"part_{number // 50:03}"
        package.mkdir(exist_ok=True)
        text = copy_of(SOURCES[number % len(SOURCES)].read_text(encoding="utf-8"), number)
        (package / f"module_{number:04}.py").write_text(text, encoding="utf-8")
        lines += text.count("\n")
    return lines


def long_text(lines: int) -> list[str]:
    """Copies until there are so many lines."""
    found: list[str] = []
    total = number = 0
    while total < lines:
        found.append(copy_of(SOURCES[number % len(SOURCES)].read_text(encoding="utf-8"), number))
        total += found[-1].count("\n")
        number += 1
    return found


def cpu_seconds(folder: Path) -> float:
    """User and system time of one run, its children included."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [sys.executable, "-m", "memlint", "check", "--isolated", "--no-cache", "--exit-zero", "--quiet", "."]
    environment = {**os.environ, "PYTHONPATH": str(HERE.parent)}
    subprocess.run(command, cwd=folder, check=True, stdout=subprocess.DEVNULL, env=environment)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (after.ru_utime - before.ru_utime) + (after.ru_stime - before.ru_stime)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, nargs="+", default=[100, 300, 1_000, 3_000])
    parser.add_argument("--lines", type=int, default=50_000, help="lines of the one large file")
    parser.add_argument("--repeat", type=int, default=3, help="runs of each; the median counts")
    parser.add_argument("--output", type=Path, default=HERE / "results" / "linearity.json")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        (root / "empty").mkdir()
        cases: dict[str, int] = {}
        for count in arguments.files:
            folder = root / f"{count} files"
            folder.mkdir()
            cases[folder.name] = many_files(folder, count)
        texts = long_text(arguments.lines)
        one, split = root / "one large file", root / "its lines in 100 files"
        one.mkdir()
        split.mkdir()
        (one / "large.py").write_text("\n".join(texts), encoding="utf-8")
        share = -(-len(texts) // 100)
        for number in range(0, len(texts), share):
            (split / f"part_{number:05}.py").write_text("\n".join(texts[number : number + share]), encoding="utf-8")
        cases[one.name] = cases[split.name] = sum(text.count("\n") for text in texts)
        # alternating, so that a machine that slows down slows all of them
        rounds = [{name: cpu_seconds(root / name) for name in ("empty", *cases)} for _ in range(arguments.repeat)]
    start = statistics.median(times["empty"] for times in rounds)
    rows = {
        name: {
            "lines": lines,
            "cpu_seconds": round(statistics.median(times[name] for times in rounds), 2),
            "per_1000_lines": round((statistics.median(times[name] for times in rounds) - start) / lines * 1_000, 4),
        }
        for name, lines in cases.items()
    }
    costs = [rows[f"{count} files"]["per_1000_lines"] for count in arguments.files]
    result = {
        "command": "python benchmarks/linearity.py",
        "machine": f"{platform.machine()}, {os.cpu_count()} CPUs, {platform.system()}",
        "python": platform.python_version(),
        "runs": arguments.repeat,
        "start_up_cpu_seconds": round(start, 3),
        "cases": rows,
        "files_spread": round(max(costs) / min(costs), 3),
        "one_file_against_many": round(rows[one.name]["per_1000_lines"] / rows[split.name]["per_1000_lines"], 3),
    }
    arguments.output.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=1))


if __name__ == "__main__":
    main()
