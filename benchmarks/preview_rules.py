#!/usr/bin/env python3
"""What the rules in preview say of code that no measurement had seen: ``python benchmarks/preview_rules.py``.

``benchmarks/results/preview_rules.jsonl`` holds one row a repository that was linted (``repo``, ``commit``, ``files``)
with ``memlint check . --isolated --preview --min-confidence medium``, and one a finding in it: path, line, code,
severity, the verdict of the one reader who read the code, one line why, and whether it is reported still, after what
was wrong taught a change or dropped the rule (``reported``). The verdicts: *true* as graded; *unused*, true in code
that nothing reaches or that cannot run; *overstated*, where the fact is right and too little depends on it; *false*.
Of MEM303 the findings of 30 repositories were read. The repositories are of two kinds: some were chosen by their
renown, others by their subject, where a rule speaks of what few programs do (hooks, meta-learning, embeddings of texts,
large language models). A row with ``rules`` is of a repository that was linted later, with those rules alone
(``--select``), after others like it had shown what they missed; ``PyPI: name`` is a package, whose ``commit`` is its
version. A finding with ``first: false`` was missed there, and
is reported since that taught a change.
"""

from __future__ import annotations

import collections
import json
from pathlib import Path
from typing import Any

ROWS = Path(__file__).parent / "results" / "preview_rules.jsonl"
#: those of the rules that were measured by it and are there still
RULES = ("MEM105", "MEM110", "MEM115", "MEM204", "MEM304", "MEM405")
#: those that are newer than the first repositories
NEWER = frozenset({"MEM204"})
#: why some of them stay in preview
KEPT = {
    "MEM204": "Programs that were written against it show gradients that are used in ways that it does not follow: it "
    "stays in preview.",
    "MEM304": "Programs that were written against it showed losses that need one another (weights or a selection that "
    "all losses decide, graphs that the iterations share). That taught a change: it stays in preview until others have "
    "tried it.",
    "MEM110": "What it speaks of is too rare to be judged: it stays in preview until unseen code shows it right.",
}
VERDICTS = ("true", "unused", "overstated", "false")


def rows(path: Path = ROWS) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """(the repositories, the findings)"""
    read = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [row for row in read if "code" not in row], [row for row in read if "code" in row]


def sound(counts: collections.Counter[str]) -> str:
    """The share that is true as graded, unused code included."""
    return f"{(counts['true'] + counts['unused']) / counts.total():.0%}" if counts.total() else "-"


def sentence(code: str) -> str:
    """What the page of a rule that is or was in preview says of it."""
    repos, findings = rows()
    own = [row for row in findings if row["code"] == code]
    later = {row["repo"] for row in repos if code in row.get("rules", ())}
    first = [row["repo"] for row in repos if "rules" not in row]
    sentences = []
    if code not in NEWER:
        sentences.append(f"In {len(first)} public repositories that no measurement had seen before: ")
        sentences[0] += _judged([row for row in own if row["repo"] not in later])
    if later:
        others = f"{len(later)} {'others' if sentences else 'public packages'}, chosen by their subject"
        found = _judged([row for row in own if row["repo"] in later])
        sentences.append(f"In {others} and first linted after further changes: {found}")
    sentences += [KEPT[code]] if code in KEPT else []
    sentences.append("The judgements: [preview_rules.jsonl](../../benchmarks/results/preview_rules.jsonl).")
    return " ".join(sentences)


def _judged(findings: list[dict[str, Any]]) -> str:
    """The verdicts on what was found at first, and on what is reported now."""
    first = collections.Counter(row["verdict"] for row in findings if row.get("first", True))
    now = collections.Counter(row["verdict"] for row in findings if row["reported"])
    taught = "wrong" if all(row.get("first", True) for row in findings) else "wrong or missed"
    again = f" After what was {taught} taught a change, the same code gives {_told(now)}." if now != first else ""
    return f"{_told(first)}.{again}"


def _told(counts: collections.Counter[str]) -> str:
    parts = [f"{counts[one]} {_NAMES[one]}" for one in VERDICTS if counts[one]]
    return f"{counts.total()} finding{'s' if counts.total() > 1 else ''}: {', '.join(parts)}" if parts else "no finding"


_NAMES = {"true": "true as graded", "unused": "true in unused code", "overstated": "overstated", "false": "false"}


def main() -> None:
    repos, findings = rows()
    now = [row for row in findings if row["reported"]]
    first = [row for row in findings if row.get("first", True)]
    for title, some in (("as judged", first), ("of these reported now", now)):
        table: dict[tuple[str, str], collections.Counter[str]] = collections.defaultdict(collections.Counter)
        for row in some:
            table[row["code"], row["severity"]][row["verdict"]] += 1
        print(f"{title}\n{'code':8} {'severity':9} " + " ".join(f"{name:>10}" for name in VERDICTS) + "   sound")
        for (code, severity), counts in sorted(table.items()):
            print(f"{code:8} {severity:9} " + " ".join(f"{counts[one]:10}" for one in VERDICTS) + f"{sound(counts):>8}")
        print()
    files = sum(row["files"] for row in repos)
    print(f"{len(findings)} findings in {len(repos)} repositories ({files:,} files of Python)")


if __name__ == "__main__":
    main()
