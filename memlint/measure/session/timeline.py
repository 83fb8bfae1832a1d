"""The memory of the process over the whole run, for charts: a limited number of points."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from ..memory.meters import Bytes, Meter
from ..sites.sites import SiteWatch

#: the most points; beyond, every second one is dropped
_MOST = 1_000
#: points without a limit of time; later ones take at most this share of it
_FREE = 100
_SHARE = 0.01
#: the most runs of loops that are noted
_RUNS = 600


class Timeline:
    """Readings at tops and exits of loops. A step is an iteration of an innermost loop."""

    def __init__(self) -> None:
        self._points: list[dict[str, Any]] = []
        self._runs: dict[int, list[Any]] = {}
        self._started = time.perf_counter()
        self._next = 0.0
        self._asked = 0
        self._stride = 1

    def begin(self, run: int, loop: int, step: int) -> None:
        """A run of a loop begins, after ``step`` steps."""
        if len(self._runs) < _RUNS:
            self._runs[run] = [loop, step, None]

    def end(self, run: int, step: int) -> None:
        """A run of a loop ends."""
        if run in self._runs:
            self._runs[run][2] = step

    def note(
        self,
        step: int,
        meter: Meter,
        host: Callable[[], int] | None,
        sites: Iterable[SiteWatch],
        *,
        always: bool = False,
    ) -> None:
        """Add a point after ``step`` steps, unless it is skipped to limit points or time."""
        self._asked += 1
        if self._asked % self._stride and not always:
            return
        now = time.perf_counter()
        if now < self._next and not always:
            return
        point: dict[str, Any] = {"step": step, "seconds": now - self._started, "requested": meter.read()}
        if host is not None:
            point["host"] = host()
        point["sites"] = shares(sites)
        self._points.append(point)
        if len(self._points) > _FREE:
            self._next = now + (time.perf_counter() - now) / _SHARE
        if len(self._points) > _MOST:
            del self._points[1::2]
            self._stride *= 2

    def data(self) -> dict[str, Any]:
        """The points as JSON, by column."""
        points = self._points
        devices = dict.fromkeys(device for point in points for device in point["requested"])
        sites = dict.fromkeys(site for point in points for site in point["sites"])
        return {
            "steps": [point["step"] for point in points],
            "seconds": [round(point["seconds"], 4) for point in points],
            "requested": {device: [point["requested"].get(device, 0) for point in points] for device in devices},
            "host": [point.get("host") for point in points],
            "sites": {str(site): [point["sites"].get(site) for point in points] for site in sites},
            "runs": list(self._runs.values()),
        }


def shares(sites: Iterable[SiteWatch]) -> dict[int, dict[str, Any]]:
    """The bytes that each site's followed hits hold, by device, and its number of hits. Each storage counts once."""
    seen: set[int] = set()
    found: dict[int, dict[str, Any]] = {}
    for site in sites:
        if not site.generations:
            continue
        held: Bytes = {}
        late = site.late.generations
        for generation in (*site.generations, *late):
            for reference, device in generation.blocks:
                storage = reference()
                if storage is not None and storage._cdata not in seen:
                    seen.add(storage._cdata)
                    held[device] = held.get(device, 0) + storage.nbytes()
        found[site.number] = {
            "held": held,
            "followed": site.hits if late else len(site.generations),
            "hits": site.hits,
            "loop": site.loops[-1] if site.loops else None,
        }
    return found
