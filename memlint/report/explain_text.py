"""An explanation as text."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TextIO

from rich.text import Text

from memlint.explanation import Explanation, RuleFacts, StatementFacts
from memlint.finding import shown_place
from memlint.report.facts import facts
from memlint.report.text import console, wrapped

_STATUS = {
    "reported": "reported",
    "not shown": "found, and not shown",
    "elsewhere": "reported at another line",
    "dropped": "not reported",
    "no candidate": "nothing to report",
}
_STYLES = {
    "reported": "bold red",
    "not shown": "bold yellow",
    "elsewhere": "bold yellow",
    "dropped": "bold cyan",
    "no candidate": "bold cyan",
}


def write(found: Explanation, out: TextIO) -> None:
    """Write the line, its values, and what each rule says of it."""
    target = console(out)
    wrap = target.width if out.isatty() else None
    column = found.column or len(found.source) - len(found.source.lstrip()) + 1
    cell = "" if found.cell is None else f"cell {found.cell}:"
    rows = [Text.assemble((f"{found.path}:{cell}{found.line}:{column}: ", "bold"), found.source.strip())]
    for one in found.statements:
        rows += _statement(one)
    for rule in found.rules:
        rows += _rule(rule)
    if not found.rules:
        rows.append(Text("no rule has a finding or a dropped candidate here; --rule CODE explains the silence of one"))
    rows += [Text.assemble(("failed: ", "bold red"), failure) for failure in found.failures]
    for row in rows:
        target.print(wrapped(row, wrap, 4), soft_wrap=True)


def _statement(one: StatementFacts) -> Iterator[Text]:
    where = "at module level" if one.function == "<module>" else f"in {one.function}"
    yield Text.assemble(("  where: ", "bold green"), where)
    yield Text.assemble(("  grad mode: ", "bold green"), f"{one.grad_mode}: {one.decided_by}")
    for loop in one.loops:
        yield Text.assemble(("  repeated by: ", "bold green"), loop)
    if not one.loops:
        yield Text.assemble(("  repeated by: ", "bold green"), "nothing known")
    for note in one.notes:
        yield Text.assemble(("  note: ", "bold green"), note)
    for value in one.values:
        yield Text.assemble(("  ", ""), (f"`{value.expression}`", "bold"), f": {value.text}")


def _rule(rule: RuleFacts) -> Iterator[Text]:
    yield Text.assemble((f"  {rule.code}[{rule.name}]: ", "bold"), (_STATUS[rule.status], _STYLES[rule.status]))
    finding = rule.finding
    if finding is not None:
        where = f"{shown_place(finding)}: " if rule.status == "elsewhere" else ""
        yield Text(f"    {where}{finding.severity}, {finding.confidence} confidence: {finding.message}")
        for number, step in enumerate(finding.trace, 1):
            yield Text(f"    {number}. {shown_place(step)}: {step.message}")
        if finding.reach != "used":
            yield Text(f"    {finding.reach}: {finding.reach_reason}")
        for word, said in facts(finding):
            yield Text(f"    {word}: {said}")
    for why in rule.reasons:
        yield Text.assemble((f"    {why.name}: ", "bold"), why.text)
