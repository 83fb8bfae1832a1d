"""Predictions and targets that broadcasting makes a square of: which shapes are proven, and which are not."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint import Finding

PROGRAM = """
import numpy as np
import pandas as pd
import torch
import torch.nn.functional as F
from sklearn.datasets import make_regression
from sklearn.model_selection import train_test_split
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
from library import unknown


class Net(nn.Module):
    def __init__(self, width, outputs=1, squeeze=False):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, width), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(width, outputs)

    def forward(self, x):
        x = self.body(x)
        return self.head(x)


class Rows(Dataset):
    def __init__(self, x, y):
        self.x, self.y = x, y

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return self.x[index], self.y[index]


def same(value):
    return value * 2


def train(given, n):
    {body}
    loss.backward()
"""
X = "x = torch.randn(n, 8)"
Y = "y = torch.randn(64)"
NET = "net = Net(32)"
LOADED = "for x, y in DataLoader(TensorDataset(torch.randn(64, 8), torch.randn(64)), batch_size=16):"

COUNTED = LOADED.replace("x, y", "i, (x, y)").replace("DataLoader(", "enumerate(DataLoader(").replace("6):", "6)):")


def found(tmp_path: Path, *body: str) -> list[Finding]:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(PROGRAM.format(body="\n    ".join(body)))
    result = memlint.lint([tmp_path], isolated=True, preview=True, select=["MEM406"])
    assert not result.failures
    return list(result.findings)


@pytest.mark.parametrize(
    "body",
    [
        (X.replace("n,", "64,"), Y, NET, "loss = F.mse_loss(net(x), y)"),
        (X.replace("n,", "64,"), Y, NET, "loss = nn.MSELoss()(input=net(x), target=y)"),
        (X.replace("n,", "64,"), Y, NET, "loss_of = nn.SmoothL1Loss()", "loss = loss_of(y, net(x))"),
        (X.replace("n,", "64,"), Y, NET, "loss = (net(x) - y).pow(2).mean()"),
        (X.replace("n,", "64,"), Y, NET, "loss = torch.abs(y - torch.sigmoid(net(x))).mean()"),
        (X.replace("n,", "64,"), Y, "net = Net(16, outputs=1).to('cuda')", "loss = F.l1_loss(net(x), y.cuda())"),
        (X.replace("n,", "64,"), NET, "y = x.sum(1)", "loss = F.mse_loss(net(x), same(y))"),
        (NET, LOADED, "    out = net(x.float())", "    loss = F.mse_loss(out, y)"),
        (NET, LOADED.replace("x, y", "batch"), "    x, y = batch", "    loss = F.mse_loss(net(x), y)"),
        (NET, LOADED.replace("TensorDataset", "Rows"), "    loss = F.mse_loss(net(x), y)"),
        (NET, COUNTED,
         "    loss = F.mse_loss(net(x), y)"),
        ("a, b = make_regression(n_samples=500)", "a, c, b, d = train_test_split(a, b)", NET,
         "loss = F.mse_loss(net(torch.tensor(a).float()), torch.from_numpy(b).float())"),
        ("t = pd.read_csv('a.csv').dropna()", "x = torch.tensor(t[['a', 'b']].values)",
         "y = torch.Tensor(t['c'].values)", NET, "loss = F.huber_loss(net(x), y)"),
        (NET, "x = given.view(-1, 8)", "y = given.max(1)[0].view(-1)", "loss = F.mse_loss(net(x), y)"),
    ],
)  # fmt: skip
def test_a_square_of_the_batch(tmp_path: Path, body: tuple[str, ...]) -> None:
    (finding,) = found(tmp_path, *body)
    assert (finding.severity, finding.growth.kind, finding.confidence) == ("note", "peak", "high")


@pytest.mark.parametrize(
    "body",
    [
        pytest.param((X, Y, NET, "loss = F.mse_loss(net(x).squeeze(), y)"), id="squeezed"),
        pytest.param((X, Y, NET, "loss = F.mse_loss(net(x)[:, 0], y)"), id="the column"),
        pytest.param((X, Y, NET, "loss = F.mse_loss(net(x).view(-1), y)"), id="flat"),
        pytest.param((X, Y, NET, "loss = F.mse_loss(net(x), y[:, None])"), id="both with a column"),
        pytest.param((X, "y = torch.randn(64, 1)", NET, "loss = F.mse_loss(net(x), y)"), id="targets with a column"),
        pytest.param((X, "y = torch.randn(n)", "net = Net(32, n)", "loss = F.mse_loss(net(x), y)"), id="outputs"),
        pytest.param((X, Y, "net = Net(32, 4)", "loss = F.mse_loss(net(x), y)"), id="several outputs"),
        pytest.param((X, "y = torch.randn(*given)", NET, "loss = F.mse_loss(net(x), y)"), id="no known target"),
        pytest.param((X, "y = torch.randn(n)", NET, "loss = F.mse_loss(net(x), y)"), id="may be a shape"),
        pytest.param((X, "y = given", NET, "loss = F.mse_loss(net(x), y)"), id="a parameter"),
        pytest.param((Y, NET, "loss = F.mse_loss(net(given), y)"), id="no known input"),
        pytest.param((Y, NET, "x = unknown()", "loss = F.mse_loss(net(x), y)"), id="no known callee"),
        pytest.param((X, Y, "net = unknown(1)", "loss = F.mse_loss(net(x), y)"), id="no known module"),
        pytest.param((X, Y, NET, "net.head = unknown()", "loss = F.mse_loss(net(x), y)"), id="another head"),
        pytest.param((X, Y, NET, "if given:", "    net = given", "loss = F.mse_loss(net(x), y)"), id="on one path"),
        pytest.param((X, Y, NET, "out = net(x)", "if given:", "    out = out.squeeze(1)", "loss = F.mse_loss(out, y)"),
                     id="squeezed on one path"),
        pytest.param((X, Y, NET, "out = net(x)", "for _ in given:", "    loss = F.mse_loss(out, y)",
                      "    out = out.squeeze(1)"), id="in the first round"),
        pytest.param(("x = torch.randn(1, 8)", Y, NET, "loss = F.mse_loss(net(x), y)"), id="one sample"),
        pytest.param((X, "y = torch.tensor([1.0])", NET, "loss = F.mse_loss(net(x), y)"), id="one target"),
        pytest.param((X, Y, NET, "loss = F.binary_cross_entropy(net(x), y)"), id="raises"),
        pytest.param((X, Y, NET, "loss = (net(x) * y).mean()"), id="no loss"),
        pytest.param((Y, "loss = ((y[:, None] - y) ** 2).mean()"), id="all pairs"),
        pytest.param((X, Y, NET, "loss = F.mse_loss(net(x), y, *given)"), id="more arguments"),
        pytest.param((NET, LOADED.replace("6)", "6, collate_fn=given)"), "    loss = F.mse_loss(net(x), y)"),
                     id="collated"),
        pytest.param((NET, LOADED.replace("16", "1"), "    loss = F.mse_loss(net(x), y)"), id="batches of one"),
    ],
)  # fmt: skip
def test_what_is_not(tmp_path: Path, body: tuple[str, ...]) -> None:
    assert found(tmp_path, *body) == []


def test_a_literal_shape_of_much(tmp_path: Path) -> None:
    body = ("x = torch.randn(20000, 8)", "y = torch.randn(20000)", NET, "loss = F.mse_loss(net(x), y)")
    (finding,) = found(tmp_path, *body)
    assert finding.severity == "warning"
    assert finding.fix is not None and finding.fix.safety == "display"
