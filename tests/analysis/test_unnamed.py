"""Code that nothing in an application names, though somebody out of sight may use it: what is found in it says so."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from tests.analysis.test_unused import EVALUATE, PROGRAM, TESTER, finding

LOADER = "import importlib\nimportlib.import_module(input())\n" + PROGRAM
GOES = "\ndef go(it):\n    it.evaluate([])\n\ngo(3)\n" + PROGRAM
PACKAGE = {
    "pyproject.toml": "[project]\nname = 'deep_kit'\n",
    "kit/__init__.py": "from .testing import evaluate\n__all__ = ['evaluate']\n",
    "kit/testing.py": EVALUATE,
    "train.py": PROGRAM,
}


@pytest.mark.parametrize(
    ("files", "what"),
    [
        pytest.param({"testing.py": EVALUATE, "train.py": LOADER}, "calls `evaluate`", id="files are loaded by name"),
        pytest.param(
            {"testing.py": EVALUATE, "train.py": "name = input()\nexec(f'from {name} import {name}')\n" + PROGRAM},
            "calls `evaluate`",
            id="some file is brought by a statement that is put together",
        ),
        pytest.param(
            {
                "testing.py": EVALUATE + PROGRAM,
                "more.py": "import testing\n\n\ndef check(m, loader):\n    return testing.evaluate(m, loader)\n",
                "train.py": LOADER,
            },
            "calls `evaluate`",
            id="files are loaded by name, and what asks for it is not named either",
        ),
        pytest.param(PACKAGE, "calls `evaluate`", id="a package"),
        pytest.param(
            {**PACKAGE, "README.md": "    pip install -e .\n    pip install torch\n"},
            "calls `evaluate`",
            id="a package that whoever trains installs",
        ),
        pytest.param(
            {
                "old/testing.py": TESTER,
                "new/tester.py": TESTER,
                "train.py": "from new.tester import Tester\nNAME = 'new.tester.Tester'\nprint('testing it')\n" + GOES,
            },
            "imports this file",
            id="a file that is no program, which nothing imports",
        ),
        pytest.param(
            {
                "testing.py": TESTER,
                "train.py": "from testing import Tester\ngetattr(Tester(None), 'ev' + input())([])\n" + PROGRAM,
            },
            "calls `evaluate`",
            id="a method by a name that is put together",
        ),
        pytest.param(
            {
                "testing.py": EVALUATE + "\ndef check(m, loader):\n    print('in check()')\n"
                "    return evaluate(m, loader)\n",
                "train.py": "# check(model, loader)\nprint('check (see above) and evaluate')\n" + LOADER,
            },
            "calls `evaluate`",
            id="its only call is a comment, and words of a text",
        ),
        pytest.param(
            {
                "testing.py": EVALUATE,
                "run.py": "from .lost import it\nimport testing\n\ntesting.evaluate(1, 2)\n",
                "train.py": LOADER,
            },
            "calls `evaluate`",
            id="what calls it fails as it is loaded",
        ),
        pytest.param(
            {"testing.py": EVALUATE, "train.py": LOADER + "\nMODES = ['train', 'evaluate']\n"},
            "calls `evaluate`",
            id="a text that is its name, which nothing looks up",
        ),
        pytest.param(
            {
                "testing.py": EVALUATE,
                "train.py": "import testing\n\n\ndef train(check=None):\n    if check is not None:\n"
                "        testing.evaluate(1, check)\n\n\ntrain()\nMODE = 'train'\n" + LOADER,
            },
            "comes here: `check is not None` is False",
            id="its only call is behind a switch that nobody throws",
        ),
        pytest.param(
            {
                "testing.py": EVALUATE,
                "train.py": "import testing\n\n\nclass Loop:\n    def __init__(self, check=False):\n"
                "        if check:\n            testing.evaluate(1, 2)\n\n\nLoop(check=False)\nKIND = 'Loop'\n"
                + PROGRAM,
            },
            "comes here: `check` is False",
            id="behind a switch of an object",
        ),
    ],
)
def test_it_is_said_that_nothing_names_it(tmp_path: Path, files: dict[str, str], what: str) -> None:
    found = finding(tmp_path, files)
    assert (found.severity, found.confidence, found.reach) == ("error", "high", "unused")
    start = {"comes": "no call of", "imports": "nothing"}.get(what.split()[0], "no code that this project runs")
    assert f"as far as its text tells, {start}" in found.reach_reason
    assert what in found.reach_reason


@pytest.mark.parametrize(
    "files",
    [
        *(
            pytest.param({"old/testing.py": TESTER + more, "train.py": text + GOES}, id=text or "a program")
            for text, more in (
                ("NAME = 'new.tester.Tester'\nfrom old import testing\n", ""),
                ("NAME = 'new.tester.Tester'\nimport os\nos.system('old.testing')\n", ""),
                ("NAME = 'new.tester.Tester'\nimport os\nos.system('python old/testing.py')\n", ""),
                ("NAME = 'new.tester.Tester'\nimport importlib\nimportlib.import_module('old.' + input())\n", ""),
                ("", PROGRAM + "\nTester(None).evaluate([])\n"),
            )
        ),
        pytest.param(
            {
                "src/testing/__init__.py": "",
                "src/testing/testing.py": TESTER,
                "src/bin/train.py": "from testing import Tester\nTester(None)\n" + GOES,
            },
            id="from a package of the file's own name, whose folder is on the path",
        ),
        pytest.param({**PACKAGE, "docs/conf.py": ""}, id="a package with pages for its users"),
        *(
            pytest.param(
                {
                    "kit/testing.py": EVALUATE,
                    "train.py": "import nets\nnet = getattr(nets, input())\n" + PROGRAM,
                    "nets/__init__.py": init,
                    "nets/more/__init__.py": "from kit import testing\n",
                },
                id=f"a package that hands it out: {init}",
            )
            for init in ("from kit.testing import *\n", "from .more import *\n", "import kit.testing as t\n")
        ),
        pytest.param(
            {"testing.py": "import fire\n" + EVALUATE + "\n\nfire.Fire()\n", "train.py": LOADER},
            id="whatever the file has is a command",
        ),
        pytest.param(
            {
                "testing.py": EVALUATE,
                "train.py": "import testing\n\n\ndef train(check=None):\n    if check is not None:\n"
                "        testing.evaluate(1, check)\n\n\ntrain(input())\nMODE = 'train'\n" + LOADER,
            },
            id="a switch that somebody throws",
        ),
        pytest.param({**PACKAGE, "README.md": "    pip install --upgrade Deep-Kit\n"}, id="a package told to install"),
        pytest.param(
            {"testing.py": EVALUATE, "train.py": LOADER + "\nimport testing\ntesting.evaluate(1, 2)\n"}, id="called"
        ),
        pytest.param(
            {
                "testing.py": EVALUATE,
                "train.py": LOADER,
                "run.py": "def go(what):\n    what.evaluate(1, 2)\n\ngo(None)\n",
            },
            id="of what nobody follows, where files are loaded by name",
        ),
        pytest.param(
            {"testing.py": EVALUATE, "train.py": LOADER, "table.py": "STEPS = ['testing.evaluate']\n"},
            id="a text that is its name",
        ),
        pytest.param(
            {"testing.py": TESTER, "train.py": LOADER + "\ndef go(it):\n    it.evaluate([])\n\ngo(3)\n"},
            id="a class, which may be chosen by its name",
        ),
        pytest.param(
            {
                "testing.py": TESTER.replace(
                    "    def evaluate", "    def run(self, name):\n        getattr(self, name)([])\n\n    def evaluate"
                ),
                "train.py": "from testing import Tester\nTester(None).run(input())\n" + PROGRAM,
            },
            id="a method that its own class finds by name",
        ),
    ],
)
def test_what_somebody_may_name_stays_what_it_is(tmp_path: Path, files: dict[str, str]) -> None:
    assert finding(tmp_path, files).reach == "used"


STATEFUL = """import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4)
        self.hidden = None

    def forward(self, x):
        out, self.hidden = self.lstm(x, self.hidden)
        return out


net = Net()


def check(rows):
    right = 0
    for row in rows:
        right += net(row.view(3, 1, 3)).argmax().item()
    return right

"""
TRAINS = """
def main():
    net.hidden = None
    net(torch.rand(3, 1, 3)).sum().backward()


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("more", "reach"),
    [
        pytest.param("", "unused", id="nothing"),
        pytest.param("print(check(torch.rand(9, 3, 3)))\n", "used", id="the program"),
        pytest.param("def other(rows):\n    return check(rows)\n", "unused", id="what nothing calls"),
    ],
)
def test_a_state_that_only_loops_carry_which_somebody_runs(tmp_path: Path, more: str, reach: str) -> None:
    (tmp_path / "run.py").write_text(STATEFUL + more + TRAINS)
    (tmp_path / "load.py").write_text(LOADER)
    result = memlint.lint([tmp_path], isolated=True)
    (found,) = [each for each in result.findings if each.code == "MEM103"]
    assert (found.severity, found.reach) == ("warning", reach)


def test_code_that_raises_as_far_as_its_text_tells(tmp_path: Path) -> None:
    score = (
        "\n\ndef score(x, *, scale):\n    return x\n\n\ndef run(m):\n    score(1)\n    evaluate(m, [])\n\n\nrun(2)\n"
    )
    files = {"testing.py": EVALUATE + score, "train.py": LOADER + "\nMODES = ['run', 'evaluate']\n"}
    found = finding(tmp_path, files)
    assert (found.severity, found.confidence, found.reach) == ("note", "high", "cannot-run")
    assert "as far as its text tells, this code raises before it ends: `score()` is not given" in found.reach_reason
