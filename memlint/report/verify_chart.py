"""Charts of memory by step, without scripts: SVG for the drawing, HTML for its text, so that they fit a phone."""

from __future__ import annotations

import bisect
from collections.abc import Callable, Sequence

import msgspec

from memlint.report.page import element, esc, void
from memlint.report.verify_text import size
from memlint.verifier.model import LoopRun, Share, Timeline, Unattributed

#: the size of the drawing in its own units
_WIDE, _HIGH = 1000, 240
#: loops with more runs than this get no line at each start
_EDGES = 40
#: the most loops below a chart, colours, and points with a tooltip
_LANES, _COLOURS, _TIPS = 6, 6, 120
#: changes of host memory below this are drawn flat, in bytes
_QUIET = 64 * 1024

#: the name of a site by its finding's fingerprint
Name = Callable[[str], str]


class _Scale(msgspec.Struct, frozen=True):
    """Converts steps and bytes to units of the drawing."""

    first: int
    last: int
    most: int

    def x(self, step: float) -> float:
        return round(_WIDE * (step - self.first) / max(self.last - self.first, 1), 2)

    def y(self, count: float) -> float:
        return round(_HIGH * (1 - count / self.most), 2)


class _Layer(msgspec.Struct, frozen=True):
    """An area between two lines, in bytes at each step. ``style``: its CSS class."""

    name: str
    style: str
    low: tuple[int, ...]
    high: tuple[int, ...]


def figures(timeline: Timeline, name: Name, colours: dict[str, int], growth: Sequence[Unattributed] = ()) -> str:
    """A chart for each device, and one for the host; "" if no step was measured. ``colours``: as of `colours_for`;
    ``growth``: loops whose growth no finding explains."""
    if timeline.steps[0] == timeline.steps[-1]:
        return ""
    made = [
        _figure(timeline, device, held, _layers(timeline, device, held, name, colours, growth))
        for device, held in timeline.devices.items()
        if any(held)
    ]
    if any(one is not None for one in timeline.host):
        made.append(_host(timeline))
    return "\n".join(made)


def colours_for(shares: Sequence[Share]) -> dict[str, int]:
    """The number of a colour for each site by fingerprint, the largest site first."""
    ordered = sorted(shares, key=lambda share: -max(share.projected))
    return {share.fingerprint: number % _COLOURS for number, share in enumerate(ordered)}


def _layers(
    timeline: Timeline,
    device: str,
    held: Sequence[int],
    name: Name,
    colours: dict[str, int],
    growth: Sequence[Unattributed],
) -> list[_Layer]:
    """The layers from the bottom up: everything else, growth that no finding explains, then each site's share. Their
    sum is what is held at each step."""
    shares = [share for share in timeline.shares if share.device == device]
    stacked: list[tuple[Share, list[int], list[int]]] = []
    left = list(held)
    for share in shares:
        sure = [min(one, room) for one, room in zip(share.measured, left, strict=True)]
        all_of_it = [min(one, room) for one, room in zip(share.projected, left, strict=True)]
        left = [room - one for room, one in zip(left, all_of_it, strict=True)]
        stacked.append((share, sure, all_of_it))
    unexplained = _unexplained(timeline, device, left, growth)
    base = [room - one for room, one in zip(left, unexplained, strict=True)]
    layers = [_Layer("everything else", "rest", (0,) * len(left), tuple(base))]
    if any(unexplained):
        layers.append(_Layer("growth that no finding explains (estimated)", "unexplained", tuple(base), tuple(left)))
    base = left
    for share, sure, all_of_it in stacked:
        middle = [low + one for low, one in zip(base, sure, strict=True)]
        top = [low + one for low, one in zip(base, all_of_it, strict=True)]
        style, said = f"s{colours[share.fingerprint]}", name(share.fingerprint)
        layers.append(_Layer(said, style, tuple(base), tuple(middle)))
        if top != middle:
            layers.append(_Layer(f"{said} (projected)", f"{style} beyond", tuple(middle), tuple(top)))
        base = top
    return layers


def _unexplained(timeline: Timeline, device: str, left: Sequence[int], growth: Sequence[Unattributed]) -> list[int]:
    """An estimate of what growing loops hold at each point: the measured bytes of each iteration, at most what was
    gained since the loop began."""
    found = [0] * len(left)
    for row in growth:
        runs = [run for run in timeline.runs if run.loop == row.loop]
        if row.device != device or not runs:
            continue
        first = bisect.bisect_left(timeline.steps, runs[0].first)
        before = left[min(first, len(left) - 1)]
        for place, step in enumerate(timeline.steps):
            steps = sum(max(0, min(step, step if run.last is None else run.last) - run.first) for run in runs)
            gained = max(0, left[place] - before - found[place])
            found[place] += min(steps * row.bytes_per_iteration, gained)
    return found


def _figure(timeline: Timeline, device: str, held: Sequence[int], layers: Sequence[_Layer]) -> str:
    scale, ticks = _scale(timeline, max(held))
    drawn = [_grid(scale, ticks)]
    for layer in layers:
        area = _area(timeline.steps, layer.low, layer.high, scale)
        drawn.append(void("path", class_=layer.style, d=area))
    drawn.append(void("path", class_="total", d=_line(timeline.steps, held, scale)))
    drawn.append(_edges(timeline, scale))
    drawn.append(_tips(timeline, scale, held, layers))
    caption = (
        element("h3", f"Tensors on {esc(device)}")
        + element("span", f"{size(held[0])} at first, {size(max(held))} at most, {size(held[-1])} at the end",
                  class_="soft")
    )  # fmt: skip
    letters = [(tick, _round(tick)) for tick in ticks]
    below = _lanes(timeline, scale)
    return _framed(scale, letters, "".join(drawn), caption, "plot", below, _legend(layers), f"tensors on {device}")


def _host(timeline: Timeline) -> str:
    known = [(step, one) for step, one in zip(timeline.steps, timeline.host, strict=True) if one is not None]
    steps, held = [step for step, _ in known], [one for _, one in known]
    # drawn above the least value: the constant part is large
    least = min(held)
    above = [one - least for one in held]
    scale, ticks = _scale(timeline, max(*above, _QUIET))
    drawn = _grid(scale, ticks) + _edges(timeline, scale)
    drawn += void("path", class_="hostline", d=_line(steps, above, scale))
    drawn += _tips(timeline, scale, [least if one is None else one for one in timeline.host], ())
    both = ", tensors in main memory among it" if "cpu" in timeline.devices else ""
    said = f"what the C library handed out{both}, above the {size(least)} that it was at least"
    said += f": {size(above[0])} at first, {size(max(above))} at most, {size(above[-1])} at the end"
    caption = element("h3", "Host memory") + element("span", said, class_="soft")
    letters = [(tick, f"+{_round(tick)}") for tick in ticks]
    return _framed(scale, letters, drawn, caption, "plot low", _lanes(timeline, scale), "", "host memory")


def _framed(
    scale: _Scale,
    letters: Sequence[tuple[int, str]],
    drawn: str,
    caption: str,
    style: str,
    below: str,
    legend: str,
    label: str,
) -> str:
    """The drawing with its text. ``letters``: the labels of the y axis with their bytes; ``below``: HTML under it."""
    svg = element(
        "svg",
        drawn,
        viewBox=f"0 0 {_WIDE} {_HIGH}",
        preserveAspectRatio="none",
        role="img",
        aria_label=f"{label} against steps",
    )
    left = "".join(element("span", said, style=f"bottom:{100 * height / scale.most:.2f}%") for height, said in letters)
    inside = element("div", left, class_="y") + svg + element("div", _steps(scale), class_="x") + below
    return element("figure", element("figcaption", caption) + element("div", inside, class_=style) + legend)


def _steps(scale: _Scale) -> str:
    """Labels of the x axis: the first step, the middle one and the last, if they differ."""
    marks = {scale.first: "first", scale.last: "last"}
    marks.setdefault((scale.first + scale.last) // 2, "middle")
    return "".join(
        element("span", f"{said}{step:,}", class_=place, style=f"left:{scale.x(step) / 10:.2f}%")
        for step, place in marks.items()
        for said in ("step " if place == "first" else "",)
    )


def _scale(timeline: Timeline, most: int) -> tuple[_Scale, list[int]]:
    """The scale, and the ticks of the y axis in bytes."""
    step = 1
    while step * 5 < most:
        step *= 2
    top = max(step * -(-most // step), 1)
    ticks = list(range(0, top + 1, step))
    return _Scale(timeline.steps[0], timeline.steps[-1], top), ticks


def _round(tick: int) -> str:
    return size(tick).replace(".0 ", " ")


def _grid(scale: _Scale, ticks: Sequence[int]) -> str:
    return "".join(
        void("line", class_="grid", x1=0, x2=_WIDE, y1=scale.y(tick), y2=scale.y(tick)) for tick in ticks[1:]
    )


def _line(steps: Sequence[int], held: Sequence[int], scale: _Scale) -> str:
    points = [f"{scale.x(step)} {scale.y(one)}" for step, one in zip(steps, held, strict=True)]
    return "M" + "L".join(points)


def _area(steps: Sequence[int], low: Sequence[int], high: Sequence[int], scale: _Scale) -> str:
    back = [f"{scale.x(step)} {scale.y(one)}" for step, one in zip(steps, low, strict=True)]
    return f"{_line(steps, high, scale)}L{'L'.join(reversed(back))}Z"


def _edges(timeline: Timeline, scale: _Scale) -> str:
    """A line at the start of each run of a loop that has few runs."""
    by_loop = _by_loop(timeline)
    steps = {run.first for runs in by_loop.values() if len(runs) <= _EDGES for run in runs}
    return "".join(
        void("line", class_="edge", x1=scale.x(step), x2=scale.x(step), y1=0, y2=_HIGH)
        for step in sorted(steps)
        if scale.first < step < scale.last
    )


def _tips(timeline: Timeline, scale: _Scale, held: Sequence[int], layers: Sequence[_Layer]) -> str:
    """Tooltips with the values of some points."""
    every = -(-len(held) // _TIPS)
    made: list[str] = []
    for number in range(0, len(held), every):
        step = timeline.steps[number]
        after = timeline.steps[min(number + every, len(held) - 1)]
        wide = max(scale.x(after) - scale.x(step), 2)
        rows = [f"after {step:,} steps ({timeline.seconds[number]:.1f} s): {size(held[number])}"]
        rows += (
            f"{layer.name}: {size(layer.high[number] - layer.low[number])}"
            for layer in layers
            if layer.high[number] > layer.low[number]
        )
        title = element("title", esc("\n".join(rows)))
        made.append(element("rect", title, class_="probe", x=scale.x(step), y=0, width=round(wide, 2), height=_HIGH))
    return "".join(made)


def _by_loop(timeline: Timeline) -> dict[str, list[LoopRun]]:
    found: dict[str, list[LoopRun]] = {}
    for run in timeline.runs:
        found.setdefault(run.loop, []).append(run)
    return found


def _lanes(timeline: Timeline, scale: _Scale) -> str:
    """A strip for each of the first loops, with its runs."""
    made: list[str] = []
    for loop, runs in list(_by_loop(timeline).items())[:_LANES]:
        marks: list[str] = []
        for number, run in enumerate(runs, 1):
            last = scale.last if run.last is None else run.last
            left, right = scale.x(max(run.first, scale.first)) / 10, scale.x(last) / 10
            said = f"{loop}: run {number:,}, steps {run.first:,} to {last:,}"
            marks.append(element("i", "", title=said, style=f"left:{left:.2f}%;width:{max(right - left, 0.2):.2f}%"))
        made.append(element("div", element("bdi", esc(loop)), class_="lane-name", title=f"runs of the loop at {loop}"))
        made.append(element("div", "".join(marks), class_="lane"))
    return "".join(made)


def _legend(layers: Sequence[_Layer]) -> str:
    rows = [layer for layer in layers if not layer.style.endswith(" beyond")]
    keys = [element("span", "", class_=f"key {layer.style}") + esc(layer.name) for layer in reversed(rows)]
    return element("ul", "".join(element("li", key) for key in keys), class_="legend")
