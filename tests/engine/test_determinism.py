"""The same findings in every run: nothing may hang on the order in which a set happens to be walked."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from dense_programs import methods_that_all_call_each_other

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


#: prints what each interpretation of a function cost and left
WORK = """
import memlint
from memlint.analysis.facts.analyser import Analyser

interpret = Analyser._interpret

def noted(self, function, flags):
    made = interpret(self, function, flags)
    print(function.qual, flags, made.spent, len(made.stores), len(made.runs), len(made.graphs.nodes))
    return made

Analyser._interpret = noted
memlint.lint(["."])
"""


def test_work_does_not_depend_on_the_hash_seed(tmp_path: Path) -> None:
    """Methods that all call each other reach the bounds of what is followed: in another order, something else is."""
    (tmp_path / "train.py").write_text(methods_that_all_call_each_other(12))
    work = set()
    for seed in range(4):
        environment = {**os.environ, "PYTHONHASHSEED": str(seed), "MEMLINT_CACHE_DIR": str(tmp_path / "cache")}
        command = [sys.executable, "-c", WORK]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
        work.add(done.stdout)
    assert len(work) == 1
    assert "Search.step_11" in work.pop()


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
