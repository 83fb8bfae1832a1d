"""The formats of GitHub, GitLab, Jenkins and reviewdog, each by the rules of who reads it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from made import PATH, SOURCE, VARIED, edit, finding, fix, rendered, result

from memlint.finding import Failure, Result, Suppressed, TraceStep, shown_place
from memlint.report.github import guarded
from memlint.report.setting import Setting

FAILED = (Failure("a,b.py", "100 % broken\nin two lines"),)
SUB = Setting(root="/repo", prefix="sub/")


def commands(text: str) -> list[tuple[str, dict[str, str], str]]:
    """What a runner makes of workflow commands: kind, properties and message."""
    found = []
    for line in text.splitlines():
        match = re.fullmatch(r"::(\w+) ([^:]*)::(.*)", line)
        assert match is not None, line
        rows = dict(one.split("=", 1) for one in match[2].split(","))
        properties = {key: _unescaped(value, ("%3A", ":"), ("%2C", ",")) for key, value in rows.items()}
        found.append((match[1], properties, _unescaped(match[3])))
    return found


def _unescaped(text: str, *more: tuple[str, str]) -> str:
    for code, char in (*more, ("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
        text = text.replace(code, char)
    return text


def test_github_commands_are_escaped() -> None:
    found = commands(rendered("github", result(*VARIED, failures=FAILED)))
    assert [kind for kind, _, _ in found] == ["error", "warning", "notice", *["error"] * 5]
    for (_, where, message), one in zip(found, VARIED, strict=False):
        assert (where["file"], where["title"]) == (one.path, f"{one.code}[{one.name}]")
        assert message.startswith(f"{shown_place(one)}: {one.message}")
    assert found[-1][1]["file"] == "a,b.py" and "100 % broken" in found[-1][2]


def test_github_takes_columns_of_one_line_only() -> None:
    one, more = commands(rendered("github", result(*VARIED[:2])))
    place = {key: one[1][key] for key in ("line", "col", "endLine", "endColumn")}
    assert place == {"line": "3", "col": "22", "endLine": "3", "endColumn": "39"}
    assert (more[1]["line"], more[1]["col"]) == ("1", "1") and "endColumn" not in more[1]


@pytest.mark.parametrize("hostile", ["a\n::set-env name=X::y", "\r::add-mask::x", "::warning::x", "%0A::x::y"])
def test_github_names_command_nothing(hostile: str) -> None:
    one = finding(path=hostile, message=hostile, help=hostile, trace=(TraceStep(hostile, 1, 1, hostile),))
    text = rendered("github", result(one, failures=(Failure(hostile, hostile),)))
    assert [line.split()[0] for line in text.splitlines()] == ["::error", "::error"]
    assert len(re.split(r"[\r\n\x0b\x0c\x1c-\x1e\x85\u2028\u2029]", text)) == 3


@pytest.mark.parametrize("hostile", ["::set-env name=X::y.py:1:1: error", "  ::add-mask::x", "a.py: ##[error]x"])
def test_a_text_report_in_a_job_commands_nothing(hostile: str) -> None:
    text = guarded(f"fine\n{hostile}\n")
    first, *inside, last = text.splitlines()
    token = first.removeprefix("::stop-commands::")
    assert token != first and len(token) == 32 and last == f"::{token}::"
    assert inside == ["fine", hostile]
    assert guarded("a::b\n12 | x[::2]\n") == "a::b\n12 | x[::2]\n"


#: https://docs.gitlab.com/ci/testing/code_quality/, "Code Quality report format"
GITLAB: dict[str, Any] = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["description", "check_name", "fingerprint", "severity", "location"],
        "properties": {
            "description": {"type": "string", "minLength": 1},
            "check_name": {"type": "string", "minLength": 1},
            "fingerprint": {"type": "string", "minLength": 1},
            "severity": {"enum": ["info", "minor", "major", "critical", "blocker"]},
            "location": {
                "type": "object",
                "required": ["path"],
                "properties": {
                    "path": {"type": "string", "pattern": r"^(?!\./)"},
                    "lines": {
                        "type": "object",
                        "required": ["begin"],
                        "properties": {"begin": {"type": "integer", "minimum": 1}},
                    },
                    "positions": {
                        "type": "object",
                        "required": ["begin"],
                        "properties": {"begin": {"type": "object", "required": ["line"]}},
                    },
                },
                "anyOf": [{"required": ["lines"]}, {"required": ["positions"]}],
            },
        },
    },
}


def issues(what: Result, setting: Setting | None = None) -> Any:
    jsonschema = pytest.importorskip("jsonschema")
    rows = json.loads(rendered("gitlab", what, setting or Setting()))
    jsonschema.validate(rows, GITLAB)
    return rows


def test_gitlab_takes_the_report() -> None:
    rows = issues(result(*VARIED, failures=FAILED))
    assert [row["severity"] for row in rows] == ["major", "minor", "info", *["major"] * 4, "blocker"]
    assert issues(result()) == []


def test_gitlab_fingerprints_are_unique_and_stay() -> None:
    twins = [
        finding(),
        finding(line=1, end_line=1),
        finding(path="b.py"),
        finding(code="MEM902"),
        finding(fingerprint=""),
    ]
    prints = [row["fingerprint"] for row in issues(result(*twins, *twins))]
    assert len(set(prints)) == 10
    moved = [finding(line=one.line + 7, end_line=one.end_line + 7) for one in twins[:2]]
    assert [row["fingerprint"] for row in issues(result(*moved))] == prints[:2]


def test_gitlab_paths_are_those_of_the_repository() -> None:
    rows = issues(result(finding(path="a.py"), finding(path="/repo/b.py"), failures=(Failure("c.py", "x"),)), SUB)
    assert [row["location"]["path"] for row in rows] == ["sub/a.py", "b.py", "sub/c.py"]


def test_junit_is_read(tmp_path: Path) -> None:
    junitparser = pytest.importorskip("junitparser")
    file = tmp_path / "junit.xml"
    file.write_text(rendered("junit", result(*VARIED, failures=FAILED)), encoding="utf-8")
    read = junitparser.JUnitXml.fromfile(str(file))
    assert (read.tests, read.failures, read.errors, read.skipped) == (8, 6, 1, 0)
    suites = {suite.name: suite for suite in read}
    assert set(suites) == {one.path for one in VARIED} | {"a,b.py"}
    leak, warned, note = suites[PATH]
    assert (leak.is_failure, warned.is_failure, note.is_failure) == (True, True, False)
    assert leak.result[0].message == VARIED[0].message and leak.result[0].type == "error"
    assert note.is_passed and VARIED[2].message in note.system_out
    (broken,) = suites["a,b.py"]
    assert broken.is_error and "100 % broken" in broken.result[0].message
    read.update_statistics()
    assert (read.tests, read.failures, read.errors) == (8, 6, 1), "the counts are those of the cases"


def test_a_clean_run_is_a_passed_case() -> None:
    root = ElementTree.fromstring(rendered("junit", result()))
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("1", "0", "0")
    assert [case.get("name") for case in root.iter("testcase")] == ["no findings"]


@pytest.mark.parametrize("hostile", ["\x00", "\x1b[2J", "\ufffe\uffff", "]]>", "<!--", '"\n\t&lt;', "\ud800"])
def test_junit_is_xml_whatever_names_hold(hostile: str) -> None:
    one = finding(path=f"{hostile}.py", message=hostile, help=hostile, name=hostile)
    text = rendered("junit", result(one, failures=(Failure(hostile, hostile),)))
    root = ElementTree.fromstring(text.encode())
    assert len(root) == 2


def diagnostics(what: Result) -> Any:
    return json.loads(rendered("rdjson", what))["diagnostics"]


def in_bytes(source: str, line: int, column: int) -> bytes:
    """What stands before a place of reviewdog's in its line."""
    return source.split("\n")[line - 1].encode()[: column - 1]


def test_reviewdog_counts_columns_in_bytes() -> None:
    (row,) = diagnostics(result(finding()))
    span = row["location"]["range"]
    assert in_bytes(SOURCE, **span["start"]).decode() == '        größe = "🔥"; '
    assert in_bytes(SOURCE, **span["end"]).decode().endswith("total += model(x)")
    assert row["severity"] == "ERROR" and row["code"]["value"] == "MEM901"
    (related,) = row["related_locations"]
    assert related["message"] == "the model is called here" and related["location"]["path"] == "src/other.py"


@pytest.mark.parametrize(
    ("made", "after"),
    [
        (fix(edit(".detach()", 3, 39, 39)), '        größe = "🔥"; total += model(x).detach()  # 1'),
        (fix(edit(".detach()", 3, 39, 39), edit("", 3, 9, 22)), "        total += model(x).detach()  # 1"),
        (fix(edit("    with no_grad():\n", 2, 1, 1), edit("y", 3, 15, 16)), None),
        (fix(edit(".detach()", 3, 39, 39), safety="unsafe", doubt="it may be a number"), ""),
        (fix(edit(".detach()", 3, 39, 39), edit("x", 1, 1, 1, "src/other.py")), ""),
        (fix(safety="display"), ""),
    ],
    ids=["insertion", "two edits", "two lines", "unsafe", "another file", "nothing to apply"],
)
def test_reviewdog_suggests_what_is_safe_and_whole(made: Any, after: str | None) -> None:
    (row,) = diagnostics(result(finding(fix=made)))
    if after == "":
        assert "suggestions" not in row
        return
    (one,) = row["suggestions"]
    start, end = one["range"]["start"], one["range"]["end"]
    lines = SOURCE.split("\n")
    rest = lines[end["line"] - 1].encode()[end["column"] - 1 :].decode()
    lines[start["line"] - 1 : end["line"]] = [in_bytes(SOURCE, **start).decode() + one["text"] + rest]
    expected = [*SOURCE.split("\n")[:2], after or ""]
    if after is None:
        expected = [
            "def train():",
            "    with no_grad():",
            "    for x in loader:",
            '        größe y "🔥"; total += model(x)  # 1',
        ]
    assert "\n".join(lines).rstrip("\n").split("\n") == expected


def test_suppressed_findings_are_not_reported() -> None:
    silenced = finding(suppressed=Suppressed("noqa", None))
    what = result(silenced)
    assert rendered("github", what) == ""
    assert issues(what) == [] and diagnostics(what) == []
    assert "MEM901" not in rendered("junit", what)


@pytest.mark.parametrize("name", ["github", "gitlab", "junit", "rdjson", "concise"])
def test_files_that_could_not_be_analysed_are_reported(name: Any) -> None:
    text = rendered(name, result(failures=(Failure("lost.py", "not valid utf-8"),)))
    assert "lost.py" in text and "not valid utf-8" in text
