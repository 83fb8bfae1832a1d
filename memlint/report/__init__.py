"""Rendering of a result as text, or in the formats of services and editors. Knows no rule."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Literal, TextIO, get_args

from memlint.finding import Result
from memlint.report.facts import shown
from memlint.report.lines import Lines
from memlint.report.setting import Setting

Format = Literal["text", "concise", "json", "sarif", "github", "gitlab", "junit", "rdjson", "html"]
FORMATS: tuple[Format, ...] = get_args(Format)
_MODULES: dict[Format, str] = {"json": "as_json", "html": "as_html"}

#: writes a result; the content of files comes from `Lines`
Writer = Callable[[Result, Lines, TextIO], None]
#: the ``render`` function of a format's module, except text
Render = Callable[[Result, Lines, Setting], str]


def writer(name: Format, setting: Setting | None = None) -> Writer:
    """The function that writes a format; only that one is imported, as rich is slow to import."""
    used = Setting() if setting is None else setting
    if name == "text":
        return lambda result, lines, out: _text(result, lines, out, used)
    render = _render(name)

    def write(result: Result, lines: Lines, out: TextIO) -> None:
        out.write(render(result, lines, used))

    return write


def _render(name: Format) -> Render:
    render: Render = importlib.import_module(f"memlint.report.{_MODULES.get(name, name)}").render
    return render


def _text(result: Result, lines: Lines, out: TextIO, setting: Setting) -> None:
    """Write the text report. With nothing to show or to style, the concise report is equal and does not import rich."""
    if result.failures or shown(result) or out.isatty() or os.environ.get("FORCE_COLOR"):
        from memlint.report.text import write

        write(result, lines, out, setting)
    else:
        out.write(_render("concise")(result, lines, Setting()))
