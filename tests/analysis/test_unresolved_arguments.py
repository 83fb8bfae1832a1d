"""What a helper makes of an argument of which nothing is known: whether it has a graph is unknown, not false."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import findings_in

TEXT = """
import torch
from theirs import Base


class Parts(Base):
    pass


def converted(part):
    scale = torch.ones(3)
    return torch.stack((scale * part[0], scale * part[1]))


def train(loader, optimizer, net):
    total, kept = 0, []
    for x in loader:
        parts = Parts(net(x))
        value = converted({argument}).square().mean()
        {use}
    return total, kept
"""
TRAINED = "total += value\n        optimizer.zero_grad()\n        value.backward()\n        optimizer.step()"


@pytest.mark.parametrize("argument", ["parts[1, 1]", "parts.first", "parts.first.clone()", "parts.pair[1][0]"])
@pytest.mark.parametrize(
    ("use", "expected"),
    [
        (TRAINED, ["MEM101"]),
        (TRAINED.replace("value\n", "value.item()\n"), []),
        ("total += value", []),
        ("kept.append(value)", []),
    ],
    ids=["trained", "trained and cut", "added", "kept"],
)
def test_the_graph_of_what_a_helper_makes_of_it(tmp_path: Path, argument: str, use: str, expected: list[str]) -> None:
    found = findings_in(tmp_path, TEXT.format(argument=argument, use=use))
    assert [one.code for one in found] == expected
