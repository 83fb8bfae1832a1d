"""A finding at a call speaks in the caller's words: of the argument that carries the graph, and of what was called."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import memlint

METRIC = """
import torch
from torch import nn
import torch.nn.functional as F


class Metric:
    def __init__(self):
        self.total = 0

    def {method}(self, outputs, target):
        self.total += F.cross_entropy(outputs, target)


class Trainer:
    def __init__(self):
        self.metric = Metric()
        self.model = nn.Linear(8, 2).cuda()

    def validate(self, loader, metric: Metric):
        self.model.eval()
        for x, label in loader:
            output = self.model(x)
            {call}
"""


@pytest.mark.parametrize(
    ("method", "call", "place", "added"),
    [
        ("update", "metric.update(output, label)", "metric.total", "output"),
        ("update", "self.metric.update(target=label, outputs=output)", "self.metric.total", "output"),
        ("__call__", "metric(output, label)", "metric.total", "output"),
        ("__call__", "self.metric(output, label)", "self.metric.total", "output"),
        ("__call__", "self.metric.__call__(output, label)", "self.metric.total", "output"),
    ],
)
def test_a_sum_in_a_callee(tmp_path: Path, method: str, call: str, place: str, added: str) -> None:
    (tmp_path / "train.py").write_text(METRIC.format(method=method, call=call))
    (message,) = [found.message for found in memlint.lint(tmp_path, select=["MEM101"]).findings]
    assert re.findall("`(.*?)`", message)[:2] == [place, added]
