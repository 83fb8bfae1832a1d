"""A method that is known by its name alone is none of a class that nothing in an application uses: no object has it.
Unknown is never no: a class that anything may make stays among those that are meant."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

METERS = """import torch

class Mean:
    def __init__(self):
        self.V = 0
        self.N = 0

    def update(self, preds, truths):
        self.V += (preds - truths).abs().mean().item()
        self.N += 1

class Similarity:
    def __init__(self):
        self.V = 0
        self.N = 0

    def update(self, preds, truths):
        self.V += (preds * truths).mean()
        self.N += 1
"""
TRAINER = """import torch

class Trainer:
    def __init__(self, model, optimizer, metrics=[]):
        self.model = model
        self.optimizer = optimizer
        self.metrics = metrics

    def train_one_epoch(self, loader):
        self.model.train()
        for x, y in loader:
            preds = self.model(x)
            loss = (preds - y).pow(2).mean()
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            for metric in self.metrics:
                metric.update(preds, y)
"""
TRAIN = """import torch
import meters
from meters import *
from trainer import Trainer

def main(args, loader):
    model = torch.nn.Linear(10, 10)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    trainer = Trainer(model, optimizer, metrics=[{made}])
    for epoch in range(args.epochs):
        trainer.train_one_epoch(loader)

if __name__ == "__main__":
    main(parse(), load())
"""


def found(tmp_path: Path, files: dict[str, str]) -> list[str]:
    """The codes that are found in trainer.py."""
    for path, text in {"meters.py": METERS, "trainer.py": TRAINER, **files}.items():
        (tmp_path / path).write_text(text)
    (tmp_path / ".git").mkdir()
    result = memlint.lint([tmp_path])
    assert not result.failures
    return [item.code for item in result.findings if item.path.endswith("trainer.py")]


@pytest.mark.parametrize("made", ["Mean()", "args.metric()"])
def test_a_class_that_nothing_uses_is_not_meant(tmp_path: Path, made: str) -> None:
    assert found(tmp_path, {"train.py": TRAIN.format(made=made)}) == []


@pytest.mark.parametrize(
    ("made", "more"),
    [
        pytest.param("Mean(), Similarity()", "", id="it is made beside another"),
        pytest.param("getattr(meters, args.metric)()", "", id="it may be asked for by a name"),
        pytest.param("globals()[args.metric]()", "", id="it may be looked up"),
        pytest.param("METRICS[args.metric]()", "\nMETRICS = {'ssim': Similarity}\n", id="it stands in a table"),
        pytest.param("Windowed()", "\nclass Windowed(Similarity):\n    pass\n", id="what is made derives from it"),
        pytest.param(
            "instantiate(args.metric)", "\nfrom hydra.utils import instantiate\n", id="a file of settings may name it"
        ),
    ],
)
def test_a_class_that_something_may_make_is_meant(tmp_path: Path, made: str, more: str) -> None:
    assert found(tmp_path, {"train.py": TRAIN.format(made=made) + more}) == ["MEM101"]


def test_others_may_make_what_a_library_defines(tmp_path: Path) -> None:
    assert found(tmp_path, {}) == ["MEM101"]


REGISTERED = """import torch

class Base:
    known = {}

    def __init_subclass__(cls):
        Base.known[cls.__name__] = cls

class Similarity(Base):
    def __init__(self):
        self.V = 0

    def update(self, preds, truths):
        self.V += (preds * truths).mean()
"""


@pytest.mark.parametrize(
    ("meters", "made"),
    [
        pytest.param(REGISTERED, "meters.Base.known[args.metric]()", id="a base knows what derives from it"),
        pytest.param(REGISTERED.replace("def __init_subclass__(cls)", "def other(cls)"),
                     "[one for one in meters.Base.__subclasses__()][0]()", id="a base is asked for it"),
        pytest.param(METERS, "meters.__dict__[args.metric]()", id="it is taken out of its file"),
        pytest.param(METERS, "dict(inspect.getmembers(meters))[args.metric]()", id="the members of its file are"),
        pytest.param(METERS, "yaml.unsafe_load(open(args.metric))", id="a file may tell what to make"),
    ],
)  # fmt: skip
def test_a_class_that_something_may_come_by_is_meant(tmp_path: Path, meters: str, made: str) -> None:
    assert found(tmp_path, {"meters.py": meters, "train.py": TRAIN.format(made=made)}) == ["MEM101"]
