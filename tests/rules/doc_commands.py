"""The commands that README.md and the pages of docs/ show, and a project to run them in."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pages

PAGES = [pages.ROOT / "README.md", *sorted((pages.ROOT / "docs").glob("*.md"))]
#: its commands are those of another repository's program
ELSEWHERE = {"example-verify.md"}


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a page in that language."""
    return re.findall(rf"(?s)```{language}\n(.*?)```", page.read_text("utf-8"))


def commands(page: Path) -> list[str]:
    """What a page says to type, in order."""
    if page.name in ELSEWHERE:
        return []
    return [line[2:] for block in blocks(page, "console") for line in block.splitlines() if line.startswith("$ ")]


def own(page: Path) -> list[str]:
    """The commands of memlint on a page."""
    return [command for command in commands(page) if command.startswith("memlint ")]


def measures(command: str) -> bool:
    """Whether a command runs a program, or reads what that gave."""
    return " verify " in command or "--evidence" in command


#: a notebook of one cell
NOTEBOOK = json.dumps(
    {
        "cells": [
            {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "source": "import torch\n"}
        ],
        "metadata": {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}},
        "nbformat": 4,
        "nbformat_minor": 4,
    },
    indent=1,
)


def make_project(folder: Path) -> Path:
    """A repository with the configuration of docs/configuration.md, the demo as its ``src``, notebooks, and an empty
    baseline."""
    (toml,) = blocks(pages.ROOT / "docs" / "configuration.md", "toml")
    (folder / "pyproject.toml").write_text(toml, encoding="utf-8")
    (folder / "memlint-baseline.json").write_text('{"version": 1, "findings": []}', encoding="utf-8")
    demo = pages.ROOT / "fixtures" / "demo"
    shutil.copytree(demo, folder / "src", ignore=shutil.ignore_patterns("pyproject.toml", ".memlint_cache"))
    (folder / "notebooks").mkdir()
    for notebook in (folder / "train.ipynb", folder / "notebooks" / "train.ipynb"):
        notebook.write_text(NOTEBOOK, encoding="utf-8")
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], [*identity, "commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", *words], cwd=folder, check=True)
    return folder


def run(command: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """What a command of memlint does in a folder."""
    path = os.pathsep.join([str(pages.ROOT), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        f'"{sys.executable}" -m memlint {command.removeprefix("memlint ")}',
        shell=True,
        cwd=folder,
        text=True,
        capture_output=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": path, **environment},
    )
