"""One finding reads the same in every format."""

from __future__ import annotations

import html.parser
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import unquote
from xml.etree import ElementTree

import pytest
from made import CELLS, SOURCES, VARIED, rendered, result
from test_ci_formats import commands, in_bytes

import memlint
from memlint.finding import Result
from memlint.report import FORMATS


class Row(NamedTuple):
    path: str
    line: int
    column: int
    code: str
    severity: str
    message: str
    help: str
    cell: int | None = None


def _out_of_cell(row: Row) -> Row:
    """The row with the cell that its message names."""
    found = re.fullmatch(r"(?s)cell (\d+): (.*)", row.message)
    return row if found is None else row._replace(cell=int(found[1]), message=found[2])


def _split(details: str) -> tuple[str, str]:
    """The message, and the help where there is one, of a text that has all of a finding."""
    message, *rest = details.split("\n")
    return message, next((line.removeprefix("help: ") for line in rest if line.startswith("help: ")), "")


def from_json(text: str, sources: dict[str, str]) -> list[Row]:
    return [Row(*(row[key] for key in Row._fields)) for row in json.loads(text)["findings"]]


_HEAD = re.compile(r"(.+?):(?:cell (\d+):)?(\d+):(\d+): (error|warning|note) (MEM\d+)\[[a-z-]+\] (.*)")


def _head(line: str) -> Row | None:
    found = _HEAD.fullmatch(line)
    if found is None:
        return None
    path, cell, line, column, severity, code, message = found.groups()
    return Row(path, int(line), int(column), code, severity, message, "", int(cell) if cell else None)


def from_text(text: str, sources: dict[str, str]) -> list[Row]:
    rows: list[Row] = []
    for line in text.splitlines():
        row = _head(re.sub(r" \((high|medium|low) confidence\)$", "", line))
        if row is not None:
            rows.append(row)
        elif found := re.fullmatch(r" +=? ?= help: (.*)| *= help: (.*)", line):
            rows[-1] = rows[-1]._replace(help=found[1] or found[2])
    return rows


def from_concise(text: str, sources: dict[str, str]) -> list[Row]:
    rows = [_head(line.replace("] [*] ", "] ")) for line in text.splitlines()]
    return [row for row in rows if row is not None]


def from_sarif(text: str, sources: dict[str, str]) -> list[Row]:
    rows = []
    for one in json.loads(text)["runs"][0]["results"]:
        place = one["locations"][0]["physicalLocation"]
        path = unquote(place["artifactLocation"]["uri"]).removeprefix("file://")
        message, advice = _split(one["message"]["text"])
        assert advice == one["properties"].get("help", "") and one["level"] == one["properties"]["severity"]
        region = place["region"]
        rows.append(Row(path, region["startLine"], region["startColumn"], one["ruleId"], one["level"], message, advice))
    return rows


def from_github(text: str, sources: dict[str, str]) -> list[Row]:
    rows = []
    for kind, where, said in commands(text):
        path, line, column = where["file"], int(where["line"]), int(where["col"])
        message, advice = _split(said.removeprefix(f"{path}:"))
        cell, message = re.fullmatch(rf"(?:cell (\d+):)?{line}:{column}: (.*)", message).groups()
        severity, code = {"notice": "note"}.get(kind, kind), where["title"].partition("[")[0]
        rows.append(Row(path, line, column, code, severity, message, advice, int(cell) if cell else None))
    return rows


def from_gitlab(text: str, sources: dict[str, str]) -> list[Row]:
    rows = []
    for one in json.loads(text):
        place = one["location"]
        message, advice = _split(one["content"]["body"])
        assert one["description"] == (f"{message} (help: {advice})" if advice else message)
        assert place["lines"]["begin"] == place["positions"]["begin"]["line"]
        severity = {"major": "error", "minor": "warning", "info": "note"}[one["severity"]]
        begin = place["positions"]["begin"]
        code = one["check_name"].partition("[")[0]
        rows.append(Row(place["path"], begin["line"], begin["column"], code, severity, message, advice))
    return rows


def from_junit(text: str, sources: dict[str, str]) -> list[Row]:
    rows = []
    for case in ElementTree.fromstring(text.encode()).iter("testcase"):
        (said,) = case
        head, _, rest = (said.text or "").partition("\n")
        row = _head(head)
        assert row is not None and said.get("message", row.message) == row.message
        assert (case.get("file"), case.get("line"), case.get("column")) == (row.path, str(row.line), str(row.column))
        assert said.get("type", "note") == row.severity
        rows.append(row._replace(help=_split(f"\n{rest}")[1]))
    return rows


def from_rdjson(text: str, sources: dict[str, str]) -> list[Row]:
    rows = []
    for one in json.loads(text)["diagnostics"]:
        path, start = one["location"]["path"], one["location"]["range"]["start"]
        source = sources.get(path, CELLS[3] if path == "book.ipynb" else "")
        column = len(in_bytes(source, **start).decode()) + 1 if source else start["column"]
        message, advice = _split(one["message"])
        severity = {"ERROR": "error", "WARNING": "warning", "INFO": "note"}[one["severity"]]
        rows.append(Row(path, start["line"], column, one["code"]["value"], severity, message, advice))
    return rows


class _Page(html.parser.HTMLParser):
    """The findings of a page: their places are attributes and texts, the message and the help texts."""

    def __init__(self) -> None:
        super().__init__()
        self.rows: list[dict[str, str]] = []
        self.part = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if given.get("class") == "finding":
            self.rows.append({"place": "", "message": "", "help": "", **given})
        elif given.get("class") in ("place", "message", "help"):
            self.part = given["class"]

    def handle_endtag(self, tag: str) -> None:
        if tag in ("p", "dd", "code"):
            self.part = ""

    def handle_data(self, data: str) -> None:
        if self.part:
            self.rows[-1][self.part] += data


def from_html(text: str, sources: dict[str, str]) -> list[Row]:
    page = _Page()
    # so that what is set as code reads as it was written
    page.feed(re.sub(r"(?s)(<(?:p|dd) class=\"(?:message|help)\">)(.*?)(</(?:p|dd)>)", _with_ticks, text))
    page.close()
    rows = []
    for one in page.rows:
        cell, line, column = re.fullmatch(r"(?:cell (\d+): )?(\d+):(\d+)", one["place"]).groups()
        code, severity, path = one["data-rule"], one["data-severity"], one["data-path"]
        number = int(cell) if cell else None
        rows.append(Row(path, int(line), int(column), code, severity, one["message"], one["help"], number))
    return rows


def _with_ticks(match: re.Match[str]) -> str:
    return match[1] + re.sub(r"</?code>", "`", match[2]) + match[3]


READERS: dict[str, Callable[[str, dict[str, str]], list[Row]]] = {
    "json": from_json, "text": from_text, "concise": from_concise, "sarif": from_sarif, "github": from_github,
    "gitlab": from_gitlab, "junit": from_junit, "rdjson": from_rdjson, "html": from_html,
}  # fmt: skip


def compare(name: Any, what: Result, sources: dict[str, str]) -> None:
    expected = [Row(*(getattr(one, key) for key in Row._fields)) for one in what.findings]
    if name == "concise":  # which has one line for each
        expected = [row._replace(help="") for row in expected]
    found = map(_out_of_cell, READERS[name](rendered(name, what, sources=sources), sources))
    assert sorted(found, key=str) == sorted(expected, key=str)


@pytest.mark.parametrize("name", FORMATS)
def test_a_finding_reads_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    compare(name, result(*VARIED), SOURCES)


@pytest.fixture(scope="module")
def demo() -> Result:
    root = Path(__file__).resolve().parents[2]
    return memlint.lint([root / "fixtures" / "demo"], isolated=True, preview=True, min_confidence="low")


@pytest.mark.parametrize("name", FORMATS)
def test_the_findings_of_a_real_run_read_the_same(name: str, demo: Result, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("FORCE_COLOR", raising=False)
    assert len(demo.findings) > 3
    compare(name, demo, {one.path: Path(one.path).read_text("utf-8") for one in demo.findings})
