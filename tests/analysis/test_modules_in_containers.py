"""Containers of modules that are handed to another function: what runs there is the member that stands at the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

SOURCE = """
import torch
from torch import nn


class Boxes(nn.Module):
    def forward(self, outputs):
        return [{{"boxes": one}} for one in outputs]


class Counts(nn.Module):
    def forward(self, outputs):
        found = []
        for one in outputs:
            found.append({{"area": one.sum().item(), "png": bytes(3)}})
        return found


class Keeper:
    def __init__(self):
        self.predictions = []

    def update(self, predictions):
        self.predictions += predictions


@torch.no_grad()
def evaluate(model: nn.Module, post, loader):
    keeper = Keeper()
    for x, _ in loader:
        outputs = model(x.to("cuda"))
        keeper.update(post[{key}](outputs))
    return keeper


def build(with_counts):
    post = {{"boxes": Boxes()}}
    if with_counts:
        post["counts"] = Counts()
    return post


def main(model: nn.Module, loader, with_counts):
    model.to("cuda")
    evaluate(model, {post}, loader)
"""


@pytest.mark.parametrize(
    ("key", "post", "codes"),
    [
        pytest.param('"boxes"', "build(with_counts)", ["MEM104"], id="a member that gives tensors"),
        pytest.param('"counts"', "build(with_counts)", [], id="a member that gives numbers"),
        pytest.param('"boxes"', "build(False)", ["MEM104"], id="the only member, which gives tensors"),
        pytest.param("0", "[Boxes(), Counts()]", ["MEM104"], id="of a list, one that gives tensors"),
        pytest.param("1", "[Boxes(), Counts()]", [], id="of a list, one that gives numbers"),
        pytest.param('"any"', "{name: Counts() for name in loader}", [], id="all of a class that gives numbers"),
    ],
)
def test_the_member_at_a_key_is_what_runs(tmp_path: Path, key: str, post: str, codes: list[str]) -> None:
    assert codes_in(tmp_path, SOURCE.format(key=key, post=post)) == codes
