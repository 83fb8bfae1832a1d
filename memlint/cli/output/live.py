"""A table at the bottom of the terminal while a program runs above it.

The program writes to the same terminal, so that redrawing below its last line would break its lines. Instead, the last
rows are excluded from scrolling, and the program's output stays intact, including unfinished lines and progress bars.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from memlint.amounts import plural
from memlint.report.verify_text import claim, size
from memlint.verifier.probing.planning import Probes
from memlint.verifier.processes.ranks import steps

#: the most findings that get a line
_MOST = 6
#: the fewest rows that are left to the program
_LEFT = 10
_NARROWEST = 40

_SAVE, _BACK, _CLEAR, _DOWN = "\x1b7", "\x1b8", "\x1b[2K", "\x1bD"


class Live:
    """Shows the measurements so far on a capable terminal; nothing elsewhere, or if ``quiet`` is set."""

    def __init__(self, *, quiet: bool) -> None:
        stream = sys.stderr
        capable = os.name == "posix" and os.environ.get("TERM", "dumb") != "dumb"
        self._quiet = quiet or stream is None
        self._on = not quiet and capable and stream is not None and stream.isatty()
        #: the terminal's columns and rows, and the number of our rows, while there are any
        self._taken: tuple[int, int, int] | None = None

    def __enter__(self) -> Live:
        return self

    def __exit__(self, *_: object) -> None:
        self._write(self._given_back())

    def say(self, label: str) -> None:
        """Announce another run of the program."""
        if not self._quiet:
            self._write(f"{self._given_back()}memlint: the program runs again: {label}\n")

    def show(self, put_in: Probes, measured: Sequence[Mapping[str, Any]]) -> None:
        """Redraw the table, with the measurements of the program's first process."""
        if not self._on or not measured:
            return
        try:
            columns, rows = os.get_terminal_size(sys.stderr.fileno())
        except OSError:
            return
        if columns < _NARROWEST:
            lines: list[str] = []
        else:
            lines = table(put_in, measured[0], columns - 1)
            lines = lines if rows >= len(lines) + _LEFT else lines[:1]
        if rows < len(lines) + _LEFT:
            lines = []
        wanted = (columns, rows, len(lines)) if lines else None
        text = ""
        if wanted != self._taken:
            text += self._given_back()
            if wanted is not None:
                text += _take(rows, len(lines))
            self._taken = wanted
        if lines:
            first = rows - len(lines) + 1
            drawn = "".join(f"\x1b[{row};1H\x1b[0m{_CLEAR}{line}" for row, line in enumerate(lines, first))
            text += f"{_SAVE}{drawn}{_BACK}"
        self._write(text)

    def _given_back(self) -> str:
        """The control sequence that restores scrolling of the whole terminal, without the table."""
        if self._taken is None:
            return ""
        _, rows, ours = self._taken
        self._taken = None
        return f"{_SAVE}\x1b[r\x1b[{rows - ours + 1};1H\x1b[0m\x1b[J{_BACK}"

    def _write(self, text: str) -> None:
        """Write in one call, so that the program's output does not interleave."""
        if text:
            sys.stderr.flush()
            os.write(sys.stderr.fileno(), text.encode("utf-8", "replace"))


def _take(rows: int, ours: int) -> str:
    """The control sequence that excludes the last rows from scrolling. The cursor moves up with the lines, and keeps
    its column."""
    return f"{_DOWN * ours}\x1b[{ours}A{_SAVE}\x1b[1;{rows - ours}r{_BACK}"


def table(put_in: Probes, measured: Mapping[str, Any], width: int) -> list[str]:
    """The measurements so far: one line for the whole, then one per finding."""
    sites = measured["sites"]
    done = sum(_is_measured(site) for site in sites)
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=not os.environ.get("NO_COLOR"), highlight=False, markup=False,
        emoji=False, legacy_windows=False,
    )  # fmt: skip
    said = f"memlint: step {steps(measured):,}" + (
        f", {done} of {plural(len(sites), 'finding')} measured" if sites else ""
    )
    console.print(Text(said, "bold"), no_wrap=True, overflow="ellipsis", crop=True)
    rows = Table(box=None, padding=(0, 2, 0, 0), header_style="dim", show_edge=False)
    for name in ("site", "claim", "hits", "so far"):
        rows.add_column(name, no_wrap=True, overflow="ellipsis", justify="right" if name == "hits" else "left")
    shown = [site for site in sites if site["id"] in put_in.findings]
    for site in shown[:_MOST]:
        finding = put_in.findings[site["id"]]
        rows.add_row(
            Text(f"{finding.path}:{finding.line}"), claim(finding, short=True), f"{site['hits']:,}", so_far(site)
        )
    if shown:
        console.print(rows, no_wrap=True, crop=True)
    if len(shown) > _MOST:
        console.print(Text(f"and {len(shown) - _MOST} more", "dim"))
    return out.getvalue().splitlines()


def _is_measured(site: Mapping[str, Any]) -> bool:
    return any(check["when"] == "window" for check in site["checks"])


def so_far(site: Mapping[str, Any]) -> str:
    """The memory that one site keeps, as far as known while the program runs."""
    if not site["hits"]:
        return "not reached yet"
    if not _is_measured(site):
        return "measuring"
    check = [check for check in site["checks"] if check["when"] == "window"][-1]
    held, nodes = sum(sum(alive.values()) for alive in check["alive"]), sum(check["nodes"])
    of = f"of {plural(len(check['alive']), 'hit')}"
    if held:
        return f"keeps {size(held)} {of}"
    return f"keeps {nodes:,} graph nodes {of}" if nodes else f"keeps nothing {of}"
