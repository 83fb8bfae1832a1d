#!/usr/bin/env python3
"""Recall on bugs that their own projects fixed: ``python benchmarks/fixed_bugs.py``.

``benchmarks/results/fixed_bugs.jsonl`` holds one place a line, in a public repository as it was before a commit that
put a guard (``no_grad``, ``inference_mode``) around it or cut a value that is added up or stored (``.item()``,
``.detach()``): source (repository and commit), the commit that changed it, path, lines, category, and what a reader
who did not see memlint's answer says of it: whether it was a bug (``bug``), how sure that is, and one line why.
``places`` are where a finding counts: those lines, and the call or the store that the reader names, give or take three
lines. ``found``: the codes that memlint gives there, by the commit of memlint (MEM2 for a guard, MEM1 for a value).

The places of a ``set`` were drawn before memlint was run on them, but the first state is the only one that they have
not taught. The later sets have all categories, and one reader each; the places of the fourth were found by what users
said of them in issues, of which some were never fixed (``changed_by`` is then the issue); of the fifth, half by issues
and half by reading the history of repositories that were drawn by their subject. The eighth and
the ninth have all categories in about the shares in which they are reported, the others what their drawing brought (of
the seventh, 70 % are evaluations; of the tenth, two in five; of the eleventh, 57 %). Four places of the ninth to
eleventh, drawn as bugs, are none by the code itself: they count among what has to stay silent, and say why.
"""

from __future__ import annotations

import collections
import json
from pathlib import Path
from typing import Any

ROWS = Path(__file__).parent / "results" / "fixed_bugs.jsonl"


def main() -> None:
    rows = [json.loads(line) for line in ROWS.read_text(encoding="utf-8").splitlines() if line.strip()]
    for number in sorted({row["set"] for row in rows}):
        print(f"set {number}")
        show([row for row in rows if row["set"] == number])
        print()


def show(rows: list[dict[str, Any]]) -> None:
    table: dict[tuple[str, str, bool], collections.Counter[str]] = collections.defaultdict(collections.Counter)
    states = list(rows[0]["found"])
    for row in rows:
        for category in (row["category"], "all"):
            counts = table[category, row["confidence"], row["bug"]]
            counts["places"] += 1
            for state in states:
                counts[state] += bool(row["found"][state])
    print(f"{'category':18} {'confidence':11} {'bug':4} {'places':>6}  " + "  ".join(f"{state:>9}" for state in states))
    for (category, confidence, bug), counts in sorted(table.items(), key=lambda pair: (not pair[0][2], pair[0])):
        cells = "  ".join(f"{counts[state]:9}" for state in states)
        print(f"{category:18} {confidence:11} {'yes' if bug else 'no':4} {counts['places']:6}  {cells}")
    print(f"{len(rows)} places of {len({row['source'].partition('@')[0] for row in rows})} repositories")


if __name__ == "__main__":
    main()
