"""SARIF 2.1.0, as code scanning services and editors read it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import msgspec

from memlint import __version__, finding
from memlint.finding import Edit, Finding, Suppressed, TraceStep
from memlint.json_text import indented
from memlint.report import sarif_model as sarif
from memlint.report.facts import facts, in_cell, said_of
from memlint.report.lines import Lines
from memlint.report.setting import HOME, Rule, Setting, brief, is_absolute, section

#: the name under which paths are relative to the root of the repository
_ROOT = "SRCROOT"
#: the most characters of a rule's description: GitHub shows 1,024
_LONGEST = 1000
#: the values of `Suppressed.by` that are comments in the source
_IN_SOURCE = ("noqa", "ignore", "ignore-file")


def render(result: finding.Result, lines: Lines, setting: Setting) -> str:
    """The result as a log with one run. Suppressed findings are in it, marked with what suppressed them; files that
    could not be analysed are notifications."""
    rules = setting.rules_of(result)
    index = {rule.code: number for number, rule in enumerate(rules)}
    run = sarif.Run(
        tool=sarif.Tool(
            driver=sarif.Component(
                name="memlint",
                version=__version__,
                semantic_version=__version__,
                information_uri=HOME,
                rules=[_rule(rule, setting.help_uri(rule.code)) for rule in rules],
            )
        ),
        invocations=[
            sarif.Invocation(
                execution_successful=not result.failures,
                tool_execution_notifications=[
                    sarif.Notification(
                        level="error",
                        message=sarif.Message(text=failure.reason),
                        locations=[_location(failure.path, None, setting)],
                    )
                    for failure in result.failures
                ],
            )
        ],
        original_uri_base_ids={
            _ROOT: sarif.ArtifactLocation(description=sarif.Message(text="The root of the repository."))
        },
        column_kind="unicodeCodePoints",
        results=[_result(one, index, lines, setting) for one in result.findings],
    )
    return indented(sarif.Log(schema=sarif.SCHEMA, version="2.1.0", runs=[run]))


def _rule(rule: Rule, help_uri: str) -> sarif.Descriptor:
    page = brief(rule.page) if rule.page else rule.summary
    what = section(page, "What it does") or rule.summary
    return sarif.Descriptor(
        id=rule.code,
        name=rule.name,
        short_description=sarif.Message(text=rule.summary[:_LONGEST]),
        full_description=sarif.Message(text=" ".join(what.partition("\n\n")[0].split())[:_LONGEST]),
        help=sarif.Message(text=f"{rule.summary}\n\n{what}", markdown=page),
        help_uri=help_uri,
        default_configuration=sarif.Configuration(level=rule.severity),
        properties={"tags": ["memory", "performance", "pytorch", *(["preview"] if rule.preview else [])]},
    )


def _result(one: Finding, index: dict[str, int], lines: Lines, setting: Setting) -> sarif.Result:
    region = sarif.Region(
        start_line=one.line,
        start_column=one.column,
        end_line=one.end_line,
        end_column=one.end_column,
        snippet=_snippet(one, lines),
    )
    flow = [sarif.ThreadFlowLocation(location=_step(step, setting)) for step in one.trace]
    return sarif.Result(
        rule_id=one.code,
        rule_index=index[one.code],
        level=one.severity,
        message=sarif.Message(text=_message(one)),
        locations=[_location(one.path, region, setting)],
        code_flows=[sarif.CodeFlow(thread_flows=[sarif.ThreadFlow(locations=flow)])] if flow else [],
        fixes=list(_fixes(one, lines, setting)),
        suppressions=[] if one.suppressed is None else [_suppression(one.suppressed)],
        partial_fingerprints={"memlintFinding/v1": one.fingerprint},
        properties=_properties(one),
    )


def _message(one: Finding) -> str:
    """The message, the measurement and the help: most services show nothing else of a result."""
    return "\n".join(
        [
            f"{in_cell(one)}{one.message}",
            *(f"{word}: {said}" for word, said in facts(one) if word in ("measured", "help")),
        ]
    )


def _properties(one: Finding) -> dict[str, Any]:
    """The facts of a finding for which SARIF has no field."""
    said: dict[str, Any] = {
        "severity": one.severity,
        "confidence": one.confidence,
        "growth": msgspec.to_builtins(one.growth),
        "reach": one.reach,
    }
    said |= {"reachReason": one.reach_reason} if one.reach_reason else {}
    said |= {"help": one.help} if one.help else {}
    said |= {"cell": one.cell} if one.cell is not None else {}
    said |= {"evidence": msgspec.to_builtins(one.evidence)} if one.evidence is not None else {}
    shown = [fix for fix in (one.fix, *one.alternatives) if fix is not None and fix.safety == "display"]
    return said | ({"shownFixes": [said_of(fix) for fix in shown]} if shown else {})


def _suppression(suppressed: Suppressed) -> sarif.Suppression:
    return sarif.Suppression(
        kind="inSource" if suppressed.by in _IN_SOURCE else "external",
        justification=suppressed.reason,
        properties={"by": suppressed.by},
    )


def _fixes(one: Finding, lines: Lines, setting: Setting) -> Iterator[sarif.Fix]:
    """The fixes that have edits, each with its safety. Edits in cells are left out: their lines are not the file's."""
    for fix in (one.fix, *one.alternatives):
        if fix is None or fix.safety == "display" or not fix.edits:
            continue
        if any(edit.cell is not None for edit in fix.edits):
            continue
        files: dict[str, list[Edit]] = {}
        for edit in fix.edits:
            files.setdefault(edit.path, []).append(edit)
        yield sarif.Fix(
            description=sarif.Message(text=said_of(fix)),
            artifact_changes=[
                sarif.ArtifactChange(
                    artifact_location=_artifact(path, setting),
                    replacements=[_replacement(edit, lines) for edit in edits],
                )
                for path, edits in files.items()
            ],
            properties={"safety": fix.safety} | ({"doubt": fix.doubt} if fix.doubt else {}),
        )


def _replacement(edit: Edit, lines: Lines) -> sarif.Replacement:
    span = edit.span
    region = sarif.Region(
        start_line=span.line, start_column=span.column, end_line=span.end_line, end_column=span.end_column
    )
    text = edit.content.replace("\n", lines.newline(edit.path)) if "\n" in edit.content else edit.content
    return sarif.Replacement(deleted_region=region, inserted_content=sarif.Content(text=text))


def _step(step: TraceStep, setting: Setting) -> sarif.Location:
    region = sarif.Region(start_line=step.line, start_column=step.column)
    return _location(step.path, region, setting, f"{in_cell(step)}{step.message}")


def _location(path: str, region: sarif.Region | None, setting: Setting, message: str = "") -> sarif.Location:
    return sarif.Location(
        physical_location=sarif.PhysicalLocation(artifact_location=_artifact(path, setting), region=region),
        message=sarif.Message(text=message) if message else None,
    )


def _artifact(path: str, setting: Setting) -> sarif.ArtifactLocation:
    named = setting.from_root(path)
    if is_absolute(named):
        return sarif.ArtifactLocation(uri=f"file://{'' if named.startswith('/') else '/'}{quote(named, safe='/:')}")
    return sarif.ArtifactLocation(uri=quote(named), uri_base_id=_ROOT)


def _snippet(one: Finding, lines: Lines) -> sarif.Content | None:
    """The source of the finding's region; None if a line of it is unknown."""
    rows = [lines.get(one.path, line, one.cell) for line in range(one.line, one.end_line + 1)]
    found = [row for row in rows if row is not None]
    if len(found) != len(rows):
        return None
    found[-1] = found[-1][: one.end_column - 1]
    found[0] = found[0][one.column - 1 :]
    return sarif.Content(text="\n".join(found))
