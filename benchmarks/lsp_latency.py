"""How long a keystroke takes until its findings are there: a file of 1,000 lines in a made project of 300 files.

    python benchmarks/lsp_latency.py

A client on the other side of the real process types at the end of one function after the other, waits for the first
findings of that version, and pauses. The server begins a moment after the last keystroke, which is part of the time. In
half of the runs another open file changes as well, so that the first findings are those of a complete analysis. Beside
it, a bare `memlint check` of the same file, without the cache and with one that knows everything but the last edit.
Medians go to benchmarks/results/lsp_latency.json.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import copies
from lsprotocol import types
from pygls.lsp.client import LanguageClient

ROOT = Path(__file__).resolve().parents[1]
RESULT = ROOT / "benchmarks" / "results" / "lsp_latency.json"
LINES, FILES = 1_000, 300
#: seconds between two keystrokes
PAUSE = 1.0


def make_project(folder: Path) -> Path:
    """The project, and the file in it that is typed in."""
    (folder / "pyproject.toml").write_text("", encoding="utf-8")
    copies.many_files(folder, FILES - 1)
    text, parts = "", copies.long_text(LINES)
    while parts and text.count("\n") < LINES:
        text += parts.pop(0)
    file = folder / "edited.py"
    file.write_text("\n".join(text.split("\n")[:LINES]) + "\n\n\nx = 1\n", encoding="utf-8")
    (folder / "other.py").write_text("import torch\n", encoding="utf-8")
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return file


async def keystrokes(file: Path, count: int) -> tuple[float, list[float], list[float], int]:
    """Seconds until the findings are there after the file is opened, after each keystroke in a function, and after each
    one together with a change of another file; and how many findings there are."""
    client = LanguageClient("benchmark", "1")
    news: asyncio.Queue[types.PublishDiagnosticsParams] = asyncio.Queue()
    client.feature(types.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)(lambda params: news.put_nowait(params))
    client.feature(types.WINDOW_LOG_MESSAGE)(lambda params: print(params.message, file=sys.stderr))
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    await client.start_io(sys.executable, "-m", "memlint", "lsp", env=environment)
    folder = types.WorkspaceFolder(file.parent.as_uri(), "project")
    await client.initialize_async(types.InitializeParams(types.ClientCapabilities(), workspace_folders=[folder]))
    client.initialized(types.InitializedParams())
    text = file.read_text(encoding="utf-8")
    started = time.perf_counter()
    item = types.TextDocumentItem(file.as_uri(), "python", 1, text)
    client.text_document_did_open(types.DidOpenTextDocumentParams(item))
    found = await news.get()
    first, alone, together = time.perf_counter() - started, [], []
    other = file.with_name("other.py")
    client.text_document_did_open(
        types.DidOpenTextDocumentParams(types.TextDocumentItem(other.as_uri(), "python", 1, other.read_text("utf-8")))
    )
    while (await news.get()).uri != other.as_uri():
        pass
    lines = text.split("\n")
    ends = [one.end_lineno or one.lineno for one in ast.parse(text).body if isinstance(one, ast.FunctionDef)]
    for version in range(2, 2 * count + 2):
        await asyncio.sleep(PAUSE)
        if version % 2:
            change_of(client, other, version, 0, 0, "#\n")
        line = ends[version * 7 % len(ends)] - 1
        started = time.perf_counter()
        change_of(client, file, version, line, len(lines[line]), "  # typed")
        lines[line] += "  # typed"
        while (now := await news.get()).version != version or now.uri != file.as_uri():
            pass
        (together if version % 2 else alone).append(time.perf_counter() - started)
        assert [one.code for one in now.diagnostics] == [one.code for one in found.diagnostics]
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return first, alone, together, len(found.diagnostics)


def change_of(client: LanguageClient, file: Path, version: int, line: int, column: int, text: str) -> None:
    """Type a text."""
    place = types.Position(line, column)
    change = types.TextDocumentContentChangePartial(types.Range(place, place), text)
    identifier = types.VersionedTextDocumentIdentifier(version, file.as_uri())
    client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))


def bare(file: Path, count: int, *options: str) -> tuple[list[float], list[float]]:
    """Seconds that a `memlint check` of the file takes, each with another last line, and its CPU time."""
    text, taken, used = file.read_text(encoding="utf-8"), [], []
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "memlint", "check", file.name, "--exit-zero", "--quiet", *options]
    for _ in range(count):
        file.write_text(f"{text}y = {time.time_ns()}\n", encoding="utf-8")
        started, before = time.perf_counter(), os.times()
        subprocess.run(command, cwd=file.parent, env=environment, check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        taken.append(time.perf_counter() - started)
        used.append(after.children_user + after.children_system - before.children_user - before.children_system)
    file.write_text(text, encoding="utf-8")
    return taken, used


def row(seconds: list[float], cpu: list[float] | None = None) -> dict[str, Any]:
    return {
        "median_ms": round(statistics.median(seconds) * 1000),
        "least_ms": round(min(seconds) * 1000),
        "most_ms": round(max(seconds) * 1000),
        **({} if cpu is None else {"median_cpu_ms": round(statistics.median(cpu) * 1000)}),
        "runs": len(seconds),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--keystrokes", type=int, default=15)
    parser.add_argument("--output", type=Path, default=RESULT)
    parsed = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "project"
        folder.mkdir()
        file = make_project(folder)
        cold = bare(file, 5, "--no-cache")
        bare(file, 1)
        warm = bare(file, 5)
        first, typed, whole, findings = asyncio.run(keystrokes(file, parsed.keystrokes))
    result = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "load_1min": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "files": FILES,
        "lines": LINES,
        "findings": findings,
        "keystroke": row(typed),
        "keystroke_complete": row(whole),
        "first_open_ms": round(first * 1000),
        "check_without_cache": row(*cold),
        "check_with_cache": row(*warm),
        "keystroke_to_check_with_cache": round(statistics.median(typed) / statistics.median(warm[0]), 2),
        "keystroke_to_check_without_cache": round(statistics.median(typed) / statistics.median(cold[0]), 2),
    }
    parsed.output.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")
    print(json.dumps(result, indent=2))
    return 0


if __name__ == "__main__":
    sys.exit(main())
