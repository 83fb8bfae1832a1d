#!/usr/bin/env python3
"""Precision on real code, from the committed judgements: ``python benchmarks/judged.py``.

``benchmarks/results/judged.jsonl`` holds one finding a line, as memlint reported it with ``--preview`` off: sample
(each is drawn from code that nobody had read before), source (a package with its version, or a repository with its
commit), path, line, code, severity, the verdicts of two readers who did not see each other's (``first``, ``second``:
true, dormant, false or unsure; null where one reader alone has read it), one line why, and whether the current state
still reports it. Dormant is what is right in substance, in code that nothing reaches or that cannot run: ``strict``
takes it for false, ``sound`` for true. (Readers of earlier samples called it false, and from sample 29 on said "true
otherwise".) Two tables a sample: as it was when it was judged, and what is left of it. The second flatters: the false
alarms of the first taught the change, so only a fresh sample can tell how good the current state is.
"""

from __future__ import annotations

import collections
import json
import re
from pathlib import Path

ROWS = Path(__file__).parent / "results" / "judged.jsonl"


#: how readers say that what they call false would be true if the code ran
_OTHERWISE = re.compile(r"\btrue otherwise|otherwise true|would be true", re.IGNORECASE)


def verdict(row: dict[str, str]) -> str:
    """One verdict of two: they agree, or it is disputed."""
    first, second = row["first"], row.get("second") or row["first"]
    if first == second:
        return "dormant" if first == "false" and _OTHERWISE.search(row["why"]) else first
    return "unsure" if "unsure" in (first, second) else "disputed"


def main() -> None:
    rows = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines() if line.strip()]
    for sample in sorted({row["sample"] for row in rows}):
        drawn = [row for row in rows if row["sample"] == sample]
        print(f"sample {sample}, as judged")
        show(drawn)
        print(f"\nsample {sample}, of these reported now")
        show([row for row in drawn if row["reported"]])
        print()


def show(rows: list[dict[str, str]]) -> None:
    table: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    for row in rows:
        table[row["code"], row["severity"]][verdict(row)] += 1
        table["all", row["severity"]][verdict(row)] += 1
    names = ("true", "dormant", "false", "unsure", "disputed")
    print(f"{'code':8} {'severity':9} " + " ".join(f"{name:>8}" for name in names) + "   strict    sound")
    for (code, severity), counts in sorted(table.items()):
        judged = sum(counts[name] for name in ("true", "dormant", "false", "disputed"))
        strict, sound = counts["true"], counts["true"] + counts["dormant"]
        shares = [f"{one / judged:.0%}" if judged else "-" for one in (strict, sound)]
        cells = " ".join(f"{counts[name]:8}" for name in names)
        print(f"{code:8} {severity:9} {cells} {shares[0]:>8} {shares[1]:>8}")
    second = sum(1 for row in rows if row.get("second"))
    print(f"{len(rows)} findings of {len({row['source'] for row in rows})} sources, {second} of them read twice")


if __name__ == "__main__":
    main()
