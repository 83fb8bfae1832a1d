"""Files that fail as they are loaded: what is found in them is a note, with the reason; others keep their severity."""

from __future__ import annotations

import json
import subprocess
import sys
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
    ("head", "reason"),
    [
        ("import torch\nfrom ..trainers.metrics import recall", "`..trainers.metrics`, which it imports, is not there"),
        ("import torch\nfrom . import recall", "`.` has no `recall`"),
    ],
)
def test_a_part_of_a_package_that_cannot_be_loaded(tmp_path: Path, head: str, reason: str) -> None:
    package = {"package/__init__.py": "", "package/inner/__init__.py": ""}
    found = finding(tmp_path, head, package, "package/inner/run.py")
    assert (found.severity, found.reach) == ("note", "cannot-run")
    assert reason in found.reach_reason


@pytest.mark.parametrize(
    ("head", "files", "name", "reason"),
    [
        pytest.param(
            "from metrics import recall", {"metrics.py": BESIDE}, "run.py", "`metrics` has no `recall`", id="beside it"
        ),
        pytest.param(
            "from nets.small import Net",
            {"nets/small.py": BESIDE, "nets/__init__.py": ""},
            "run.py",
            "`nets.small` has no `Net`",
            id="in a folder beside it",
        ),
        pytest.param(
            "from steps import setup, data",
            {"steps/__init__.py": "", "steps/setup.py": BESIDE},
            "steps/late/run.py",
            "`steps` has no `data`",
            id="of its own package",
        ),
        pytest.param(
            "from kit.nets import metric\nfrom kit.more import recall",
            {"src/kit/nets.py": BESIDE, "src/kit/__init__.py": "", "pyproject.toml": ""},
            "scripts/run.py",
            "`kit.more`, which it imports, is not there",
            id="of the project's package, which has other modules",
        ),
        pytest.param(
            "from kit import nets\nfrom kit.parts import recall",
            {"kit/nets.py": BESIDE, "kit/parts/__init__.py": "", "kit/__init__.py": ""},
            "scripts/run.py",
            "`kit.parts` has no `recall`",
            id="of the project's package, of which it finds other things",
        ),
    ],
)
def test_a_script_that_cannot_be_loaded(
    tmp_path: Path, head: str, files: dict[str, str], name: str, reason: str
) -> None:
    found = finding(tmp_path, "import torch\n" + head, files, name)
    assert (found.severity, found.reach) == ("note", "cannot-run")
    assert reason in found.reach_reason


LOST = {"nets/__init__.py": "from nets.small import Net\n", "nets/Small.py": "class Net:\n    pass\n"}


@pytest.mark.parametrize(
    ("head", "files"),
    [
        pytest.param("import nets", LOST, id="a package"),
        pytest.param("from nets.Small import Net", LOST, id="what is in it"),
        pytest.param(
            "import nets", {"__init__.py": "", ".git/HEAD": "", **LOST}, id="a package in a project that is one itself"
        ),
        pytest.param("from build import build", {**LOST, "build.py": "import nets\nbuild = 1\n"}, id="by another file"),
        pytest.param(
            "import nets", {"nets/__init__.py": "from .small import Net\n", "nets/Small.py": BESIDE}, id="by dots"
        ),
        pytest.param(
            "import nets.big",
            {"nets/big.py": "import nets.near\n", "nets/near.py": "from .small import Net\n", "nets/Small.py": BESIDE},
            id="by a module of its package",
        ),
    ],
)
def test_what_a_file_loads_cannot_be_loaded(tmp_path: Path, head: str, files: dict[str, str]) -> None:
    found = finding(tmp_path, "import torch\n" + head, files)
    assert (found.severity, found.reach) == ("note", "cannot-run")
    assert "small`, which it imports, is not there" in found.reach_reason


OLD = "def metric(x):\n    print x\n    return x\n"


@pytest.mark.parametrize(
    ("head", "files", "name"),
    [
        pytest.param("import metrics", {"metrics.py": OLD}, "run.py", id="a module"),
        pytest.param("from parts import metrics", {"parts/metrics.py": OLD}, "run.py", id="a module of a folder"),
        pytest.param(
            "from . import metrics", {"parts/__init__.py": "", "parts/metrics.py": OLD}, "parts/run.py", id="by dots"
        ),
        pytest.param("from parts import metrics", {"parts/metrics.py": OLD}, "steps/run.py", id="of another folder"),
        pytest.param(
            "from parts.near import metric",
            {"parts/near.py": "from parts.metrics import metric\n", "parts/metrics.py": OLD},
            "run.py",
            id="by another file",
        ),
    ],
)
def test_what_a_file_loads_is_in_an_older_grammar(tmp_path: Path, head: str, files: dict[str, str], name: str) -> None:
    found = finding(tmp_path, "import torch\n" + head, files, name)
    assert (found.severity, found.reach) == ("note", "cannot-run")
    assert "no Python of today reads it" in found.reach_reason


@pytest.mark.parametrize(
    ("head", "files"),
    [
        pytest.param("from parts import near", {"parts/near.py": BESIDE, "parts/metrics.py": OLD}, id="a sibling"),
        pytest.param(
            "from parts import metrics",
            {"parts/__init__.py": "metrics = {}\n", "parts/metrics.py": OLD},
            id="a name of the package's own",
        ),
        *(
            pytest.param(
                f"from parts import {name}", {"parts/__init__.py": own, f"parts/{name}.py": OLD, **beside}, id=what
            )
            for what, name, own, beside in [
                ("a name of its star import", "metrics", "from .core import *\n", {"parts/core.py": "metrics = {}\n"}),
                ("a name of a library's star import", "path", "from os import *\n", {}),
                ("made when asked for", "metrics", "def __getattr__(name): return 1\n", {}),
                ("put into globals", "metrics", "globals().update({'met' + 'rics': 1})\n", {}),
                ("put into the modules", "metrics", "import sys\nsys.modules[__name__ + '.metr' + 'ics'] = 1\n", {}),
                (
                    "in a package of several folders",
                    "metrics",
                    "import pkgutil\n__path__ = pkgutil.extend_path(__path__, __name__)\n",
                    {},
                ),
            ]
        ),
        pytest.param(
            "from parts.metrics import metric",
            {
                "parts/__init__.py": "import sys\nfrom . import near\nsys.modules['parts.' + 'metrics'] = near\n",
                "parts/near.py": BESIDE,
                "parts/metrics.py": OLD,
            },
            id="another module put in its place",
        ),
        pytest.param("from parts import metrics", {"legacy/parts/metrics.py": OLD}, id="in a folder off the path"),
        pytest.param(
            "import nets.big", {"old/nets/big.py": "import nets.small\n"}, id="in another folder off the path"
        ),
        pytest.param("try:\n    import nets\nexcept ImportError:\n    nets = None", LOST, id="it may fail"),
        pytest.param("def build():\n    import nets", LOST, id="it is not loaded at once"),
        pytest.param(
            "import nets.big",
            {
                "nets/__init__.py": "",
                "nets/big.py": "try:\n    from .small import Net\nexcept ImportError:\n    pass\n",
            },
            id="what it loads may fail",
        ),
        pytest.param(
            "import nets.big",
            {"nets/big.py": "from metrics import recall\n", "nets/metrics.py": BESIDE},
            id="beside what it loads, which is no program",
        ),
        pytest.param(
            "import nets.big",
            {"nets/big.py": "import metrics\n", "nets/metrics.py": OLD},
            id="in an older grammar, beside what it loads",
        ),
        pytest.param("import sys\nsys.path.insert(0, 'other')\nimport nets", LOST, id="another may be on the path"),
    ],
)
def test_what_a_file_loads_may_well_load(tmp_path: Path, head: str, files: dict[str, str]) -> None:
    assert finding(tmp_path, "import torch\n" + head, files).severity == "error"


@pytest.mark.parametrize(
    ("head", "files", "name"),
    [
        pytest.param("from metrics import metric", {"metrics.py": BESIDE}, "run.py", id="it has it"),
        pytest.param("from metrics import recall", {"other/metrics.py": BESIDE}, "run.py", id="not beside it"),
        pytest.param("from logging import recall", {"logging.py": BESIDE}, "run.py", id="of the standard library"),
        pytest.param(
            "import sys\nsys.path.insert(0, 'other')\nfrom metrics import recall",
            {"metrics.py": BESIDE},
            "run.py",
            id="looked for elsewhere",
        ),
        pytest.param(
            "from steps import data", {"steps/__init__.py": "", "steps/data/a.txt": ""}, "steps/run.py", id="a folder"
        ),
        pytest.param(
            "from tuner.search import best",
            {"kit/__init__.py": "", "kit/tuner/__init__.py": ""},
            "kit/tuner/run.py",
            id="a library that has the name of a part",
        ),
        pytest.param(
            "from kit.more import recall",
            {"src/kit/nets.py": BESIDE, "src/kit/__init__.py": "", "pyproject.toml": ""},
            "scripts/run.py",
            id="a module of a package that may be another's",
        ),
        pytest.param(
            "from kit.parts import recall",
            {"kit/nets.py": BESIDE, "kit/parts/__init__.py": "", "kit/__init__.py": ""},
            "scripts/run.py",
            id="a package that may be another's of that name",
        ),
        pytest.param(
            "from kit import other\nfrom kit.parts import recall",
            {"kit/nets.py": BESIDE, "kit/parts/__init__.py": "", "kit/__init__.py": ""},
            "scripts/run.py",
            id="a package that has nothing of what is asked of it",
        ),
        pytest.param(
            "from steps import data",
            {"steps/__init__.py": "", "old/steps/__init__.py": "", "old/steps/data.py": ""},
            "steps/run.py",
            id="one of two packages of that name",
        ),
        pytest.param(
            "from parts import metrics",
            {"kit/__init__.py": "", "kit/parts/__init__.py": "", "kit/parts/metrics.py": OLD},
            "kit/tools/run.py",
            id="a part of a package, by its bare name",
        ),
    ],
)
def test_a_script_that_may_well_load(tmp_path: Path, head: str, files: dict[str, str], name: str) -> None:
    assert finding(tmp_path, "import torch\n" + head, files, name).severity == "error"


@pytest.mark.parametrize(
    ("head", "files"),
    [
        pytest.param("from .metrics import recall", {"metrics.py": "recall = 1\n"}, id="it is there"),
        pytest.param("from .metrics import recall", {"metrics.py": "if True:\n    recall = 1\n"}, id="on a condition"),
        pytest.param(
            "from .metrics import recall",
            {"metrics.py": "for name in ('rec',):\n    globals()[name + 'all'] = 1\n"},
            id="made as it is loaded",
        ),
        pytest.param("from .metrics import recall", {"metrics.py": "vars()['re' + 'call'] = 1\n"}, id="by vars()"),
        pytest.param(
            "from .metrics import recall", {"metrics.py": "def __getattr__(name): ...\n"}, id="when asked for"
        ),
        pytest.param("from .metrics import recall", {"metrics.py": "from elsewhere import *\n"}, id="from outside"),
        pytest.param(
            "from .metrics import recall", {"metrics/__init__.py": "", "metrics/recall.py": ""}, id="a module"
        ),
        pytest.param(
            "from .metrics import recall", {"metrics/__init__.py": "", "metrics/recall.so": ""}, id="compiled"
        ),
        pytest.param("from .metrics import recall", {"metrics.pyx": ""}, id="to be compiled"),
        pytest.param(
            "from .metrics import recall", {"setup.py": "open('package/metrics.py', 'w')\n"}, id="made by the build"
        ),
        pytest.param(
            "try:\n    from .metrics import recall\nexcept ImportError:\n    recall = None",
            {"metrics.py": BESIDE},
            id="it is tried",
        ),
        pytest.param("def later():\n    from .metrics import recall", {"metrics.py": BESIDE}, id="only in a call"),
        pytest.param("from ._C import recall", {}, id="compiled when it is built"),
        pytest.param("from ....beyond import recall", {}, id="beyond the project"),
        pytest.param("from metrics import recall", {"metrics.py": BESIDE}, id="an absolute one may find another"),
        pytest.param("from logging import getLogger", {"logging.py": BESIDE}, id="or the standard library's"),
    ],
)
def test_what_may_well_load(tmp_path: Path, head: str, files: dict[str, str]) -> None:
    inside = {name if name == "setup.py" else f"package/{name}": text for name, text in files.items()}
    package = {"package/__init__.py": "", **inside}
    found = finding(tmp_path, "import torch\n" + head, package, "package/run.py")
    assert found.severity == "error"
    assert "fails as it is loaded" not in found.reach_reason


def test_what_hangs_on_the_disk_is_asked_again(tmp_path: Path) -> None:
    """A compiled module is no source: its coming would not be seen by what is remembered of sources."""
    package = {"package/__init__.py": "", "pyproject.toml": "[project]\nname = 'x'\n"}
    head = "import torch\nfrom .metrics import recall"
    for path, text in {**package, "package/run.py": head + EVALUATE}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    command = [sys.executable, "-m", "memlint", ".", "--output-format", "json", "--exit-zero", "--select", "MEM201"]
    severities = []
    for _ in range(2):
        told = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        severities.append(json.loads(told)["findings"][0]["severity"])
        (tmp_path / "package" / "metrics.so").touch()
    assert severities == ["note", "error"]


@pytest.mark.parametrize("name", ["..build.lib", "._ext.nms", ".version"])
def test_what_a_build_makes(tmp_path: Path, name: str) -> None:
    """A compiled part is no more in a repository than it is missing."""
    package = {"package/__init__.py": "", "package/inner/__init__.py": ""}
    found = finding(tmp_path, f"import torch\nfrom {name} import kernels", package, "package/inner/run.py")
    assert "which it imports" not in found.reach_reason


def test_a_file_that_no_python_of_today_reads(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text("import torch\n" + EVALUATE + "\nprint 'done'\n")
    result = memlint.lint([tmp_path])
    found = {item.code: item for item in result.findings}
    assert found["MEM000"].severity == "warning"
    assert found["MEM201"].severity == "note"
    assert "no Python of today reads it" in found["MEM201"].reach_reason
