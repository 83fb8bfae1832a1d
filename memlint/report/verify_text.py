"""A verification as text: a table with one row for each finding, then the reason of each verdict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TextIO

from rich.table import Table
from rich.text import Text

from memlint.amounts import plural
from memlint.finding import Finding
from memlint.report.text import clean, console
from memlint.verifier.model import (
    BAD,
    HOST,
    Comparison,
    Fragmentation,
    Holder,
    LoopBill,
    LoopSide,
    Peak,
    Rank,
    Report,
    Run,
    Side,
    Unattributed,
    Verdict,
    Verified,
)

_STYLES = {
    "confirmed": "bold red",
    "confirmed-host": "bold yellow",
    "cycle": "bold yellow",
    "peak-only": "bold yellow",
    "bounded": "green",
    "refuted": "green",
}
_LOOP_STYLES = {"grows": "bold yellow", "fills": "green", "given back": "green", "flat": "green", "not judged": "dim"}
_MEMORY = {"device-graph": "graphs on the device", "device-tensor": "tensors on the device", "host": "host memory"}
_KINDS = {"per-iteration": "in each iteration", "per-epoch": "in each epoch", "once": "once"}
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
#: `Holder.through` of a tensor that is the gradient of a parameter
GRADIENT = "its gradient"
#: frames of a stack that are shown, the program's own first
_FRAMES = 3


def write(report: Report, out: TextIO) -> None:
    """The table, the reasons, what is unattributed, and how it was measured."""
    _write(report, out, _details(report))


def write_short(report: Report, out: TextIO) -> None:
    """The table, what grows besides, and the summary: for a run whose report is written to a file."""
    _write(report, out, [*(next(_unattributed(row)) for row in report.unattributed), *_failed(report.run)])


def _write(report: Report, out: TextIO, details: Iterable[Text]) -> None:
    """The table, the details, and how it was measured."""
    target = console(out)
    if report.verified:
        target.print(table(report))
    for line in (*details, how(report.run), Text(summary(report), "bold")):
        target.print(clean(line), soft_wrap=True)


def _details(report: Report) -> Iterator[Text]:
    for one in report.verified:
        yield _reason(one)
        yield from (Text(f"  {held_by(holder)}") for holder in one.verdict.holders)
    for failure in report.failures:
        yield Text.assemble((f"{failure.path}: ", "bold"), ("failed: ", "bold red"), failure.reason)
    for row in report.unattributed:
        yield from _unattributed(row)
    yield from map(_fragmentation, report.fragmentation)
    if report.comparison is not None:
        yield from _comparison(report.comparison)
    yield from _loops(report)
    for rank in report.ranks:
        yield from _rank(rank, report)
    yield from _failed(report.run)
    if report.run.reason:
        yield Text(f"Loops: {report.run.reason}.")


def _failed(run: Run) -> Iterator[Text]:
    return (Text(said, "bold red") for said in (run.out_of_memory, run.broken) if said)


def table(report: Report) -> Table:
    """One row for each finding."""
    compared = report.comparison is not None
    rows = Table(box=None, padding=(0, 2, 0, 0), header_style="bold")
    for name in ("site", "claim", "verdict", "an iteration", "full after", *(["fix saves"] if compared else [])):
        rows.add_column(name, overflow="fold", justify="right" if name in ("an iteration", "full after") else "left")
    for one in report.verified:
        verdict = one.verdict
        cells: list[str | Text] = [
            Text(f"{one.finding.path}:{one.finding.line}", "bold"),
            claim(one.finding),
            Text(verdict.verdict, _STYLES.get(verdict.verdict, "dim")),
            an_iteration(verdict),
            "" if verdict.iterations_until_full is None else f"{verdict.iterations_until_full:,} it.",
        ]
        if report.comparison is not None:
            cells.append(saves(one, report.comparison))
        rows.add_row(*cells)
    return rows


def claim(finding: Finding, *, short: bool = False) -> str:
    """The claim of a finding: the memory, and how it grows (left out if ``short``)."""
    growth = finding.growth
    if growth.kind in ("peak", "time") or growth.memory == "none":
        return f"{finding.code}: {'time' if growth.kind == 'time' else 'a higher peak'}"
    if short:
        return f"{finding.code}: {_MEMORY[growth.memory]}"
    return f"{finding.code}: {_MEMORY[growth.memory]} {_KINDS.get(growth.kind, growth.kind)}"


def an_iteration(verdict: Verdict) -> str:
    """What an iteration leaves, in one cell; "" if unknown."""
    per = verdict.bytes_per_iteration
    if verdict.verdict == "confirmed-host":
        host = verdict.host_bytes_per_iteration
        nodes = verdict.graph_nodes_per_iteration or 0
        return f"{size(host)} host" if host and host > 0 else f"{nodes:,} nodes"
    if per is None:
        return ""
    return size(per.max) if per.exact is not None else f"{size(per.min)} – {size(per.max)}"


def size(count: int | None) -> str:
    """Bytes in the unit that fits, rounded (JSON has the exact number); "?" if unknown."""
    if count is None:
        return "?"
    value, unit = float(count), 0
    while abs(value) >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{count:,} B" if unit == 0 else f"{value:,.1f} {_UNITS[unit]}"


def how(run: Run) -> Text:
    """The conditions of the measurement: device, versions, window, and how the program ended."""
    parts = [
        f"device {run.device}" if run.device else "no device",
        f"torch {run.torch}" if run.torch else "torch was not imported",
        f"Python {run.python}" if run.python else "",
        f"warm-up {run.warmup}, window {run.window}",
        plural(run.steps, "step"),
        ("probes broken" if run.end == "broken" else f"program {run.end}")
        + (f" with exit code {run.exit}" if run.exit else ""),
    ]
    return Text("Measured: " + ", ".join(part for part in parts if part) + ".", "dim")


def _reason(one: Verified) -> Text:
    verdict = one.verdict
    return Text.assemble(
        (f"{one.finding.path}:{one.finding.line}: ", "bold"),
        (verdict.verdict, _STYLES.get(verdict.verdict, "dim")),
        f": {verdict.reason}",
        (f" ({plural(verdict.hits, 'hit')})" if verdict.hits else "", "dim"),
    )


def held_by(holder: Holder) -> str:
    """For example: held by `losses[3]`, a local variable of `train` (train.py:8), in a list of 24."""
    place = holder.file or ""
    if holder.line is not None:
        place += f":{holder.line}"
    root = {
        "global": "a global variable",
        "class": "an attribute of the class",
        "local": f"a local variable of `{holder.where}`",
        "context": "a context variable",
        "suspended": f"a variable of `{holder.where}`, which waits or was left by an exception",
    }[holder.kind]
    said = f"held by `{holder.path}`"
    if holder.through:
        said += f", through {'its autograd graph' if holder.through != GRADIENT else GRADIENT}"
        said += f" ({holder.through})" if holder.through != GRADIENT else ""
    said += f": {root}" + (f" ({place})" if place else "")
    return said + (f", in a {holder.container} of {holder.elements:,}" if holder.container is not None else "")


def _unattributed(row: Unattributed) -> Iterator[Text]:
    yield Text.assemble(
        (f"{row.loop}: ", "bold"),
        ("unattributed growth: ", "bold red"),
        row.in_words,
    )
    for stack in row.stacks:
        own = [frame for frame in stack.frames if not frame.path.startswith("/") and "<" not in frame.path]
        yield Text(f"  {stack.bytes_per_iteration:,} B an iteration, asked for at")
        for frame in (own or list(stack.frames))[:_FRAMES]:
            yield Text(f"    {frame.path}:{frame.line}" + (f" in {frame.function}" if frame.function else ""))
        for holder in stack.holders:
            yield Text(f"    {held_by(holder)}")


def _loops(report: Report) -> Iterator[Text]:
    """What an iteration of each loop leaves, and the peaks."""
    for loop in report.loops:
        name, said = loop_said(loop)
        seen = plural(loop.iterations, "iteration") + (f" in {plural(loop.runs, 'run')}" if loop.runs > 1 else "")
        yield Text.assemble((f"{loop.place}: ", "bold"), (f"{name}: ", _LOOP_STYLES[name]), f"{said} ({seen})")
    told = {peak.device for peak in report.peaks}
    for device, count in report.peak.items():
        if count and device not in told:
            yield Text(f"The peak on {device}: {size(count)} of tensors.")
    for peak in report.peaks:
        yield Text(peak_said(peak))


def peak_said(peak: Peak) -> str:
    """For example: The peak on cuda:0: 9.1 GiB at step 371 in the loop at train.py:30 (training): 2.0 GiB of …."""
    followed = ", as far as it was followed" if peak.device == "cpu" else ""
    said = f"The peak on {peak.device}{followed}: {size(peak.bytes)} "
    said += f"at step {peak.step:,}" if peak.step else "before the first step was over"
    said += f" in the loop at {peak.loop}" if peak.loop else ""
    said += f" ({peak.phase})" if peak.phase else ""
    parts = ", ".join(f"{size(count)} of {_PARTS[name]}" for name, count in peak.parts.items() if count)
    return f"{said}: {parts}." if parts else f"{said}."


_PARTS = {
    "parameters": "parameters",
    "gradients": "gradients",
    "optimizer": "optimizer state",
    "rest": "activations, inputs and all else",
}


def loop_said(loop: LoopBill) -> tuple[str, str]:
    """What a loop does (a key of `_LOOP_STYLES`), and what an iteration of it leaves."""
    if loop.bytes_per_iteration is None:
        return "not judged", loop.reason
    left = {device: count for device, count in loop.bytes_per_iteration.items() if count}
    if loop.host_bytes_per_iteration:
        left[HOST] = loop.host_bytes_per_iteration
    kept = f"an iteration leaves {_amounts(left)}" if left else ""
    passing = f"an iteration leaves {_amounts(loop.until_its_end)}, until the loop ends" if loop.until_its_end else ""
    if kept:
        return "grows", "; ".join(filter(None, (kept, passing)))
    if loop.fills:
        rings = ", ".join(f"`{path}` (about {size(full)} when it is full)" for path, full in loop.fills.items())
        return "fills", rings
    if passing:
        return "given back", passing
    if loop.findings:
        return "grows", "by what the findings in it keep"
    return "flat", "an iteration leaves 0 B of tensors"


def _amounts(by_device: Mapping[str, int]) -> str:
    """Bytes by device; those of `HOST` are host memory beside tensors."""
    return ", ".join(
        f"{count:,} B of host memory beside tensors" if device == HOST else f"{count:,} B on {device}"
        for device, count in by_device.items()
    )


def _fragmentation(row: Fragmentation) -> Text:
    return Text.assemble(
        (f"{row.device}: ", "bold"),
        ("fragmentation: ", "bold yellow"),
        f"reserved went from {size(row.reserved[0])} to {size(row.reserved[1])}, the most in use from "
        f"{size(row.peak[0])} to {size(row.peak[1])}; {row.advice}",
    )


def _comparison(comparison: Comparison) -> Iterator[Text]:
    yield Text(f"Compared with {comparison.label}:", "bold")
    if comparison.reason:
        yield Text(f"  {comparison.reason}")
    before, after = comparison.before, comparison.after
    if after.peak is None and not after.steps:  # there was no second run
        return
    rows = (
        ("peak", size(before.peak), size(after.peak)),
        ("an iteration leaves", size(before.bytes_per_iteration), size(after.bytes_per_iteration)),
        ("of host memory", size(before.host_bytes_per_iteration), size(after.host_bytes_per_iteration)),
    )
    for name, one, other in rows:
        yield Text(f"  {name}: {one} → {other}" if one != other else f"  {name}: {one} both times")
    yield Text(f"  step time: {step_time(before)} → {step_time(after)}{beyond_noise(before, after)}")
    said = {
        "equal": f"all {comparison.compared:,} losses are equal, bit for bit",
        "different": f"losses differ by up to {difference(comparison.largest_difference)} (of {comparison.compared:,})",
        "unknown": "no backward() was seen, so no losses could be compared",
    }
    yield Text(f"  {said[comparison.losses]}")
    if comparison.own_difference:
        own = difference(comparison.own_difference)
        yield Text(f"  two runs of the program as it is differ by up to {own}: it is not deterministic")


def difference(most: float | None) -> str:
    """The largest difference between the losses of two runs; "?" if unknown."""
    return "?" if most is None else f"{most:.3g}"


def step_time(side: Side | LoopSide) -> str:
    """The median step time, and the quartiles if they are known."""
    if side.step_spread is None:
        return milliseconds(side.step_seconds)
    first, third = side.step_spread
    return f"{milliseconds(side.step_seconds)} ({first * 1000:.2f} to {third * 1000:.2f})"


def beyond_noise(before: Side | LoopSide, after: Side | LoopSide) -> str:
    """A remark if the quartiles of two step times overlap; else ""."""
    if before.step_spread is None or after.step_spread is None:
        return ""
    apart = before.step_spread[1] < after.step_spread[0] or after.step_spread[1] < before.step_spread[0]
    return "" if apart else ", no difference beyond noise"


def milliseconds(seconds: float | None) -> str:
    """A time in milliseconds; "?" if unknown."""
    return "?" if seconds is None else f"{seconds * 1000:.2f} ms"


def saves(one: Verified, comparison: Comparison) -> str:
    """What the fix saves of the memory or time that the verdict is about, in one cell; "" if unknown."""
    if one.finding.fingerprint not in comparison.fixed:
        return "left out" if one.finding.fingerprint in comparison.left_out else "no fix"
    for saving in comparison.savings:
        if saving.fingerprint == one.finding.fingerprint:
            together = "" if saving.alone else " (all)"
            if one.verdict.verdict == "peak-only":
                return f"{size(saving.peak)} of peak{together}"
            if one.verdict.verdict == "confirmed-host":
                return f"{size(saving.host_bytes_per_iteration)} host an it.{together}"
            if one.verdict.verdict in BAD:
                return f"{size(saving.bytes_per_iteration)} an it.{together}"
            if one.finding.growth.kind == "time" and saving.step_time is not None:
                return f"{saving.step_time:.0%} of time{together}"
    return ""


def _rank(rank: Rank, report: Report) -> Iterator[Text]:
    yield Text(f"Rank {rank.rank}: {rank.end}, {plural(rank.steps, 'step')}")
    for one in report.verified:
        name = rank.verdicts.get(one.finding.fingerprint)
        if name is not None:
            yield Text(f"  {one.finding.path}:{one.finding.line} {one.finding.code}: {name} in this rank")


def summary(report: Report) -> str:
    """For example ``3 of 4 findings confirmed (12.3 s).``"""
    if not report.verified:
        said = f"No findings in {plural(report.files, 'file')}"
    else:
        bad = sum(one.verdict.verdict in BAD for one in report.verified)
        said = f"{bad} of {plural(len(report.verified), 'finding')} confirmed"
    left = len(report.unattributed)
    extra = f"; {plural(left, 'loop')} with growth that no finding explains" if left else ""
    return f"{said}{extra} ({report.seconds:.1f} s)."
