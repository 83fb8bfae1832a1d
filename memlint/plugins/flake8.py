"""The flake8 plugin: reports for each file that flake8 checks what ``memlint FILE`` reports.

A finding needs the whole project, while flake8 checks one file at a time, in several processes. So the files that
flake8 is going to check are linted together, once, before it starts its workers. Other texts (standard input, a file
that has changed since) are linted when flake8 checks them.

flake8 selects and ignores these codes as any others, with ``# noqa``, too; memlint's own configuration and suppressions
apply as well. flake8 itself reports files that do not parse (E999).
"""

from __future__ import annotations

import atexit
import json
import multiprocessing
import os
import sys
import tempfile
import tokenize
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from memlint import __version__
from memlint.printable import printable

if TYPE_CHECKING:
    import argparse
    import ast

    from memlint.engine.batch import Said
    from memlint.engine.options import Options

#: a finding for flake8: line (from 1), column (from 0) and text
Row = tuple[int, int, str]
#: modification time and size of a file; None if it cannot be read
Stamp = tuple[int, int] | None
#: environment variable for workers that were not forked: the parent's process id, and the file with its findings
VARIABLE = "MEMLINT_FLAKE8"
#: the suffixes of Python files; flake8 also checks other files that are named
_SUFFIXES = (".py", ".pyw", ".pyi")
_CONFIDENCES = ("high", "medium", "low")


class Plugin:
    """flake8 makes an instance for each file that parses."""

    name = "memlint"
    version = __version__
    _session: Session | None = None

    def __init__(self, tree: ast.AST, filename: str, lines: list[str]) -> None:
        # not in run(): flake8 names the plugin if its constructor raises
        assert self._session is not None, "flake8 has not called parse_options"
        self._rows = self._session.rows(filename, lines)

    def run(self) -> Iterator[tuple[int, int, str, type[Plugin]]]:
        for line, column, text in self._rows:
            yield line, column, text, type(self)

    @staticmethod
    def add_options(manager: Any) -> None:
        manager.add_option(
            "--memlint-notes",
            action="store_true",
            default=False,
            parse_from_config=True,
            help="report memlint's notes, too",
        )
        manager.add_option(
            "--memlint-config",
            metavar="FILE",
            parse_from_config=True,
            normalize_paths=True,
            help="use this configuration of memlint instead of the closest one",
        )
        manager.add_option(
            "--memlint-min-confidence",
            metavar="LEVEL",
            parse_from_config=True,
            help="report findings of at least this confidence: high, medium (default) or low",
        )

    @classmethod
    def parse_options(cls, manager: Any, options: argparse.Namespace, filenames: list[str]) -> None:
        """Called once by the main process, and by each worker that was not forked from it."""
        cls._session = Session(options)
        if not options.bug_report and not cls._session.is_worker:
            cls._session.prepare()


class Session:
    """One run of flake8, in one process. ``is_worker``: the process was started by another one with a session."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._options = options
        self._known: dict[str, tuple[Stamp, list[Row]]] | None = None
        parent = multiprocessing.parent_process()
        pid, _, file = os.environ.get(VARIABLE, "").partition(":")
        self.is_worker = parent is not None and pid == str(parent.pid)
        if self.is_worker:
            self._known = {path: (stamp and tuple(stamp), rows) for path, (stamp, rows) in _read(file).items()}

    def prepare(self) -> None:
        """Lint the files that flake8 is going to check. Raises flake8's ExecutionError for wrong options or an invalid
        configuration of memlint."""
        with _Failures():
            self._check()
            # flake8's API gives the files later; on the command line, no names mean the working directory
            if self._options.filenames or "flake8.api.legacy" not in sys.modules:
                self._known = self._lint_all()
        os.environ[VARIABLE] = f"{os.getpid()}:"
        method = multiprocessing.get_start_method(allow_none=True) or multiprocessing.get_all_start_methods()[0]
        if self._known and method != "fork":
            os.environ[VARIABLE] += _write(self._known)

    def rows(self, filename: str, lines: list[str]) -> list[Row]:
        """The findings in a file with these lines."""
        if filename == self._options.stdin_display_name and "-" in self._options.filenames:
            return self._lint_text(None if filename == "stdin" else filename, lines)
        if self._known is None:
            with _Failures():
                self._known = self._lint_all()
        stamp, rows = self._known.get(_absolute(filename), (None, []))
        return rows if stamp is not None and stamp == _stamp(filename) else self._lint_text(filename, lines)

    def _check(self) -> None:
        config, level = self._options.memlint_config, self._options.memlint_min_confidence
        if config is None and level is None and "-" not in self._options.filenames:
            return
        from memlint.config import ConfigError, nearest
        from memlint.engine.batch import check_configuration

        if level is not None and level not in _CONFIDENCES:
            known = f"{', '.join(_CONFIDENCES)}{nearest(level, _CONFIDENCES)}"
            raise ConfigError(f"--memlint-min-confidence: `{level}` is not one of {known}")
        if config is not None and not Path(config).is_file():
            raise ConfigError(f"--memlint-config: there is no file {config}")
        if "-" in self._options.filenames:
            check_configuration(self._options.stdin_display_name, self._engine_options())

    def _lint_all(self) -> dict[str, tuple[Stamp, list[Row]]]:
        """The findings in each file that flake8 is going to check, by absolute path."""
        from memlint.engine.glance import says_nothing

        files = [name for name in _files(self._options) if name != "-" and name.endswith(_SUFFIXES)]
        stamps = {_absolute(name): _stamp(name) for name in files}
        if self._options.memlint_config is None and says_nothing(list(stamps)):
            return {path: (stamp, []) for path, stamp in stamps.items()}
        from memlint.config import ConfigError
        from memlint.engine.batch import lint_each

        try:
            said, others, notices = lint_each(files, self._engine_options(cache=True))
        except ConfigError:
            raise
        except Exception as error:  # an internal error must not stop flake8's own checks
            return {path: (stamp, _unchecked(error)) for path, stamp in stamps.items()}
        _warn(notices)
        rows = {path: (stamps[path], self._rows(each)) for path, each in said.items()}
        if others:  # failures of files that flake8 does not check are reported in a file that it does, if one parses
            seen = min(rows, key=lambda path: (any(one.code == "MEM000" for one in said[path].findings), path))
            rows[seen][1].extend(_failure(failure.path, failure.reason) for failure in others)
        return rows

    def _lint_text(self, filename: str | None, lines: list[str]) -> list[Row]:
        """The findings in a file with these lines, whatever its content on the disk."""
        from memlint.config import ConfigError
        from memlint.engine.batch import Said
        from memlint.engine.run import STDIN, run

        with _Failures():
            try:
                outcome = run([STDIN], self._engine_options(stdin=_encoded(lines), stdin_filename=filename))
            except ConfigError:
                raise
            except Exception as error:
                return _unchecked(error)
        _warn(outcome.notices)
        result = outcome.result
        return self._rows(Said(list(result.findings), [failure.reason for failure in result.failures]))

    def _engine_options(self, **more: Any) -> Options:
        from memlint.engine.options import Options
        from memlint.engine.rules.selection import Overrides

        cwd, config = Path.cwd(), self._options.memlint_config
        return Options(
            cwd=cwd,
            overrides=Overrides(min_confidence=self._options.memlint_min_confidence),
            config=None if config is None else cwd / config,
            # flake8's own excludes apply to named files, too
            force_exclude=True,
            parsed=True,
            **more,
        )

    def _rows(self, said: Said) -> list[Row]:
        # under --disable-noqa, flake8 reports what a `noqa` suppresses
        shown = {"noqa"} if self._options.disable_noqa else set()
        rows = [
            (finding.line, finding.column - 1, f"{finding.code} {finding.message}")
            for finding in said.findings
            if (finding.suppressed is None or finding.suppressed.by in shown)
            and (finding.severity != "note" or self._options.memlint_notes)
        ]
        rows += [_failure("this file", reason) for reason in said.failures]
        return [(line, column, printable(text)) for line, column, text in rows]


def _warn(notices: Iterable[str]) -> None:
    """Print warnings, each once in a process."""
    for notice in notices:
        if notice not in _WARNED:
            _WARNED.add(notice)
            print(f"memlint: warning: {printable(notice)}", file=sys.stderr)


_WARNED: set[str] = set()


def _failure(what: str, reason: str) -> Row:
    return 1, 0, f"MEM000 memlint could not check all of {what}: {reason}"


def _unchecked(error: Exception) -> list[Row]:
    """The row of a file that was not checked because of an internal error."""
    from memlint.engine.findings import internal_error

    return [_failure("this file", internal_error("memlint's plugin", error))]


class _Failures:
    """Raises flake8's ExecutionError for any error."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if not isinstance(error, Exception):
            return
        from flake8.exceptions import ExecutionError

        from memlint.config import ConfigError
        from memlint.engine.findings import internal_error

        reason = str(error) if isinstance(error, ConfigError) else internal_error("memlint's plugin", error)
        raise ExecutionError(f"memlint: {printable(reason)}") from error


def _files(options: argparse.Namespace) -> Iterable[str]:
    """The files that flake8 is going to check."""
    from flake8.discover_files import expand_paths

    found: Iterable[str] = expand_paths(
        paths=options.filenames,
        stdin_display_name=options.stdin_display_name,
        filename_patterns=options.filename,
        exclude=(*options.exclude, *options.extend_exclude),
    )
    return found


def _absolute(name: str) -> str:
    return os.path.normpath(Path.cwd() / name)


def _stamp(path: str) -> Stamp:
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def _encoded(lines: list[str]) -> bytes:
    """The lines in the encoding that they declare."""
    text = "".join(lines)
    raw = text.encode("utf-8", "surrogatepass")
    try:
        encoding, _ = tokenize.detect_encoding(iter(raw.splitlines(keepends=True)).__next__)
        return text.encode(encoding)
    except (SyntaxError, LookupError, UnicodeError):  # memlint reports the encoding
        return raw


def _write(known: dict[str, tuple[Stamp, list[Row]]]) -> str:
    """Write findings to a file that is deleted when this process ends. Returns its path."""
    handle, file = tempfile.mkstemp(prefix="memlint-flake8-", suffix=".json")
    with os.fdopen(handle, "w", encoding="utf-8") as out:
        json.dump(known, out)
    atexit.register(Path(file).unlink, missing_ok=True)
    return file


def _read(file: str) -> dict[str, Any]:
    """The findings that `_write` wrote; none if the file is gone (an exception would make flake8 restart workers
    forever)."""
    try:
        found: dict[str, Any] = json.loads(Path(file).read_text("utf-8")) if file else {}
    except OSError:
        return {}
    return found
