"""A call that runs several networks, the members of a chain or one of two: it is as large as the largest of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from networks import evaluating, severities

DEFINED = """
class Reshape(nn.Module):
    def forward(self, x):
        return x.view(x.size(0), -1)

class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 16)
    def forward(self, x):
        return self.layer(x)

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(64, 64, 3)
    def forward(self, x):
        return self.layer(x).relu()

def rows():
    return nn.Sequential(nn.Linear(8, 64), nn.Tanh(), Reshape())

def maps():
    return nn.Sequential(nn.Linear(8, 784), Reshape(), nn.ConvTranspose2d(1, 64, 3), nn.ConvTranspose2d(64, 3, 3))
"""


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        # all members are small
        ("nn.Sequential(nn.Linear(8, 64), nn.Tanh(), Head())", "note"),
        ("nn.Sequential(Head(), nn.ReLU(), nn.Linear(16, 2))", "note"),
        ("rows()", "note"),
        # the last one alone is
        ("nn.Sequential(Block(), nn.Flatten(), nn.Linear(64, 10))", "warning"),
        ("nn.Sequential(nn.Conv2d(3, 64, 3), Head())", "warning"),
        ("nn.Sequential(nn.Conv2d(3, 64, 3), nn.Flatten(), nn.Linear(64, 10), nn.Tanh(), Reshape())", "warning"),
        ("maps()", "warning"),
        ("rows() if loader else maps()", "warning"),
        ("maps() if loader else rows()", "warning"),
    ],
)
def test_the_largest_counts(tmp_path: Path, made: str, expected: str) -> None:
    assert severities(tmp_path, evaluating(DEFINED, made)) == [expected]
