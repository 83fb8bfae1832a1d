"""Bugs planted in a working program by benchmarks/planted_bugs.py are found."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import pages
import pytest

import memlint

PROGRAM = """
import torch
from torch import nn
from torchvision.models import resnet18


def train(loader, epochs):
    model = resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    losses, total, smooth = [], 0, 0
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss.item()
        losses.append(loss.detach())
        smooth = (0.9 * smooth + loss).detach()
    evaluate(model, loader)
    with torch.no_grad():
        return model(x.cuda()).argmax(1), sum(losses), total, smooth


@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    for x, y in loader:
        print((model(x.cuda()).argmax(1) == y.cuda()).float().mean())


if __name__ == "__main__":
    train(torch.utils.data.DataLoader([], 8), 3)
"""


@pytest.fixture(scope="module")
def benchmark_module() -> ModuleType:
    return pages.script(pages.ROOT / "benchmarks/planted_bugs.py")


@pytest.mark.parametrize(
    ("operator", "changed", "codes"),
    [
        ("unguard", ["if True:", "#"], ["MEM201", "MEM201"]),
        ("item", ["total += loss"], ["MEM101"]),
        ("detach", ["losses.append(loss)", "smooth = (0.9 * smooth + loss)"], ["MEM102", "MEM103"]),
        ("retain", ["loss.backward(retain_graph=True)"], ["MEM112"]),
    ],
)
def test_a_planted_bug_is_found(
    tmp_path: Path, benchmark_module: ModuleType, operator: str, changed: list[str], codes: list[str]
) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    assert not memlint.lint([tmp_path], isolated=True).findings
    places = benchmark_module.plant(tmp_path, operator)
    lines = (tmp_path / "train.py").read_text().splitlines()
    assert sorted(lines[place.line - 1].strip() for place in places) == sorted(changed)
    assert len(lines) == len(PROGRAM.splitlines())
    found = memlint.lint([tmp_path], isolated=True, min_confidence="low").findings
    assert sorted(one.code for one in found) == codes
    assert all(any(place.first <= one.line <= place.last for place in places) for one in found)
