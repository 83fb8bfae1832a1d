"""What a module does by the mode that its caller put it into."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Linear(8, 8)

    def forward(self, x):
        {forward}

    def decide(self, x):
        return self.step(x)

    def step(self, x):
        if self.training:
            return self.layers(x)
        with torch.no_grad():
            return self.layers(x).argmax(-1)


class Runner:
    def __init__(self):
        self.net = Net().cuda()

    def run(self, loader):
        {mode}
        for x in loader:
            print(self.net(x.cuda()).max().item())
"""

BRANCHES = [
    "return self.layers(x) if self.training else self.decide(x)",
    "if self.training:\n            return self.layers(x)\n        return self.decide(x)",
    "if not self.training:\n            return self.decide(x)\n        return self.layers(x)",
]


def found(tmp_path: Path, **parts: str) -> list[str]:
    (tmp_path / "net.py").write_text(NET.format(**parts))
    result = memlint.lint([tmp_path])
    assert not result.failures
    return [item.code for item in result.findings]


@pytest.mark.parametrize("forward", BRANCHES)
def test_the_side_that_the_mode_chooses(tmp_path: Path, forward: str) -> None:
    guarded = forward.replace("decide", "step")
    assert found(tmp_path, forward=guarded, mode="self.net.eval()") == []
    other = forward.replace("self.training", "not self.training").replace("not not ", "")
    assert found(tmp_path, forward=other.replace("decide", "layers"), mode="self.net.eval()") == ["MEM201"]
    assert found(tmp_path, forward=guarded.replace("self.step", "self.layers"), mode="self.net.eval()") == ["MEM201"]


def test_a_mode_of_ones_own(tmp_path: Path) -> None:
    source = "was = self.net.training\n        self.net.eval()\n        if was:\n            self.net.train()"  # either
    assert found(tmp_path, forward="return self.step(x)", mode="self.net.train(); self.net.eval()") == []
    assert found(tmp_path, forward="return self.layers(x)", mode=source) == ["MEM201"]


CHAIN = """
import torch
from torch import nn


class Windowed(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.window = nn.Parameter(torch.hann_window(width), requires_grad={trains})

    def forward(self, x):
        return torch.fft.rfft(x * self.window).abs()


class Power(nn.Module):
    def __init__(self, by):
        super().__init__()
        self.by = by

    def forward(self, x):
        return x.pow(self.by)


def statistics(dataset, scaler):
    spectrum = nn.Sequential({chain})
    for x, _ in dataset:
        scaler.partial_fit(spectrum(x[None]).detach().numpy())
"""


@pytest.mark.parametrize(
    ("trains", "chain", "codes"),
    [
        ("False", "Windowed(64), Power(2)", []),
        ("False", "Windowed(64), nn.Softplus(), Power(2)", []),
        ("True", "Windowed(64), Power(2)", ["MEM201"]),
        ("False", "Windowed(64), Power(2), nn.Linear(33, 8)", ["MEM201"]),
    ],
)
def test_a_chain_of_modules_records_what_its_members_do(
    tmp_path: Path, trains: str, chain: str, codes: list[str]
) -> None:
    (tmp_path / "statistics_of.py").write_text(CHAIN.format(trains=trains, chain=chain))
    assert [item.code for item in memlint.lint([tmp_path]).findings] == codes


INSIDE = """
import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def _inference(self, x, names):
        for name, score in zip(names, self.body(x)):
            print(name, score.sum().item())

    def forward(self, x, names):
        if self.training:
            return self.body(x)
        self._inference(x, names)
        return None
"""

OUTSIDE = """
import torch
from net import Detector


def run(loader):
    detector = Detector().eval()
    for x, names in loader:
        detector._inference(x, names)
"""


def test_what_only_a_forward_calls_runs_under_the_mode_of_its_caller(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(INSIDE)
    assert [item.code for item in memlint.lint([tmp_path]).findings] == []
    (tmp_path / "run.py").write_text(OUTSIDE)
    assert [item.code for item in memlint.lint([tmp_path]).findings] == ["MEM201"]


KEEPING = """
import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.weigh = nn.Linear(8, 8)
        self.trained, self.tested = [], []

    def forward(self, x):
        weights = self.weigh(x)
        if self.training:
            self.trained.append(weights.detach().sum().item())
        else:
            self.tested.append(weights)
        return weights * x


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate = Gate()

    def forward(self, x):
        return self.gate(x).sum()


def run(net: Net, loader):
    net.{mode}()
    {guard}:
        for x, _ in loader:
            print(net(x.cuda()).item())
"""


@pytest.mark.parametrize(
    ("mode", "guard", "codes"),
    [
        ("train", "if True", ["MEM201"]),
        ("train", "with torch.no_grad()", []),
        ("eval", "with torch.no_grad()", ["MEM104"]),
        ("eval", "if True", ["MEM201", "MEM102"]),
    ],
)
def test_what_a_part_keeps_in_one_mode(tmp_path: Path, mode: str, guard: str, codes: list[str]) -> None:
    (tmp_path / "run.py").write_text(KEEPING.format(mode=mode, guard=guard))
    assert sorted(item.code for item in memlint.lint([tmp_path]).findings) == sorted(codes)
