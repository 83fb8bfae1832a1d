"""A verification as JSON, version 1."""

from __future__ import annotations

from typing import Any, TextIO

import msgspec

from memlint.report.as_json import VERSION
from memlint.verifier.model import Report


def write(report: Report, out: TextIO) -> None:
    """Write the report as one JSON object, indented."""
    data = msgspec.json.encode(document(report))
    out.write(msgspec.json.format(data, indent=2).decode() + "\n")


def document(report: Report) -> dict[str, Any]:
    """The report as plain dictionaries: what ``check`` writes, each finding with its verdict, and the run."""
    rest = msgspec.to_builtins(report)
    counts: dict[str, int] = {}
    for one in report.verified:
        counts[one.verdict.verdict] = counts.get(one.verdict.verdict, 0) + 1
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
