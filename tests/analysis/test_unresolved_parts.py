"""Forwards that give a dictionary, and have its members from parts of their module that are not resolved."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

NETS = """
import torch
from torch import nn
from theirs import Encoder, collate


class Pair(Encoder):
    def __init__(self, words):
        super().__init__(words)
        self.embedder = words

    def forward(self, first, second):
        return self.embedder(first) * self.embedder(second)


class Plain(nn.Module):
    def forward(self, first, second):
        return first * second


class Tasks(nn.Module):
    def __init__(self, words):
        super().__init__()
        self.encoder = Encoder(words)
        self.pair = Pair(words)
        self.plain = Plain()
        self.heads = words.heads

    def forward(self, task=None, first=None, second=None, label=None):
        out = {{}}
        {body}
        out["logits"] = logits
        return out


def build(words):
    return Tasks(words).cuda()
"""
EVALUATE = """
from nets import build


def evaluate(model, tasks, iterator):
    model.eval()
    for task in tasks:
        found = []
        for batch in iterator(task.data):
            out = {called}(task, **batch)
            best, _ = out["logits"].max(dim=1)
            found += list(best.data.cpu().numpy())
        print(found)


def main(words, tasks, iterator):
    model = build(words)
    evaluate(model, tasks, iterator)


main(*input())
"""


@pytest.mark.parametrize("called", ["model", "model.forward"])
@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("logits = self.encoder(first)", True),
        ("logits = self.pair(first, second)", True),
        ("logits = self.heads[task.name](first)", True),
        ('head = getattr(self, "%s_head" % task.name)\n        logits = head(first)', True),
        ('logits = getattr(self, f"{task.name}_head")(first)', True),
        ("logits = self.plain(first, second)", False),
        ("logits = collate(first, second)", False),
        ("logits = task.join(first, second)", False),
        ("with torch.no_grad():\n            logits = self.encoder(first)", False),
        ('with torch.no_grad():\n            logits = getattr(self, f"{task.name}_head")(first)', False),
    ],
)
def test_an_evaluation_of_a_forward_that_gives_a_dictionary(
    tmp_path: Path, called: str, body: str, found: bool
) -> None:
    (tmp_path / "nets.py").write_text(NETS.format(body=body))
    (tmp_path / "evaluate.py").write_text(EVALUATE.format(called=called))
    codes = {one.code for one in memlint.lint([tmp_path], isolated=True).findings}
    assert codes == ({"MEM201"} if found else set())
