"""Writes the *Measured* section of each rule's page from benchmarks/results/rules-*.json, and from
benchmarks/results/preview_rules.jsonl for rules that are or were in preview, so that no number is typed.

``python benchmarks/measured_sections.py --write`` after ``memlint verify --rules``; ``--check`` (the default) says
which pages do not hold what the files give, and ends with 1 where there are some.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import textwrap
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import preview_rules

ROOT = Path(__file__).resolve().parents[1]
_SECTION = re.compile(r"(?<=\n## Measured\n\n).*?(?=\n## References\n)", re.DOTALL)


def results(folder: Path) -> list[dict[str, Any]]:
    """The committed runs, accelerators first."""
    found = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("rules-*.json"))]
    return sorted(found, key=lambda run: run["machine"]["device"] == "cpu")


def section(code: str, runs: list[dict[str, Any]]) -> str | None:
    """What a page says of its rule; None where no run has measured it."""
    tables = []
    for run in runs:
        cases = [case for rule in run["rules"] if rule["code"] == code for case in rule["cases"]]
        if cases:
            tables.append(f"{_machine(run)}:\n\n{_table(cases)}")
    if not tables:
        return None
    intro = f"By `memlint verify --rules {code}`, which runs the loops of [probe.py](probe.py) in this folder."
    return "\n\n".join([intro, *tables, *_on_real_code(code)]) + "\n"


def _on_real_code(code: str) -> list[str]:
    """For the rules of the sample alone: what real code said of them."""
    if code not in preview_rules.RULES:
        return []
    return [textwrap.fill(preview_rules.sentence(code), 125, break_long_words=False, break_on_hyphens=False)]


def _machine(run: dict[str, Any]) -> str:
    machine = run["machine"]
    where = f"On one {machine['hardware']}" if machine["device"] != "cpu" else f"On a CPU ({machine['hardware']})"
    return f"{where}, torch {machine['torch']}, {run['iterations']} iterations after {run['warmup']} of warm-up"


def _table(cases: list[dict[str, Any]]) -> str:
    """Two rows a case. Host memory and time are shown where they are the claim: elsewhere they are noise."""
    heads = ["", "kept on the device, an iteration"]
    host = any(case["claim"] == "host" for case in cases)
    timed = any(case["claim"] == "time" for case in cases)
    heads += ["graph nodes kept", "host memory kept"] * host + ["peak"] + ["time"] * timed
    lines = ["| " + " | ".join(heads) + " |", "|" + "---|" + "---:|" * (len(heads) - 1)]
    for case in cases:
        for kind in ("bad", "good"):
            row = case[kind]
            cells = [f"{kind}: {row['title'].replace('|', chr(92) + '|')}", _kept(row["bytes_per_iteration"])]
            if host:
                cells += [_range(row["graph_nodes_per_iteration"]), _host(case, row)]
            cells.append(_peak(case, kind))
            if timed:
                cells.append(_time(case, kind))
            claimed = {"device": 1, "host": 2, "peak": 4 if host else 2, "time": -1}[case["claim"]]
            if kind == "bad":
                cells[claimed] = f"**{cells[claimed]}**"
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _range(both: dict[str, int]) -> str:
    return f"{both['max']:,}" if both["min"] == both["max"] else f"{both['min']:,} – {both['max']:,}"


def _kept(per: dict[str, Any]) -> str:
    return _range(per) + " B"


def _host(case: dict[str, Any], row: dict[str, Any]) -> str:
    if case["claim"] != "host" or row["host_bytes_per_iteration"] is None:
        return ""
    return f"{row['host_bytes_per_iteration']:,} B"


def _peak(case: dict[str, Any], kind: str) -> str:
    peak, good = case[kind]["peak_bytes"], case["good"]["peak_bytes"]
    ratio = f" ({peak / good:.2f} times)" if kind == "bad" and good and case["claim"] == "peak" else ""
    return f"{peak / 2**20:,.1f} MiB{ratio}"


def _time(case: dict[str, Any], kind: str) -> str:
    if case["claim"] != "time":
        return ""
    seconds, good = case[kind]["seconds_per_iteration"], case["good"]["seconds_per_iteration"]
    return f"{seconds * 1000:,.2f} ms" + (f" ({seconds / good:.1f} times)" if kind == "bad" and good else "")


def pages(rooms: Path, runs: list[dict[str, Any]]) -> dict[Path, tuple[str, str]]:
    """Each measured page: its text, and the text that it should have."""
    found = {}
    for page in sorted(rooms.glob("mem*/README.md")):
        wanted = section(page.parent.name[:6].upper(), runs)
        if wanted is not None:
            text = page.read_text("utf-8")
            found[page] = text, _SECTION.sub(lambda _, new=wanted: str(new), text)
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write the sections")
    parser.add_argument("--check", action="store_true", help="say which pages differ (the default)")
    wanted = parser.parse_args()
    wrong = {
        page: new
        for page, (old, new) in pages(ROOT / "rules", results(ROOT / "benchmarks/results")).items()
        if old != new
    }
    for page, new in wrong.items():
        if wanted.write:
            page.write_text(new, "utf-8")
        print(f"{page.relative_to(ROOT)}: {'written' if wanted.write else 'differs from what was measured'}")
    return 1 if wrong and not wanted.write else 0


if __name__ == "__main__":
    sys.exit(main())
