"""A first look never says that there is nothing where a run finds something."""

from __future__ import annotations

from pathlib import Path

import pytest

from memlint.engine.glance import NOT_SEARCHED, says_nothing
from memlint.project.listing import DEFAULT_EXCLUDES

PLAIN = "import os\n\nimport numpy as np\n\n\ndef f(x):\n    return np.sum(x)\n"
TORCH = "import torch\n"


def project(folder: Path, files: dict[str, str]) -> Path:
    for name, text in {".git/HEAD": "", **files}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")
    return folder


@pytest.mark.parametrize(
    "others",
    [
        {},
        {"b.py": PLAIN, "pkg/__init__.py": "", "pyproject.toml": "[project]\nname = 'x'\n"},
        {"b.py": TORCH},  # which nothing imports
        {"b.py": "import a\nimport torch\n"},  # it imports ours, which says nothing of it
        {".venv/b.py": TORCH, "numpy_like.py": TORCH},
    ],
)
def test_nothing_can_be_found_there(others: dict[str, str], tmp_path: Path) -> None:
    root = project(tmp_path, {"a.py": PLAIN, **others})
    assert says_nothing([str(root / "a.py")])


@pytest.mark.parametrize(
    ("text", "others"),
    [
        (TORCH, {}),
        ("if x:\n    from torchvision import models\n", {}),
        ("x = 1  # noqa: MEM101\n", {}),
        ("x = 1  # MemLint: ignore\n", {}),
        ("# -*- coding: utf-7 -*-\n", {}),
        (PLAIN, {"memlint.toml": "", "b.py": PLAIN}),
        (PLAIN, {"pyproject.toml": "[tool.memlint]\n"}),
        (PLAIN, {"pyproject.toml": '[tool."mem\\u006cint"]\n'}),
        ("import b\n", {"b.py": TORCH}),
        ("import b\n", {"deep/down/b.py": TORCH}),
        ("from lib.b import x\n", {"code/lib/b.py": TORCH}),
        ("from . import x\n", {"__init__.py": TORCH}),
        ("from \\\n  .b import x\n", {"b.py": TORCH}),
        ("import b\n", {"b.py": "import c\n", "c.py": "from lightning import Trainer\n"}),
        ("import os\n", {"os.py": TORCH}),
        ("def f(x):\n    return x.cuda()\n", {"b.py": "import a\nimport torch\n"}),
        ("import ｂ\n", {"b.py": TORCH}),
        ("def f(t):\n    yield from ('#' + t)\n\nfrom . import *\n", {"__init__.py": TORCH}),
        ('"""import （of all"""\nfrom . import *\n', {"__init__.py": TORCH}),
    ],
)
def test_something_may_be_found_there(text: str, others: dict[str, str], tmp_path: Path) -> None:
    root = project(tmp_path, {"a.py": text, **others})
    assert not says_nothing([str(root / "a.py")])


def test_each_of_several_files_must_say_nothing(tmp_path: Path) -> None:
    root = project(tmp_path, {"a.py": PLAIN, "b.py": TORCH})
    assert not says_nothing([str(root / "a.py"), str(root / "b.py")])


def test_what_the_look_does_not_know_is_left_to_the_run(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(PLAIN)
    assert not says_nothing([str(tmp_path / "a.py")])  # no project, as far as can be seen
    root = project(tmp_path / "repo", {"a.py": "import b\n", "elsewhere/c.py": TORCH})
    assert not says_nothing([str(root / "not_there.py")])
    (root / "link").symlink_to(root / "elsewhere", target_is_directory=True)
    assert not says_nothing([str(root / "a.py")])


def test_it_looks_wherever_a_run_looks() -> None:
    assert NOT_SEARCHED <= DEFAULT_EXCLUDES
