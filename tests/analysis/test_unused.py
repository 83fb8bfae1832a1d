"""Code that nothing in an application uses: what is found in it is as sure and as severe as elsewhere, and says so;
unknown is never no."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import memlint
from memlint import Finding

EVALUATE = """import torch

def evaluate(model, loader):
    model.eval()
    scores = []
    for x in loader:
        scores.append(model(x))
    return scores
"""
TESTER = """import torch

class Tester:
    def __init__(self, model):
        self.model = model

    def evaluate(self, loader):
        self.model.eval()
        scores = []
        for x in loader:
            scores.append(self.model(x))
        return scores
"""
PROGRAM = """
def main():
    print("train")

if __name__ == "__main__":
    main()
"""


def finding(tmp_path: Path, files: dict[str, str]) -> Finding:
    for path, text in files.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    (tmp_path / ".git").mkdir(exist_ok=True)
    result = memlint.lint([tmp_path], min_confidence="low")
    assert not result.failures
    (found,) = [item for item in result.findings if item.code == "MEM201" and item.path.endswith("testing.py")]
    return found


@pytest.mark.parametrize(
    ("files", "reason"),
    [
        pytest.param(
            {
                "testing.py": EVALUATE,
                "train.py": "import nets\nnet = getattr(nets, input())\n" + PROGRAM,
                "nets/__init__.py": "from nets.small import *\n",
                "nets/small.py": "class Small:\n    pass\n",
            },
            "no code that this project runs calls `evaluate`",
            id="things are picked from a package that has none of this file",
        ),
        pytest.param(
            {
                "testing.py": TESTER + "\n\ndef main():\n    Tester(None).evaluate([])\n\n\nif __name__ == '__main__':"
                "\n    print('no main')\n",
                **{f"more/run_{number}.py": PROGRAM for number in range(50)},
            },
            "no code that this project runs uses `Tester`",
            id="only a main that nothing calls, of many of that name",
        ),
        *(
            pytest.param(
                {"nets/testing.py": EVALUATE, "train.py": f"import importlib\nname = input()\n{statement}\n" + PROGRAM},
                "no code that this project runs calls `evaluate`",
                id=f"a file that is none of those that are brought by {statement}",
            )
            for statement in (
                "exec('from nets.{}.model import {}'.format(name, name))",
                "importlib.import_module(f'nets.{name}_net')",
                "importlib.import_module('nets.' + name + '_net')",
                "importlib.import_module('nets.%s_net' % name)",
            )
        ),
        pytest.param(
            {"testing.py": EVALUATE, "train.py": PROGRAM},
            "no code that this project runs calls `evaluate`",
            id="nobody",
        ),
        pytest.param(
            {
                "testing.py": EVALUATE,
                "train.py": "from steps import go\ngo(3)\n",
                "steps.py": "def go(n):\n    print(n)\n",
            },
            "no code that this project runs calls `evaluate`",
            id="a script",
        ),
        pytest.param(
            {
                "testing.py": EVALUATE,
                "train.py": "import click\n\n@click.command()\ndef main():\n    print('train')\n",
            },
            "no code that this project runs calls `evaluate`",
            id="a command",
        ),
        pytest.param(
            {"testing.py": EVALUATE + PROGRAM},
            "no code that this project runs calls `evaluate`",
            id="a program of its own",
        ),
        pytest.param(
            {
                "testing.py": EVALUATE,
                "other.py": "def evaluate(model, loader):\n    return 0\n",
                "train.py": "from other import evaluate\nevaluate(1, 2)\n" + PROGRAM,
            },
            "no code that this project runs calls `evaluate`",
            id="a namesake is called",
        ),
        pytest.param(
            {"testing.py": EVALUATE, "train.py": "from testing import evaluate\n" + PROGRAM},
            "no code that this project runs calls `evaluate`",
            id="it is imported and not used",
        ),
        pytest.param(
            {
                "testing.py": EVALUATE + "\n__all__ = ['evaluate']\n",
                "more.py": "from testing import evaluate\n\ndef all_of(model):\n    return evaluate(model, [])\n",
                "train.py": PROGRAM,
            },
            "no code that this project runs calls `evaluate`",
            id="what uses it is not used",
        ),
        pytest.param(
            {
                "kit/__init__.py": "",
                "kit/testing.py": TESTER,
                "kit/more.py": "from kit.testing import Tester\n\nclass Loud(Tester):\n    pass\n",
                "train.py": PROGRAM,
            },
            "no code that this project runs uses `Tester`",
            id="a base of a class that is not used",
        ),
        pytest.param(
            {
                "testing.py": EVALUATE,
                "more.py": "# instantiate, import_module\nfrom testing import evaluate\n\n\ndef run(args, eval):\n"
                "    eval(vars(args))\n    for part in args.net.modules():\n        part.run(args.__dict__)\n",
                "train.py": PROGRAM,
            },
            "no code that this project runs calls `evaluate`",
            id="words that look like a search for it",
        ),
        pytest.param(
            {
                "testing.py": TESTER.replace("def evaluate", "def check").replace(
                    "    def __init__", "    def go(self):\n        self.check([])\n\n    def __init__"
                ),
                "other.py": "class Other:\n    def check(self):\n        return 1\n\n    def twice(self):\n"
                "        return self.check()\n",
                "train.py": "import numpy as np\nfrom testing import Tester\nfrom other import Other\nTester(None)\n"
                "other = Other()\nother.check()\nother.twice()\nOther().check()\nnp.check()\n" + PROGRAM,
            },
            "no code that this project runs calls `check`",
            id="a method of that name is called of other objects, and by a method that nobody calls",
        ),
        pytest.param(
            {"testing.py": TESTER, "train.py": "from testing import Tester\nTester(None)\n" + PROGRAM},
            "no code that this project runs calls `evaluate`",
            id="a method",
        ),
        pytest.param(
            {
                "kit/__init__.py": "",
                "kit/testing.py": EVALUATE,
                "kit/other.py": "def evaluate(model, loader):\n    return 0\n",
                "train.py": "import kit.other as other\nimport kit as k\nclass Run:\n    how = None\nrun = Run()\n"
                "other.evaluate(1, 2)\nrun.evaluate(1, 2)\n" + PROGRAM,
            },
            "no code that this project runs calls `evaluate`",
            id="a namesake in a module beside it, which alone is imported",
        ),
        pytest.param(
            {
                "kit/__init__.py": "",
                "kit/testing.py": EVALUATE,
                "kit/other.py": "def evaluate(model, loader):\n    return 0\n",
                "train.py": "import kit.other as other\nimport kit.testing as testing\n"
                "other.evaluate(1, 2)\n" + PROGRAM,
            },
            "no code that this project runs calls `evaluate`",
            id="a namesake in a module beside it, both of which are imported",
        ),
        pytest.param(
            {
                "testing.py": EVALUATE,
                "nets/small.py": "def build():\n    return 1\n",
                "more.py": "exec(open('settings.py').read())\nexec('from nets.small import ' + input())\n",
                "train.py": "import pkgutil\nfrom importlib import import_module\nimport torchvision\n"
                "for _, name, _ in pkgutil.walk_packages(torchvision.models.__path__):\n"
                "    import_module(f'torchvision.models.{name}')\nimport_module('nets.' + input())\n" + PROGRAM,
            },
            "no code that this project runs calls `evaluate`",
            id="files of a library and of a folder are loaded by name",
        ),
        pytest.param(
            {
                "testing.py": EVALUATE + "\n" + PROGRAM,
                "train.py": "import importlib\nimportlib.import_module(input())\n" + PROGRAM,
            },
            "no code that this project runs calls `evaluate`",
            id="files are loaded by name, but this one is a program",
        ),
        pytest.param(
            {
                "testing.py": TESTER,
                "train.py": "from testing import Tester\n\nclass Suite:\n"
                "    def evaluate(self, tester):\n        tester.evaluate([])\n\nprint(Suite, Tester)\n" + PROGRAM,
            },
            "no code that this project runs calls `evaluate`",
            id="a method of its name, which nothing calls, calls it",
        ),
    ],
)
def test_it_is_said_that_nothing_uses_it(tmp_path: Path, files: dict[str, str], reason: str) -> None:
    found = finding(tmp_path, files)
    assert (found.severity, found.confidence, found.reach) == ("error", "high", "unused")
    assert reason in found.reach_reason
    assert found.trace[-1].message == found.reach_reason


@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"testing.py": EVALUATE}, id="no program is there"),
        pytest.param(
            {
                "testing.py": EVALUATE,
                "more.py": "import logging\nfrom table import register\nlog = logging.getLogger(__name__)\n",
                "table.py": "def register(name):\n    return name\n",
                "last.py": "from table import register\nregister(__name__)\n",
            },
            id="a file names its logger, another enters itself somewhere",
        ),
        pytest.param({"testing.py": EVALUATE + "\nevaluate(1, 2)\n", "train.py": PROGRAM}, id="called at once"),
        pytest.param(
            {"testing.py": EVALUATE, "train.py": "from testing import evaluate as ev\nev(1, 2)\n" + PROGRAM},
            id="under another name",
        ),
        pytest.param(
            {
                "src/testing/__init__.py": "",
                "src/testing/testing.py": EVALUATE,
                "src/bin/train.py": "from testing import evaluate\nevaluate(1, 2)\n" + PROGRAM,
            },
            id="from a package that does not have it, whose folder is on the path",
        ),
        pytest.param(
            {
                "kit/__init__.py": "from kit_core import *\n",
                "kit/core/testing.py": EVALUATE,
                "train.py": "from kit import evaluate\nevaluate(1, 2)\n" + PROGRAM,
            },
            id="from a package that may not have it",
        ),
        pytest.param(
            {"testing.py": EVALUATE, "train.py": "import testing\ntesting.evaluate(1, 2)\n" + PROGRAM},
            id="as a part of its module",
        ),
        pytest.param(
            {"testing.py": EVALUATE, "train.py": "from testing import *\nevaluate(1, 2)\n" + PROGRAM}, id="star"
        ),
        pytest.param(
            {
                "kit/__init__.py": "from .testing import evaluate\n",
                "kit/testing.py": EVALUATE,
                "train.py": "import kit as k\nk.evaluate(1, 2)\n" + PROGRAM,
            },
            id="handed out by its package",
        ),
        pytest.param(
            {
                "kit/__init__.py": "from .testing import *\n",
                "kit/testing.py": EVALUATE,
                "train.py": "from kit import evaluate\nevaluate(1, 2)\n" + PROGRAM,
            },
            id="handed out by a star",
        ),
        pytest.param(
            {
                "testing.py": EVALUATE,
                "train.py": "def run():\n    from testing import evaluate\n    evaluate(1, 2)\nrun()\n" + PROGRAM,
            },
            id="imported where it is used",
        ),
        pytest.param(
            {"testing.py": EVALUATE + "\nRUN = globals()[input()]\n", "train.py": "import testing\n" + PROGRAM},
            id="looked up by name",
        ),
        pytest.param(
            {"testing.py": EVALUATE, "train.py": "import testing\ngetattr(testing, 'evaluate')()\n" + PROGRAM},
            id="looked up by a string",
        ),
        pytest.param(
            {"testing.py": EVALUATE.replace("def ev", "@register\ndef ev"), "train.py": "import testing\n" + PROGRAM},
            id="registered",
        ),
        pytest.param(
            {
                "testing.py": TESTER.replace("class Tester", "class Tester(framework.Callback)"),
                "train.py": "from testing import Tester\nTester(None)\n" + PROGRAM,
            },
            id="a method that a framework may call",
        ),
        pytest.param(
            {"testing.py": EVALUATE, "train.py": "import testing\ngetattr(testing, input())(1, 2)\n" + PROGRAM},
            id="picked by a name that is not written",
        ),
        pytest.param(
            {"testing.py": EVALUATE, "train.py": "from testing import *\neval(input())(1, 2)\n" + PROGRAM},
            id="taken by a star, and called by a name that is not written",
        ),
        pytest.param(
            {
                "testing.py": EVALUATE,
                "train.py": "from testing import *\n\ndef forward(net, x, eval=False):\n    return net(x)\n\n"
                "class Task:\n    def eval(self):\n        return 1\n\neval(input())(1, 2)\n" + PROGRAM,
            },
            id="called so, in a file that calls other things eval as well",
        ),
        pytest.param(
            {
                "net/modeling_testing.py": TESTER,
                "train.py": "from transformers import AutoModel as A\nA.from_pretrained("
                "'net', trust_remote_code=True)\n" + PROGRAM,
            },
            id="code beside weights",
        ),
        pytest.param(
            {
                "kit/__init__.py": "from testing import evaluate\n",
                "kit/testing.py": EVALUATE,
                "train.py": "from kit import evaluate\nevaluate(1, 2)\n" + PROGRAM,
            },
            id="handed out by a package that names its files as Python 2 does",
        ),
        pytest.param(
            {"testing.py": EVALUATE, "train.py": "from testing_v2 import evaluate\nevaluate(1, 2)\n" + PROGRAM},
            id="from a module that is not there",
        ),
        pytest.param(
            {
                "testing.py": TESTER,
                "other.py": "from testing import Tester\n\nclass Other:\n    def twice(self):\n"
                "        return self.evaluate([])\n\nclass Both(Other, Tester):\n    pass\n",
                "train.py": "from other import Both\nBoth(None).twice()\n" + PROGRAM,
            },
            id="a method that another class calls of what is of both",
        ),
        pytest.param(
            {
                "testing.py": TESTER,
                "other.py": "class Other:\n    def __init__(self, inner):\n        self.inner = inner\n\n"
                "    def __getattr__(self, name):\n        return self.inner.__getattribute__(name)\n",
                "train.py": "from other import Other\nfrom testing import Tester\nother = Other(Tester(None))\n"
                "other.evaluate([])\n" + PROGRAM,
            },
            id="a method that an object hands on",
        ),
        pytest.param(
            {
                "testing.py": EVALUATE + "\ndef other(n):\n    return evaluate(1, 2) if n else last(n)\n\n"
                "def last(n):\n    return other(n - 1)\n",
                "train.py": "from testing import last\nlast(3)\n" + PROGRAM,
            },
            id="two that use each other, one of which is used",
        ),
        pytest.param(
            {
                "testing.py": TESTER,
                "train.py": "from testing import Tester\ndef go(tester):\n    tester.evaluate([])\n"
                "go(Tester(None))\n" + PROGRAM,
            },
            id="a method of an object that nobody follows",
        ),
        pytest.param(
            {
                "kit/__init__.py": "",
                "kit/testing.py": EVALUATE,
                "kit/other.py": "def evaluate(model, loader):\n    return 0\n",
                "train.py": "import kit.other as other\nimport kit.testing as testing\nfor each in [other, testing]:\n"
                "    each.evaluate(1, 2)\n" + PROGRAM,
            },
            id="of one of several modules",
        ),
        pytest.param(
            {
                "kit/__init__.py": "import glob\n__all__ = [name[:-3] for name in glob.glob('*.py')]\n",
                "kit/testing.py": EVALUATE,
                "train.py": "from kit import *\nimport kit\nkit.testing.evaluate(1, 2)\n" + PROGRAM,
            },
            id="of a file that its package lists",
        ),
        pytest.param(
            {
                "nets/testing.py": EVALUATE,
                "train.py": "import importlib\n\ndef find(kind):\n    path = 'nets.' + kind\n"
                "    return importlib.import_module(path)\n\nfind('testing')\n" + PROGRAM,
            },
            id="in a folder of which files are loaded by a name that is put together first",
        ),
        pytest.param(
            {
                "nets/testing.py": EVALUATE,
                "train.py": "from importlib import import_module\nimport_module(f'nets.{input()}')\n" + PROGRAM,
            },
            id="in a folder of which files are loaded by name",
        ),
        *(
            pytest.param(
                {"nets/testing.py": EVALUATE, "train.py": f"name = input()\nexec({statement})\n" + PROGRAM},
                id=f"in a folder of which files are brought by {statement}",
            )
            for statement in (
                "'from nets.{} import {}'.format(name, name)",
                "f'from nets.{name} import {name}'",
                "'import nets.' + name",
                "'from nets.testing import %s' % name",
                "'from nets.{}ing import {}'.format(name, name)",
                "f'import nets.test{name}'",
            )
        ),
        pytest.param(
            {
                "testing.py": EVALUATE,
                "nets/all.py": "from testing import evaluate\n",
                "train.py": "import importlib\ngetattr(importlib.import_module('nets.%s' % 'all'), input())\n"
                + PROGRAM,
            },
            id="handed out by a file that is loaded by name",
        ),
        pytest.param(
            {
                "testing.py": TESTER,
                "train.py": "from testing import Tester\n\ndef evaluate(model, data):\n"
                "    Tester(model).evaluate(data)\n\nif __name__ == '__main__':\n    evaluate(None, [])\n",
            },
            id="a function of its name calls the method",
        ),
        pytest.param(
            {
                "testing.py": TESTER,
                "train.py": "from testing import Tester\n\nclass Suite:\n"
                "    def evaluate(self, model):\n        Tester(model).evaluate([])\n\n"
                "if __name__ == '__main__':\n    Suite().evaluate(None)\n",
            },
            id="a method of its name calls it",
        ),
    ],
)
def test_what_may_be_used_stays_what_it_is(tmp_path: Path, files: dict[str, str]) -> None:
    assert finding(tmp_path, files).reach == "used"


@pytest.mark.parametrize(
    ("cell", "reach"),
    [
        ({"cell_type": "code", "source": ["from testing import evaluate\n", "evaluate(model, loader)"]}, "used"),
        ({"cell_type": "code", "source": "import testing\ntesting.evaluate(model, loader)"}, "used"),
        ({"cell_type": "code", "source": "print('evaluates')", "outputs": [{"text": "evaluate"}]}, "unused"),
        ({"cell_type": "markdown", "source": "Next, evaluate the model."}, "unused"),
    ],
    ids=["called", "as a part of its module", "words of its output", "words of a text"],
)
def test_a_notebook_may_be_the_program(tmp_path: Path, cell: dict[str, object], reach: str) -> None:
    (tmp_path / "test.ipynb").write_text(json.dumps({"cells": [cell], "nbformat": 4}))
    assert finding(tmp_path, {"testing.py": EVALUATE, "train.py": PROGRAM}).reach == reach


def test_a_notebook_that_nobody_can_read_may_be_the_program(tmp_path: Path) -> None:
    for name, text in {"test.ipynb": "[1]", "testing.py": EVALUATE, "train.py": PROGRAM, "pyproject.toml": ""}.items():
        (tmp_path / name).write_text(text)
    found = memlint.lint([tmp_path / "testing.py"]).findings
    assert [one.reach for one in found] == ["used"] * len(found) and found
    (tmp_path / "test.ipynb").unlink()
    assert "used" not in [one.reach for one in memlint.lint([tmp_path / "testing.py"]).findings]


def test_a_notebook_of_an_old_format(tmp_path: Path) -> None:
    cell = {"cell_type": "code", "input": ["from testing import evaluate\n", "evaluate(model, loader)"]}
    (tmp_path / "test.ipynb").write_text(json.dumps({"worksheets": [{"cells": [cell]}], "nbformat": 3}))
    assert finding(tmp_path, {"testing.py": EVALUATE, "train.py": PROGRAM}).reach == "used"


def test_a_module_may_be_named_as_what_it_defines(tmp_path: Path) -> None:
    called = "from checks import testing\n\n\ndef main():\n    testing.testing({}, [])\n\n\nmain()\n"
    files = {
        "checks/__init__.py": "",
        "checks/testing.py": EVALUATE.replace("def evaluate(", "def testing("),
        "train.py": called.format("None"),
    }
    assert finding(tmp_path, files).reach == "used"


def test_a_registry_finds_what_is_registered_and_nothing_else(tmp_path: Path) -> None:
    files = {
        "testing.py": EVALUATE,
        "build.py": "from mmcv.utils import Registry, build_from_cfg\n\nHOOKS = Registry('hooks')\n\n\n"
        "def build(cfg, registry):\n"
        "    return build_from_cfg(cfg, registry)\n",
        "train.py": PROGRAM,
    }
    found = finding(tmp_path, files)
    assert (found.reach, found.reach_reason) == ("unused", "no code that this project runs calls `evaluate`")
    files["testing.py"] = "from build import HOOKS\n" + EVALUATE.replace(
        "def evaluate", "@HOOKS.register_module()\ndef evaluate"
    )
    files["train.py"] = "import testing\n" + PROGRAM
    assert finding(tmp_path, files).reach == "used"


@pytest.mark.parametrize(
    ("imported", "base", "reach"),
    [
        ("from cog import BasePredictor", "BasePredictor", "used"),
        ("import cog", "cog.BasePredictor", "used"),
        ("from ts.torch_handler.base_handler import BaseHandler", "BaseHandler", "used"),
        ("import gradio as gr", "gr.Blocks", "used"),
        ("import lightning.pytorch as pl", "pl.LightningModule", "used"),
        ("import unittest", "unittest.TestCase", "used"),
        ("from theirs import *", "Handler", "used"),
        ("from own import Entered", "Entered", "used"),
        ("from own import Served", "Served", "used"),
        ("import theirs", "theirs.base_of('handlers')", "used"),
        ("from own import Plain", "Plain", "unused"),
        ("import abc", "abc.ABC", "unused"),
        ("from torch import nn", "nn.Module", "unused"),
        ("import torch", "torch.utils.data.IterableDataset", "unused"),
        ("from typing import Generic, TypeVar", "Generic[TypeVar('T')]", "unused"),
        ("", "dict", "unused"),
    ],
)
def test_a_base_from_elsewhere_may_find_the_classes_below_it(
    tmp_path: Path, imported: str, base: str, reach: str
) -> None:
    own = (
        "import cog\n\n\nclass Plain:\n    pass\n\n\nclass Served(cog.BasePredictor):\n    pass\n\n\n"
        "class Entered:\n    def __init_subclass__(cls):\n        cls(None).evaluate([])\n"
    )
    tester = imported + "\n" + TESTER.replace("class Tester:", f"class Tester({base}):")
    assert finding(tmp_path, {"testing.py": tester, "own.py": own, "train.py": PROGRAM}).reach == reach
