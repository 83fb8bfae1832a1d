"""The reason of an unsafe fix names what is not resolved, and says what of it matters; it speaks of nothing that the
file does not have, unless it names the file that has it."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint.finding import Fix


def fix_of(folder: Path, code: str, **files: str) -> Fix:
    (folder / "pyproject.toml").touch()
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    found = memlint.lint([folder / f"{next(iter(files))}.py"], select=[code], min_confidence="low").findings
    fixes = [one.fix for one in found if one.fix is not None]
    assert fixes, found
    return fixes[0]


SUM = """
import measures
from torch import nn


def step(model: nn.Module, x, y, optimizer, criterion: nn.Module):
    loss = {loss}
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return {returned}


def train(model: nn.Module, loader, optimizer, criterion: nn.Module):
    total = 0
    for x, y in loader:
        {taken} = step(model, x, y, optimizer, criterion)
        total += loss
    return float(total) / len(loader)
"""


@pytest.mark.parametrize(
    ("parts", "why"),
    [
        ({}, "`criterion` is not resolved"),
        ({"returned": "loss, y", "taken": "loss, _"}, "`criterion` is not resolved"),
        ({"returned": "y, loss * 2", "taken": "_, loss"}, "`criterion` is not resolved"),
        ({"loss": "measures.loss(model(x), y)"}, "`measures.loss` is not resolved"),
        ({"loss": "criterion(model(x), y).mean()"}, "`criterion` is not resolved"),
    ],
)
def test_a_value_that_may_be_no_tensor(parts: dict[str, str], why: str, tmp_path: Path) -> None:
    plain = {"loss": "criterion(model(x), y)", "returned": "loss", "taken": "loss"}
    fix = fix_of(tmp_path, "MEM101", train=SUM.format(**plain | parts))
    assert fix.doubt == f"`loss` may not be a tensor here: {why}"


EVALUATION = """
import torch
from torch import nn
{imports}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = {layer}

    def forward(self, x):
        return self.layer(x)


def evaluate(loader):
    net = {net}
    net.eval()
    hits = 0
    for x, y in loader:
        hits += (net(x).argmax(dim=1) == y).sum().item()
    return hits


if __name__ == "__main__":
    evaluate([])
"""
PLAIN = {"imports": "", "layer": "nn.Linear(8, 2)", "net": "Net()"}


@pytest.mark.parametrize(
    ("parts", "doubt"),
    [
        ({}, None),
        ({"imports": "import zoo", "net": "zoo.make()"}, "`zoo.make` is not resolved, and may behave"),
        ({"imports": "from zoo import Block", "layer": "Block(8)"}, "`Block` is not resolved, and may"),
        ({"layer": "nn.LSTM(8, 2)"}, "`nn.LSTM` may round differently without gradients"),
        ({"net": "torch.compile(Net())"}, "`torch.compile` is called, which depends on grad mode"),
    ],
)
def test_a_model_that_may_depend_on_gradients(parts: dict[str, str], doubt: str | None, tmp_path: Path) -> None:
    fix = fix_of(tmp_path, "MEM201", train=EVALUATION.format(**PLAIN | parts))
    assert fix.doubt is None if doubt is None else fix.doubt is not None and fix.doubt.startswith(doubt), fix


COMPILED = "import torch\n\n\ndef build(net):\n    return torch.compile(net)\n"
HOOKED = "def watch(net, hook):\n    net.register_forward_hook(hook)\n"
CAST = """
import torch
from train import evaluate


@torch.autocast("cuda")
def train(model, loader):
    for x in loader:
        model(x).sum().backward()
    evaluate(loader)
"""


@pytest.mark.parametrize(
    ("other", "what"), [(COMPILED, "torch.compile"), (HOOKED, "register_forward_hook"), (CAST, "autocast")]
)
def test_what_another_file_has_is_told_with_its_name(other: str, what: str, tmp_path: Path) -> None:
    fix = fix_of(tmp_path, "MEM201", train=EVALUATION.format(**PLAIN | {"imports": "import other"}), other=other)
    assert fix.doubt is not None and "other.py" in fix.doubt
    assert what != "autocast" or what not in fix.doubt


BLOCKS = "class Parts:\n    def __init__(self, makers):\n        self.layer = makers[0]()\n"
SETS = "def put(thing, name, value):\n    setattr(thing, name, value)\n"


@pytest.mark.parametrize("other", [COMPILED, HOOKED, CAST.replace("from train", "from bench"), BLOCKS, SETS])
def test_another_program_does_not_matter(other: str, tmp_path: Path) -> None:
    fix = fix_of(tmp_path, "MEM201", train=EVALUATION.format(**PLAIN), other=other, bench="import other\n" + COMPILED)
    assert fix.doubt is None
    (tmp_path / "both.py").write_text("import other\nimport train\n")
    fix = fix_of(tmp_path, "MEM201", train=EVALUATION.format(**PLAIN), other=other)
    assert fix.doubt is not None


@pytest.mark.parametrize(("imports", "is_safe"), [("", True), ("import each\n", False)], ids=["alone", "together"])
def test_a_name_that_many_programs_have(imports: str, is_safe: bool, tmp_path: Path) -> None:
    texts = {f"copy{number}": EVALUATION.format(**PLAIN) for number in range(30)}
    texts["each"] = "".join(f"import {name}\n" for name in texts)
    fix = fix_of(tmp_path, "MEM201", train=EVALUATION.format(**PLAIN | {"imports": imports}), **texts)
    assert (fix.doubt is None) is is_safe


HOOKS = "import torch\n\ntorch.nn.modules.module.register_module_forward_hook(print)\n"
RUNS = "import sys\nfor one in sys.argv[1:]:\n    {run}\n"
#: programs that hold ``train.py``, ``hooks.py`` (which another program imports) and what runs a file by its name
RUNNERS = {
    "executed": RUNS.format(run="exec(open(one).read())"),
    "executed after it is compiled": RUNS.format(run="exec(compile(open(one).read(), one, 'exec'))"),
    "imported": "import importlib\n" + RUNS.format(run="importlib.import_module(one)"),
    "run": "import runpy\n" + RUNS.format(run="runpy.run_path(one)"),
    "run by its known name": "import importlib\nimport hooks\nimportlib.import_module('train').evaluate([])\n",
    "text executed": RUNS.format(run="exec(f'{one} = 1')"),
}


@pytest.mark.parametrize("how", RUNNERS)
def test_programs_of_which_one_may_run_the_other(how: str, tmp_path: Path) -> None:
    texts = {"hooks": HOOKS, "start": "import hooks\nprint()\n\nif __name__ == '__main__':\n    pass\n"}
    fix = fix_of(tmp_path, "MEM201", train=EVALUATION.format(**PLAIN), runner=RUNNERS[how], **texts)
    assert (fix.doubt is None) == (how == "text executed"), fix


AGENT = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 2)

    def forward(self, x):
        return self.layer(x)


class Agent:
    def __init__(self):
        self.model = Net()

    def score(self, x):
        self.model.eval()
        out = self.model(x)
        return out

    def best(self, x):
        return self.score(x).argmax(1)
"""
START = "from agent import Agent\n\nif __name__ == '__main__':\n    print(Agent().best([]))\n"
LOADS = "import pickle\n\nagent = pickle.load(open('a', 'rb'))\n"


@pytest.mark.parametrize(
    ("other", "is_safe"),
    [
        (LOADS + "agent.score([]).sum().backward()\n", False),
        (LOADS + "print(agent.best([]))\n", True),
        ("from agent import Agent\n\nfor one in ('train', 'score'):\n    getattr(Agent(), one)([])\n", False),
        ("from agent import Agent\n\nfor one in ('train', 'eval'):\n    getattr(Agent(), one + '_step')([])\n", True),
        ("from agent import Agent\n\nfor one in ('lr', 'name'):\n    print(getattr(Agent(), one))\n", True),
    ],
    ids=["unpickled", "unpickled and used up", "called by any name", "called by other names", "read by any name"],
)
def test_a_result_that_an_unseen_caller_gets(other: str, is_safe: bool, tmp_path: Path) -> None:
    fix = fix_of(tmp_path, "MEM201", agent=AGENT, start=START, other=other)
    assert (fix.doubt is None) is is_safe, fix


@pytest.mark.parametrize("settings", ["", '[project]\nname = "scores"\n'], ids=["own", "published"])
def test_a_result_that_other_projects_may_get(settings: str, tmp_path: Path) -> None:
    texts = {"scores/agent": AGENT, "scores/__init__": "", "start": START.replace("agent", "scores.agent")}
    (tmp_path / "scores").mkdir()
    (tmp_path / "pyproject.toml").write_text(settings)
    fix = fix_of(tmp_path, "MEM201", **texts)
    assert (fix.doubt is None) is (settings == ""), fix
