"""Methods and partial functions that are handed to whoever calls them in a loop, or are called by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

SOURCE = """
import functools
from collections import deque

import torch
from torch import nn


class Recorder:
    def __init__(self):
        self.losses = []
        self.last = None

    def record(self, loss):
        self.losses.append(loss)

    def show(self, loss):
        print(loss.item())

    def note(self, loss):
        self.last = loss


def keep(history, loss):
    history.append(loss)


class Engine:
    def __init__(self, model, on_step=None):
        self.model = model
        self.on_step = on_step
        self.optimizer = torch.optim.SGD(model.parameters())

    def fit(self, loader):
        for x, y in loader:
            loss = nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            if self.on_step is not None:
                self.on_step({of_engine})


def fit(model: nn.Module, loader, optimizer, on_step):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        on_step({given})


def main(model: nn.Module, loader, optimizer):
    losses, few, recorder = [], deque(maxlen=9), Recorder()
    {call}
    print(len(losses), len(few), len(recorder.losses))
"""

HANDED = [
    ("losses.append", ["MEM102"]),
    ("recorder.record", ["MEM102"]),
    ("functools.partial(keep, losses)", ["MEM102"]),
    ("functools.partial(keep, history=losses)", []),
    ("recorder.show", []),
    ("recorder.note", []),
]


@pytest.mark.parametrize(("method", "found"), HANDED)
def test_a_function_calls_what_it_is_given(tmp_path: Path, method: str, found: list[str]) -> None:
    call = f"fit(model, loader, optimizer, {method})"
    assert codes_in(tmp_path, SOURCE.format(given="loss", of_engine="loss", call=call)) == found
    assert codes_in(tmp_path, SOURCE.format(given="loss.item()", of_engine="loss", call=call)) == []


@pytest.mark.parametrize(("method", "found"), HANDED)
def test_an_object_calls_what_it_was_made_with(tmp_path: Path, method: str, found: list[str]) -> None:
    call = f"Engine(model, on_step={method}).fit(loader)"
    assert codes_in(tmp_path, SOURCE.format(given="loss", of_engine="loss", call=call)) == found
    assert codes_in(tmp_path, SOURCE.format(given="loss", of_engine="loss.item()", call=call)) == []


CALLBACKS = """
import torch
from torch import nn


class Callback:
    def on_batch_end(self, trainer, loss):
        pass


class Recorder(Callback):
    def __init__(self):
        self.losses = []

    def on_batch_end(self, trainer, loss):
        self.losses.append({kept})


class Trainer:
    def __init__(self, model: nn.Module, callbacks):
        self.model = model
        self.callbacks = callbacks
        self.optimizer = torch.optim.SGD(model.parameters())

    def fit(self, loader):
        for x, y in loader:
            self.loss = nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            self.loss.backward()
            self.optimizer.step()
            self.call({name}, self.loss)

    def call(self, name, *args):
        for callback in self.callbacks:
            {called}
"""


@pytest.mark.parametrize(
    ("kept", "name", "called", "found"),
    [
        ("loss", '"on_batch_end"', "getattr(callback, name)(self, *args)", ["MEM102"]),
        ("trainer.loss", '"on_batch_end"', "getattr(callback, name)(self, *args)", ["MEM102"]),
        ("trainer.loss", '"on_batch_end"', "callback.on_batch_end(self, None)", ["MEM102"]),
        ("loss.item()", '"on_batch_end"', "getattr(callback, name)(self, *args)", []),
        ("trainer.loss.item()", '"on_batch_end"', "callback.on_batch_end(self, None)", []),
        pytest.param("loss", '"on_fit_end"', "getattr(callback, name)(self, *args)", [], id="another method"),
    ],
)
def test_a_method_is_called_by_its_name(tmp_path: Path, kept: str, name: str, called: str, found: list[str]) -> None:
    assert codes_in(tmp_path, CALLBACKS.format(kept=kept, name=name, called=called)) == found


METRICS = """
import torch
from torch.utils.data import DataLoader


class Metric:
    def update(self, outputs):
        raise NotImplementedError


class Outputs(Metric):
    def __init__(self):
        self.kept = []

    def update(self, outputs):
        self.kept.append({kept})


@torch.no_grad()
def evaluate(model, data, metrics):
    model.eval()
    for x, y in DataLoader(data, batch_size=8):
        outputs = model(x.cuda())
        for metric in metrics:
            metric.update(outputs)


def batches(model, data):
    with torch.no_grad():
        for x, y in DataLoader(data, batch_size=8):
            yield model(x.cuda()){moved}


def collect(model, data):
    model.eval()
    found = []
    for outputs in batches(model, data):
        found.append(outputs)
    print(len(found))
"""


def test_metrics_of_which_nothing_is_known_keep_outputs(tmp_path: Path) -> None:
    assert codes_in(tmp_path, METRICS.format(kept="outputs", moved=".cpu()")) == ["MEM104"]
    assert codes_in(tmp_path, METRICS.format(kept="outputs.cpu()", moved=".cpu()")) == []


def test_outputs_of_a_generator_come_with_each_batch(tmp_path: Path) -> None:
    assert codes_in(tmp_path, METRICS.format(kept="outputs.cpu()", moved="")) == ["MEM104"]
