"""Several programs in one repository: what the code of one does with a name tells nothing of the other's, unless some
file may bring them together."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import memlint

RUNNER = """
import torch
from somewhere import batches, load


class Runner:
    def collect(self, model, batches):
        model.eval()
        rows = []
        for batch in batches:
            rows.append(model.predict(batch.cuda()).detach().cpu().numpy())
        return rows
"""
NET = """
import torch
from somewhere import batches, load
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(4, 4)

    @torch.no_grad()
    def predict(self, batch):
        return self.lift(batch)
"""
#: what starts a program of its own
STARTS = """
if __name__ == "__main__":
    {does}
"""
RUNS = STARTS.format(does="Runner().collect(load(), batches())")
SHOWS = STARTS.format(does="print(Net().predict(batches()))")
BOTH = "from {runner} import Runner, load\nfrom {net} import Net\n\n"
MADE = "Runner().collect(Net().cuda(), load())\n"
PUBLISHED = '[project]\nname = "nets"\nversion = "1"\n'


@pytest.mark.parametrize(
    ("files", "found"),
    [
        pytest.param(
            {"a/run.py": RUNNER + RUNS, "b/net.py": NET + SHOWS},
            ["MEM201"],
            id="two programs",
        ),
        pytest.param(
            {
                "a/runner.py": RUNNER,
                "a/main.py": "from runner import Runner, batches, load\n" + RUNS,
                "b/net.py": NET,
                "b/main.py": "from net import Net, batches\n" + SHOWS,
            },
            ["MEM201"],
            id="two programs with files of their own",
        ),
        pytest.param(
            {"runner.py": RUNNER, "net.py": NET, "main.py": BOTH.format(runner="runner", net="net") + MADE},
            [],
            id="one program imports both",
        ),
        pytest.param(
            {
                "runner.py": RUNNER,
                "net.py": NET,
                "nets.py": "from net import Net\n",
                "main.py": "import nets\nfrom runner import Runner, load\n\n"
                "Runner().collect(nets.Net().cuda(), load())\n",
            },
            [],
            id="one program imports both, through a third file",
        ),
        pytest.param(
            {
                "runner.py": RUNNER,
                "nets/net.py": NET,
                "main.py": "import importlib\nfrom runner import Runner, load\n\n"
                "net = importlib.import_module(name()).Net()\nRunner().collect(net.cuda(), load())\n",
            },
            [],
            id="one program loads the other file by its name",
        ),
        pytest.param(
            {
                "runner.py": RUNNER,
                "nets/net.py": NET,
                "tests/test_net.py": "from nets.net import Net\n",
                "main.py": "import importlib\nfrom runner import Runner, load\n\n"
                "net = importlib.import_module(name()).Net()\nRunner().collect(net.cuda(), load())\n",
            },
            [],
            id="one program loads the other file by its name, and a test imports it",
        ),
        pytest.param(
            {
                "runner.py": RUNNER,
                "nets/net.py": NET,
                "main.py": "from runner import Runner, load\nfrom nets import (  # all (so far)\n    net,\n)\n\n"
                "Runner().collect(net.Net().cuda(), load())\n",
            },
            [],
            id="one program imports both, in parentheses with a comment",
        ),
        pytest.param(
            {"runner.py": RUNNER, "net.py": NET},
            [],
            id="a library without programs, whose users import both",
        ),
        pytest.param(
            {
                "pyproject.toml": PUBLISHED,
                "nets/__init__.py": "",
                "nets/runner.py": RUNNER,
                "nets/net.py": NET,
                "examples/one.py": "from nets.runner import Runner, batches, load\n" + RUNS,
                "examples/two.py": "from nets.net import Net, batches\n" + SHOWS,
            },
            [],
            id="a package that others install",
        ),
        pytest.param(
            {
                "a/runner.py": RUNNER,
                "a/main.py": "from runner import Runner, batches, load\n" + RUNS,
                "b/net.py": NET,
                "test_both.py": BOTH.format(runner="a.runner", net="b.net") + "def test_it():\n    " + MADE,
            },
            [],
            id="a test imports both",
        ),
    ],
)
def test_the_guard_of_a_method_known_by_its_name(tmp_path: Path, files: dict[str, str], found: list[str]) -> None:
    write(tmp_path, files)
    assert codes(tmp_path, tmp_path) == found


#: a repository that is cloned into the project: a package that others install, with the network
CLONE = {"cloned/.git/HEAD": "", "cloned/pyproject.toml": PUBLISHED, "cloned/nets/__init__.py": ""}
CLONED = CLONE | {"cloned/nets/net.py": NET}
IMPORTS = "from nets.net import Net\n"


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({"run.py": RUNNER + RUNS}, ["MEM201"]),
        ({"run.py": f"import json, yaml\n{RUNNER}{RUNS}"}, ["MEM201"]),
        ({"run.py": RUNNER + RUNS, "cloned/tests/test_net.py": IMPORTS}, ["MEM201"]),
        ({"run.py": f"import nets.net\n{RUNNER}{RUNS}"}, []),
        ({"run.py": f"from kit.net import Net\n{RUNNER}{RUNS}"}, ["MEM201"]),
        ({"run.py": f"from kit.net import Net\n{RUNNER}{RUNS}", "a/kit/net.py": IMPORTS, "b/kit/net.py": IMPORTS}, []),
        ({"run.py": f"from made import net\n{RUNNER}{RUNS}", "made.py": "from nets import net\n"}, []),
        ({"runner.py": RUNNER, "run.py": f"import nets.net\nfrom runner import *\n{RUNS}"}, []),
        ({"run.py": f"import importlib\nnets = importlib.import_module('nets.' + name())\n{RUNNER}{RUNS}"}, []),
        ({"run.py": f"import importlib, sys\nnet = importlib.import_module(sys.argv[1])\n{RUNNER}{RUNS}"}, []),
        ({"run.py": f"import runpy, sys\nnet = runpy.run_path(sys.argv[1])\n{RUNNER}{RUNS}"}, []),
        ({"run.py": f"import pluggy\nhooks = pluggy.PluginManager('nets').hook\n{RUNNER}{RUNS}"}, []),
        ({"run.py": f"import hub\nnet = hub.get('./cloned', 'net')\n{RUNNER}{RUNS}"}, []),
        ({"run.py": f"net = torch.load('net.pt', weights_only=False)\n{RUNNER}{RUNS}"}, []),
        ({"run.py": f"from broken import some\n{RUNNER}{RUNS}", "broken.py": "def load(:\n"}, []),
        ({"test_run.py": RUNNER, "conftest.py": IMPORTS}, []),
    ],
    ids=[
        "apart", "other imports", "a test of the package", "imported", "an outside package",
        "an import that may be of several files", "imported by another file", "a program above both",
        "loaded by a name of which a part is known", "loaded by an unknown name", "run by an unknown name",
        "named for a library", "its folder named for a library", "unpickled", "a file that does not parse", "a fixture",
    ],
)  # fmt: skip
def test_a_cloned_package_meets_the_programs_that_name_it(
    tmp_path: Path, files: dict[str, str], found: list[str]
) -> None:
    # (something named ``load`` may unpickle)
    own = {path: re.sub(r"(?<!\.)\bload\b", "make", text) for path, text in files.items()}
    write(tmp_path, CLONED | own)
    assert [code for code in codes(tmp_path, tmp_path) if code != "MEM000"] == found


@pytest.mark.parametrize(
    "files",
    [
        {
            "setup.py": "setup(packages=['nets'], package_dir={'nets': 'src'})\n",
            "src/__init__.py": "",
            "src/net.py": NET,
        },
        {"pyproject.toml": PUBLISHED, "nets/__init__.py": "from lazy import attach\nattach()\n", "nets/net.py": NET},
    ],
    ids=["under another name than its folder's", "by a library that imports lazily"],
)
def test_a_program_may_use_the_package_of_its_own_repository(tmp_path: Path, files: dict[str, str]) -> None:
    write(tmp_path, files | {"run.py": f"from nets import Net\n{RUNNER}{RUNS}"})
    assert codes(tmp_path, tmp_path) == []


#: a program that is safe to fix unless something in its process trains in mixed precision
ALONE = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Evaluator:
    def __init__(self, model):
        self.model = model
        self.results = []

    def of(self, loader):
        self.model.eval()
        for x, y in loader:
            out = self.model(x.cuda())
            self.results.append((out.argmax(1).cpu() == y).float().mean())
        return self.results


if __name__ == "__main__":
    net = nn.Sequential(nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 4096)).cuda()
    Evaluator(net).of(DataLoader([]))
"""
#: a package that trains in mixed precision, names the method, and unpickles objects
TRAINS = """
import pickle
import sys
import torch


def train(net, batches, optimizer):
    table = pickle.load(sys.stdin)
    for batch in batches:
        with torch.autocast("cuda"):
            loss = net(batch.cuda()).mean()
            table.of(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


#: a helper of the package, by which others unpickle their objects
READS = "import pickle\n\n\ndef read(path):\n    return pickle.loads(path.read_bytes())\n"
#: a program that passes what it reads by it to the training
READER = """
from pathlib import Path
from nets.read import read
from nets.train import train

if __name__ == "__main__":
    held = read(Path("held"))
    held.of(train(held.model, [], None))
"""


@pytest.mark.parametrize(
    ("files", "safety"),
    [
        ({}, "safe"),
        ({"one.py": f"import nets.train\n{ALONE}"}, "unsafe"),
        ({"cloned/nets/read.py": READS}, "safe"),
        ({"cloned/nets/read.py": READS, "reader.py": READER}, "unsafe"),
    ],
    ids=["apart", "imported", "a package that unpickles", "a package that unpickles for another program"],
)
def test_a_fix_beside_a_cloned_package(tmp_path: Path, files: dict[str, str], safety: str) -> None:
    write(tmp_path, CLONE | {"cloned/nets/train.py": TRAINS, "one.py": ALONE} | files)
    found = memlint.lint([tmp_path / "one.py"], isolated=True).findings
    assert [(one.code, one.fix and one.fix.safety) for one in found] == [("MEM201", safety)]


SCORES = """
import torch
from somewhere import batches, load


class Scorer:
    def __init__(self, model):
        self.model = model.eval()

    def score_all(self, batches):
        rows = []
        for batch in batches:
            rows.append(self.model(batch.cuda()).detach().cpu().numpy())
        return rows
"""
CALLS = """
import torch
from somewhere import batches, load


def report(thing, batches):
    with torch.no_grad():
        return thing.score_all(batches)
"""


@pytest.mark.parametrize(
    ("others", "found"),
    [
        ({"b/report.py": CALLS + STARTS.format(does="report(load(), batches())")}, ["MEM201"]),
        ({"b/report.py": CALLS, "main.py": "from a.score import Scorer\nfrom b.report import report\n"}, []),
    ],
    ids=["another program", "a file that knows both"],
)
def test_the_guard_of_a_caller_known_by_its_name(tmp_path: Path, others: dict[str, str], found: list[str]) -> None:
    write(tmp_path, {"a/score.py": SCORES + STARTS.format(does="print(Scorer(load()))"), **others})
    assert codes(tmp_path, tmp_path / "a") == found


#: a program that loads what it is told, and calls a method of it
LOADS = (
    "import importlib, sys\n" + CALLS + STARTS.format(does="report(importlib.import_module(sys.argv[1]), batches())")
)


@pytest.mark.parametrize(
    ("marks", "found"),
    [([], []), (["cloned/.git"], ["MEM201"]), ([".git", "cloned/b/.git"], ["MEM201"])],
    ids=["the same repository", "a clone in the project", "a submodule in it"],
)
def test_a_cloned_repository_does_not_load_the_code_around_it(
    tmp_path: Path, marks: list[str], found: list[str]
) -> None:
    write(tmp_path, {"one.py": SCORES, "cloned/b/report.py": LOADS})
    for mark in marks:
        (tmp_path / mark).mkdir(exist_ok=True)
    assert codes(tmp_path, tmp_path / "one.py") == found


def write(folder: Path, files: dict[str, str]) -> None:
    (folder / ".git").mkdir()
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def codes(folder: Path, linted: Path) -> list[str]:
    result = memlint.lint([linted], isolated=True)
    assert not result.failures
    return [one.code for one in result.findings]
