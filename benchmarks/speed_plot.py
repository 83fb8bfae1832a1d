"""docs/speed.png: ``python benchmarks/speed_plot.py [RESULTS]``, of what benchmarks/run.py measured, by matplotlib."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib
from speed_page import PLOT, RESULT, points

matplotlib.use("Agg")

import matplotlib.pyplot as plt

COLORS = {
    "memlint": "#d62728",
    "torch-preflight": "#1f77b4",
    "torchfix": "#9467bd",
    "flake8": "#2ca02c",
    "ruff": "#555",
}


def main() -> None:
    result = json.loads(Path(sys.argv[1] if len(sys.argv) > 1 else RESULT).read_text("utf-8"))
    figure, axes = plt.subplots(figsize=(8, 5), dpi=110)
    label = 0.0
    for linter, found in sorted(points(result).items(), key=lambda item: item[1][-1][1]):
        lines, cpu = zip(*found, strict=True)
        bold, color = linter == "memlint", COLORS[linter]
        axes.plot(lines, cpu, marker="o", color=color, linewidth=2.4 if bold else 1.4, markersize=5)
        title = "flake8 --select=E9" if linter == "flake8" else linter
        label = max(cpu[-1], 1.5 * label)  # not over the one below
        axes.text(1.1 * lines[-1], label, title, va="center", color=color)
    axes.set(xscale="log", yscale="log", xlabel="lines of code", ylabel="CPU seconds, cold")
    axes.set_xlim(800, 9_000_000)
    ticks = (1_000, 10_000, 100_000, 1_000_000)
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.grid(which="major", alpha=0.3)
    axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    figure.savefig(PLOT, metadata={"Software": None})


if __name__ == "__main__":
    main()
