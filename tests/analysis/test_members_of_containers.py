"""Modules and objects of the project that a function puts into a list or a dict, and that others take out of it."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

_HEAD = """\
from collections import defaultdict

import torch
from torch.nn.functional import cross_entropy
from torchvision.models import resnet50


class Meter:
    def __init__(self):
        self.total, self.count = 0.0, 0

    def update(self, value):
        self.total += value
        self.count += 1


class Last:
    def update(self, value):
        self.total = value


def build(path):
    model = resnet50()
    model.load_state_dict(torch.load(path, map_location="cpu"))
    return model.cuda()


"""
_MAIN = """\
def main(loader, paths):
    model = build(paths[0])
    model.eval()
"""
_LOSS = "        loss = cross_entropy(model(x.cuda()), y.cuda())\n"
_ENSEMBLE = """\
class Ensemble:
    def __init__(self, paths):
        self.models = {made}
        for model in self.models:
            model.eval()

    def predict(self, x):
        return torch.stack([model(x) for model in self.models]).mean(0)


def predict(ensemble, loader):
    kept = []
    for x, y in loader:
        kept.append(ensemble.predict(x.cuda()))
    return torch.cat(kept)


def main(loader, paths):
    print(predict(Ensemble(paths), loader).shape)
"""
_STATE = """\
def step(state, batch):
    x, y = batch
    loss = cross_entropy(state["model"](x.cuda()), y.cuda())
    state["losses"].append(loss)


def evaluate(state, loader):
    state["model"].eval()
    for batch in loader:
        step(state, batch)
    return state["losses"]


def main(loader, paths):
    print(len(evaluate({"model": build(paths[0]), "losses": []}, loader)))
"""
_BY_WORD = """\
class Logger:
    def __init__(self):
        self.meters = defaultdict(Meter)

    def update(self, **values):
        for name, value in values.items():
            self.meters[name].update(value)


"""
_LISTED = """\
class Meters:
    def __init__(self, names):
        self.meters = [Meter() for name in names]

    def update(self, values):
        for meter, value in zip(self.meters, values):
            meter.update(value)


"""
_RECORDS = """\
class Log:
    def __init__(self):
        self.records = []

    def add(self, step, **values):
        self.records.append({"step": step, **values})


"""
_GIVEN = 'def note(meters, loss):\n    meters["loss"].update(loss)\n\n\n'

_GROWS = {
    "meters of a dict that makes them, by keyword": _BY_WORD
    + _MAIN
    + "    logger = Logger()\n    for x, y in loader:\n"
    + _LOSS
    + "        logger.update(loss=loss)\n",
    "a list of meters, beside what they get": _LISTED
    + _MAIN
    + '    meters = Meters(["a", "b"])\n    for x, y in loader:\n'
    + _LOSS
    + "        meters.update((loss, loss / 2))\n",
    "meters of a dict that is written out, in another function": _GIVEN
    + _MAIN
    + '    meters = {"loss": Meter(), "other": Meter()}\n    for x, y in loader:\n'
    + _LOSS
    + "        note(meters, loss)\n",
    "a record of what comes by keyword": _RECORDS
    + _MAIN
    + "    log = Log()\n    for step, (x, y) in enumerate(loader):\n"
    + _LOSS
    + "        log.add(step, epoch=len(paths), loss=loss)\n",
    "models of a comprehension": _ENSEMBLE.format(made="[build(path) for path in paths]"),
    "models of a list that is written out": _ENSEMBLE.format(made="[build(paths[0]), build(paths[1])]"),
    "the model and the list in one dict": _STATE,
}
_STAYS = {
    "numbers in meters by keyword": _GROWS["meters of a dict that makes them, by keyword"].replace(
        "loss=loss)", "loss=loss.item())"
    ),
    "a record of numbers": _GROWS["a record of what comes by keyword"].replace("loss=loss)", "loss=float(loss))"),
    "numbers in a list of meters": _GROWS["a list of meters, beside what they get"].replace(
        "(loss, loss / 2)", "(loss.item(), 0.5)"
    ),
    "each meter has the last value alone": _GROWS["meters of a dict that makes them, by keyword"].replace(
        "defaultdict(Meter)", "defaultdict(Last)"
    ),
    "numbers in the list beside the model": _STATE.replace("append(loss)", "append(loss.item())"),
}


def _told(folder: Path, text: str) -> list[memlint.Finding]:
    (folder / "main.py").write_text(_HEAD + text, encoding="utf-8")
    result = memlint.lint([folder], isolated=True)
    assert not result.failures
    return [one for one in result.findings if one.code in ("MEM101", "MEM102", "MEM103", "MEM201")]


@pytest.mark.parametrize("name", _GROWS)
def test_what_grows_is_an_error_told_once(tmp_path: Path, name: str) -> None:
    (one,) = (one for one in _told(tmp_path, _GROWS[name]) if one.code == "MEM201")
    assert "device memory grows by the graph of every batch" in one.message
    assert (one.severity, one.confidence in ("high", "medium")) == ("error", True)


@pytest.mark.parametrize("name", _STAYS)
def test_what_is_cut_or_replaced_does_not_grow(tmp_path: Path, name: str) -> None:
    assert [one.message for one in _told(tmp_path, _STAYS[name]) if "grows" in one.message] == []


@pytest.mark.parametrize("name", _GROWS)
def test_under_a_guard_nothing_is_told(tmp_path: Path, name: str) -> None:
    assert _told(tmp_path, _GROWS[name].replace("def main(", "@torch.no_grad()\ndef main(")) == []
