"""States that a model, or who runs it, keeps from one run to the next: where an evaluation carries their graphs on."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

MODEL = """
import torch
from somewhere import cut
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(3, 4)
        self.hidden = self.begin()

    def begin(self):
        return torch.zeros(1, 8, 4), torch.zeros(1, 8, 4)

    def restart(self):
        self.hidden = self.begin()

    def start_over(self):
        self.restart()

    def forward(self, x):
        out, {state} = self.lstm(x, self.hidden)
        {after}
        return out


def train(net, loader, optimizer):
    for x in loader:
        net.hidden = net.begin()
        loss = net(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


net = Net().cuda()
loader = torch.utils.data.DataLoader(range(9))
train(net, loader, torch.optim.SGD(net.parameters(), lr=0.1))
net.eval()
found = 0
{guard}
for x in loader:
    {before}
    found += net(x).argmax().item()
print(found)
"""


def carried(tmp_path: Path, source: str) -> list[tuple[int, str]]:
    (tmp_path / "train.py").write_text(source)
    found = memlint.lint([tmp_path])
    assert not found.failures
    return [(item.line, item.severity) for item in found.findings if item.code == "MEM103"]


def model(**parts: str) -> str:
    given = {"state": "self.hidden", "after": "pass", "guard": "", "before": "pass"}
    return MODEL.format(**{**given, **parts})


def test_an_evaluation_carries_on_what_training_begins_anew(tmp_path: Path) -> None:
    found = carried(tmp_path, model())
    assert found == [(23, "warning")]


@pytest.mark.parametrize(
    "parts",
    [
        {"guard": "torch.set_grad_enabled(False)"},
        {"before": "net.hidden = net.begin()"},
        {"before": "net.hidden = tuple(part.detach() for part in net.hidden)"},
        {"before": "net.restart()"},
        {"before": "net.start_over()"},
        {"before": "cut(net)"},
        {"before": "net = Net()"},
        {"state": "hidden", "after": "self.hidden = tuple(part.detach() for part in hidden)"},
        {"state": "_", "after": "self.hidden = self.begin()"},
    ],
)
def test_what_begins_a_state_anew(tmp_path: Path, parts: dict[str, str]) -> None:
    assert carried(tmp_path, model(**parts)) == []


AGENT = """
import torch
import policies


class Agent:
    def __init__(self, size):
        self.policy = policies.Recurrent(size).cuda()
        self.optimizer = torch.optim.Adam(self.policy.parameters())
        self.hidden = torch.zeros(1, size, device="cuda")
        self.size = size

    def act(self, observation):
        x = torch.tensor(observation).cuda()
        logits, value, hidden = self.policy.forward(x, self.hidden)
        action = torch.distributions.Categorical(logits=logits).sample().cpu().numpy()
        {kept}
        self.hidden = {state}
        return action

    def learn(self, batch):
        logits, value, _ = self.policy.forward(batch["x"], batch["hidden"])
        loss = -(logits * batch["advantage"]).mean() + value.pow(2).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()

    def describe(self):
        return {read}

    {more}


def play(env, agent: Agent):
    observation = env.reset()
    while True:
        observation, done = env.step(agent.act(observation))
        {around}


play(policies.make_env(), Agent(64))
"""


def agent(**parts: str) -> str:
    given = {
        "kept": "self.policy.store(x, value.detach().cpu())",
        "state": "hidden.clone()",
        "read": "self.hidden.shape",
        "more": "",
        "around": "pass",
    }
    return AGENT.format(**{**given, **parts})


@pytest.mark.parametrize("state", ["hidden", "hidden.clone()"])
def test_an_agent_that_acts_on_its_own_state(tmp_path: Path, state: str) -> None:
    assert carried(tmp_path, agent(state=state)) == [(18, "warning")]


@pytest.mark.parametrize(
    "parts",
    [
        {"state": "hidden.detach()"},
        {"state": "hidden.data.clone()"},
        {"state": "torch.zeros_like(hidden)"},
        {"kept": "self.values = value"},
        {"kept": "policies.remember(value)"},
        {"read": "policies.loss(self.hidden)"},
        {"read": "self.hidden"},
        {"read": "2 * self.hidden.mean()"},
        {"more": "def reset(self):\n        self.hidden = torch.zeros(1, self.size)"},
        {"around": "agent.hidden = agent.hidden.detach()"},
        {"around": "agent.hidden = None"},
    ],
)
def test_states_that_are_cut_or_that_may_be_wanted(tmp_path: Path, parts: dict[str, str]) -> None:
    assert carried(tmp_path, agent(**parts)) == []
