"""A guard under autocast: what is cast there first has no graph, and is what a later training step gets."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixed_programs import findings, safety

EVALUATES = """
import contextlib

import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def forward(self, x):
        return self.body(x)

{pre}def evaluate(model: Net, loader):
    model.eval()
    total = 0.0
    {inner}
        for x in loader:
            total += model(x).sum().item()
    return total

def rounds(model, loader, optimizer):
    for x in loader:
        loss = model(x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return evaluate(model, loader)

def main(loader, amp):
    model = Net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {context}
    {outer}
        print(rounds(model, loader, optimizer))

main([], True)
"""
AUTOCAST = "with torch.autocast('cuda'):"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, "safe"),
        ({"inner": AUTOCAST}, "safe"),
        ({"outer": AUTOCAST}, "unsafe"),
        ({"context": "amp = torch.autocast('cuda')", "outer": "with amp:"}, "unsafe"),
        ({"context": "cast = torch.autocast", "outer": "with amp:"}, "unsafe"),
        ({"context": "torch.autocast", "outer": "with contextlib.suppress(KeyError):"}, "safe"),
        ({"outer": AUTOCAST, "inner": AUTOCAST}, "unsafe"),
    ],
    ids=["none", "inside", "callers", "variable", "parameter", "another", "both"],
)
def test_an_evaluation_in_a_region_of_its_callers(parts: dict[str, str], expected: str, tmp_path: Path) -> None:
    plain = {"pre": "", "inner": "if loader:", "outer": "if loader:", "context": "pass"}
    assert safety(tmp_path, EVALUATES.format(**plain | parts), "MEM201") == expected


TARGETS = """
import torch
from torch import nn

def train(loader):
    critic = nn.Linear(8, 8).cuda()
    optimizer = torch.optim.SGD(critic.parameters(), lr=0.1)
    for x, y in loader:
        with {region}:
            {before}
            target = critic(y).detach()
            {behind}
        loss = (q - target).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("region", "before", "behind", "mended"),
    [
        ("torch.autocast('cuda')", "pass", "q = critic(x)", False),
        ("torch.autocast('cuda')", "q = critic(x)", "pass", True),
        ("torch.autograd.detect_anomaly()", "pass", "q = critic(x)", True),
    ],
    ids=["behind", "before", "no autocast"],
)
def test_a_network_that_is_trained_in_the_same_region(
    region: str, before: str, behind: str, mended: bool, tmp_path: Path
) -> None:
    """Behind the guard it would be trained with weights that were cast without a graph: its gradients would be lost."""
    text = TARGETS.format(region=region, before=before, behind=behind)
    found = findings(tmp_path, text, "MEM201")
    assert found and any(one.fix is not None for one in found) == mended
