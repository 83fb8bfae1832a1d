"""The command line. Exit codes: 0 clean or notes only, 1 errors or warnings, 2 the run itself failed."""

from __future__ import annotations

import atexit
import gc
import importlib
import os
import sys
from collections.abc import Sequence

#: by command: its module in `memlint.cli.commands` and its function; imported only when it runs
_DONE_BY = {
    "check": ("check", "check"),
    "rule": ("rule", "show"),
    "explain": ("explain", "explain"),
    "new-rule": ("new_rule", "scaffold"),
    "clean": ("clean", "clean"),
    "config": ("config", "show"),
    "init": ("init", "init"),
    "lsp": ("lsp", "run_lsp"),
    "verify-rules": ("verify_rules", "run_verify_rules"),
    "verify": ("verify", "run_verify"),
}
COMMANDS = ("check", "explain", "verify", "rule", "new-rule", "clean", "config", "init", "lsp")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    if argv is None:
        # the process ends after this: searching cycles would take longer than reporting
        gc.disable()
        atexit.register(gc.freeze)
    arguments = list(sys.argv[1:] if argv is None else argv)
    _open_streams()
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # a terminal without UTF-8 shows escapes where it cannot show a character
            reconfigure(errors="backslashreplace")
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print("memlint: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader (head, less) has ended
        _write_no_more()
        return 1
    except OSError as error:  # what concerns one source file is said of that file: this is the report, or a new rule
        from memlint.printable import printable

        _write_no_more()
        what = error.filename or "the report cannot be written"
        print(printable(f"memlint: error: {what}: {error.strerror or error}"), file=sys.stderr)
        return 2
    except Exception as error:  # an internal error must not look like findings, which have a traceback's exit code
        from memlint.engine.findings import internal_error
        from memlint.printable import printable

        _write_no_more()
        print(printable(f"memlint: error: {internal_error('this command', error)}"), file=sys.stderr)
        return 2


def _write_no_more() -> None:
    """Prevent a second error when Python flushes at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _open_streams() -> None:
    """Replace streams that the caller closed (``>&-``), for which Python has None."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123, SIM115


def _run(arguments: list[str]) -> int:
    if arguments in (["--version"], ["-V"]):
        from memlint import __version__

        print(f"memlint {__version__}")
        return 0
    from memlint.cli.parsing.arguments import parse
    from memlint.config import ConfigError

    try:
        try:
            os.getcwd()  # noqa: PTH109
        except OSError:
            raise ConfigError("the working directory is not there any more") from None
        option, _, shell = arguments[0].partition("=") if arguments else ("", "", "")
        if option == "--print-completion":
            from memlint.cli.parsing.completion import print_completion

            return print_completion([*([shell] if shell else []), *arguments[1:]])
        parsed = parse(arguments)
        module, function = _DONE_BY[parsed.command]
        code: int = getattr(importlib.import_module(f"memlint.cli.commands.{module}"), function)(parsed)
        return code
    except ConfigError as error:
        from memlint.printable import clipped, printable

        print(f"memlint: error: {printable(clipped(str(error), 2000))}", file=sys.stderr)
        if error.hint:
            print(error.hint, file=sys.stderr)
        return 2
