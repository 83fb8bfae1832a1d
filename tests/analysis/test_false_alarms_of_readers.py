"""Programs in which a finding was wrong, each beside one that differs in what makes it right."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

MANY_TERMS = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.alpha = config["alpha"]
        self.users = nn.Embedding(100, 8)
        self.items = nn.Embedding(100, 8)

    def apart(self, one, other, neg=False):
        d = (one - other).pow(2)
        if neg is False:
            found = d.sum(dim=1).mean()
        else:
            found = d.mul(0.5).sum(dim=1).mean()
        return found

    def forward(self, batch):
        u, i, j, nu, ni, nj = batch.unbind(1)
        eu, ei, ej = self.users(u), self.items(i), self.items(j)
        nu, ni, nj = self.users(nu), self.items(ni), self.items(nj)
        k1 = self.apart(eu, nu, False)
        k2 = self.apart(ei, ni, False)
        k3 = self.apart(ej, nj, False)
        k4 = self.apart(nu, ei, False)
        k5 = self.apart(ni, ej, False)
        k6 = self.apart(nj, eu, False)
        a = torch.sum(torch.mul(eu, ei + ej).squeeze()) + torch.sum(torch.mul(nu, eu).squeeze())
        b = torch.sum(torch.mul(ei, eu + ej).squeeze()) + torch.sum(torch.mul(ni, ei).squeeze())
        c = torch.sum(torch.mul(ej, eu + ei).squeeze()) + torch.sum(torch.mul(nj, ej).squeeze())
        self.near = a + b + c
        self.far = -0.5 * (k1 + k2 + k3 + k4 + k5 + k6)
        return (1 - self.alpha) * self.near + self.alpha * self.far


class Engine:
    def __init__(self, config):
        self.net = Net(config)
        self.optimizer = torch.optim.Adam(self.net.parameters())

    def step(self, batch):
        self.optimizer.zero_grad()
        loss = self.net.forward(batch)
        {backward}
        self.optimizer.step()

    def train(self, data):
        total = 0
        for batch in DataLoader(data, batch_size=32):
            self.step(batch)
            total += self.net.far
        print(float(total))


if __name__ == "__main__":
    Engine({{"alpha": 0.5}}).train(torch.randint(0, 100, (640, 6)))
"""
MIXED = """
import torch
from torch.utils.data import DataLoader


def evaluate(model, dataset):
    model.eval()
    rows = []
    for images, targets in DataLoader(dataset, batch_size=8):
        images = images.cuda()
        with torch.no_grad():
            found = model(images)
        for one, other in zip(found, targets):
            rows.append((one[:, 4]{moved}, other.tolist()))
    return rows
"""
WRAPPED = """
import torch
from torch import nn


class Wrapper(nn.Module):
    def __init__(self, model, loss=None):
        super().__init__()
        self.loss = loss
        self.model = model

    def forward(self, parts, labels=None):
        total = 0
        for part in parts:
            loss = self.loss(self.model(part))
            {inside}
            total += loss
        return total, {{"loss": loss}}


class Trainer:
    def __init__(self, model, loader, optimizer):
        self.model, self.loader, self.optimizer = model, loader, optimizer

    def run(self):
        self.model.train()
        shown = 0
        for parts in self.loader:
            total, _ = self.model(parts)
            shown += total.detach().cpu().item()
            other = self.model.model(parts[0]).sum()
            other.backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
        return shown


if __name__ == "__main__":
    wrapper = Wrapper(nn.Linear(4, 4), nn.L1Loss())
    Trainer(wrapper, [], torch.optim.Adam(wrapper.parameters())).run()
"""
NORMED = """
import torch
from torch import nn


class Vectors(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Conv1d(257, 512, kernel_size=5)
        self.norm = nn.{norm}

    def forward(self, x):
        x = self.norm(torch.stft(x, 512, return_complex=False)[..., 0]).detach()
        return self.first(x)
"""
STATUS = """
class Base:
    def Set_Require_Grad_Status(self, net, status):
        for p in net.parameters():
            p.requires_grad = status
"""
FROZEN = """
import torch
from base import Base


class Model(Base):
    def __init__(self, make, options):
        self.drawn = make(options).cuda()
        self.critic = make(options).cuda()
        self.plays = options["weight"] > 0
        self.draws = torch.optim.Adam(self.drawn.parameters())
        self.judges = torch.optim.Adam(self.critic.parameters())

    def step(self, x, y):
        made = self.drawn(x)
        loss = self.critic(y).mean() - self.critic(made.detach()).mean()
        self.judges.zero_grad()
        loss.backward()
        self.judges.step()
        {freeze}
        real = self.critic(y).detach()
        loss = (self.critic(made) - real.mean()).mean()
        self.draws.zero_grad()
        loss.backward()
        self.draws.step()
"""
SCRIPTED = """
import numpy as np
import torch


class Predictor:
    def __init__(self, path, boxes):
        self.boxes = boxes
        self.model = self.load(path)

    def load(self, path):
        model = torch.jit.load(path)
        model.eval()
        return model

    def predict(self):
        points = []
        for box in self.boxes:
            output = self.model(torch.from_numpy(box))
            points.append(output{cut}.numpy())
        return np.concatenate(points, axis=0)


if __name__ == "__main__":
    for _ in range(100):
        print(Predictor("m.pt", [np.zeros((1, 4))]).predict())
"""


def found(tmp_path: Path, code: str, text: str) -> list[str]:
    """The severities of what is found of one code."""
    (tmp_path / "train.py").write_text(text)
    result = memlint.lint([tmp_path])
    assert not result.failures
    return [one.severity for one in result.findings if one.code == code]


@pytest.mark.parametrize(("backward", "severity"), [("loss.backward()", "warning"), ("print(loss)", "error")])
def test_a_loss_of_many_terms_frees_each_of_them(tmp_path: Path, backward: str, severity: str) -> None:
    assert found(tmp_path, "MEM101", MANY_TERMS.format(backward=backward)) == [severity]


@pytest.mark.parametrize(("moved", "expected"), [(".cpu()", False), ("", True)])
def test_numbers_beside_tensors_lie_nowhere(tmp_path: Path, moved: str, expected: bool) -> None:
    assert bool(found(tmp_path, "MEM104", MIXED.format(moved=moved))) is expected


@pytest.mark.parametrize(("inside", "expected"), [("loss.backward()", False), ("pass", True)])
def test_a_forward_that_goes_backward_wants_its_graph(tmp_path: Path, inside: str, expected: bool) -> None:
    assert bool(found(tmp_path, "MEM202", WRAPPED.format(inside=inside))) is expected


@pytest.mark.parametrize(
    ("norm", "expected"),
    [("InstanceNorm1d(257)", False), ("InstanceNorm1d(257, affine=True)", True), ("BatchNorm1d(257)", True)],
)
def test_a_layer_without_parameters_records_nothing(tmp_path: Path, norm: str, expected: bool) -> None:
    assert bool(found(tmp_path, "MEM202", NORMED.format(norm=norm))) is expected


@pytest.mark.parametrize(
    ("freeze", "expected"),
    [("if self.plays:\n            self.Set_Require_Grad_Status(self.critic, False)", False), ("pass", True)],
)
def test_a_network_that_may_be_frozen(tmp_path: Path, freeze: str, expected: bool) -> None:
    (tmp_path / "base.py").write_text(STATUS)
    assert bool(found(tmp_path, "MEM202", FROZEN.format(freeze=freeze))) is expected


@pytest.mark.parametrize(("cut", "expected"), [("", False), (".detach()", True)])
def test_what_numpy_takes_in_a_function_has_no_graph_for_its_callers(tmp_path: Path, cut: str, expected: bool) -> None:
    assert bool(found(tmp_path, "MEM201", SCRIPTED.format(cut=cut))) is expected
