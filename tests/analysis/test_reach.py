"""A textbook mistake is found as it stands: what lies beside it, and that nothing calls it, change neither its severity
nor its confidence; the configuration decides what becomes of code that nothing uses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import memlint
from memlint.cli import main

MAIN = "import argparse\n\n\ndef main():\n    print(argparse.ArgumentParser().parse_args())\n\n\n"
MAIN += 'if __name__ == "__main__":\n    main()\n'
#: textbook mistakes: the code that is found, and a function that nothing calls
TEXTBOOK = {
    "evaluation": (
        "MEM201",
        """
def run_validation(model, val_loader):
    model.eval()
    correct = 0
    for x, y in val_loader:
        correct += (model(x.cuda()).argmax(1).cpu() == y).sum().item()
    return correct
""",
    ),
    "outputs": (
        "MEM201",
        """
def predict(model, loader):
    model.eval()
    outputs = []
    for x, _ in loader:
        outputs.append(model(x.cuda()))
    return torch.cat(outputs)
""",
    ),
    "total": (
        "MEM101",
        """
def train(model, loader, optimizer, criterion):
    total = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        total += loss
    print(total / len(loader))
""",
    ),
    "history": (
        "MEM102",
        """
def train(model, loader, optimizer, criterion):
    losses = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        losses.append(loss)
    return losses
""",
    ),
    "step of an object": (
        "MEM102",
        """
class Fitter:
    def __init__(self, model, optimizer):
        self.model, self.optimizer = model, optimizer
        self.losses = []

    def step(self, x, y):
        self.optimizer.zero_grad()
        loss = torch.nn.functional.mse_loss(self.model(x), y)
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss)
""",
    ),
    "meter": (
        "MEM101",
        """
class Meter:
    def __init__(self):
        self.sum = 0

    def record(self, value):
        self.sum += value


def train(model, loader, optimizer, criterion, meter: Meter):
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()
        meter.record(loss)
""",
    ),
    "context": (
        "MEM106",
        """
class Scale(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, w):
        out = x * w
        ctx.x, ctx.w, ctx.out = x, w, out
        return out

    @staticmethod
    def backward(ctx, grad):
        return grad * ctx.w, grad * ctx.x * ctx.out.sign()
""",
    ),
    "cycle": (
        "MEM107",
        """
def train(model, dataset, optimizer, criterion, steps):
    batches = itertools.cycle(DataLoader(dataset, batch_size=64, shuffle=True))
    for _ in range(steps):
        x, y = next(batches)
        optimizer.zero_grad()
        criterion(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
""",
    ),
    "snapshots": (
        "MEM111",
        """
def train(model, loader, optimizer, criterion, epochs):
    history = []
    for epoch in range(epochs):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(model(x.cuda()), y.cuda()).backward()
            optimizer.step()
        history.append(copy.deepcopy(model.state_dict()))
    return history
""",
    ),
    "retained graph": (
        "MEM112",
        """
def train(loader):
    model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 10)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward(retain_graph=True)
        optimizer.step()
""",
    ),
    "growing cat": (
        "MEM302",
        """
@torch.no_grad()
def embed(model, loader):
    features = torch.empty(0, 2048, 7, 7).cuda()
    for x, _ in loader:
        features = torch.cat([features, model(x.cuda())])
    return features
""",
    ),
    "retry": (
        "MEM108",
        """
def run(model, x, y, optimizer, criterion):
    try:
        loss = criterion(model(x), y)
        loss.backward()
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
        loss = criterion(model(x[: len(x) // 2]), y[: len(y) // 2])
        loss.backward()
    optimizer.step()
""",
    ),
}

HEAD = "import copy\nimport itertools\n\nimport torch\nfrom torch.utils.data import DataLoader\n"
LESSONS = {f"{name.replace(' ', '_')}.py": HEAD + text for name, (_, text) in TEXTBOOK.items()}
TRAIN = """import torch
from kit.nets import Net


def main():
    net = Net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in torch.utils.data.DataLoader([]):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(net(x), y).backward()
        optimizer.step()


if __name__ == "__main__":
    main()
"""
NETS = """import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x)
"""
CHECKS = "from kit.nets import Net\n\n\ndef test_net():\n    assert Net() is not None\n"
SETUP = "from setuptools import setup\n\nsetup(name='kit', packages=['kit'])\n"
PROJECT = {"train.py": TRAIN, "kit/__init__.py": "", "kit/nets.py": NETS, "tests/test_nets.py": CHECKS}


def lint(folder: Path, files: dict[str, str], config: str = "") -> list[memlint.Finding]:
    for path, text in {**files, "memlint.toml": config}.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    (folder / ".git").mkdir(exist_ok=True)
    result = memlint.lint([folder], preview=True)
    assert not result.failures
    return list(result.findings)


def said(findings: list[memlint.Finding]) -> set[tuple[str, str, int, str, str, str]]:
    return {(Path(one.path).name, one.code, one.line, one.severity, one.confidence, one.message) for one in findings}


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[memlint.Finding]]:
    """What is found in each file where nothing else is in its folder."""
    return {name: lint(tmp_path_factory.mktemp("alone"), {name: text}) for name, text in LESSONS.items()}


@pytest.mark.parametrize("name", TEXTBOOK)
def test_a_textbook_mistake_is_found(alone: dict[str, list[memlint.Finding]], name: str) -> None:
    findings = alone[f"{name.replace(' ', '_')}.py"]
    assert TEXTBOOK[name][0] in {one.code for one in findings if one.severity != "note"}


@pytest.mark.parametrize(
    ("folder", "files"),
    [
        pytest.param("", {"tool.py": MAIN}, id="a program"),
        pytest.param("kit/lessons/", PROJECT, id="a project with a program and tests"),
        pytest.param("kit/", {**PROJECT, "setup.py": SETUP}, id="a package that is installed"),
        pytest.param(
            "kit/",
            {**PROJECT, "setup.py": SETUP, "README.md": "    pip install kit\n", "docs/conf.py": ""},
            id="a library",
        ),
        pytest.param(
            "lessons/",
            {**PROJECT, "load.py": "import importlib\nimportlib.import_module(input())\n" + MAIN},
            id="a project that loads files by name",
        ),
        pytest.param("", {"run.ipynb": json.dumps({"cells": [], "nbformat": 4})}, id="a notebook"),
    ],
)
def test_what_lies_beside_it_changes_no_finding(
    tmp_path: Path, alone: dict[str, list[memlint.Finding]], folder: str, files: dict[str, str]
) -> None:
    found = lint(tmp_path, {**files, **{f"{folder}{name}": text for name, text in LESSONS.items()}})
    lessons = [one for one in found if Path(one.path).name in LESSONS]
    assert said(lessons) == said([one for findings in alone.values() for one in findings])


@pytest.mark.parametrize(
    ("config", "severity"),
    [
        ("", "warning"),
        ('unused-code = "report"', "warning"),
        ('unused-code = "note"', "note"),
        ('unused-code = "note"\nseverity = {MEM101 = "error"}', "note"),
        ('severity = {MEM101 = "error"}', "error"),
        ('unused-code = "ignore"', None),
    ],
)
def test_the_configuration_decides_what_unused_code_is_worth(tmp_path: Path, config: str, severity: str | None) -> None:
    used = "from total import train\n\nif __name__ == '__main__':\n    train(1, 2, 3, 4)\n"
    files = {"total.py": LESSONS["total.py"], "idle.py": LESSONS["total.py"], "run.py": used}
    found = {Path(one.path).name: one for one in lint(tmp_path, files, config)}
    assert found["total.py"].reach == "used"
    assert found["total.py"].severity == ("error" if "error" in config else "warning")
    idle = found.get("idle.py")
    assert (None if idle is None else idle.severity) == severity
    assert idle is None or (idle.reach, idle.confidence) == ("unused", found["total.py"].confidence)


def test_what_is_ignored_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lint(tmp_path, {"lesson.py": LESSONS["outputs.py"], "tool.py": MAIN}, 'unused-code = "ignore"')
    main([str(tmp_path)])
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith('Found nothing in 2 files; 2 more in unused code (unused-code = "report") (')


def test_a_comment_in_ignored_code_still_suppresses_something(tmp_path: Path) -> None:
    text = LESSONS["total.py"].replace("total += loss", "total += loss  # memlint: ignore[MEM101]")
    assert lint(tmp_path, {"idle.py": text, "tool.py": MAIN}, 'unused-code = "ignore"') == []


def test_it_is_said_in_one_step_in_each_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lint(tmp_path, {"lesson.py": LESSONS["evaluation.py"], "tool.py": MAIN})
    reason = "no code that this project runs calls `run_validation`"
    for _ in range(2):  # the second run takes what the first one kept
        main([str(tmp_path / "lesson.py"), "--output-format", "json"])
        (found,) = json.loads(capsys.readouterr().out)["findings"]
        assert (found["reach"], found["reach_reason"]) == ("unused", reason)
        assert [(step["line"], step["message"]) for step in found["trace"]] == [(7, reason)]
    main([str(tmp_path / "lesson.py")])
    assert capsys.readouterr().out.count(reason) == 1


def test_flake8_says_it_as_well(tmp_path: Path) -> None:
    lint(tmp_path, {"lesson.py": LESSONS["evaluation.py"], "tool.py": MAIN})
    command = [sys.executable, "-m", "flake8", "--isolated", "--select", "MEM", "lesson.py"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "MEM201" in done.stdout, done.stderr
