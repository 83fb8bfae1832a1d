"""``memlint lsp``: the language server."""

from __future__ import annotations

import argparse
import gc
import importlib.util
from collections.abc import Sequence

from memlint.cli.parsing.parsers import Parser
from memlint.config import ConfigError

INSTALL = "the language server needs pygls: pip install 'torch-memlint[lsp]'"


def lsp_parser() -> argparse.ArgumentParser:
    """The options of ``memlint lsp``."""
    parser = Parser(
        prog="memlint lsp",
        description="Serve an editor: findings as you type, on standard input and output.",
        allow_abbrev=False,
    )
    parser.add_argument("--stdio", action="store_true", help="talk on standard input and output (the default)")
    parser.add_argument("--tcp", metavar="HOST:PORT", help="wait for one client on a port instead")
    return parser


def parse_lsp(arguments: Sequence[str]) -> argparse.Namespace:
    """The parsed command line of ``memlint lsp``. Raises ConfigError."""
    parser = lsp_parser()
    parsed = parser.parse_args(list(arguments))
    parsed.command = "lsp"
    return parsed


def run_lsp(parsed: argparse.Namespace) -> int:
    """Serve until the client ends, and return the exit code. Raises ConfigError."""
    address = None if parsed.tcp is None else _address(parsed.tcp)
    if importlib.util.find_spec("pygls") is None or importlib.util.find_spec("lsprotocol") is None:
        raise ConfigError(INSTALL)
    from memlint.lsp.server import serve

    gc.enable()  # a long-lived process
    return serve(address)


def _address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    if not host or not port.isdigit() or int(port) > 65_535:
        raise ConfigError(f"--tcp: `{text}` is no address; expected HOST:PORT")
    return host.strip("[]"), int(port)
