"""docs/speed.md is what the committed measurements give; nothing is measured here."""

from __future__ import annotations

import json
from typing import Any

import pages
import pytest

BENCHMARKS = pages.ROOT / "benchmarks"


MADE = pages.script(BENCHMARKS / "speed_page.py")


def case(name: str, linter: str, lines: int, cpu: float) -> dict[str, Any]:
    times = {"cpu": cpu, "cpu_min": cpu, "wall": cpu, "wall_min": cpu}
    return {"name": name, "linter": linter, "files": 3, "lines": lines, "runs": 3, "memory": 50_000_000, **times}


def result() -> dict[str, Any]:
    about = {"load": 0.1, "memlint": "0123456789"}
    goal = {
        "what": "CPU, of that of flake8",
        "value": 0.4,
        "unit": "times",
        "goal": 1 / 3,
        "floor": 1.0,
        "said": "floor",
    }
    timm = [case("memlint", "memlint", 141_115, 4.0), case("flake8", "flake8", 141_115, 10.0)]
    samples = [case("memlint", "memlint", 1_000, 0.5)]
    return {
        "command": "measure",
        "machine": {"cpu": "Some CPU", "cpus": 8, "memory_gib": 32, "system": "Linux x86_64"},
        "versions": {"python": "3.12.3", "ruff": "0.17.6"},
        "rows": [
            {"row": "timm", "title": "timm, cold", "cases": timm, "goals": [goal], **about},
            {"row": "sample-1000", "title": "1,000 lines", "cases": samples, "goals": [], **about},
        ],
    }


def test_the_page_is_what_was_measured() -> None:
    assert MADE.PAGE.read_text("utf-8") == MADE.page(), "run `python benchmarks/run.py --write`"
    assert MADE.PLOT.read_bytes().startswith(b"\x89PNG")


def test_the_committed_rows_hold_what_a_page_needs() -> None:
    found = json.loads(MADE.RESULT.read_text("utf-8"))
    assert {row["row"] for row in found["rows"]} >= {"timm", "script", "plugin"}
    assert all(goal["said"] in ("met", "floor", "missed") for row in found["rows"] for goal in row["goals"])


def test_the_page_shows_goals_machine_and_points() -> None:
    text = MADE.page(result())
    assert "| timm, cold | CPU, of that of flake8 | 1/2.5 | ≤ 1/3 | ≤ 1 × | floor |" in text
    assert "on 8 CPUs (Some CPU), 32 GiB, Linux x86_64, Python 3.12.3: memlint at 0123456789, with ruff 0.17.6." in text
    assert "Other work" not in text
    assert "| 1,000 | 0.50 |  |" in text and "| 141,115 | 4.00 | 10.00 |" in text


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [(1 / 40, "times", "1/40"), (1.3, "times", "1.3 ×"), (0.5, "s", "0.5 s"), (412.7, "MB", "413 MB")],
)
def test_a_value_is_shown_as_the_goals_are(value: float, unit: str, said: str) -> None:
    assert MADE._value(value, unit) == said


def test_a_machine_that_others_use_is_named_as_such() -> None:
    found = result()
    found["rows"][0]["load"] = 4.5
    assert "Other processes ran on the machine (0.1 to 4.5 at the start of a row)" in MADE.page(found)


def test_rows_of_several_commits_are_told_apart() -> None:
    found = result()
    found["rows"][1]["memlint"] = "abcdef0123"
    assert "memlint at 0123456789 (`timm`) and abcdef0123 (`sample-1000`), with" in MADE.page(found)
