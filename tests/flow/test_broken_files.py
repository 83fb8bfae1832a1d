"""Files that fail as they are loaded: what is found in them is a note, with the reason; others keep their severity."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint import Finding

EVALUATE = """

def evaluate(model, loader):
    model.eval()
    scores = []
    for x in loader:
        scores.append(model(x))
    return scores
"""
BESIDE = "def metric(x):\n    return x\n"


def finding(tmp_path: Path, head: str, files: dict[str, str], name: str = "run.py") -> Finding:
    for path, text in {name: head + EVALUATE, **files}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    result = memlint.lint([tmp_path])
    assert not result.failures
    (found,) = [item for item in result.findings if item.code == "MEM201"]
    return found


@pytest.mark.parametrize(
    ("head", "files", "reason"),
    [
        pytest.param(
            "import torch\nfrom metrics import recall",
            {"metrics.py": BESIDE},
            "`metrics` has no `recall`",
            id="a name that a file beside it lacks",
        ),
        pytest.param(
            "import torch\nfrom metrics import recall",
            {"metrics.py": "from more import *\n" + BESIDE, "more.py": "def precision(): ...\n"},
            "`metrics` has no `recall`",
            id="nor what it takes everything from",
        ),
    ],
)
def test_a_script_that_cannot_be_loaded(tmp_path: Path, head: str, files: dict[str, str], reason: str) -> None:
    found = finding(tmp_path, head, files)
    assert found.severity == "note"
    assert reason in found.message


@pytest.mark.parametrize(
    ("head", "reason"),
    [
        ("import torch\nfrom ..trainers.metrics import recall", "`..trainers.metrics`, which it imports, is not there"),
        ("import torch\nfrom . import recall", "`.` has no `recall`"),
    ],
)
def test_a_part_of_a_package_that_cannot_be_loaded(tmp_path: Path, head: str, reason: str) -> None:
    package = {"package/__init__.py": "", "package/inner/__init__.py": ""}
    found = finding(tmp_path, head, package, "package/inner/run.py")
    assert found.severity == "note"
    assert reason in found.message


@pytest.mark.parametrize(
    ("head", "files"),
    [
        pytest.param("from metrics import recall", {"metrics.py": "recall = 1\n"}, id="it is there"),
        pytest.param(
            "from metrics import recall", {"metrics.py": "if True:\n    recall = 1\n"}, id="under a condition"
        ),
        pytest.param(
            "from metrics import recall",
            {"metrics.py": "for name in ('rec',):\n    globals()[name + 'all'] = 1\n"},
            id="made as it is loaded",
        ),
        pytest.param(
            "from metrics import recall", {"metrics.py": "def __getattr__(name): ...\n"}, id="made when it is asked for"
        ),
        pytest.param(
            "from metrics import recall", {"metrics.py": "from elsewhere import *\n"}, id="from outside, perhaps"
        ),
        pytest.param(
            "from metrics import recall", {"metrics/__init__.py": "", "metrics/recall.py": ""}, id="a module of it"
        ),
        pytest.param(
            "from metrics import recall", {"metrics/__init__.py": "", "metrics/recall.so": ""}, id="a compiled one"
        ),
        pytest.param(
            "try:\n    from metrics import recall\nexcept ImportError:\n    recall = None",
            {"metrics.py": BESIDE},
            id="it is tried",
        ),
        pytest.param(
            "def later():\n    from metrics import recall", {"metrics.py": BESIDE}, id="only when it is called"
        ),
        pytest.param("from metrics import recall", {"lib/metrics.py": BESIDE}, id="of a folder that may not be meant"),
        pytest.param("from metrics import recall", {}, id="of a package that may be installed"),
        pytest.param("from ._C import recall", {}, id="compiled when it is built"),
    ],
)
def test_what_may_well_load(tmp_path: Path, head: str, files: dict[str, str]) -> None:
    found = finding(tmp_path, "import torch\n" + head, files)
    assert found.severity == "error"
    assert "fails as it is loaded" not in found.message
