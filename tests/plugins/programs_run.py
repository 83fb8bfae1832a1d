"""The real flake8 and memlint, run on a folder."""

from __future__ import annotations

import importlib.metadata
import json
import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith("GIT_")},
    "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
}
#: path, line, column and code
Place = tuple[str, int, int, str]

LEAK = '''\
"""Keeps every loss."""

import torch


def train(model, loader, optimizer):
    history = []
    for x in loader:
        loss = model(x)
        loss.backward()
        optimizer.step()
        history.append(loss){comment}
    return torch.stack(history).detach()
'''


def run(*command: str, cwd: Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command], cwd=cwd, env=ENVIRONMENT, input=text, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip


def plugin_options() -> list[str]:
    """What makes flake8 load the plugin: nothing where the distribution is installed, as CI has it."""
    if importlib.metadata.entry_points(group="flake8.extension", name="MEM"):
        return []
    return ["--append-config", str(Path(__file__).parent / "local.cfg")]


def flake8(*arguments: str, cwd: Path, text: str | None = None) -> subprocess.CompletedProcess[str]:
    return run("-m", "flake8", *plugin_options(), *arguments, cwd=cwd, text=text)


def places(output: str) -> set[Place]:
    """What flake8 reported of memlint's."""
    rows = [re.match(r"(.+?):(\d+):(\d+): (MEM\d+) ", line) for line in output.splitlines()]
    return {(os.path.normpath(row[1]), int(row[2]), int(row[3]), row[4]) for row in rows if row}


def memlint(*arguments: str, cwd: Path, text: str | None = None) -> set[Place]:
    """What memlint itself reports, without notes and what is suppressed."""
    done = run("-m", "memlint", *arguments, "--output-format", "json", cwd=cwd, text=text)
    return {
        (row["path"], row["line"], row["column"], row["code"])
        for row in json.loads(done.stdout)["findings"]
        if row["severity"] != "note" and row["suppressed"] is None
    }
