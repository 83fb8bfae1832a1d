"""Losses that are put into objects of libraries that nothing is known of, and are differentiated out of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

STRANGERS = """
import torch
from torch import nn
from torch.nn import functional as F
from outside import BaseModel, Losses


class Output(BaseModel):
    logits: torch.Tensor

    def loss(self, y):
        return F.cross_entropy(self.logits, y)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(32, 10)

    def forward(self, x):
        {result}


def train(loader):
    net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net.eval()
    for x, y in loader:
        optimizer.zero_grad()
        out = net(x)
        losses = Losses()
        {statement}
        optimizer.step()
"""


@pytest.mark.parametrize(
    "statement",
    [
        "losses.a = F.cross_entropy(out, y); losses.a.backward()",
        "losses.a.b = F.cross_entropy(out, y); losses.a.b.backward()",
        "losses['a'] = F.cross_entropy(out, y); losses['a'].backward()",
        "losses.add(F.cross_entropy(out, y)); losses.total().backward()",
        "losses.put(F.cross_entropy(out, y)); losses.get().backward()",
    ],
)
def test_objects_of_libraries(tmp_path: Path, statement: str) -> None:
    assert codes_in(tmp_path, STRANGERS.format(result="return self.f(x)", statement=statement)) == []


def test_an_object_that_gets_no_graph(tmp_path: Path) -> None:
    statement = "losses.add(F.cross_entropy(x, y)); losses.total().backward(); print(out.argmax(1))"
    source = STRANGERS.format(result="return self.f(x)", statement=statement).replace("optimizer.zero_grad()", "pass")
    assert codes_in(tmp_path, source) == ["MEM201"]


def test_fields_that_are_given_by_name(tmp_path: Path) -> None:
    result = "return Output(logits=self.f(x))"
    assert codes_in(tmp_path, STRANGERS.format(result=result, statement="out.loss(y).backward()")) == []
