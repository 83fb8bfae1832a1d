"""Classes of a framework inside its own repository: what the framework does with their methods is known there as well,
and its calls are in sight."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

METRIC = """
import torch


class Metric:
    def started(self, engine):
        self.reset()

    {guard}
    def iteration_completed(self, engine):
        self.update(engine.state.output)

    def reset(self):
        raise NotImplementedError

    def update(self, output):
        raise NotImplementedError
"""

EPOCH = """
import torch
from ..metrics.metric import Metric


class EpochMetric(Metric):
    def reset(self):
        self.kept = []

    def update(self, output):
        y_pred, y = output
        self.kept.append({kept})
"""

CALLED = """
import torch
from {package}.metrics.epoch import EpochMetric


def test_update():
    metric = EpochMetric()
    metric.reset()
    for _ in range(2):
        metric.update((torch.rand(4), torch.rand(4)))
"""


def write(folder: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for package in path.relative_to(folder).parents[:-1]:
            if package.parts[0] not in ("src", "tests") or len(package.parts) > 1:
                (folder / package / "__init__.py").touch()
    (folder / "pyproject.toml").touch()
    return folder


def codes(folder: Path, **options: str) -> set[str]:
    found = memlint.lint([folder], **options).findings  # type: ignore[arg-type]
    return {one.code for one in found if one.code != "MEM000"}


def metrics(package: str, kept: str, guard: str = "") -> dict[str, str]:
    return {
        f"{package}/metrics/metric.py": METRIC.format(guard=guard),
        f"{package}/metrics/epoch.py": EPOCH.format(kept=kept),
        "tests/test_epoch.py": CALLED.format(package=package.removeprefix("src/")),
    }


@pytest.mark.parametrize("package", ["ignite", "src/ignite"])
@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        pytest.param("y_pred", {"MEM102"}, id="with its graph"),
        pytest.param("y_pred.to('cpu')", {"MEM102"}, id="moved to the host with it"),
        pytest.param("y_pred.square()", {"MEM102"}, id="computed with it"),
        pytest.param("y_pred.detach().to('cpu')", set(), id="detached"),
        pytest.param("y_pred.mean().item()", set(), id="a number"),
    ],
)
def test_outputs_of_engines(tmp_path: Path, package: str, kept: str, expected: set[str]) -> None:
    assert codes(write(tmp_path, metrics(package, kept))) == expected


@pytest.mark.parametrize(
    ("kept", "expected"),
    [pytest.param("y_pred", {"MEM102"}, id="as given"), pytest.param("y_pred.square()", set(), id="computed")],
)
def test_a_framework_that_calls_under_no_grad(tmp_path: Path, kept: str, expected: set[str]) -> None:
    """What the outputs bring along stays; what a metric computes of them is not recorded, however tests call it."""
    files = metrics("ignite", kept, "@torch.no_grad()")
    assert codes(write(tmp_path, files), min_confidence="low") == expected


def test_another_package_of_that_structure(tmp_path: Path) -> None:
    assert codes(write(tmp_path, metrics("evaluation", "y_pred"))) == set()


def test_who_uses_the_framework_mostly_has_outputs_without_graphs(tmp_path: Path) -> None:
    source = EPOCH.replace("..metrics.metric", "ignite.metrics").format(kept="y_pred")
    folder = write(tmp_path, {"train/metrics.py": source})
    assert codes(folder) == set()
    assert codes(folder, min_confidence="low") == {"MEM102"}


STATE = """
from torch import nn
from ..metric import Metric


class Distance(Metric):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 3))
        self.features, self.total = [], 0

    def update(self, images):
        features = self.net(images)
        self.features.append({kept})
        self.total += features.square().mean()


def plot(loader):
    metric = Distance()
    for images in loader:
        metric.update(images)
    return len(metric.features)
"""


@pytest.mark.parametrize("package", ["torchmetrics", "src/torchmetrics"])
def test_states_that_a_framework_updates_without_grad(tmp_path: Path, package: str) -> None:
    files = {
        f"{package}/metric.py": "from torch import nn\n\n\nclass Metric(nn.Module):\n    pass\n",
        f"{package}/image/distance.py": STATE.format(kept="features.cpu()"),
    }
    assert not codes(write(tmp_path, files), min_confidence="low") & {"MEM101", "MEM102"}
    files = {name.replace("torchmetrics", "scores"): text for name, text in files.items()}
    assert codes(write(tmp_path / "other", files), min_confidence="low") >= {"MEM101", "MEM102"}


MODULE = """
from torch import nn


class LightningModule(nn.Module):
    pass
"""
STEPS = """
from torch import nn
from {base} import LightningModule


class Classifier(LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Conv2d(3, 64, 3), nn.ReLU(), nn.Conv2d(64, 64, 3))
        self.outputs = []

    def {method}(self, batch, index):
        out = self.net(batch)
        self.outputs.append(out{cut})
        return out.mean()
"""


@pytest.mark.parametrize(
    ("method", "cut", "expected"),
    [
        ("training_step", "", {"MEM102"}),
        ("training_step", ".detach().cpu()", set()),
        ("validation_step", ".cpu()", set()),
        ("validation_step", "", {"MEM104"}),
    ],
)
def test_steps_that_a_framework_runs(tmp_path: Path, method: str, cut: str, expected: set[str]) -> None:
    steps = STEPS.format(base="lightning.pytorch.core.module", method=method, cut=cut)
    files = {"src/lightning/pytorch/core/module.py": MODULE, "src/lightning/pytorch/demos/classifier.py": steps}
    assert codes(write(tmp_path, files)) == expected
