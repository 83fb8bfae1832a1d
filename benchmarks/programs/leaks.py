"""Leaks that memlint finds, each with a reading of the allocator at the top of its loop that memlint has no part in.

python benchmarks/programs/leaks.py --leak losses --device cuda --read
"""

from __future__ import annotations

import argparse
import json

import torch
from torch import nn

STEPS = 40
readings: list[int] = []
reading = False


def read() -> None:
    """What live tensors asked for, as the allocator counts it."""
    if reading:
        readings.append(torch.cuda.memory_stats()["requested_bytes.all.current"])


def losses(device: torch.device) -> None:
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 1)).to(device)
    model.eval()
    kept = []
    for _ in range(STEPS):
        read()
        loss = model(torch.randn(64, 256, device=device)).square().mean()
        kept.append(loss)


def convolutions(device: torch.device) -> None:
    model = nn.Sequential(nn.Conv2d(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 8, 3)).to(device)
    model.eval()
    total = 0.0
    for _ in range(STEPS):
        read()
        out = model(torch.randn(8, 3, 32, 32, device=device))
        total += out.square().mean()


def metric(device: torch.device) -> None:
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 16)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    kept = []
    for _ in range(STEPS):
        read()
        out = model(torch.randn(64, 256, device=device))
        loss = out.square().mean()
        error = (out - 1).abs().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        kept.append(error)


def hidden(device: torch.device) -> None:
    cell = nn.GRUCell(256, 256).to(device)
    state = torch.zeros(64, 256, device=device)
    for _ in range(STEPS):
        read()
        state = cell(torch.randn(64, 256, device=device), state)


LEAKS = {"losses": losses, "convolutions": convolutions, "metric": metric, "hidden": hidden}


def main() -> None:
    global reading
    parser = argparse.ArgumentParser()
    parser.add_argument("--leak", choices=LEAKS, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--read", action="store_true")
    args = parser.parse_args()
    reading = args.read
    LEAKS[args.leak](torch.device(args.device))
    print(json.dumps(readings))


if __name__ == "__main__":
    main()
