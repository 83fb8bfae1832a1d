"""``pytest --memlint-report``: what each test keeps once it is over, without any marks."""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from typing import TYPE_CHECKING, Any

import pytest

from memlint.amounts import plural

if TYPE_CHECKING:
    from memlint.measure.growth import Watch

#: prefixes of a report's user properties, before the name of a device
_KEPT, _PEAK = "memlint_kept_bytes:", "memlint_peak_bytes:"


class Reporter:
    """Measures each test that runs while torch is imported, and lists at the end what the tests keep."""

    def __init__(self) -> None:
        self._watches: dict[str, tuple[Watch, dict[str, int]]] = {}

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, None]:
        watch = _watch()
        if watch is None:
            yield
            return
        with watch:
            outcome = yield
            watch.mark()
        if outcome.excinfo is None:  # an exception keeps the frames of the test alive
            self._watches[item.nodeid] = watch, watch.peaks()

    @pytest.hookimpl(hookwrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Generator[None, None, None]:
        yield
        if item.nodeid not in self._watches:
            return
        watch, peaks = self._watches.pop(item.nodeid)
        fixtures = getattr(item, "funcargs", None)
        if isinstance(fixtures, dict):  # pytest would release them next
            fixtures.clear()
        if any(watch.kept().values()):  # with nothing kept, a collection changes nothing
            gc.collect()
        for device, count in watch.kept().items():
            item.user_properties += [(_KEPT + device, count), (_PEAK + device, peaks[device])]

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        rows: list[tuple[int, str]] = []
        measured = 0
        for report in terminalreporter.getreports(""):
            if report.when != "teardown":
                continue
            said = {name: count for name, count in report.user_properties if name.startswith((_KEPT, _PEAK))}
            kept = {name.removeprefix(_KEPT): count for name, count in said.items() if name.startswith(_KEPT)}
            measured += bool(kept)
            for device, count in kept.items():
                if count:
                    peak = said[_PEAK + device]
                    rows.append((count, f"{report.nodeid} keeps {count:,} B on {device} (its peak: {peak:,} B)"))
        terminalreporter.section("memlint: what tests keep")
        for _, row in sorted(rows, key=lambda row: (-row[0], row[1])):
            terminalreporter.write_line(row)
        if not measured:
            terminalreporter.write_line("nothing was measured: no test passed while torch was imported")
        elif not rows:
            terminalreporter.write_line(f"{plural(measured, 'test')} measured: none keeps anything")
        else:
            terminalreporter.write_line(f"{plural(measured, 'test')} measured")


def _watch() -> Watch | None:
    """A watch on all devices; None if torch is not imported, or is a stub."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    from memlint.measure.growth import Watch, gauges

    try:
        return Watch(gauges(None, torch), 0, freezes=False)  # a test may depend on garbage collection
    except (AttributeError, ImportError):
        return None
