"""The state of a simulation is carried from step to step: without parameters, nothing of it has a graph."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

OF_GRAPHS = {"MEM101", "MEM102", "MEM103"}
WORLD = """
import torch
import torch.nn.functional as F
from torch import nn


def life(board):
    near = sum(torch.roll(board, (dy, dx), (-2, -1)) for dy in (-1, 0, 1) for dx in (-1, 0, 1) if (dy, dx) != (0, 0))
    return ((near == 3) | ((board == 1) & (near == 2))).float()


class World:
    def __init__(self, n, device, dynamics=None):
        self.pos, self.vel = torch.randn(n, 3, device=device), torch.zeros(n, 3, device=device)
        self.mass, self.kernel = torch.rand(n, 1, device=device), torch.ones(1, 1, 3, 3, device=device) / 9
        self.board, self.energy, self.returns = torch.rand(512, 512, device=device), 0.0, 0
        self.history = []
        self.dynamics = dynamics

    def forces(self):
        diff = self.pos[None] - self.pos[:, None]
        return (self.mass * diff / (diff.norm(dim=-1, keepdim=True) + 1e-3) ** 3).sum(1)

    def step(self, action):
        {step}
        return self.pos


def main(steps):
    world = World(1000, "cuda")
    policy = nn.Linear(3, 3).cuda()
    optimizer = torch.optim.Adam(policy.parameters())
    seen = world.pos
    for _ in range(steps):
        dist = torch.distributions.Normal(policy(seen), 1.0)
        action = dist.sample()
        seen = world.step(action)
        loss = -(dist.log_prob(action) * seen).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    main(100_000)
"""


@pytest.mark.parametrize(
    "step",
    [
        "self.pos = self.pos + 0.01 * self.vel",
        "self.vel = self.vel + 0.01 * self.forces()\n        self.pos = self.pos + 0.01 * self.vel",
        "self.vel = 0.9 * self.vel + 0.1 * action\n        self.pos = torch.cat([self.pos[:, :1], self.vel[:, 1:]], 1)",
        "self.pos, self.vel = torch.stack([self.pos + self.vel, self.vel * 0.99])",
        "self.board = life(self.board)",
        "self.board = F.conv2d(self.board[None, None], self.kernel, padding=1)[0, 0]",
        "self.energy = self.energy + 0.5 * (self.mass * self.vel**2).sum()",
        "self.returns = self.returns * 0.99 + (self.pos.abs() < 0.2).float()",
        "self.history.append(self.pos.mean(0))",
        "for _ in range(4):\n            self.pos = self.pos + 0.0025 * self.vel",
    ],
)
def test_no_graph_is_claimed(tmp_path: Path, step: str) -> None:
    assert not OF_GRAPHS & set(codes_in(tmp_path, WORLD.format(step=step)))


@pytest.mark.parametrize(
    "step",
    ["self.pos = self.pos + self.dynamics(self.pos)", "self.vel = 0.9 * self.vel + self.dynamics(self.pos)"],
)
def test_one_of_learned_dynamics_is(tmp_path: Path, step: str) -> None:
    text = WORLD.format(step=step).replace('"cuda")', '"cuda", nn.Linear(3, 3).cuda())').replace("-(dist", "(dist")
    text = text.replace("        loss = (dist.log_prob(action) * seen).mean()\n", "        continue\n")
    assert OF_GRAPHS & set(codes_in(tmp_path, text))
