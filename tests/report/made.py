"""Results made by hand, with all that a finding can have."""

from __future__ import annotations

from typing import Any

from memlint.finding import (
    Edit,
    Evidence,
    Failure,
    Finding,
    Fix,
    Growth,
    PerIteration,
    Result,
    Span,
    Summary,
    Suppressed,
    TraceStep,
)  # fmt: skip
from memlint.report import Format, writer
from memlint.report.lines import Lines
from memlint.report.setting import Rule, Setting

PATH = "src/größe/train it.py"
SOURCE = 'def train():\n    for x in loader:\n        größe = "🔥"; total += model(x)  # 1\n'
SOURCES = {PATH: SOURCE, "src/other.py": "x = model(y)\n"}
CELLS = {2: "x = model(y)\n", 3: "for x in loader:\n    ößü = total\n"}
PAGE = """# toy-leak (MEM901)

A toy leaks.

## What it does

Finds `toys` that leak: `nets[i](x)` [and so on](probe.py).

A second paragraph, and [a page](https://example.org/page).

## Bad

### First

```python
leak(rows[0](1))
```

### Second

```python
leak(2)
```

## Known limits

* None.
"""
RULES = {
    "MEM901": Rule("MEM901", "toy-leak", "A toy leaks.", "error", PAGE),
    "MEM902": Rule("MEM902", "toy-burst", "A toy bursts.", "warning", PAGE.replace("leak", "burst"), preview=True),
}
SETTING = Setting(lambda: RULES)


def finding(**changes: Any) -> Finding:
    values: dict[str, Any] = {
        "code": "MEM901", "name": "toy-leak", "severity": "error", "confidence": "high",
        "message": "`total` keeps the graph of every iteration: 100 % of it, x[0], and more",
        "help": "add the number, `loss.item()`", "path": PATH, "line": 3, "column": 22, "end_line": 3, "end_column": 39,
        "growth": Growth("device-graph", "per-iteration"),
        "trace": (TraceStep("src/other.py", 1, 5, "the model is called here"),), "fingerprint": "0123456789abcdef",
        **changes,
    }  # fmt: skip
    return Finding(**values)


def edit(content: str, line: int, column: int, end_column: int, path: str = PATH) -> Edit:
    return Edit(path, Span(line, column, line, end_column), content)


def fix(*edits: Edit, safety: Any = "safe", doubt: str | None = None) -> Fix:
    return Fix(safety, "detach `loss`", doubt, edits)


MEASURED = Evidence(verdict="confirmed", device="cuda:0", bytes_per_iteration=PerIteration(512, 512, 512, 512))
SILENCED = Suppressed("noqa", "it is a toy")
#: findings that differ in all that formats show
VARIED = (
    finding(fix=fix(edit(".detach()", 3, 39, 39))),
    finding(line=1, column=1, end_line=2, end_column=9, severity="warning", confidence="medium", trace=(), help=""),
    finding(code="MEM902", name="toy-burst", severity="note", confidence="low", line=2, column=5, end_line=2,
            end_column=8, message="<b>a & b</b>, 'c' \"d\": e%0Af::g", fingerprint="1" * 16),
    finding(path="a,b:c.py", line=1, column=1, end_line=1, end_column=2, evidence=MEASURED, fingerprint="2" * 16),
    finding(path="/elsewhere/x.py", line=7, column=3, end_line=7, end_column=4, reach="unused",
            reach_reason="nothing calls it", alternatives=(fix(safety="display", doubt="it is slow"),)),
    finding(path="book.ipynb", cell=3, line=2, column=5, end_line=2, end_column=8, fingerprint="3" * 16,
            trace=(TraceStep("book.ipynb", 1, 1, "the model is called here", cell=2),)),
    finding(code="MEM999", name="of-another-project", path="b.py", line=1, column=1, end_line=1, end_column=2),
)  # fmt: skip


def result(*findings: Finding, failures: tuple[Failure, ...] = ()) -> Result:
    counted = [one.severity for one in findings if one.suppressed is None]
    counts = (counted.count("error"), counted.count("warning"), counted.count("note"))
    return Result(findings, failures, (), Summary(2, 0, *counts, 1.23))


def rendered(name: Format, what: Result, setting: Setting = SETTING, sources: dict[str, str] = SOURCES) -> str:
    import io

    out = io.StringIO()
    writer(name, setting)(what, Lines(sources.get, lambda path, cell: CELLS.get(cell)), out)
    return out.getvalue()
