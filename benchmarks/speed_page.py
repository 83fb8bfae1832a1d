"""docs/speed.md, of what benchmarks/run.py measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "results" / "speed.json"
PAGE = ROOT / "docs" / "speed.md"
PLOT = ROOT / "docs" / "speed.png"
#: what the rows that the plot shows are called, or begin with: cold runs of whole trees
PLOTTED = ("sample-", "timm", "cold", "peak", "whole")
_SAID = {"met": "met", "floor": "floor", "missed": "**missed**"}
_INTRO = """# How fast memlint is

[run.py](../benchmarks/run.py) generates this page from [speed.json](../benchmarks/results/speed.json). CPU seconds are
those of the command and of all processes that it starts. A figure is the median of its runs; memory is the maximum of
one process.

![CPU time against lines, for memlint and other linters](speed.png)
"""
_NOTES = """## What is run

* *timm* and *transformers* are the Python files of these packages, each a git repository. The samples are whole files
  of timm, up to its size, then of both packages, in the order of a hash of their names.
* The other linters run with their defaults: torch-preflight `check`, torchfix, flake8 with `--select=E9` (syntax
  errors) and ruff without its cache, each in its own virtual environment. A linter that would take too long on the
  large trees was measured on the smaller ones.
* *Cold*: the cache is empty (transformers, which fills it) or off (all others). *One file edited*: a new statement in a
  method of Llama's decoder layer, a different one in each run.
* *The script* is that of [fixtures/demo](../fixtures/demo), with further training functions until it has 300 lines. It
  imports the six modules beside it.
* *Growth*: projects of 100 to 3,000 files, made of the training code in [fixtures](../fixtures) with other names. The
  time of an empty run is subtracted.
* *Through the plugin*: flake8 with memlint installed beside it, and flake8 in an environment without it.
"""


def points(result: dict[str, Any]) -> dict[str, list[tuple[int, float]]]:
    """For each linter, lines and CPU seconds of cold runs."""
    found: dict[str, dict[int, float]] = {}
    for row in result["rows"]:
        for case in row["cases"] if row["row"].startswith(PLOTTED) else ():
            found.setdefault(case["linter"], {})[case["lines"]] = case["cpu"]
    return {linter: sorted(of.items()) for linter, of in found.items()}


def page(result: dict[str, Any] | None = None) -> str:
    """The text of the page, of the committed measurements unless told."""
    found = result or json.loads(RESULT.read_text("utf-8"))
    return "\n".join([_INTRO, _machine(found), _goals(found), _cases(found), _points(found), _NOTES])


def _machine(found: dict[str, Any]) -> str:
    machine, versions = found["machine"], found["versions"]
    loads = [row["load"] for row in found["rows"]]
    each = ", ".join(f"{name} {version}" for name, version in versions.items() if name != "python")
    said = (
        f"By `{found['command']}` on {machine['cpus']} CPUs ({machine['cpu']}), {machine['memory_gib']} GiB, "
        f"{machine['system']}, Python {versions['python']}: memlint at {_commits(found['rows'])}, with {each}."
    )
    if max(loads) > 0.5:
        said += (
            f" Other processes ran on the machine ({min(loads):g} to {max(loads):g} at the start of a row), "
            "which affects wall times most, so their minimum is shown as well."
        )
    return said + "\n"


def _commits(rows: list[dict[str, Any]]) -> str:
    """The commits of memlint that were measured; where there are several, with their rows."""
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row["memlint"], []).append(f"`{row['row']}`")
    if len(found) == 1:
        return next(iter(found))
    return " and ".join(f"{commit} ({', '.join(names)})" for commit, names in found.items())


def _goals(found: dict[str, Any]) -> str:
    lines = ["## Against the goals", "", "| work | what | measured | goal | floor | |", "|---|---|---:|---:|---:|---|"]
    for row in found["rows"]:
        for goal in row["goals"]:
            floor = "" if goal["floor"] is None else f"≤ {_value(goal['floor'], goal['unit'])}"
            measured, wanted = _value(goal["value"], goal["unit"]), _value(goal["goal"], goal["unit"])
            lines.append(
                f"| {row['title']} | {goal['what']} | {measured} | ≤ {wanted} | {floor} | {_SAID[goal['said']]} |"
            )
    return "\n".join(lines) + "\n"


def _value(value: float, unit: str) -> str:
    if unit == "times":
        return f"1/{1 / value:.3g}" if value < 0.95 else f"{value:.3g} ×"
    return f"{value:.3g} {unit}"


def _cases(found: dict[str, Any]) -> str:
    lines = ["## What was measured", "", "| work | run | files | lines | runs | CPU | wall | least wall | memory |"]
    lines.append("|---|---|" + "---:|" * 7)
    for row in found["rows"]:
        if row["row"].startswith("sample-"):  # these are below
            continue
        for case in row["cases"]:
            seconds = [f"{case[key]:,.3f} s" for key in ("cpu", "wall", "wall_min")]
            counts = [f"{case[key]:,}" for key in ("files", "lines", "runs")]
            cells = [row["title"], case["name"], *counts, *seconds, f"{case['memory'] / 1e6:,.0f} MB"]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _points(found: dict[str, Any]) -> str:
    known = points(found)
    sizes = sorted({lines for of in known.values() for lines, _ in of})
    lines = ["## The plot in numbers", "", "CPU seconds, cold:", ""]
    lines += ["| lines | " + " | ".join(known) + " |", "|---:|" + "---:|" * len(known)]
    for size in sizes:
        cells = [f"{dict(of)[size]:,.2f}" if size in dict(of) else "" for of in known.values()]
        lines.append(f"| {size:,} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"
