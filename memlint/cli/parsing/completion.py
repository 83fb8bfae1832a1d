"""``memlint --print-completion SHELL``: completion of commands, options and files in a shell."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any

from memlint.cli.parsing.arguments import parsers
from memlint.cli.parsing.parsers import OneOf
from memlint.config import ConfigError, nearest

OPTION = "--print-completion"
SHELLS = ("bash", "zsh", "tcsh")
#: the first word may be a command or a path, of which shtab supports one
_PREAMBLE: Any = {"bash": "_shtab_memlint_pos_0_COMPGEN=_shtab_compgen_files"}
_IN_ZSH = ("_describe 'memlint commands' _commands", "_describe 'memlint commands' _commands\n  _files")
#: the kind of an option's argument, by its name in the help
_FILES, _FOLDERS = ("FILE", "PATH", "SCRIPT"), ("FOLDER", "DIR")


def print_completion(arguments: Sequence[str]) -> int:
    """Print the script for a shell. Raises ConfigError."""
    shell = " ".join(arguments)
    if shell not in SHELLS:
        raise ConfigError(f"{OPTION}: `{shell}` is not one of {', '.join(SHELLS)}{nearest(shell, SHELLS)}")
    try:
        import shtab
    except ImportError:
        raise ConfigError(f"{OPTION} needs shtab", "pip install 'torch-memlint[completion]' installs it") from None
    script = shtab.complete(_whole(shtab.FILE, shtab.DIRECTORY), shell, preamble=_PREAMBLE)
    print(script.replace(*_IN_ZSH) if shell == "zsh" else script)
    return 0


def _whole(file: object, folder: object) -> argparse.ArgumentParser:
    """One parser of all commands, whose first word is a command, a file or an option of check."""
    every = parsers()
    whole = argparse.ArgumentParser(prog="memlint", add_help=False)
    commands = whole.add_subparsers(metavar="COMMAND")
    for name, parser in every.items():
        _complete(parser, file, folder)
        commands.add_parser(
            name, parents=[parser], add_help=False, description=parser.description, help=parser.description
        )
    for action in every["check"]._actions:
        if action.option_strings:
            whole._add_action(action)
    return whole


def _complete(parser: argparse.ArgumentParser, file: object, folder: object) -> None:
    """Declare the argument of each option."""
    for action in parser._actions:
        name = str(action.metavar or "").lstrip("=")
        if isinstance(action.type, OneOf):
            action.choices = action.type.words
        elif name in _FILES or name.startswith(("PATHS", "FILE:")):
            action.complete = file  # type: ignore[attr-defined]
        elif name in _FOLDERS:
            action.complete = folder  # type: ignore[attr-defined]
