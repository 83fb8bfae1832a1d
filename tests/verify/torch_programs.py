"""Programs that need torch are run by a Python that has it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from torch_forks import forks
from torch_python import torch_python

ROOT = Path(__file__).resolve().parents[2]

#: 9,216 B of an output's graph stay with each step; the list of `evaluate` is emptied each time
LEAK = """\
import torch
from torch import nn


def train(model, optimizer, batches):
    kept = []
    for x, y in batches:
        optimizer.zero_grad()
        loss = nn.functional.mse_loss(model(x), y)
        loss.backward()
        optimizer.step()
        kept.append(model(x))
        print(f"step {len(kept)}")
    return len(kept)


def main():
    model = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 8))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    batches = [(torch.randn(32, 64), torch.randn(32, 8)) for _ in range(40)]
    for _ in range(2):
        train(model, optimizer, batches)


main()
"""


def memlint(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """memlint on its own command line."""
    return subprocess.run(
        [sys.executable, "-m", "memlint", *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def verify(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return memlint("verify", *arguments, "--python", forks(torch_python()), cwd=cwd)
