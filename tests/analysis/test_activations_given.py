"""Networks that are given the function between their layers: an activation saves no more than what it is given; what
else is called may be anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from networks import evaluating, severities

NET = """
class Coder(nn.Module):
    def __init__(self, hidden, codes=5, activation={default}):
        super().__init__()
        self.codes, self.{held} = codes, activation
        self.first = nn.Linear(784, hidden * 2)
        self.mean = nn.Linear(hidden * 2, codes)
        self.scale = nn.Linear(hidden * 2, codes)
        self.back = nn.Linear(codes, 10)

    def forward(self, x):
        x = self.activation(self.first(x))
        where = torch.distributions.Normal(self.mean(x), F.softplus(self.scale(x)))
        return self.back(where.rsample())
"""


@pytest.mark.parametrize(
    ("default", "held", "made", "severity"),
    [
        ("F.relu", "activation", "Coder(128)", "note"),
        ("torch.tanh", "activation", "Coder(128, activation=F.leaky_relu)", "note"),
        ("None", "activation", "Coder(128, activation=nn.ReLU())", "note"),
        ("None", "activation", "Coder(128, 5, nn.LeakyReLU(0.2))", "note"),
        ("F.relu", "activation", "Coder(args.required)", "warning"),
        ("F.relu", "activation", "Coder(128, activation=library.mix)", "warning"),
        ("F.relu", "activation", "Coder(128, activation=torch.nn.Conv2d(1, 64, 3))", "warning"),
        ("library.mix", "activation", "Coder(128)", "warning"),
        ("None", "activation", "Coder(128)", "warning"),
        ("F.relu", "other", "Coder(128)", "warning"),
    ],
)
def test_an_activation_is_no_layer(tmp_path: Path, default: str, held: str, made: str, severity: str) -> None:
    assert severities(tmp_path, evaluating(NET.format(default=default, held=held), made)) == [severity]
