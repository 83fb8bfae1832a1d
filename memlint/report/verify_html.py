"""A verification as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TextIO

from memlint.finding import Finding
from memlint.report.lines import Lines
from memlint.report.page import element, esc, page, prose
from memlint.report.source_html import excerpt, trace
from memlint.report.verify_chart import colours_for, figures
from memlint.report.verify_text import (
    an_iteration,
    claim,
    difference,
    held_by,
    how,
    loop_said,
    peak_said,
    saves,
    size,
    step_time,
    summary,
)
from memlint.verifier.model import BAD, Comparison, Report, Side, Stack, Unattributed, Verified

_LOOP_TONES = {"grows": "warn", "fills": "good", "given back": "good", "flat": "good", "not judged": ""}
_TONES = {"confirmed": "bad", "confirmed-host": "warn", "cycle": "warn", "peak-only": "warn", "bounded": "good",
          "refuted": "good"}  # fmt: skip


def write(report: Report, lines: Lines, out: TextIO, program: str) -> None:
    """Write the page. ``program``: what was run, as the user named it."""
    title = f"memlint verify {program}"
    parts = [
        element("h1", esc(title)),
        element("p", esc(summary(report)), class_="said"),
        element("p", esc(how(report.run).plain), class_="soft"),
        *_timeline(report),
        *_findings(report, lines),
        *_unattributed(report),
        *_every_loop(report),
        *_comparison(report),
        *_rest(report),
    ]
    text = page(title, "\n".join(parts) + "\n")
    # names of files may contain characters that UTF-8 cannot encode
    out.write(text.encode("utf-8", "backslashreplace").decode("utf-8"))


def _timeline(report: Report) -> list[str]:
    if report.timeline is None:
        return []
    names = {one.finding.fingerprint: f"{_place(one.finding)} {one.finding.code}" for one in report.verified}
    colours = colours_for(report.timeline.shares)
    drawn = figures(
        report.timeline, lambda fingerprint: names.get(fingerprint, fingerprint), colours, report.unattributed
    )
    if not drawn:
        return []
    said = "What live tensors asked for at the tops of loops. Each colour is what a confirmed site keeps"
    if 'class="unexplained"' in drawn:
        said += ", red is growth that no finding explains"
    beyond = any(share.projected != share.measured for share in report.timeline.shares)
    said += "; paler, what later hits of it keep if each keeps as much as those that were followed." if beyond else "."
    return [element("h2", "Memory over the run"), drawn, element("p", said, class_="soft")]


def _findings(report: Report, lines: Lines) -> list[str]:
    if not report.verified:
        return []
    names = ["site", "claim", "verdict", "an iteration", "full after"]
    names += ["fix saves"] if report.comparison is not None else []
    rows: list[list[str]] = []
    for number, one in enumerate(report.verified, 1):
        verdict = one.verdict
        cells = [
            element("a", element("code", esc(_place(one.finding))), href=f"#finding-{number}"),
            esc(claim(one.finding)),
            _tag(verdict.verdict),
            esc(an_iteration(verdict)),
            "" if verdict.iterations_until_full is None else f"{verdict.iterations_until_full:,} iterations",
        ]
        if report.comparison is not None:
            cells.append(esc(saves(one, report.comparison)))
        rows.append(cells)
    return [
        element("h2", "Findings"),
        _table(names, _NUMBERS, rows),
        element("h2", "Why"),
        *(_finding(number, one, lines) for number, one in enumerate(report.verified, 1)),
    ]


_NUMBERS = ("an iteration", "full after")


def _finding(number: int, one: Verified, lines: Lines) -> str:
    finding, verdict = one.finding, one.verdict
    head = (
        element("code", element("b", esc(_place(finding))))
        + element("span", esc(f"{finding.code} {finding.name}"))
        + _tag(verdict.verdict)
        + element("span", esc(an_iteration(verdict)), class_="soft")
    )
    facts = [("measured", verdict.reason), ("hits", f"{verdict.hits:,}")]
    if verdict.held_bytes is not None:
        facts.append(("held at the window's end", size(verdict.held_bytes)))
    facts += [("held by", held_by(holder).removeprefix("held by ")) for holder in verdict.holders]
    if finding.help:
        facts.append(("help", finding.help))
    if finding.fix is not None:
        facts.append(("fix", f"{finding.fix.title} [{finding.fix.safety}]"))
    inside = (
        element("p", prose(finding.message))
        + excerpt(finding, lines)
        + trace(finding, lines)
        + element("dl", "".join(element("dt", esc(name)) + element("dd", prose(said)) for name, said in facts))
    )
    open_ = "open" if verdict.verdict in BAD else None
    return element(
        "details",
        element("summary", head) + element("div", inside, class_="inside"),
        class_="finding",
        id=f"finding-{number}",
        open=open_,
    )


def _unattributed(report: Report) -> list[str]:
    if not report.unattributed:
        return []
    return [element("h2", "Growth that no finding explains"), *(_left(row) for row in report.unattributed)]


def _left(row: Unattributed) -> str:
    said = f"each iteration leaves {row.bytes_per_iteration:,} B on {row.device}"
    head = element("code", element("b", esc(row.loop))) + _tag("unattributed", "bad") + element("span", esc(said))
    inside = "".join(_stack(stack) for stack in row.stacks) or element("p", "The place of the allocation is unknown.")
    return element(
        "details",
        element("summary", head) + element("div", inside, class_="inside"),
        class_="finding",
        open="open",
    )


def _stack(stack: Stack) -> str:
    frames = "\n".join(esc(f"{frame.path}:{frame.line} in {frame.function}") for frame in stack.frames)
    held = "".join(element("p", prose(held_by(holder))) for holder in stack.holders)
    return element("p", f"{stack.bytes_per_iteration:,} B an iteration, asked for at") + element("pre", frames) + held


def _every_loop(report: Report) -> list[str]:
    """What an iteration of each loop leaves, and the peaks."""
    rows: list[list[str]] = []
    for loop in report.loops:
        name, said = loop_said(loop)
        peaks = [peak.bytes for peak in report.peaks if peak.loop == loop.place]
        counts = f"{loop.iterations:,}", f"{loop.runs:,}", size(max(peaks)) if peaks else ""
        rows.append([element("code", esc(loop.place)), _tag(name, _LOOP_TONES[name]), esc(said), *counts])
    if not rows and not report.peaks:
        return []
    numbers = ("iterations", "runs", "peak")
    return [
        element("h2", "Loops"),
        *([_table(("loop", "it is", "an iteration", *numbers), numbers, rows)] if rows else []),
        *(element("p", esc(peak_said(peak)), class_="soft") for peak in report.peaks),
    ]


def _table(names: Sequence[str], numbers: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table of cells that are HTML. ``numbers``: the columns that are aligned to the right."""
    kinds = ["number" if name in numbers else None for name in names]
    head = "".join(element("th", name, class_=kind) for name, kind in zip(names, kinds, strict=True))
    body = "".join(
        element(
            "tr",
            "".join(
                element("td", cell, class_=kind, data_name=name)
                for cell, name, kind in zip(row, names, kinds, strict=True)
            ),
        )
        for row in rows
    )
    table = element("thead", element("tr", head)) + element("tbody", body)
    return element("div", element("table", table, class_="cards"), class_="scroll")


def _comparison(report: Report) -> list[str]:
    comparison = report.comparison
    if comparison is None:
        return []
    rows = "".join(
        element(
            "tr",
            element("td", name)
            + element("td", esc(before), class_="number", data_name="as it is")
            + element("td", esc(after), class_="number", data_name="changed"),
        )
        for name, before, after in zip(_SIDE, _side(comparison.before), _side(comparison.after), strict=True)
    )
    names = "".join(element("th", name, class_="number") for name in ("as it is", "changed"))
    head = element("tr", f"<th></th>{names}")
    table = element("table", element("thead", head) + element("tbody", rows))
    said = [element("p", esc(text)) for text in (_losses(comparison), comparison.reason) if text]
    parts = [element("div", table, class_="scroll"), *_loops(comparison), *said]
    return [element("h2", f"Compared with {esc(comparison.label)}"), *parts]


def _loops(comparison: Comparison) -> list[str]:
    """What an iteration of each innermost loop leaves and how long it takes, in both runs; nothing for a single
    loop."""
    if len(comparison.loops) < 2:  # the table above has the only loop
        return []
    numbers = ("an iteration leaves", "step time")
    rows = [
        [
            element("code", esc(pair.place)),
            esc(f"{size(pair.before.bytes_per_iteration)} → {size(pair.after.bytes_per_iteration)}"),
            esc(f"{step_time(pair.before)} → {step_time(pair.after)}"),
        ]
        for pair in comparison.loops
    ]
    return [_table(("loop", *numbers), numbers, rows)]


_SIDE = ("peak", "an iteration leaves", "of host memory", "step time", "steps")


def _side(side: Side) -> tuple[str, ...]:
    return (
        size(side.peak),
        size(side.bytes_per_iteration),
        size(side.host_bytes_per_iteration),
        step_time(side),
        f"{side.steps:,}",
    )


def _losses(comparison: Comparison) -> str:
    largest = difference(comparison.largest_difference)
    own = ""
    if comparison.own_difference:
        own = f" Two runs of the program as it is differ by up to {difference(comparison.own_difference)} themselves."
    return {
        "equal": f"All {comparison.compared:,} losses are equal, bit for bit.",
        "different": f"Losses differ by up to {largest} (of {comparison.compared:,}).{own}",
        "unknown": "No backward() was seen, so no losses could be compared.",
    }[comparison.losses]


def _rest(report: Report) -> list[str]:
    said = [
        f"{row.device}: reserved memory went from {size(row.reserved[0])} to {size(row.reserved[1])}, the most in use "
        f"from {size(row.peak[0])} to {size(row.peak[1])}; {row.advice}"
        for row in report.fragmentation
    ]
    said += filter(None, (report.run.out_of_memory, report.run.broken))
    said += [f"{failure.path}: failed: {failure.reason}" for failure in report.failures]
    for rank in report.ranks:
        differ = ", ".join(f"{name} for {fingerprint}" for fingerprint, name in rank.verdicts.items())
        said.append(f"Rank {rank.rank}: {rank.end}, {rank.steps:,} steps" + (f"; differs: {differ}" if differ else ""))
    return [element("h2", "Besides"), *(element("p", esc(text)) for text in said)] if said else []


def _place(finding: Finding) -> str:
    return f"{finding.path}:{finding.line}"


def _tag(name: str, tone: str | None = None) -> str:
    return element("span", esc(name), class_=f"tag {tone or _TONES.get(name, '')}".strip())
