"""``batch[key] = torch.cat([batch[key], other[key]])``: what is made anew with each call does not grow."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

JOINED = """
import random

import torch


def join(batch, other):
    for key in other:
        batch[key] = torch.cat([batch[key], other[key]])
    batch["reward"] = torch.cat([batch["reward"], other["reward"]], dim=0)
    batch["next"] = {{key: torch.cat([batch["next"][key], other["next"][key]]) for key in batch["next"]}}
    return batch


class Both:
    def __init__(self, online, offline):
        self.online, self.offline = online, offline
        self.it, self.other_it = iter(online), iter(offline)

    def get(self, i=0):
        {body}


def train(model, optimizer, both):
    for i in range(100_000):
        batch = both.get(i)
        loss = model(batch["state"].cuda()).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


if __name__ == "__main__":
    net = torch.nn.Linear(8, 8).cuda()
    train(net, torch.optim.SGD(net.parameters(), 0.1), Both([], []))
"""


@pytest.mark.parametrize(
    "body",
    [
        "return join(self.online.sample(), self.offline.sample())",
        "return join(next(self.it), next(self.other_it))",
        "return join(self.online[i], self.offline[i])",
        "return join(dict(self.online[0]), self.offline[0])",
        "one, two = random.sample(self.online, 2)\n        return join(one, two)",
        "batch = {'reward': torch.rand(3, 4), 'next': {}}\n        return join(batch, self.offline.draw(3))",
        "batch = next(self.it)\n        batch['x'] = torch.cat([batch['x'], next(self.other_it)['x']])\n"
        "        return batch",
        "row = self.online[i]\n        row['x'] = torch.cat([row['x'], self.offline[i]['x']])\n        return row",
        "batch = self.online(3)\n        batch.x = torch.cat([batch.x, self.offline(3).x])\n        return batch",
    ],
)
def test_a_batch_of_this_call(tmp_path: Path, body: str) -> None:
    assert "MEM302" not in codes_in(tmp_path, JOINED.format(body=body))


GROWING = """
import torch


def extend(store, x):
    store["rows"] = torch.cat([store["rows"], x])


def further(store, x):
    extend(store, x)


class Bank:
    def __init__(self, store):
        self.store = store
        self.own = {{"rows": torch.zeros(0, 3, 224, 224)}}

    def run(self, loader):
        kept = {{"rows": torch.zeros(0, 3, 224, 224)}}
        for x in loader:
            {call}
        return kept


if __name__ == "__main__":
    Bank({{"rows": torch.zeros(0, 3, 224, 224)}}).run(torch.utils.data.DataLoader([]))
"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("extend(self.store, x)", True),
        ("extend(self.own, x)", True),
        ("extend(kept, x)", True),
        ("further(kept, x)", True),
        ("further(self.own, x)", True),
        ("extend({'rows': x}, x)", False),
        ("one = {'rows': x}\n            further(one, x)", False),
    ],
)
def test_an_object_that_a_caller_keeps(tmp_path: Path, call: str, expected: bool) -> None:
    assert ("MEM302" in codes_in(tmp_path, GROWING.format(call=call))) is expected
