"""docs/practices.md, of what benchmarks/practices.py measured and what benchmarks/practices.toml says of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "results" / "practices_h200.json"
SIZES = ("small", "large")
#: ratios, with the practice to without, from which on memory or time counts as another
SAVES, COSTS = 0.95, 1.05
FASTER, SLOWER = 0.90, 1.10
_INTRO = """# What popular advice on PyTorch memory gains

Each practice is measured by a pair of small programs, without it and with it, each in its own process and at two sizes
([practice_pairs.py](../benchmarks/programs/practice_pairs.py)). `python benchmarks/practices.py --write` generates this
page from [practices_h200.json](../benchmarks/results/practices_h200.json).
"""
_VERDICTS = f"""The verdict compares memory and time with and without the practice. The first line that holds counts:

* **harmful**: memory is at least {COSTS} times as much, at one size;
* **helps**: memory is at most {SAVES} times as much, at one size;
* **harmful**: memory is the same, and a step takes at least {SLOWER} times as long, at one size;
* **helps**: memory is the same, and a step takes at most {FASTER} times as long, at one size;
* **useless**: none of these;
* **fictional**: torch has no such function.

Memory is the peak of allocated memory, unless it says *reserved* (by the caching allocator) or *host*. A verdict holds
for these programs. `memlint verify SCRIPT --compare-with OTHER` measures yours.
"""


def toml(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text("utf-8"))


def verdict(rows: list[dict[str, Any]], metric: str) -> str:
    memory = [_ratio(row, metric) for row in rows]
    seconds = [_ratio(row, "seconds") for row in rows]
    if max(memory) >= COSTS:
        return "harmful"
    if min(memory) <= SAVES:
        return "helps"
    if max(seconds) >= SLOWER:
        return "harmful"
    return "helps" if min(seconds) <= FASTER else "useless"


def _ratio(row: dict[str, Any], key: str) -> float:
    without: float = row["without"][key]
    return float(row["with"][key]) / without if without else float("inf") if row["with"][key] else 1.0


def page(result: dict[str, Any] | None = None) -> str:
    """The text of the page, of the committed measurements unless told."""
    found = result or json.loads(RESULT.read_text("utf-8"))
    practices = toml(ROOT / "benchmarks" / "practices.toml")["practice"]
    by_name = {practice["name"]: [] for practice in practices}
    for row in found["rows"]:
        by_name[row["practice"]].append(row)
    parts = [_INTRO, _machine(found), _VERDICTS, _table(practices, by_name), _compared(practices), _fictional()]
    return "\n".join(parts)


def _machine(found: dict[str, Any]) -> str:
    versions = found["versions"]
    device = f"{found['devices']} × {found['device']}" if found["devices"] > 1 else f"one {found['device']}"
    same = all(row["same_bytes"] for row in found["rows"])
    again = "used the same device memory" if same else "did not always use the same device memory"
    return (
        f"By `{found['command']}` on {device}, torch {versions['torch']}, Python {versions['python']}. "
        f"A second run of each program {again}.\n"
    )


def _table(practices: list[dict[str, Any]], rows: dict[str, list[dict[str, Any]]]) -> str:
    heads = ["practice", "verdict", *(f"{what}, {size}" for what in ("memory", "a step") for size in SIZES), "memlint"]
    lines = ["| " + " | ".join(heads) + " |", "|---|---|" + "---:|" * 4 + "---|"]
    for practice in practices:
        metric, sizes = practice["metric"], {row["size"]: row for row in rows[practice["name"]]}
        said = verdict(list(sizes.values()), metric) if len(sizes) == len(SIZES) else "not measured"
        cells = [_memory(sizes.get(size), metric) for size in SIZES] + [_time(sizes.get(size)) for size in SIZES]
        says = ", ".join(_link(code) for code in practice["says"]) or "–"
        lines.append(f"| {practice['title']} | *{said}* | " + " | ".join(cells) + f" | {says} |")
    return "\n".join(lines) + "\n"


def _memory(row: dict[str, Any] | None, metric: str) -> str:
    if row is None:
        return ""
    without, used = row["without"][metric], row["with"][metric]
    ratio = f"(×{_ratio(row, metric):.2f})"
    if metric == "host":  # pages of a process: not the same in each run
        return f"host: {without / 2**20:,.0f} → {used / 2**20:,.0f} MiB {ratio}"
    return ("reserved: " if metric == "reserved" else "") + f"{without:,} → {used:,} B {ratio}"


def _time(row: dict[str, Any] | None) -> str:
    if row is None:
        return ""
    without, used = (1000 * row[key]["seconds"] for key in ("without", "with"))
    return f"{without:,.2f} → {used:,.2f} ms (×{_ratio(row, 'seconds'):.2f})"


def _link(said: str) -> str:
    if not said.startswith("MEM"):
        return said
    (room,) = (ROOT / "rules").glob(f"{said.lower()}_*")
    return f"[{said}](../rules/{room.name}/README.md)"


def _compared(practices: list[dict[str, Any]]) -> str:
    rows = [f"| {row['title']} | {row['without']} | {row['with']} | {row['why']} |" for row in practices]
    head = "## What was compared\n\n| practice | without | with | what explains it |\n|---|---|---|---|\n"
    return head + "\n".join(rows) + "\n"


def _fictional() -> str:
    table = toml(ROOT / "memlint" / "knowledge" / "memory.toml")
    rows = [
        f"| {', '.join(f'`{name}`' for name in row['names'])} | *fictional* | {row['advice']} |"
        for row in table["fictional"]
    ] + [
        f"| {', '.join(f'`tensor.{name}()`' for name in row['names'])} | *fictional* | {row['advice']} |"
        for row in table["method"]
    ]
    head = (
        "## Names that torch does not have\n\nThese are in [memory.toml](../memlint/knowledge/memory.toml), which a "
        f"test compares with the installed torch. {_link('MEM501')} reports them.\n\n"
        "| name | verdict | what to do |\n|---|---|---|\n"
    )
    return head + "\n".join(rows) + "\n"
