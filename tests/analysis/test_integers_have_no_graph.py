"""Integers, texts, arrays and futures have no graph, whatever they were computed from."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

MODULE = """
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.score = nn.Linear(64, 64)
        self.pool, self.plain = nn.MaxPool1d(2, return_indices=True), nn.MaxPool1d(2)
        self.adaptive = nn.AdaptiveMaxPool1d(8, return_indices=True)
        self.fractional = nn.FractionalMaxPool2d(3, output_ratio=0.5, return_indices=True)
        self.kept = []

    def forward(self, x):
        scores = self.score(x)
        self.kept.append({kept})
        return scores


def train(loader):
    net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for x in loader:
        net(x.cuda()).mean().backward()
        optimizer.step()
        optimizer.zero_grad()


if __name__ == "__main__":
    train(torch.utils.data.DataLoader([]))
"""


@pytest.mark.parametrize(
    "kept",
    [
        "self.pool(scores)[1]",
        "self.adaptive(scores)[1]",
        "self.fractional(scores[None])[1]",
        "F.max_pool1d(scores, 2, return_indices=True)[1]",
        "F.adaptive_max_pool2d(scores[None], 4, return_indices=True)[1]",
        "F.max_pool2d_with_indices(scores[None], 2)[1]",
        "scores.topk(5)[1]",
        "torch.topk(scores, 5).indices",
        "scores.max(dim=-1).indices",
        "scores.max(1)[1]",
        "torch.max(scores, dim=1)[1]",
        "scores.median(dim=1)[1]",
        "scores.mode()[1]",
        "torch.cummax(scores, 0)[1]",
        "torch.sort(scores, descending=True)[1]",
        "scores.argsort(-1)[:, :3]",
        "torch.bincount(scores.argmax(-1).flatten())",
        "torch.nonzero(scores > 0)",
        "torch.argwhere(scores > 0)",
        "torch.where(scores > 0)[0]",
        "(scores * 10).long().unique()",
        "torch.unique(scores.long(), return_inverse=True)[1]",
        "scores.to(torch.int64)",
        "scores.type(torch.LongTensor)",
        "(scores > 0.5).float().mean()",
        "torch.isclose(scores, scores)",
        "torch.multinomial(scores.softmax(-1), 1)",
    ],
)
def test_integers(tmp_path: Path, kept: str) -> None:
    assert not {"MEM101", "MEM102"} & set(codes_in(tmp_path, MODULE.format(kept=kept)))


@pytest.mark.parametrize(
    "kept",
    [
        "self.pool(scores)[0]",
        "self.plain(scores)",
        "F.max_pool1d(scores, 2, return_indices=True)[0]",
        "scores.max(dim=-1).values",
        "scores.median(dim=1)[0]",
        "torch.cummax(scores, 0)[0]",
        "torch.max(scores, scores + 1)",
        "scores.max(scores + 1)",
        "scores // 2",
    ],
)
def test_values_beside_them(tmp_path: Path, kept: str) -> None:
    assert "MEM102" in codes_in(tmp_path, MODULE.format(kept=kept))


@pytest.mark.parametrize("net", ["Pool()", "nn.Sequential(nn.Conv1d(4, 8, 3), Pool())"])
def test_indices_of_pooling_are_kept_on_the_device(tmp_path: Path, net: str) -> None:
    text = f"""
import torch
from torch import nn


class Pool(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool1d(2, return_indices=True)
        self.where = []

    def forward(self, x):
        x, where = self.pool(x)
        self.where.append(where)
        return x


def main(loader):
    net = {net}.cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for batch in loader:
        net(batch["x"].cuda()).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""
    assert codes_in(tmp_path, text) == ["MEM104"]


OTHERS = """
from __future__ import annotations

import asyncio
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor

import numpy as np
import pytorch_lightning as pl
import torch
from torch import nn


class Net(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net, self.pool, self.kept = nn.Linear(8, 100), ThreadPoolExecutor(2), []

    def training_step(self, batch, batch_idx):
        return self.net(batch["x"]).logsumexp(-1).mean()

    def read(self, name):
        return torch.load(name, map_location="cpu")

    def validation_step(self, batch, batch_idx):
        {body}

    def keep(self, text: str, names: list[str], number: float, array: np.ndarray, maybe: str | None):
        self.kept.append(text)
        self.kept.append(names)
        self.kept.append(number)
        self.kept.append(array)
        self.kept.append(maybe)

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())


if __name__ == "__main__":
    loader = torch.utils.data.DataLoader([])
    pl.Trainer().fit(Net(), loader, loader)
"""


@pytest.mark.parametrize(
    "body",
    [
        "self.kept.append(self.pool.submit(self.read, batch['name']))",
        "with ProcessPoolExecutor() as pool:\n            self.kept.append(pool.submit(self.read, 'a'))",
        "self.kept.append(asyncio.create_task(self.read(batch['name'])))",
        "self.kept.append(asyncio.get_event_loop().run_in_executor(self.pool, self.read, 'a'))",
        "days: list[str] = batch['days']\n        self.kept.append(days)",
        "labels: np.ndarray = batch['labels']\n        self.kept.append(labels)",
        "self.kept.extend(str(name) for name in batch['names'])",
        "for name in batch['names']:\n            self.kept.append(f'{name}: {batch_idx}')",
        "self.keep(batch['a'], batch['b'], batch['c'], batch['d'], batch['e'])",
        "self.kept.append(' '.join(batch['words']))",
        "self.kept.append(np.asarray(self.net(batch['x']).detach().cpu()).mean())",
    ],
)
def test_texts_arrays_and_futures(tmp_path: Path, body: str) -> None:
    assert codes_in(tmp_path, OTHERS.format(body=body)) == []
