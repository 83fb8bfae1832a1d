"""How findings look on a terminal, in a pipe, and at narrow widths."""

from __future__ import annotations

import io
import re

import pytest

from memlint.finding import Failure, Finding, Growth, Result, Summary, Suppressed, TraceStep
from memlint.report import writer
from memlint.report.lines import Lines

SOURCE = 'def train():\n\tfor x in loader:\n\t\ttotal += criterion(model(x), "é")  # 1\n'
PATH = "a/rather/long/path/that/no/terminal/of/forty/columns/can/hold/train.py"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def finding(**changes: object) -> Finding:
    values: dict[str, object] = {
        "code": "MEM901", "name": "toy-leak", "severity": "error", "confidence": "high",
        "message": "The graph of every iteration stays in device memory.", "help": "Add the number: loss.item().",
        "path": PATH, "line": 3, "column": 3, "end_line": 3, "end_column": 35,
        "growth": Growth("device-graph", "per-iteration"),
        "trace": (TraceStep("other.py", 1, 5, "the model is called here"),),
        **changes,
    }  # fmt: skip
    return Finding(**values)  # type: ignore[arg-type]


def result(*findings: Finding, failures: tuple[Failure, ...] = ()) -> Result:
    return Result(findings, failures, (), Summary(2, 0, len(findings), 0, 0, 1.23))


def shown(what: Result, out: io.StringIO, source: str = SOURCE) -> str:
    writer("text")(what, Lines({PATH: source, "other.py": "x = model(y)\n"}.get), out)
    return out.getvalue()


def test_a_finding_in_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert shown(result(finding()), io.StringIO()) == (
        f"{PATH}:3:3: error MEM901[toy-leak] The graph of every iteration stays in device memory. (high confidence)\n"
        "  | \n"
        "2 |     for x in loader:\n"
        '3 |         total += criterion(model(x), "é")  # 1\n'
        "  |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n"
        "  = 1. other.py:1:5: the model is called here\n"
        "1 | x = model(y)\n"
        "  = help: Add the number: loss.item().\n"
        "\n"
        "Found 1 error in 2 files (1.2 s).\n"
    )


@pytest.mark.parametrize("columns", [40, 50, 60, 100])
def test_a_narrow_terminal(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    monkeypatch.setenv("NO_COLOR", "1")
    source = "x = 1\ny = 2\n" + "value = " + "f(" * 60 + "total.append(loss)" + ")" * 60 + "\n"
    text = shown(result(finding(column=129, end_column=147)), Terminal(), source)
    for line in text.splitlines():
        assert len(line) <= columns or PATH in line, line
    assert PATH in text, "paths are never cut"
    code = next(line for line in text.splitlines() if line.startswith("3 | "))
    caret = next(line for line in text.splitlines() if "^" in line)
    start = caret.index("^")
    assert code[start : start + caret.count("^")] == "total.append(loss)"[: caret.count("^")]


@pytest.mark.parametrize(
    ("environment", "out", "coloured"),
    [
        ({}, Terminal(), True),
        ({"NO_COLOR": "1"}, Terminal(), False),
        ({"TERM": "dumb"}, Terminal(), False),
        ({}, io.StringIO(), False),
        ({"FORCE_COLOR": "1"}, io.StringIO(), True),
    ],
)
def test_colour(monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], out: io.StringIO, coloured: bool) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm-256color")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert ("\x1b[" in shown(result(finding()), out)) is coloured


def test_source_cannot_steer_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in shown(result(finding()), io.StringIO(), "\n\nx = '\x1b[2J'\n")


def test_markup_in_messages_is_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    message = "The list stats[loss] keeps [bold] :smile: graphs."
    assert message in shown(result(finding(message=message)), io.StringIO())


def test_a_place_that_is_not_in_the_file_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert "MEM901" in shown(result(finding(line=99, end_line=99)), io.StringIO())


def test_suppressed_findings_are_counted_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    what = Result((finding(suppressed=Suppressed("noqa", None)),), (), (), Summary(1, 2, 0, 0, 0, 0.01, suppressed=1))
    assert shown(what, io.StringIO()) == "Found nothing in 1 file; 1 suppressed, 2 skipped (0.0 s).\n"


def test_failures_are_shown() -> None:
    text = re.sub(r"\x1b\[[\d;]*m", "", shown(result(failures=(Failure("a.py", "no such file"),)), io.StringIO()))
    assert "a.py: failed: no such file\n" in text


def test_concise_is_one_line_a_finding() -> None:
    out = io.StringIO()
    writer("concise")(result(finding(), finding(severity="note")), Lines(lambda path: None), out)
    assert out.getvalue().splitlines()[:2] == [
        f"{PATH}:3:3: error MEM901[toy-leak] The graph of every iteration stays in device memory.",
        f"{PATH}:3:3: note MEM901[toy-leak] The graph of every iteration stays in device memory.",
    ]
