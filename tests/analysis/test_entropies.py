"""The entropy of a distribution has the graph of what shapes it: a mean moves a normal one and does not shape it."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

ROLLOUT = """
import torch
from torch import nn
from torch.distributions import Categorical, Laplace, Normal


class Policy(nn.Module):
    def __init__(self, n, m):
        super().__init__()
        self.actor = nn.Sequential(nn.Linear(n, 64), nn.ReLU(), nn.Linear(64, m))
        self.spread = nn.Linear(n, m)
        self.log_std = nn.Parameter(torch.zeros(1, m))

    def forward(self, x):
        mean = self.actor(x)
        return {distribution}


def rollout(env, steps):
    policy = Policy(4, 2).cuda()
    entropy = 0
    state = env.reset()
    for _ in range(steps):
        distribution = policy(torch.as_tensor(state).cuda())
        state, reward, done, _ = env.step(distribution.sample().cpu().numpy())
        entropy += distribution.entropy().mean()
    return state
"""


@pytest.mark.parametrize(
    ("distribution", "memory"),
    [
        ("Normal(mean, self.log_std.exp().expand_as(mean))", "host"),
        ("Laplace(mean, scale=self.log_std.exp())", "host"),
        ("Normal(mean, self.spread(x).exp())", "device-graph"),
        ("Normal(loc=mean, scale=mean.exp())", "device-graph"),
        ("Categorical(logits=mean)", "device-graph"),
    ],
)
def test_what_the_entropies_of_a_rollout_keep(tmp_path: Path, distribution: str, memory: str) -> None:
    (tmp_path / "rollout.py").write_text(ROLLOUT.format(distribution=distribution))
    found = memlint.lint([tmp_path], isolated=True).findings
    (sum_of_graphs,) = [one for one in found if one.code == "MEM101"]
    assert sum_of_graphs.growth.memory == memory
