"""A verification as JSON, version 1."""

from __future__ import annotations

from collections import Counter
from typing import Any, TextIO

import msgspec

from memlint.json_text import indented
from memlint.report.as_json import VERSION
from memlint.verifier.model import Report


def write(report: Report, out: TextIO) -> None:
    """Write the report as one JSON object, indented."""
    out.write(indented(document(report)))


def document(report: Report) -> dict[str, Any]:
    """The report as plain dictionaries: the keys that ``memlint check`` writes, each finding with its verdict, and the
    run."""
    rest = msgspec.to_builtins(report)
    counts = Counter(one.verdict.verdict for one in report.verified)
    findings = [
        {**msgspec.to_builtins(one.finding), "verdict": msgspec.to_builtins(one.verdict)} for one in report.verified
    ]
    left = report.unattributed
    return {
        "version": VERSION,
        "findings": findings,
        "failures": rest["failures"],
        "unattributed": {
            "bytes_per_iteration": sum(row.bytes_per_iteration for row in left),
            "stacks": [
                {**stack, "loop": row["loop"], "device": row["device"]}
                for row in rest["unattributed"]
                for stack in row["stacks"]
            ],
            "loops": rest["unattributed"],
        },
        "fragmentation": rest["fragmentation"],
        "peaks": rest["peaks"],
        "comparison": rest["comparison"],
        "loops": rest["loops"],
        "peak": rest["peak"],
        "ranks": rest["ranks"],
        "run": rest["run"],
        "summary": {"files": report.files, "seconds": round(report.seconds, 3), "verdicts": counts},
    }
