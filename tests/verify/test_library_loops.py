"""Programs whose loops are a library's: a small trainer that is installed, and callbacks of the program's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runs import verified

_TRAINER = """\
import torch


class Trainer:
    def __init__(self, task, optimizer=None, callbacks=()):
        self.task, self.optimizer, self.callbacks = task, optimizer, callbacks

    def call(self, name):
        for callback in self.callbacks:
            getattr(callback, name)(self)

    def fit(self, train, validation=None, epochs=1):
        for _ in range(epochs):
            self.train(train)
            if validation is not None:
                self.validate(validation)

    def train(self, batches):
        self.task.train()
        for batch in batches:
            self.loss = self.task.training_step(batch)
            self.optimizer.zero_grad()
            self.loss.backward()
            self.optimizer.step()
            self.call("on_batch_end")
            self.loss = None

    def validate(self, batches):
        self.task.eval()
        with torch.no_grad():
            for batch in batches:
                self.task.validation_step(batch)

    def predict(self, batches):
        self.task.eval()
        with torch.no_grad():
            return [self.task(batch[0]).argmax(1).tolist() for batch in batches]

    def learn(self, batches):
        for _ in range(3):
            self.predict(batches)
            self.train(batches)

    def run(self, update, batches, epochs):
        for _ in range(epochs):
            for batch in batches:
                update(self, batch)
"""

_UPDATE = """\
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 64))
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
kept = []


def update(engine, batch):
    out = model(batch[0])
    optimizer.zero_grad()
    out.pow(2).mean().backward()
    optimizer.step()
    kept.append(out)


trainer.run(update, loader, epochs=3)
"""

_PROGRAM = """\
import os
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "site-packages"))
from tinytrainer import Trainer

torch.manual_seed(0)
KEPT = []
put = KEPT.append  # no rule looks through this


class Task(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 64))

    def forward(self, x):
        return self.net(x)

    def training_step(self, batch):
        out = self(batch[0])
        {training}
        return out.pow(2).mean()

    def validation_step(self, batch):
        out = self(batch[0])
        {validation}


class Callback:
    def __init__(self):
        self.kept = []

    def on_batch_end(self, trainer):
        {callback}


task = Task()
optimizer = torch.optim.Adam(task.parameters(), lr=1e-3)
trainer = Trainer(task, optimizer, [Callback()])
data = TensorDataset(torch.randn(40 * 16, 16))
loader = {loader}
{run}
print("ran to its end")
"""

_LOADER = "DataLoader(data, batch_size=16)"
_LIST = "[[x] for x in data[:][0].split(16)]"
#: an output of 16 rows and 64 columns, of floats
_OUTPUT = 4 * 16 * 64


def _run(tmp_path: Path, *options: str, **parts: str) -> dict[str, Any]:
    package = tmp_path / "site-packages" / "tinytrainer"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(_TRAINER, encoding="utf-8")
    given = {"training": "pass", "validation": "pass", "callback": "pass", "loader": _LOADER, **parts}
    (tmp_path / "train.py").write_text(_PROGRAM.format(**{"run": "trainer.fit(loader, epochs=3)", **given}), "utf-8")
    done = verified("train.py", *options, cwd=tmp_path)
    assert done.code in (0, 1), done.said
    return done.report


@pytest.mark.parametrize(
    "parts",
    [
        {"training": "put(out)"},
        {"training": "put(out)", "loader": _LIST},
        {"callback": "put(torch.zeros(16, 64))"},
        {"validation": "put(out)", "run": "trainer.validate(loader)"},
        {"validation": "put(out)", "run": "trainer.validate(loader)", "loader": _LIST},
        {"training": "put(out)", "run": "trainer.learn(loader)", "loader": _LIST},
        {
            "training": "put(out)",
            "run": "for _ in range(2):\n    trainer.fit(loader, epochs=2)\n    optimizer.zero_grad()",
        },
    ],
    ids=[
        "batches",
        "optimizer steps",
        "callback",
        "validation",
        "model calls",
        "training behind them",
        "inside a loop of the program's own",
    ],
)
def test_growth_in_a_library_s_loop_is_measured_to_the_byte(tmp_path: Path, parts: dict[str, str]) -> None:
    report = _run(tmp_path, **parts)
    left = report["unattributed"]["loops"]
    assert [row["bytes_per_iteration"] for row in left] == [_OUTPUT]
    assert "a library" in left[0]["loop"]


@pytest.mark.parametrize("parts", [{}, {"loader": _LIST}, {"run": "trainer.predict(loader)"}])
def test_a_healthy_program_has_no_growth(tmp_path: Path, parts: dict[str, str]) -> None:
    report = _run(tmp_path, **{"callback": "put(trainer.loss.item())", **parts})
    assert report["unattributed"]["loops"] == []
    assert report["run"]["steps"] > 15
    assert "no loop of the program's own was seen" in report["run"]["reason"]


@pytest.mark.parametrize("loader", [_LOADER, _LIST])
def test_a_finding_in_a_step_is_judged_by_its_calls(tmp_path: Path, loader: str) -> None:
    report = _run(tmp_path, run=_UPDATE, loader=loader)
    (row,) = report["findings"]
    assert row["verdict"]["verdict"] == "confirmed"
    assert row["verdict"]["bytes_per_iteration"]["exact"] == _OUTPUT
    assert report["unattributed"]["loops"] == []


@pytest.mark.slow
def test_a_number_of_steps_and_a_second_run_hold_for_a_library_s_loop(tmp_path: Path) -> None:
    report = _run(tmp_path, "--max-steps", "20", "--compare-fix", run=_UPDATE)
    comparison = report["comparison"]
    assert report["run"]["steps"] == 21
    assert comparison["losses"] == "equal"
    assert comparison["before"]["steps"] == comparison["after"]["steps"]


def test_it_is_said_where_no_loop_is_seen(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import torch\nprint(torch.ones(2).sum())\n", encoding="utf-8")
    report = verified("train.py", cwd=tmp_path).report
    assert "nor one of a library's" in report["run"]["reason"]
