"""Which members of what is stored are cut."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fixed_programs import findings

PAIRS = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x):
        return torch.relu(self.layer(x))

def augmented(samples, network: Net):
    network.eval()
    pairs = []
    for sample in samples:
        pairs.append({stored})
    return pairs

def tasks(shots):
    for number, shot in enumerate(shots):
        yield shot, number

def main(shots):
    network = Net()
    for image, label in augmented(list(tasks(shots)), network):
        print(image.shape, label + 1)
"""


@pytest.mark.parametrize("pair", ["({image}, {label})", '{{"image": {image}, "label": {label}}}'])
def test_what_comes_in_beside_a_graph_may_be_a_number(pair: str, tmp_path: Path) -> None:
    image = "network(sample[0]).squeeze()"
    text = PAIRS.format(stored=pair.format(image=image, label="sample[1]"))
    (found,) = findings(tmp_path, text, "MEM102")
    assert found.fix is not None and found.fix.title == f"detach `{image}`"


STORED = """
import torch
from torch import nn
from torch.nn import functional as F

class Meter:
    def __init__(self):
        self.kept = []

    def add(self, what):
        self.kept.append(what)

    def add_all(self, what):
        self.kept.extend(what)

def train(loader, optimizer):
    model = nn.Linear(8, 8)
    kept, meter = [], Meter()
    for x, y in loader:
        out = model(x)
        parts = out.chunk(2)
        loss = F.mse_loss(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {stored}
    print(len(kept), len(meter.kept))
"""


@pytest.mark.parametrize(
    ("stored", "fixed"),
    [
        ("kept.append(loss)", "kept.append(loss.detach())"),
        ("kept.extend(out)", "kept.extend(out.detach())"),
        ("kept.append([part.sum() for part in parts])", "kept.append([part.sum().detach() for part in parts])"),
        ("kept.extend(part.sum() for part in parts)", "kept.extend(part.sum().detach() for part in parts)"),
        ("kept += [part.sum() for part in parts]", "kept += [part.sum().detach() for part in parts]"),
        ("meter.add(loss)", "meter.add(loss.detach())"),
        ("kept.append(parts)", None),
        ("kept.extend(parts)", None),
        ("kept += parts", None),
        ("kept.append(tuple(part.sum() for part in parts))", None),
        ("kept.append(parts if len(kept) else out)", None),
        ("kept += out.chunk(2) if len(kept) else out.chunk(1)", None),
        ("kept.append([[part, loss] for part in parts])", None),
        ("meter.add(parts)", None),
        ("meter.add_all(parts)", None),
    ],
)
def test_a_list_has_no_detach(stored: str, fixed: str | None, tmp_path: Path) -> None:
    """Its members are cut where they are made, or nothing is."""
    found = [one for code in ("MEM101", "MEM102") for one in findings(tmp_path, STORED.format(stored=stored), code)]
    assert [one.fix is not None for one in found] in ([], [fixed is not None])
    if fixed is not None:
        (tmp_path / "train.py").write_text(STORED.format(stored=stored), encoding="utf-8")
        command = [sys.executable, "-m", "memlint", "train.py", "--isolated", "--fix", "--unsafe-fixes"]
        subprocess.run(command, cwd=tmp_path, capture_output=True, check=False)
        assert (tmp_path / "train.py").read_text(encoding="utf-8") == STORED.format(stored=fixed)


METHOD = """
import torch
from torch import nn

class Trainer:
    def __init__(self):
        self.kept = []
        self.model = nn.Linear(8, 8)

    def step(self, x):
        parts = self.model(x).chunk(2)
        {stored}

def train(loader):
    trainer = Trainer()
    for x, y in loader:
        trainer.step(x)
    print(len(trainer.kept))
"""


@pytest.mark.parametrize(
    ("stored", "fixable"),
    [
        ("self.kept.append(self.model(x))", True),
        ("self.kept.append(parts)", False),
        ("self.kept.extend(parts)", False),
        ("self.kept += parts", False),
    ],
)
def test_a_list_that_a_method_stores(stored: str, fixable: bool, tmp_path: Path) -> None:
    (found,) = findings(tmp_path, METHOD.format(stored=stored), "MEM102")
    assert (found.fix is not None) == fixable
