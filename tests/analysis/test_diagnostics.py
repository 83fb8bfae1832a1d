"""Diagnostics: which stay on for a whole run, and which are there for a look."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

TRAINING = """
import contextlib

import torch
from torch import autograd, nn
from torch.profiler import profile, schedule

{top}


def train(model, loader, opt, args):
    {before}
    with {around}:
        for step, x in enumerate(loader):
            with {inside}:
                loss = model(x.cuda()).mean()
                opt.zero_grad()
                loss.backward()
            opt.step()
            {end}
    {behind}
"""


def severities(tmp_path: Path, text: str, name: str = "code.py") -> list[str]:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / name).write_text(text)
    result = memlint.lint([tmp_path], isolated=True)
    assert not result.failures
    return [one.severity for one in result.findings if one.code == "MEM113"]


def training(tmp_path: Path, name: str = "code.py", **parts: str) -> list[str]:
    fields = {
        "top": "",
        "before": "pass",
        "around": "contextlib.nullcontext()",
        "inside": "contextlib.nullcontext()",
        "end": "pass",
        "behind": "pass",
        **parts,
    }
    return severities(tmp_path, TRAINING.format(**fields), name)


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"top": "torch.autograd.set_detect_anomaly(True)"}, ["warning"]),
        ({"top": "autograd.set_detect_anomaly(mode=True, check_nan=False)"}, ["warning"]),
        ({"before": "torch.autograd.set_detect_anomaly(True)"}, ["warning"]),
        ({"around": "torch.autograd.set_detect_anomaly(True)"}, ["warning"]),
        ({"inside": "autograd.detect_anomaly()"}, ["warning"]),
        ({"top": "torch.autograd.set_detect_anomaly(False)"}, []),
        ({"before": "torch.autograd.set_detect_anomaly(args.debug)"}, []),
        ({"before": "if args.debug: torch.autograd.set_detect_anomaly(True)"}, []),
        ({"around": "torch.autograd.set_detect_anomaly(args.debug)"}, []),
        ({"top": "torch.autograd.set_detect_anomaly(True)", "name": "debug_nan.py"}, []),
        ({"top": "torch.autograd.set_detect_anomaly(True)", "name": "anomaly_scores.py"}, ["warning"]),
        ({"top": "if __name__ == '__main__': torch.autograd.set_detect_anomaly(True)"}, ["warning"]),
        ({"top": "if '__main__' == __name__: torch.autograd.set_detect_anomaly(True)"}, ["warning"]),
        (
            {
                "before": "torch.autograd.set_detect_anomaly(True)",
                "behind": "torch.autograd.set_detect_anomaly(False)",
            },
            [],
        ),
        ({"around": "autograd.detect_anomaly()", "end": "break"}, []),
        ({"top": "autograd.detect_anomaly()"}, []),
    ],
)
def test_anomalies(tmp_path: Path, parts: dict[str, str], expected: list[str]) -> None:
    assert training(tmp_path, **parts) == expected


def test_a_program_that_does_not_train(tmp_path: Path) -> None:
    text = "import torch\n\ntorch.autograd.set_detect_anomaly(True)\n\n\ndef predict(model, x):\n    return model(x)\n"
    assert severities(tmp_path, text) == []


RECORD = "torch.cuda.memory._record_memory_history"


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"before": f"{RECORD}()"}, ["warning"]),
        ({"before": f"{RECORD}('all', context='all')"}, ["warning"]),
        ({"before": f"{RECORD}()", "behind": "torch.cuda.memory._dump_snapshot('a.pickle')"}, ["note"]),
        ({"before": f"{RECORD}(max_entries=1000)"}, []),
        ({"before": f"{RECORD}(True)"}, []),
        ({"before": f"{RECORD}('state')"}, []),
        ({"before": f"{RECORD}(**args.options)"}, []),
        ({"before": f"if args.memory: {RECORD}()"}, []),
        ({"before": f"{RECORD}()", "end": f"if step == 3: {RECORD}(enabled=None)"}, []),
        ({"before": f"{RECORD}()", "behind": f"{RECORD}(None)"}, []),
    ],
)
def test_history(tmp_path: Path, parts: dict[str, str], expected: list[str]) -> None:
    assert training(tmp_path, **parts) == expected


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"around": "profile(record_shapes=True) as prof"}, ["warning"]),
        ({"around": "torch.autograd.profiler.profile(use_cuda=True) as prof"}, ["warning"]),
        ({"around": "profile(schedule=schedule(wait=1, warmup=1, active=2)) as prof"}, []),
        ({"around": "profile(**args.options) as prof"}, []),
        ({"around": "torch.autograd.profiler.profile(enabled=args.profile) as prof"}, []),
        ({"around": "profile() as prof", "end": "if step > 9: break"}, []),
        ({"inside": "profile() as prof"}, []),
        ({"around": "profile() as prof", "name": "profile_training.py"}, []),
    ],
)
def test_profilers(tmp_path: Path, parts: dict[str, str], expected: list[str]) -> None:
    assert training(tmp_path, **parts) == expected


MODULE = """
import pytorch_lightning as pl
import torch
import torchmetrics
from torch import nn
from torchmetrics import AUROC, Accuracy, MetricCollection, SpearmanCorrCoef


class Net({base}):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(2, 1)
        self.metric = {made}

    def {hook}(self, batch, batch_idx):
        x, y = batch
        scores = self.net(x)
        {use}
        return scores.mean()

    def on_train_epoch_end(self):
        {end}


class Other(nn.Module):
    def __init__(self):
        super().__init__()
        self.metric = Accuracy()

    def clean(self):
        self.metric.reset()
"""


def module(tmp_path: Path, **parts: str) -> list[str]:
    fields = {
        "base": "pl.LightningModule",
        "made": "AUROC(task='binary')",
        "hook": "training_step",
        "use": "self.metric(scores, y)",
        "end": "pass",
        **parts,
    }
    return severities(tmp_path, MODULE.format(**fields))


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, ["warning"]),
        ({"hook": "validation_step"}, ["warning"]),
        ({"made": "torchmetrics.AveragePrecision(task='binary')"}, ["warning"]),
        ({"made": "SpearmanCorrCoef()"}, ["warning"]),
        ({"made": "AUROC(task='binary', thresholds=None)"}, ["warning"]),
        ({"use": "self.metric.update(scores, y)"}, ["warning"]),
        ({"use": "self.log('auc', self.metric(scores, y))"}, ["warning"]),
        ({"end": "self.log('auc', self.metric.compute())"}, ["warning"]),
        ({"made": "AUROC(task='binary', thresholds=100)"}, []),
        ({"made": "AUROC(**self.options)"}, []),
        ({"made": "Accuracy()"}, []),
        ({"base": "nn.Module"}, []),
        ({"hook": "predict"}, []),
        ({"use": "self.metric(scores, y); self.log('auc', self.metric)"}, []),
        ({"end": "self.metric.reset()"}, []),
        ({"end": "self.metric = AUROC(task='binary')"}, []),
        ({"end": "for metric in self.children(): metric.reset()"}, []),
        ({"end": "self.all = MetricCollection([self.metric])"}, []),
        ({"end": "getattr(self, 'metric').reset()"}, []),
    ],
)
def test_metrics_of_a_module(tmp_path: Path, parts: dict[str, str], expected: list[str]) -> None:
    assert module(tmp_path, **parts) == expected


LOOPS = """
import torchmetrics


def train(model, loader, epochs, opt):
    {before}
    for epoch in range(epochs):
        {first}
        for x, y in loader:
            loss = model(x.cuda()).mean()
            loss.backward()
            opt.step()
            metric.update(model(x.cuda()), y.cuda())
        {end}
"""


@pytest.mark.parametrize(
    ("before", "first", "end", "expected"),
    [
        ("metric = torchmetrics.AUROC(task='binary').cuda()", "pass", "metric.compute()", ["warning"]),
        ("metric = torchmetrics.AUROC(task='binary').cuda()", "pass", "metric.reset()", []),
        ("metric = torchmetrics.AUROC(task='binary').cuda()", "metric.reset()", "pass", []),
        ("metric = torchmetrics.AUROC(task='binary').cuda()", "pass", "opt.finish(metric)", []),
        ("metric = torchmetrics.Accuracy(task='binary').cuda()", "pass", "pass", []),
        ("pass", "metric = torchmetrics.AUROC(task='binary').cuda()", "pass", []),
    ],
)
def test_metrics_of_a_loop(tmp_path: Path, before: str, first: str, end: str, expected: list[str]) -> None:
    assert severities(tmp_path, LOOPS.format(before=before, first=first, end=end)) == expected
