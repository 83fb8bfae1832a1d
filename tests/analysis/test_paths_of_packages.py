"""An import from a package that does not have the name, where a file of the package's own name does: whoever runs the
program puts the folder of the package on the path."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

STEPS = "def keep(store, loss):\n    store.append(loss)\n"
TRAIN = """import torch
from steps import keep


def train(model, loader, optimizer, criterion):
    losses = []
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        keep(losses, loss)
    return losses
"""


@pytest.mark.parametrize(
    ("files", "codes"),
    [
        ({"src/steps/__init__.py": "", "src/steps/steps.py": STEPS}, ["MEM102"]),
        ({"src/steps/__init__.py": "def keep(store, loss):\n    pass\n", "src/steps/steps.py": STEPS}, []),
        ({"src/steps/__init__.py": "", "src/steps/steps.py": "def other():\n    pass\n"}, []),
    ],
    ids=["it is in the file", "it is in the package", "it is in neither"],
)
def test_the_file_that_bears_the_name_of_its_package(tmp_path: Path, files: dict[str, str], codes: list[str]) -> None:
    (tmp_path / ".git").mkdir()
    for path, text in {**files, "src/bin/train.py": TRAIN}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    result = memlint.lint([tmp_path])
    assert not result.failures
    assert [item.code for item in result.findings] == codes


@pytest.mark.parametrize("inside", ["utils/utils.py", "utils/other.py"])
def test_a_file_that_bears_the_name_of_its_folder_does_not_hide_the_folder(tmp_path: Path, inside: str) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / "utils").mkdir()
    (tmp_path / "utils" / "utils.py").write_text("def other():\n    pass\n")
    (tmp_path / inside).write_text(STEPS)
    name = inside.removesuffix(".py").replace("/", ".")
    text = TRAIN.replace("from steps import keep", f"import {name}").replace("        keep(", f"        {name}.keep(")
    (tmp_path / "train.py").write_text(text)
    for paths in ([tmp_path], [tmp_path / "train.py"]):
        assert [item.code for item in memlint.lint(paths).findings] == ["MEM102"]
