"""SARIF: valid by its schema, read by a tool of others, and with all that a finding has."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from made import MEASURED, PAGE, PATH, RULES, SETTING, SILENCED, SOURCE, VARIED, edit, finding, fix, rendered, result

from memlint.finding import Failure, Suppressed, TraceStep
from memlint.report.setting import HOME, Rule, Setting, brief

jsonschema = pytest.importorskip("jsonschema")
SCHEMA = json.loads((Path(__file__).parent / "schemas" / "sarif-schema-2.1.0.json").read_text("utf-8"))


def run_of(*findings: Any, setting: Setting = SETTING, failures: tuple[Failure, ...] = ()) -> Any:
    log = json.loads(rendered("sarif", result(*findings, failures=failures), setting))
    jsonschema.Draft4Validator(SCHEMA, format_checker=jsonschema.Draft4Validator.FORMAT_CHECKER).validate(log)
    (run,) = log["runs"]
    return run


def test_every_kind_of_finding_is_valid() -> None:
    run = run_of(*VARIED, finding(suppressed=SILENCED), failures=(Failure("a b.py", "not valid utf-8"),))
    assert len(run["results"]) == len(VARIED) + 1
    assert run["columnKind"] == "unicodeCodePoints"
    for one in run["results"]:
        assert run["tool"]["driver"]["rules"][one["ruleIndex"]]["id"] == one["ruleId"]


def test_a_run_without_findings_is_valid() -> None:
    run = run_of()
    assert run["results"] == [] and run["invocations"] == [
        {"executionSuccessful": True, "toolExecutionNotifications": []}
    ]


def test_the_schema_would_notice() -> None:
    log = json.loads(rendered("sarif", result(finding())))
    log["runs"][0]["results"][0]["level"] = "fatal"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(log, SCHEMA)


def test_rules_have_their_pages() -> None:
    unknown = finding(code="MEM999", name="of-another-project", severity="warning")
    leak, burst, other = run_of(*VARIED[:3], unknown)["tool"]["driver"]["rules"]
    assert (leak["id"], leak["name"], leak["shortDescription"]["text"]) == ("MEM901", "toy-leak", "A toy leaks.")
    assert leak["fullDescription"]["text"] == "Finds `toys` that leak: `nets[i](x)` and so on."
    assert leak["help"]["markdown"] == brief(PAGE)
    assert "A second paragraph" in leak["help"]["text"]
    assert leak["helpUri"].startswith("https://")
    assert leak["defaultConfiguration"] == {"level": "error"}
    assert "preview" in burst["properties"]["tags"] and "preview" not in leak["properties"]["tags"]
    assert other["name"] == "of-another-project", "the rule of a project that is not known here"


@pytest.mark.parametrize(
    ("address", "uri"),
    [
        ("https://docs.example.org/rules/x/", "https://docs.example.org/rules/x/"),
        ("file:///home/me/x/README.md", HOME),
        (None, HOME),
    ],
)
def test_help_is_where_others_can_read_it(address: str | None, uri: str) -> None:
    setting = Setting(lambda: RULES, page_of=lambda code: address)
    (rule,) = run_of(finding(), setting=setting)["tool"]["driver"]["rules"]
    (row,) = json.loads(rendered("rdjson", result(finding()), setting))["diagnostics"]
    assert (rule["helpUri"], row["code"]["url"]) == (uri, uri)


def test_a_page_to_be_read_elsewhere() -> None:
    text = brief(PAGE)
    assert "leak(rows[0](1))" in text, "code stays as it is"
    assert "`nets[i](x)` and so on." in text, "and so does code in a sentence; the file beside the page is not there"
    assert "[a page](https://example.org/page)" in text
    assert "### First" in text and "### Second" not in text and "leak(2)" not in text
    assert text.endswith("## Known limits\n\n* None.\n")


def test_places() -> None:
    one, two = run_of(finding(), finding(path="/elsewhere/x.py"))["results"]
    (location,) = one["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "src/gr%C3%B6%C3%9Fe/train%20it.py", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 3, "startColumn": 22, "endLine": 3, "endColumn": 39,
                   "snippet": {"text": "total += model(x)"}},
    }  # fmt: skip
    assert SOURCE.split("\n")[2][21:38] == "total += model(x)"
    assert two["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "file:///elsewhere/x.py"}


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("train.py", "sub/train.py"),
        ("/repo/other/a.py", "other/a.py"),
        ("/repository/a.py", "file:///repository/a.py"),
        ("C:/code/a.py", "file:///C:/code/a.py"),
    ],
)
def test_paths_are_those_of_the_repository(path: str, uri: str) -> None:
    setting = Setting(root="/repo", prefix="sub/")
    (one,) = run_of(finding(path=path, trace=(TraceStep(path, 1, 1, "here"),)), setting=setting)["results"]
    (step,) = one["codeFlows"][0]["threadFlows"][0]["locations"]
    for location in (one["locations"][0], step["location"]):
        assert location["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_the_trace_is_a_code_flow() -> None:
    steps = (TraceStep("src/other.py", 1, 5, "the model is called here"), TraceStep(PATH, 3, 1, "and kept here"))
    one, without = run_of(finding(trace=steps), finding(trace=()))["results"]
    (flow,) = one["codeFlows"]
    (thread,) = flow["threadFlows"]
    said = [(row["location"]["message"]["text"], row["location"]["physicalLocation"]) for row in thread["locations"]]
    assert [message for message, _ in said] == ["the model is called here", "and kept here"]
    assert said[0][1]["region"] == {"startLine": 1, "startColumn": 5}
    assert said[0][1]["artifactLocation"]["uri"] == "src/other.py"
    assert "codeFlows" not in without


def test_fixes_can_be_applied_and_say_how_safe_they_are() -> None:
    """As a reader of the log would: the regions of the source are replaced."""
    safe = fix(edit(".detach()", 3, 39, 39), edit("", 3, 9, 22))
    doubtful = fix(edit("x", 1, 1, 1, "src/other.py"), safety="unsafe", doubt="it may be a number")
    one, two = run_of(finding(fix=safe, alternatives=(doubtful,)), finding(fix=fix(safety="display")))["results"]
    first, second = one["fixes"]
    assert (first["properties"], second["properties"]) == (
        {"safety": "safe"},
        {"safety": "unsafe", "doubt": "it may be a number"},
    )
    (change,) = first["artifactChanges"]
    lines = SOURCE.split("\n")
    for row in sorted(change["replacements"], key=lambda row: -row["deletedRegion"]["startColumn"]):
        region, line = row["deletedRegion"], lines[2]
        lines[2] = line[: region["startColumn"] - 1] + row["insertedContent"]["text"] + line[region["endColumn"] - 1 :]
    assert lines[2] == "        total += model(x).detach()  # 1"
    assert second["artifactChanges"][0]["artifactLocation"]["uri"] == "src/other.py"
    assert "fixes" not in two and two["properties"]["shownFixes"] == ["detach `loss` [not applied by --fix]"]


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_what_fixes_insert_has_the_line_ends_of_its_file(newline: str) -> None:
    made = fix(edit("    with no_grad():\n", 2, 1, 1))
    text = rendered("sarif", result(finding(fix=made)), sources={PATH: SOURCE.replace("\n", newline)})
    (change,) = json.loads(text)["runs"][0]["results"][0]["fixes"][0]["artifactChanges"]
    assert change["replacements"][0]["insertedContent"]["text"] == f"    with no_grad():{newline}"


@pytest.mark.parametrize(
    ("by", "kind"),
    [("noqa", "inSource"), ("ignore", "inSource"), ("ignore-file", "inSource"), ("evidence", "external")],
)
def test_suppressed_findings_say_by_what(by: str, kind: str) -> None:
    (one,) = run_of(finding(suppressed=Suppressed(by, "why not")))["results"]
    assert one["suppressions"] == [{"kind": kind, "justification": "why not", "properties": {"by": by}}]
    (one,) = run_of(finding(suppressed=Suppressed(by, None)))["results"]
    assert "justification" not in one["suppressions"][0]


def test_properties_have_what_the_standard_has_no_place_for() -> None:
    one = finding(evidence=MEASURED, reach="unused", reach_reason="nothing calls it", cell=4, confidence="medium")
    (row,) = run_of(one)["results"]
    said = row["properties"]
    assert (said["severity"], said["confidence"], said["cell"]) == ("error", "medium", 4)
    assert (said["reach"], said["reachReason"]) == ("unused", "nothing calls it")
    assert said["growth"] == {"memory": "device-graph", "kind": "per-iteration"}
    assert said["evidence"]["bytes_per_iteration"]["exact"] == 512
    assert "measured: 512 B an iteration on cuda:0" in row["message"]["text"]
    assert row["partialFingerprints"] == {"memlintFinding/v1": "0123456789abcdef"}


def test_files_that_could_not_be_analysed_are_notifications() -> None:
    (invocation,) = run_of(failures=(Failure("a b.py", "not valid utf-8"),))["invocations"]
    assert invocation["executionSuccessful"] is False
    (said,) = invocation["toolExecutionNotifications"]
    assert (said["level"], said["message"]["text"]) == ("error", "not valid utf-8")
    assert said["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "a%20b.py"


def test_sarif_tools_read_it(tmp_path: Path) -> None:
    loader = pytest.importorskip("sarif.loader")
    file = tmp_path / "memlint.sarif"
    file.write_text(rendered("sarif", result(*VARIED)), encoding="utf-8")
    read = loader.load_sarif_file(str(file))
    assert read.get_distinct_tool_names() == ["memlint"]
    rows = read.get_records()
    assert sorted((row["Severity"], row["Code"].split()[0], row["Line"]) for row in rows) == sorted(
        (one.severity, one.code, one.line) for one in VARIED
    )
    assert {row["Location"] for row in rows} >= {"b.py", "file:///elsewhere/x.py"}
    (kind,) = read.get_report().get_issue_type_histogram_for_severity("note")
    assert kind == f"MEM902 {VARIED[2].message}"


def test_long_texts_of_a_rule_are_cut_to_what_services_take() -> None:
    page = PAGE.replace("Finds `toys`", "Finds " + "many " * 1000)
    setting = Setting(lambda: {"MEM901": Rule("MEM901", "toy-leak", "A toy leaks.", "error", page)})
    (rule,) = run_of(finding(), setting=setting)["tool"]["driver"]["rules"]
    assert len(rule["fullDescription"]["text"]) <= 1024
