"""The README is short, and shows what its commands give and what was measured; its list of rules is complete."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path

import pages
import pytest
from doc_commands import blocks, commands
from test_rooms import load

from memlint.cli import main

PAGE = pages.ROOT / "README.md"
README = PAGE.read_text(encoding="utf-8")
START = "<!-- rules: generated from each rule's META; tests/rules/test_readme.py compares -->\n"
END = "<!-- end of rules -->"
#: columns of the terminal whose report the README shows
WIDTH = 100


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_it_is_short() -> None:
    assert len(README.splitlines()) <= 200


def test_the_two_first_commands_are_those_of_ci() -> None:
    install, tests = commands(PAGE)[:2]
    assert install.endswith("memlint fixtures/demo") and tests.endswith("pytest -q")
    ci = (pages.ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "fixtures/demo" in ci and "'.[test]'" in ci and "pytest -q" in ci


def test_it_shows_what_the_first_command_gives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(pages.ROOT / "fixtures/demo", tmp_path / "fixtures/demo")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", str(WIDTH))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    terminal = Terminal()
    monkeypatch.setattr("sys.stdout", terminal)
    assert main(["fixtures/demo"]) == 1
    found = _without_time("\n".join(line.rstrip() for line in terminal.getvalue().splitlines()))
    assert _without_time(blocks(PAGE, "text")[0].rstrip()) == found, f"put this into README.md:\n\n{found}"


def _without_time(report: str) -> str:
    return re.sub(r"\(\d+\.\d s", "(0.5 s", report)


def table() -> str:
    """The table of all rules, as docs/rules.md must show it."""
    lines = ["| code | name | severity | what it finds |", "|---|---|---|---|"]
    for room in pages.ROOMS:
        meta = load(room).META
        severity = f"{meta.severity}, *preview*" if meta.preview else meta.severity
        lines.append(f"| [{meta.code}](../rules/{room.name}/README.md) | {meta.name} | {severity} | {meta.summary} |")
    return "\n".join(lines) + "\n"


def test_table_is_that_of_the_rules() -> None:
    shown = (pages.ROOT / "docs" / "rules.md").read_text("utf-8").split(START)[1].split(END)[0]
    assert shown.strip() == table().strip(), f"put this into docs/rules.md:\n\n{table()}"


def test_times_are_those_that_were_measured() -> None:
    measured = json.loads((pages.ROOT / "benchmarks/results/speed.json").read_text("utf-8"))
    (timm,) = (row for row in measured["rows"] if row["row"] == "timm")
    cpu = {case["linter"]: case["cpu"] for case in timm["cases"]}
    (header,) = (line for line in README.splitlines() if line.startswith("| | memlint "))
    (row,) = (line for line in README.splitlines() if line.startswith("| CPU time for timm"))
    names = [cell.split()[0] for cell in header.strip("| ").split("|")]
    shown = dict(zip(names, [cell.strip() for cell in row.split("|")[2:-1]], strict=True))
    assert shown == {name: f"{cpu[name]:.1f} s" for name in names}
    versions = measured["versions"]
    assert all(f"{name} {versions[name]}" in header for name in names if name != "memlint")
