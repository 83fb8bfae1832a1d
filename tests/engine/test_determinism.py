"""The same findings in every run: nothing may hang on the order in which a set happens to be walked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import memlint
from memlint.analysis.facts import analyser

FIXTURES = Path(__file__).parents[2] / "fixtures"


def findings(folder: Path, seed: int) -> list[dict[str, object]]:
    command = [sys.executable, "-m", "memlint", "check", "--isolated", "--no-cache", "--exit-zero", "--preview"]
    command += ["--min-confidence", "low", "--output-format", "json", "."]
    environment = {**os.environ, "PYTHONHASHSEED": str(seed)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    found: list[dict[str, object]] = json.loads(done.stdout)["findings"]
    return found


@pytest.mark.parametrize(
    "folder",
    [
        "demo",
        "projects/rollouts",
        "projects/segtrain",
    ],
)
def test_findings_do_not_depend_on_the_hash_seed(folder: str, tmp_path: Path) -> None:
    root = shutil.copytree(FIXTURES / folder, tmp_path / "project")
    (root / "pyproject.toml").write_text("")  # a project of its own
    first = findings(root, 0)
    assert first
    assert all(findings(root, seed) == first for seed in (1, 2))


@pytest.mark.parametrize("folder", ["demo", "projects/rollouts", "projects/segtrain", "mem102_retained_graph"])
def test_findings_do_not_depend_on_how_memory_is_spared(
    folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = shutil.copytree(FIXTURES / folder, tmp_path / "project")
    (root / "pyproject.toml").write_text("")
    found = []
    for room in (analyser.ROOM, 0):
        monkeypatch.setattr(analyser, "ROOM", room)
        found.append(memlint.lint([root], min_confidence="low").findings)
    assert found[0]
    assert found[0] == found[1]
