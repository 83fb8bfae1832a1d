"""References to one class in a fixed order, whatever the seed of the hashes: two networks of one class with different
layers had the order of a set, and a finding its severity from it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from memlint.analysis.domain.values import MODULE, Ref, V, ordered

LINEAR = Ref("extinstance", "", "torch.nn.Linear", keywords=(("layer", (1, 784)),))
CONV = Ref("extinstance", "", "torch.nn.Conv2d")


def chain(*members: Ref) -> Ref:
    return Ref("extinstance", "", "torch.nn.Sequential", args=tuple(V(MODULE, refs=frozenset({m})) for m in members))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (chain(LINEAR), chain(CONV)),
        (chain(LINEAR, CONV), chain()),
        (LINEAR, LINEAR._replace(keywords=())),
        (Ref("member", "", "", self_=V(MODULE)), Ref("member", "", "", self_=V(MODULE, refs=frozenset({CONV})))),
    ],
)
def test_two_references_to_one_class(first: Ref, second: Ref) -> None:
    # a tuple stands for a set that has its order by the seed
    assert ordered((first, second)) == ordered((second, first))  # type: ignore[arg-type]


def test_references_that_share_their_parts() -> None:
    """Each contains the last one twice: as a tree it has no bound."""
    first = second = LINEAR
    for _ in range(200):
        first, second = chain(first, first), chain(second, second, CONV)
    both = frozenset({first, second})
    assert {*ordered(both)} == both


PROGRAM = """
import torch
from torch import nn


class Reshape(nn.Module):
    def forward(self, x):
        return x.view(x.size(0), 1, 28, 28)


def linear():
    return nn.Sequential(nn.Linear(8, 64), nn.Linear(64, 784), nn.Tanh(), Reshape())


def conv():
    return nn.Sequential(nn.Linear(8, 784), Reshape(), nn.ConvTranspose2d(1, 64, 3), nn.ConvTranspose2d(64, 3, 3))


def main(simple):
    net = linear().cuda() if simple else conv().cuda()
    net.eval()
    z = torch.randn(16, 8).cuda()
    for epoch in range(100):
        print(net(z).detach().cpu())
"""


def test_a_severity_does_not_depend_on_the_seed(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "memlint", "check", "--isolated", "--no-cache", "--exit-zero", "run.py"]
    command += ["--output-format", "concise"]
    shown = {
        subprocess.run(
            command, cwd=tmp_path, env=os.environ | {"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout.partition("\n")[0]
        for seed in "013"
    }
    assert len(shown) == 1
    assert "MEM201" in shown.pop()
