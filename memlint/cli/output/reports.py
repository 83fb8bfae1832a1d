"""Destinations of reports: standard output or files, several in one run."""

from __future__ import annotations

import argparse
import errno
import io
import os
import stat
import sys
from pathlib import Path
from typing import TextIO

import msgspec

from memlint.cli.output.cells import Cells
from memlint.config import ConfigError
from memlint.engine.findings import internal_error
from memlint.engine.options import Options
from memlint.engine.run import Outcome
from memlint.finding import Result
from memlint.printable import printable
from memlint.project import decode, display_path
from memlint.project.listing import SUFFIXES
from memlint.project.presence import exists, is_file
from memlint.reading import most_of, read_file
from memlint.report import Format, writer
from memlint.report.lines import Lines
from memlint.report.setting import Rule, Setting
from memlint.report.summary import statistics
from memlint.temporary import Temporary

#: the formats for reading
_FOR_PEOPLE = ("text", "concise")
#: other names of standard output; opened anew, its file would be overwritten
_STDOUT = ("-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1")


class Output(msgspec.Struct, frozen=True):
    """One report. ``file``: None for standard output; ``option``: the option that requests it."""

    format: Format
    file: str | None
    option: str


def outputs(parsed: argparse.Namespace) -> list[Output]:
    """The reports of a run. Raises ConfigError if two of them would have one destination, or one would overwrite a
    program. That of ``--output-format`` is omitted if it is not requested and another one goes to standard output."""
    more = [Output(name, _file(file), f"--output {name}:{file}") for name, file in parsed.output or ()]
    given = parsed.output_format is not None or parsed.output_file is not None
    first = [Output(parsed.output_format or "text", _file(parsed.output_file), "--output-file")]
    found = [*(first if given or all(one.file is not None for one in more) else []), *more]
    places: dict[str | None, Output] = {}
    for one in found:
        place = None if one.file is None else os.path.realpath(one.file)
        if place is not None:
            _spare_programs(Path(str(one.file)), one.option)
        other = places.setdefault(place, one)
        if other is not one and place is None:
            raise ConfigError(
                f"two reports, {other.format} and {one.format}, go to standard output; name a file for one: "
                f"--output {one.format}:FILE"
            )
        if other is not one and not _is_stream(Path(str(one.file))):
            raise ConfigError(f"two reports, {other.format} and {one.format}, go to one file, {one.file}")
    return found


def _file(name: str | None) -> str | None:
    return None if name in _STDOUT else name


def is_read(parsed: argparse.Namespace) -> bool:
    """Whether a readable report is on standard output."""
    return any(one.file is None and one.format in _FOR_PEOPLE for one in outputs(parsed))


def report(outcome: Outcome, options: Options, parsed: argparse.Namespace, out: TextIO) -> bool:
    """Write the reports: those in files first, and to ``out`` in place of standard output. Returns whether all were
    written; errors are printed to standard error, and do not affect other reports."""
    cells = Cells(lambda path: _content(path, outcome, options))
    result, lines = outcome.result, Lines(lambda path: _source(path, outcome, options), cells.get)
    setting = _setting(outcome, options.cwd)
    wanted = outputs(parsed)
    files = [_wrote(one, one.file, result, lines, setting) for one in wanted if one.file is not None]
    whole = all(files)
    for one in wanted:
        if one.file is None:
            whole = _printed(one, parsed, result, lines, setting, out) and whole
    if parsed.statistics:
        # JSON on standard output stays JSON
        to = sys.stderr if any(one.file is None and one.format not in _FOR_PEOPLE for one in wanted) else out
        for line in statistics(result):
            print(line, file=to)
    return whole


def _wrote(one: Output, file: str, result: Result, lines: Lines, setting: Setting) -> bool:
    text = _text(one, result, lines, setting)
    try:
        if text is not None:
            write_whole(Path(file), text, one.option)
    except ConfigError as error:
        _tell(str(error))
        return False
    return text is not None


def _printed(
    one: Output, parsed: argparse.Namespace, result: Result, lines: Lines, setting: Setting, out: TextIO
) -> bool:
    """Write a report to standard output; returns whether it was written. In a job of GitHub Actions, no line of a
    readable report is taken for a command, and the annotations follow the text report."""
    in_job = one.format in _FOR_PEOPLE and out is sys.stdout and os.environ.get("GITHUB_ACTIONS") == "true"
    if not in_job and one.format == "text":
        writer(one.format, setting)(result, lines, out)  # it checks whether it is a terminal
        return True
    text = _text(one, result, lines, setting)
    if text is None:
        return False
    if in_job:
        from memlint.report.github import guarded, render

        annotated = one.format == "text" and parsed.annotations is True
        text = guarded(text) + (render(result, lines, setting) if annotated else "")
    out.write(text)
    return True


def _text(one: Output, result: Result, lines: Lines, setting: Setting) -> str | None:
    """A report; None after an internal error, which is printed and does not affect other reports."""
    text = io.StringIO()
    try:
        writer(one.format, setting)(result, lines, text)
    except Exception as error:
        _tell(internal_error(f"the {one.format} report", error))
        return None
    return text.getvalue()


def _tell(problem: str) -> None:
    print(f"memlint: error: {printable(problem)}", file=sys.stderr)


def _setting(outcome: Outcome, cwd: Path) -> Setting:
    root = next((folder for folder in (cwd, *cwd.parents) if exists(folder / ".git")), cwd)
    prefix = "" if root == cwd else f"{display_path(cwd, root)}/"
    root_name = str(root).replace(os.sep, "/").rstrip("/")
    return Setting(lambda: _rules(outcome), root_name, prefix, lambda code: _page_of(outcome, code))


def _page_of(outcome: Outcome, code: str) -> str | None:
    """The address of a rule's page."""
    from memlint.cli.output.links import address

    rooms = (prepared.rooms.get(code) for prepared, _ in outcome.parts)
    return next((address(room) for room in rooms if room is not None), None)


def _rules(outcome: Outcome) -> dict[str, Rule]:
    """The rules of all projects of a run."""
    from memlint.cli.commands.rule import page

    return {
        code: Rule(code, room.meta.name, room.meta.summary, room.meta.severity, page(room), room.meta.preview)
        for prepared, _ in outcome.parts
        for code, room in prepared.rooms.items()
    }


def _source(path: str, outcome: Outcome, options: Options) -> str | None:
    """The text of a file, read again for excerpts."""
    try:
        return decode(_content(path, outcome, options))
    except (OSError, SyntaxError, LookupError, UnicodeError):
        return None


def _content(path: str, outcome: Outcome, options: Options) -> bytes:
    if options.stdin is not None and path == display_path(options.stdin_path, options.cwd):
        return options.stdin
    # the printed form of an odd name is not the name
    projects = (prepared.found.project for prepared, _ in outcome.parts)
    file = next((project.path(path) for project in projects if path in project.sources), options.cwd / path)
    return read_file(file, most_of(file))


def _spare_programs(target: Path, option: str) -> None:
    """Raises ConfigError if a report would replace a program (``-o *.py``)."""
    place = Path(os.path.realpath(target))
    if place.name.endswith((*SUFFIXES, ".pyi")) and is_file(place):
        raise ConfigError(f"{option}: {target} is a program, which no report replaces")


def check_writable(target: Path, option: str = "--output-file") -> None:
    """Raises ConfigError if `write_whole` would, as far as known before; leaves nothing behind."""
    _spare_programs(target, option)
    try:
        if _is_stream(target):
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if not os.access(target, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
            return
        Temporary(Path(os.path.realpath(target))).remove()
    except OSError as error:
        raise ConfigError(f"{option}: {target} cannot be written: {error.strerror}") from None


def write_whole(target: Path, text: str, option: str = "--output-file") -> None:
    """Write a file atomically: beside it first, then moved into place. Raises ConfigError. A symlink stays one, and
    what is no regular file (/dev/stdout, a pipe) is written to and not replaced."""
    try:
        if _is_stream(target):
            with target.open("w", encoding="utf-8", newline="\n") as stream:
                stream.write(text)
        else:
            _replace(Path(os.path.realpath(target)), text)
    except OSError as error:
        raise ConfigError(f"{option}: {target} cannot be written: {error.strerror}") from None


def _is_stream(target: Path) -> bool:
    return (target.exists() and not target.is_file()) or target.is_relative_to("/dev")


def _replace(target: Path, text: str) -> None:
    new = Temporary(target)
    try:
        new.write(text.encode("utf-8", "backslashreplace"))
        new.path.chmod(_mode(target))
        new.path.replace(target)
    finally:
        new.remove()


def _mode(target: Path) -> int:
    """The mode of a file: as before, or as for any new one."""
    try:
        return stat.S_IMODE(target.stat().st_mode)
    except FileNotFoundError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask
