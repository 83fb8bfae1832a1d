"""A project in which nothing imports torch is recognised by its text, and no other is taken for one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import memlint
from memlint.engine.glance import may_use_torch
from memlint.family import TORCH_FAMILY
from memlint.frontend.index import index

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    "text",
    [
        "import torch\n",
        "import torch.nn as nn\n",
        "import os, torch\n",
        "import os, \\\n    torch\n",
        "import \\\r\n torch\r\n",
        "from torchvision.models import resnet18\n",
        "from \\\n  torch import nn\n",
        "x = 1; import torch\n",
        "if x: import torch\n",
        "def f():\n\timport\ttorch\n",
        "import os  # (\rimport torch\r",
        '"""It is imported from (a list\n"""\nimport torch\n',
        "import ｔｏｒｃｈ\n",
        "from lightning import Trainer\n",
        "def step(loss, optimizer):\n    optimizer.zero_grad()\n    loss.backward()\n",
    ],
)
def test_what_uses_torch_may(text: str) -> None:
    assert may_use_torch(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "import numpy as np\n",
        "torch = 1\n",
        "# torch is not used here\nimport os\n",
        "from . import models\n",
        "import torchlike\n",
        "from a import (\n    b,\n)\ntorch = b\n",
        "print('clip')\n",
    ],
)
def test_what_does_not(text: str) -> None:
    assert not may_use_torch(text)


def test_never_says_no_where_the_index_says_yes() -> None:
    """On all of our own files: programs to be linted, and code that holds programs in strings."""
    files = [file for folder in ("fixtures", "memlint", "tests", "rules") for file in (ROOT / folder).rglob("*.py")]
    wrong, knowing = [], 0
    for file in files:
        text = file.read_text("utf-8")
        if any(one.level == 0 and one.module.split(".")[0] in TORCH_FAMILY for one in index(text).imports):
            knowing += 1
            if not may_use_torch(text):
                wrong.append(file)
    assert wrong == [] and knowing > 10


def test_comments_of_ours_are_read_without_torch(toy: Callable[..., Path]) -> None:
    from memlint.engine.batch import lint_each
    from memlint.engine.options import Options

    root = toy({"a.py": "x = 1  # noqa: MEM901\n", "b.py": "x = 1  # noqa\n"})
    said, others, _ = lint_each(["a.py", "b.py"], Options(cwd=root, parsed=True))
    codes = {Path(path).name: [finding.code for finding in each.findings] for path, each in said.items()}
    assert (codes, others) == ({"a.py": ["MEM001"], "b.py": []}, [])


STEPS = """
{imported}

def train(model, loader, optimizer, criterion):
    total = 0
    for x, y in loader:
        loss = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    return total
"""


@pytest.mark.parametrize(
    ("imported", "beside", "codes"),
    [
        ("", "", ["MEM101"]),
        ("from tqdm import tqdm", "x = 1", ["MEM101"]),
        ("from tinygrad import Tensor", "", []),
        ("import engine", "class Optimizer:\n    def zero_grad(self):\n        pass\n", []),
    ],
)
def test_a_file_that_trains_is_read_whatever_it_imports(
    tmp_path: Path, imported: str, beside: str, codes: list[str]
) -> None:
    (tmp_path / "engine.py").write_text(beside, "utf-8")
    (tmp_path / "steps.py").write_text(STEPS.format(imported=imported), "utf-8")
    assert [one.code for one in memlint.lint([tmp_path / "steps.py"], isolated=True).findings] == codes
    assert [one.code for one in memlint.lint([tmp_path], isolated=True).findings] == codes
