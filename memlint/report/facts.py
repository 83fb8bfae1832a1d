"""The parts of a finding that have the same words in every report."""

from __future__ import annotations

from memlint.finding import Finding, Fix, Result, TraceStep, shown_place
from memlint.report.measured import said as what_was_measured
from memlint.report.setting import Setting


def shown(result: Result) -> list[Finding]:
    """The reported findings: those that are not suppressed."""
    return [one for one in result.findings if one.suppressed is None]


def facts(finding: Finding) -> list[tuple[str, str]]:
    """The lines after the message and the trace, each with its label: measurements, help, fixes."""
    rows = [] if finding.evidence is None else [("measured", what_was_measured(finding.evidence))]
    rows += [("help", finding.help)] if finding.help else []
    rows += [] if finding.fix is None else [("fix", said_of(finding.fix))]
    return [*rows, *(("or", said_of(other)) for other in finding.alternatives)]


def said_of(fix: Fix) -> str:
    """The effect of a fix, and its safety."""
    kind = "not applied by --fix" if fix.safety == "display" else f"{fix.safety} fix"
    return f"{fix.title} [{kind}: {fix.doubt}]" if fix.doubt else f"{fix.title} [{kind}]"


def rule_of(finding: Finding) -> str:
    """For example ``MEM101[loss-accumulation]``."""
    return f"{finding.code}[{finding.name}]"


def in_cell(place: Finding | TraceStep) -> str:
    """What comes before a message whose place has no room for the cell of a notebook."""
    return "" if place.cell is None else f"cell {place.cell}: "


def details(finding: Finding, setting: Setting) -> str:
    """All of it as plain text: the message, the trace, and the facts, a line each."""
    steps = [
        f"{number}. {shown_place(step, setting.from_root(step.path))}: {step.message}"
        for number, step in enumerate(finding.trace, 1)
    ]
    return "\n".join([finding.message, *steps, *(f"{word}: {said}" for word, said in facts(finding))])
