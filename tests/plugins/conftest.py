"""Projects for the plugins to be run on."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from programs_run import ROOT


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo and two more programs of several files, and a file without torch, in one project."""
    folder = tmp_path_factory.mktemp("project").resolve()
    (folder / "pyproject.toml").write_text("")
    (folder / "plain.py").write_text('"""Nothing to see."""\n\nVALUE = 1\n')
    for name in ("demo", "projects/rollouts", "projects/segtrain"):
        shutil.copytree(ROOT / "fixtures" / name, folder / name)
    return folder


@pytest.fixture
def make(tmp_path: Path) -> Callable[[dict[str, str]], Path]:
    """Makes a project of the given files."""

    def write(files: dict[str, str]) -> Path:
        root = tmp_path.resolve() / "made"
        for name, text in {"pyproject.toml": "", **files}.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text(text, encoding="utf-8")
        return root

    return write
