"""A file that is linted alone gets the findings that it has in a run over the whole project: its callers are read."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

STATE = {
    "net.py": """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, batch):
        super().__init__()
        self.rnn = nn.LSTM(8, 256)
        self.hidden = self.start(batch)

    def start(self, batch):
        return torch.zeros(1, batch, 256).cuda(), torch.zeros(1, batch, 256).cuda()

    def forward(self, x):
        out, self.hidden = self.rnn(x, self.hidden)
        return out[-1]
""",
    "train.py": """
import torch
from net import Net


def train(loader):
    model = Net(16).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for epoch in range(10):
        model.hidden = model.start(16)
        for x, y in loader:
            loss = (model(x.cuda()) - y.cuda()).square().mean()
            optimizer.zero_grad()
            loss.backward(retain_graph=True)
            optimizer.step()
""",
}

BUFFER = {
    "net.py": """
import torch
from torch import nn


class Codes(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 64)
        self.register_buffer("mean", torch.zeros(64))

    def forward(self, x):
        code = self.encoder(x)
        self.mean = 0.9 * self.mean + 0.1 * code.mean(0)
        return code
""",
    "train.py": STATE["train.py"]
    .replace("Net(16)", "Codes()")
    .replace("Net", "Codes")
    .replace("        model.hidden = model.start(16)\n", ""),
}

METER = {
    "meters.py": """
class Meter:
    def __init__(self):
        self.total, self.count = 0, 0

    def update(self, value):
        self.total += value
        self.count += 1
""",
    "train.py": """
import torch
from torch import nn
from meters import Meter


def train(loader):
    model, meter = nn.Linear(8, 1).cuda(), Meter()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = (model(x.cuda()) - y.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        meter.update(loss)
""",
}

DISTILLER = {
    "distiller.py": """
import torch
from torch import nn


class Distiller(nn.Module):
    def __init__(self, teacher, student):
        super().__init__()
        self.teacher, self.student = teacher, student

    def forward(self, x):
        known = self.teacher(x)
        out = self.student(x)
        return out, (out - known.detach()).square().mean()
""",
    "train.py": """
import torch
from torch import nn
from distiller import Distiller


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, width, 3), nn.ReLU(), nn.Conv2d(width, 64, 3))

    def forward(self, x):
        return self.layers(x)


def train(loader):
    model = Distiller(Net(512), Net(64)).cuda()
    optimizer = torch.optim.SGD(model.student.parameters(), lr=0.1)
    for x, y in loader:
        out, loss = model(x.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
""",
}

NOVELTY = {
    "novelty.py": """
import torch
from torch import nn


class Novelty(nn.Module):
    def __init__(self):
        super().__init__()
        self.target, self.net = nn.Linear(8, 512), nn.Sequential(nn.Linear(8, 512), nn.ReLU(), nn.Linear(512, 512))

    def loss(self, x):
        return (self.net(x) - self.target(x).detach()).square().mean()

    def reward(self, x):
        error = (self.run(x) - self.target(x)).square().mean(1)
        return error.detach().cpu().numpy()

    def run(self, x):
        return self.net(x)
""",
    "train.py": """
import torch
from novelty import Novelty


def train(env):
    novelty = Novelty().cuda()
    optimizer = torch.optim.Adam(novelty.net.parameters())
    for x in env.states():
        x = torch.as_tensor(x).cuda()
        env.give(novelty.reward(x))
        optimizer.zero_grad()
        novelty.loss(x).backward()
        optimizer.step()
""",
}

PROJECTS = {
    "a state in a forward": (STATE, {"net.py": ["MEM103"], "train.py": []}),
    "a buffer in a forward": (BUFFER, {"net.py": ["MEM103"], "train.py": []}),
    "a network that a caller gives": (DISTILLER, {"distiller.py": ["MEM202"], "train.py": []}),
    "a method of a module": (NOVELTY, {"novelty.py": ["MEM201", "MEM202"], "train.py": []}),
    "a meter": (METER, {"meters.py": [], "train.py": ["MEM101"]}),
}


@pytest.mark.parametrize("name", PROJECTS)
def test_its_findings_are_those_of_the_whole(tmp_path: Path, name: str) -> None:
    files, expected = PROJECTS[name]
    (tmp_path / "pyproject.toml").touch()
    for path, text in files.items():
        (tmp_path / path).write_text(text)
    whole = memlint.lint([tmp_path], isolated=True).findings
    for path, codes in expected.items():
        alone = memlint.lint([tmp_path / path], isolated=True).findings
        assert sorted({one.code for one in alone}) == codes
        assert [(one.line, one.code, one.severity) for one in alone] == [
            (one.line, one.code, one.severity) for one in whole if one.path.endswith(path)
        ]
