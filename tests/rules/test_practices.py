"""docs/practices.md is what the committed measurements give, and its verdicts are what its thresholds say."""

from __future__ import annotations

import ast
import json
import re
from typing import Any

import pages
import pytest

BENCHMARKS = pages.ROOT / "benchmarks"
PAGE = pages.ROOT / "docs" / "practices.md"


MADE = pages.script(BENCHMARKS / "practices_page.py")


def programs() -> set[str]:
    tree = ast.parse((BENCHMARKS / "programs" / "practice_pairs.py").read_text("utf-8"))
    (listed,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id == "PRACTICES"
    )
    return {node.id for node in ast.walk(listed) if isinstance(node, ast.Name)}


def row(memory: float, seconds: float, size: str = "small", metric: str = "allocated") -> dict[str, Any]:
    sides = {"without": {metric: 1000, "seconds": 1.0}, "with": {metric: int(1000 * memory), "seconds": seconds}}
    return {"practice": "empty_cache", "size": size, "same_bytes": True, **sides}


def test_the_page_is_what_was_measured() -> None:
    assert MADE.RESULT.exists() == PAGE.exists(), "run `python benchmarks/practices.py --write`"
    if PAGE.exists():
        assert PAGE.read_text("utf-8") == MADE.page(), "run `python benchmarks/practices.py --write`"


def test_each_program_is_described() -> None:
    described = {practice["name"] for practice in MADE.toml(BENCHMARKS / "practices.toml")["practice"]}
    assert described == programs()


def test_measured_practices_have_programs() -> None:
    rows = json.loads(MADE.RESULT.read_text("utf-8"))["rows"] if MADE.RESULT.exists() else []
    assert {one["practice"] for one in rows} <= programs()


@pytest.mark.parametrize(
    ("small", "large", "said"),
    [
        ((1.0, 1.0), (1.0, 1.0), "useless"),
        ((1.0, 1.05), (0.94, 1.3), "helps"),  # memory goes before time
        ((0.5, 1.0), (1.06, 1.0), "harmful"),  # and more of it, before less
        ((1.0, 1.11), (1.0, 0.8), "harmful"),
        ((1.02, 0.89), (0.98, 1.0), "helps"),
    ],
)
def test_verdict_goes_by_memory_and_then_by_time(small: Any, large: Any, said: str) -> None:
    assert MADE.verdict([row(*small), row(*large)], "allocated") == said


def test_what_was_nothing_and_is_something_is_more() -> None:
    nothing = {"without": {"host": 0, "seconds": 1.0}, "with": {"host": 4096, "seconds": 1.0}}
    assert MADE.verdict([nothing], "host") == "harmful"


def test_the_page_shows_bytes_times_and_verdicts() -> None:
    result = {
        "command": "measure",
        "device": "Some GPU",
        "devices": 1,
        "versions": {"torch": "2.11.0", "python": "3.12.3"},
        "rows": [row(1.0, 1.5, metric="reserved"), row(1.0, 1.0, "large", "reserved")],
    }
    text = MADE.page(result)
    (line,) = re.findall(r"(?m)^\| `torch.cuda.empty_cache\(\)` each step .* ms .*$", text)
    assert "*harmful*" in line and "reserved: 1,000 → 1,000 B (×1.00)" in line and "1,500.00 ms (×1.50)" in line
    assert "[MEM305](../rules/mem305_empty_cache_in_loop/README.md)" in line
    assert "one Some GPU, torch 2.11.0" in text and "| *not measured* |" in text
    assert "`torch.cuda.CudaPool`" in text and "`tensor.clear()`" in text
