"""Projects beside each other in one repository, with packages, files and classes of the same names: each is found what
it is found alone."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

FILES = {
    "train.py": """import torch
from torch.utils.data import DataLoader
from utils.engine import Trainer, evaluate
from models.net import Net
from utils.{meters}

if __name__ == "__main__":
    net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    Trainer(net, optimizer, make(input())).fit(DataLoader([]), 10)
    print(evaluate(net, DataLoader([])))
""",
    "utils/meters.py": """class Meter:
    def __init__(self):
        self.sum, self.history = 0, []

    def record(self, value):
        self.sum += value
        self.history.append(value)


def make(name):
    return Meter()
""",
    "utils/registry.py": """import importlib


def make(name):
    return getattr(importlib.import_module("utils.meters"), name)()
""",
    "utils/engine.py": """import torch
from utils.losses import total_loss


def evaluate(model, loader):
    model.eval()
    outs = []
    for x, y in loader:
        outs.append(model(x.cuda()))
    return torch.cat(outs)


class Trainer:
    def __init__(self, model, optimizer, meter):
        self.model, self.optimizer, self.meter = model, optimizer, meter

    def fit(self, loader, epochs):
        for epoch in range(epochs):
            for x, y in loader:
                loss = total_loss(self.model, x.cuda(), y.cuda())
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.meter.record(loss)
""",
    "utils/losses.py": """import torch.nn.functional as F


def total_loss(model, x, y):
    return F.cross_entropy(model(x), y)
""",
    "models/net.py": """import torch


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(64, 10)

    def forward(self, x):
        return self.layer(x)
""",
}
#: the same files where the method that keeps is another, and keeps nothing
HARMLESS = {
    **FILES,
    "utils/meters.py": FILES["utils/meters.py"].replace("self.history.append(value)", "pass").replace(
        "+= value", "+= value.item()"
    ),
}  # fmt: skip


def found(folder: Path, projects: dict[str, dict[str, str]], meters: str, packages: bool) -> dict[str, set[object]]:
    """What is found in each project, by its place in it."""
    for name, files in projects.items():
        for path, text in files.items():
            target = folder / name / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text.replace("{meters}", meters))
            if packages and "/" in path:
                (target.parent / "__init__.py").touch()
    (folder / ".git").mkdir()
    result = memlint.lint([folder], isolated=True)
    assert not result.failures
    return {
        name: {
            (Path(one.path).relative_to(folder / name), one.line, one.code, one.severity, one.confidence, one.message)
            for one in result.findings
            if Path(one.path).is_relative_to(folder / name)
        }
        for name in projects
    }


@pytest.mark.parametrize("packages", [False, True], ids=["plain folders", "packages"])
@pytest.mark.parametrize(
    "meters", ["meters import make", "registry import make"], ids=["by imports", "by the name of a method"]
)
def test_each_is_found_what_it_is_found_alone(tmp_path: Path, meters: str, packages: bool) -> None:
    projects = {f"{letter}/project" if letter == "c" else letter: FILES for letter in "abcdefghijkl"}
    projects["h"] = HARMLESS
    alone = found(tmp_path / "alone", {"a": FILES}, meters, packages)["a"]
    harmless = found(tmp_path / "harmless", {"h": HARMLESS}, meters, packages)["h"]
    assert {code for _, _, code, *_ in alone} == {"MEM101", "MEM102", "MEM201"}
    assert {code for _, _, code, *_ in harmless} == {"MEM102", "MEM201"}
    together = found(tmp_path / "together", projects, meters, packages)
    assert together == {**dict.fromkeys(projects, alone), "h": harmless}
