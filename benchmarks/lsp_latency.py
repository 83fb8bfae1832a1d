"""How long a keystroke takes until its findings are there: a file of 1,000 lines in a made project of 300 files.

    python benchmarks/lsp_latency.py

A client on the other side of the real process types a character, waits for the findings of that version, and pauses.
The server begins 0.1 s after the last keystroke, which is part of the time. Beside it, a bare `memlint check` of the
same file, without the cache and with one that knows everything but the last edit. Medians go to
benchmarks/results/lsp_latency.json.
"""

from __future__ import annotations

import argparse
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
PAUSE = 0.3


def make_project(folder: Path) -> Path:
    """The project, and the file in it that is typed in."""
    (folder / "pyproject.toml").write_text("", encoding="utf-8")
    copies.many_files(folder, FILES - 1)
    text, parts = "", copies.long_text(LINES)
    while parts and text.count("\n") < LINES:
        text += parts.pop(0)
    file = folder / "edited.py"
    file.write_text("\n".join(text.split("\n")[:LINES]) + "\n\n\nx = 1\n", encoding="utf-8")
    for words in (["init", "-q"], ["add", "-A"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return file


def cpu_seconds(server: int) -> float:
    """CPU time of a server and its worker so far; 0 where the system does not tell."""
    folder = Path("/proc")
    if not (folder / str(server)).is_dir():
        return 0.0
    children = (task / "children" for task in (folder / str(server) / "task").iterdir())
    workers = [word for one in children for word in one.read_text("utf-8").split()]
    rows = ((folder / name / "stat").read_text("utf-8").rpartition(")")[2].split() for name in (str(server), *workers))
    return sum(int(row[11]) + int(row[12]) for row in rows) / os.sysconf("SC_CLK_TCK")


async def keystrokes(file: Path, count: int) -> tuple[float, list[float], list[float], int]:
    """Seconds until the first findings, those of each keystroke in the last line, their CPU time, and how many findings
    there are."""
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
    first, taken, used = time.perf_counter() - started, [], []
    assert client._server is not None
    server = client._server.pid
    line = text.count("\n") - 1
    for version in range(2, count + 2):
        await asyncio.sleep(PAUSE)
        place = types.Position(line, 5 + version - 2)
        change = types.TextDocumentContentChangePartial(types.Range(place, place), str(version % 9 + 1))
        identifier = types.VersionedTextDocumentIdentifier(version, file.as_uri())
        started, before = time.perf_counter(), cpu_seconds(server)
        client.text_document_did_change(types.DidChangeTextDocumentParams(identifier, [change]))
        while (now := await news.get()).version != version:
            pass
        taken.append(time.perf_counter() - started)
        used.append(cpu_seconds(server) - before)
        assert [one.code for one in now.diagnostics] == [one.code for one in found.diagnostics]
    await client.shutdown_async(None)
    client.exit(None)
    await client.stop()
    return first, taken, used, len(found.diagnostics)


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


def row(seconds: list[float], cpu: list[float]) -> dict[str, Any]:
    return {
        "median_ms": round(statistics.median(seconds) * 1000),
        "least_ms": round(min(seconds) * 1000),
        "most_ms": round(max(seconds) * 1000),
        "median_cpu_ms": round(statistics.median(cpu) * 1000),
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
        first, typed, typed_cpu, findings = asyncio.run(keystrokes(file, parsed.keystrokes))
    result = {
        "machine": f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}",
        "load_1min": round(os.getloadavg()[0], 1) if hasattr(os, "getloadavg") else None,
        "files": FILES,
        "lines": LINES,
        "findings": findings,
        "keystroke": row(typed, typed_cpu),
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
