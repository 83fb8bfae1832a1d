"""Models that the users of a class give it, and that its methods run on batches: nothing in sight says what they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

WRAPPER = """
import torch


class Predictor:
    def __init__(self, model, make, config):
        self.model = {model}
        self.tokenizer = config.tokenizer
        self.steps = config.steps

    def predict(self, loader):
        found = []
        for batch in loader:
            {batch}
            {run}
        return found
"""

MOVED = "batch = {k: v.cuda() for k, v in batch.items()}"
FILLED = "for k, v in batch.items():\n                batch[k] = v.to('cuda')"


@pytest.mark.parametrize("model", ["model", "make(config)", "make(config).cuda()"])
@pytest.mark.parametrize(
    ("batch", "run", "codes"),
    [
        ("x, y = batch", "found.append(self.model(x.cuda()).argmax(-1).tolist())", ["MEM201"]),
        (MOVED, "found.append(self.model(**batch).logits.argmax(-1).tolist())", ["MEM201"]),
        (FILLED, "found.append(self.model(batch).argmax(-1).tolist())", ["MEM201"]),
        ("x = batch[0].cuda()", "found.append(self.model(input_ids=x).logits.argmax(-1).tolist())", ["MEM201"]),
        (
            "x, y = batch",
            "with torch.no_grad():\n                found.append(self.model(x.cuda()).argmax(-1).tolist())",
            [],
        ),
        # no model by its name, or not on tensors
        ("x, y = batch", "found.append(self.steps(x.cuda()).argmax(-1).tolist())", []),
        ("text = str(batch)", "found.append(self.model(text).tolist())", []),
        ("x = batch.numpy()", "found.append(self.model(x).tolist())", []),
    ],
)
def test_a_given_model_runs_on_batches(tmp_path: Path, model: str, batch: str, run: str, codes: list[str]) -> None:
    assert codes_in(tmp_path, WRAPPER.format(model=model, batch=batch, run=run)) == codes


STRATEGY = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Strategy:
    def __init__(self, model: nn.Module, optimizer, criterion):
        self.model = model
        self.optimizer = optimizer
        self.criterion = criterion

    def train(self, data):
        self.model.train()
        for x, y in DataLoader(data):
            loss = self.criterion(self.{method}(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()

    {guard}
    def eval(self, data):
        self.model.eval()
        for x, y in DataLoader(data):
            print(self.criterion(self.{method}(x), y).item())

    def {method}(self, x):
        return self.model(x.cuda())
"""


@pytest.mark.parametrize("method", ["forward", "__call__", "run"])
@pytest.mark.parametrize(("guard", "codes"), [("", ["MEM201"]), ("@torch.no_grad()", [])])
def test_a_plain_class_has_no_layers(tmp_path: Path, method: str, guard: str, codes: list[str]) -> None:
    assert codes_in(tmp_path, STRATEGY.format(method=method, guard=guard)) == codes


HELD = """
import torch


class Text:
    def {defined}(self, x):
        return len(x)


def scores({given}, loader):
    found = []
    for x, y in loader:
        {run}
    return found
"""


@pytest.mark.parametrize(
    ("defined", "given", "run", "codes"),
    [
        ("count", "trainer", "found.append(trainer.model(x.cuda()).argmax(-1).tolist())", ["MEM201"]),
        ("count", "pipe", "found.append(pipe.vae.encoder(x.cuda()).mean().item())", ["MEM201"]),
        ("count", "graph", "graph.model(x.cuda(), 3)", ["MEM201"]),
        (
            "count",
            "trainer",
            "with torch.no_grad():\n            found.append(trainer.model(x.cuda()).argmax(-1).tolist())",
            [],
        ),
        ("count", "trainer", "found.append(trainer.metric(x.cuda()).argmax(-1).tolist())", []),
        ("count", "tokenizer", "found.append(tokenizer.decoder(str(x)))", []),
        # a method that the project has
        ("encoder", "tool", "found.append(tool.encoder(x.cuda()))", []),
    ],
)
def test_a_given_object_holds_a_model(tmp_path: Path, defined: str, given: str, run: str, codes: list[str]) -> None:
    assert codes_in(tmp_path, HELD.format(defined=defined, given=given, run=run)) == codes
