"""Files that import no library of tensors, and are given some by files that do."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

HELPER = """
def evaluate(loader, model, criterion):
    total = 0
    for x, y in loader:
        total += criterion(model(x.cuda()), y.cuda())
    return total / len(loader)
"""
TRAINING = """
import torch
from torch import nn
from {module} import evaluate


def main(loader):
    model = nn.Linear(8, 2).cuda()
    print(evaluate(loader, model, nn.CrossEntropyLoss()))
"""


def codes(folder: Path, *files: str) -> set[str]:
    result = memlint.lint([folder / file for file in files] or [folder], isolated=True)
    assert not result.failures
    return {each.code for each in result.findings if each.path.endswith("helper.py")}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text("")
    (tmp_path / "helper.py").write_text(HELPER)
    return tmp_path


@pytest.mark.parametrize("files", [(), ("helper.py",)])
def test_a_helper_of_what_trains(project: Path, files: tuple[str, ...]) -> None:
    (project / "train.py").write_text(TRAINING.format(module="helper"))
    assert codes(project, *files) == {"MEM101", "MEM201"}


def test_a_helper_that_another_one_hands_on(project: Path) -> None:
    (project / "between.py").write_text("from helper import evaluate\n")
    (project / "train.py").write_text(TRAINING.format(module="between"))
    assert codes(project, "helper.py") == {"MEM101", "MEM201"}


def test_a_helper_of_a_package(project: Path) -> None:
    package = project / "tools"
    package.mkdir()
    (project / "helper.py").rename(package / "helper.py")
    (package / "__init__.py").write_text("")
    (project / "train.py").write_text(TRAINING.format(module="tools.helper"))
    assert codes(project) == {"MEM101", "MEM201"}


def test_nobody_imports_it(project: Path) -> None:
    (project / "train.py").write_text("import torch\n\nprint(torch.ones(2))\n")
    assert codes(project) == set()


def test_what_imports_it_knows_no_tensors(project: Path) -> None:
    (project / "train.py").write_text("from helper import evaluate\n\nprint(evaluate([], None, None))\n")
    assert codes(project) == set()
