"""Tuples and dictionaries with a graph that a place keeps: until a backward comes for them, or for good."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

AGENT = """
from collections import namedtuple
import torch
from torch import nn

Saved = namedtuple("Saved", ["log_prob", "entropy"])


class Agent:
    def __init__(self):
        self.net = nn.Linear(32, 10)
        self.optimizer = torch.optim.Adam(self.net.parameters())
        self.memory = []

    def act(self, state):
        choice = torch.distributions.Categorical(logits=self.net(state))
        action = choice.sample()
        log_prob, entropy = choice.log_prob(action), choice.entropy()
        self.memory.append({record})
        return action.item()

    def learn(self):
        loss = 0
        for one in self.memory:
            loss = loss - {member}
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.memory.clear()


def main(env):
    agent = Agent()
    for episode in range(100):
        state, done = env.reset(), False
        while not done:
            state, reward, done, _ = env.step(agent.act(state))
        {learn}
"""


@pytest.mark.parametrize(
    ("record", "member"),
    [
        ("(log_prob, entropy)", "one[0]"),
        ("Saved(log_prob, entropy)", "one.log_prob"),
        ('{"log_prob": log_prob, "entropy": entropy}', 'one["log_prob"]'),
    ],
)
def test_memories_of_agents(tmp_path: Path, record: str, member: str) -> None:
    source = AGENT.replace("{record}", record).replace("{member}", member)
    assert codes_in(tmp_path, source.replace("{learn}", "agent.learn()")) == []
    assert "MEM102" in codes_in(tmp_path, source.replace("{learn}", "print(len(agent.memory))"))


def test_members_that_are_paired(tmp_path: Path) -> None:
    """In eval mode, too: what the agent keeps of its model goes into the backward."""
    source = AGENT.replace("{record}", "(log_prob, entropy)").replace("{learn}", "agent.learn()")
    source = source.replace("for one in self.memory", "for one, weight in zip(self.memory, range(100))")
    source = source.replace("self.net = nn.Linear(32, 10)", "self.net = nn.Linear(32, 10).eval()")
    assert codes_in(tmp_path, source.replace("{member}", "one[0] * weight")) == []
    assert codes_in(tmp_path, source.replace("{member}", "weight")) != []


ROLLOUTS = """
import torch


def rollout(env, net):
    steps, state = [], env.reset()
    for _ in range(100):
        choice = torch.distributions.Categorical(logits=net(state))
        action = choice.sample()
        state, reward, done, _ = env.step(action.item())
        steps.append({"log_prob": choice.log_prob(action), "reward": reward})
    return steps


def main(env, net):
    optimizer = torch.optim.Adam(net.parameters())
    for episode in range(100):
        batch = [rollout(env, net) for _ in range(4)]
        loss = -sum(step["log_prob"] * step["reward"] for steps in batch for step in steps)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_records_that_a_caller_trains_by(tmp_path: Path) -> None:
    assert codes_in(tmp_path, ROLLOUTS) == []


HISTORY = """
import torch


def train(model, loader, optimizer):
    history = []
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append({"loss": loss, "size": len(x)})
    return len(history)
"""


def test_records_that_are_kept_beyond_their_backward(tmp_path: Path) -> None:
    assert codes_in(tmp_path, HISTORY) == ["MEM102"]
