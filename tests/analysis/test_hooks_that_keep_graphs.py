"""Forward hooks that keep what a model computes, as stores of the loop that runs the model."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

_HEAD = """\
import torch
from torch.nn.functional import cross_entropy
from torchvision.models import resnet50


"""
_OBJECT = """\
class Activations:
    def __init__(self, model, names):
        self.outputs, self.handles = [], []
        for name, part in model.named_modules():
            if name in names:
                self.handles.append(part.register_forward_hook(self.hook))

    def hook(self, module, inputs, output):
        self.outputs.append(output)


"""
_STORE = """\
class Store:
    def __init__(self):
        self.outputs = []

    def hook(self, module, inputs, output):
        self.outputs.append(output)


def attach(model, store):
    return [part.register_forward_hook(store.hook) for part in (model.layer3, model.layer4)]


"""
_FACTORY = """\
def keep_in(store, name):
    def hook(module, inputs, output):
        store.setdefault(name, []).append(output)

    return hook


"""
_GLOBAL = """\
outputs = []


def hook(module, inputs, output):
    outputs.append(output)


"""
_RUN = "def collect(loader):\n    model = resnet50().cuda()\n    model.eval()\n"
_LOOP = "    for x, y in loader:\n        model(x.cuda())\n"
_CLEARED = _LOOP.replace("        model", "        {place}.clear()\n        model")

_GROWS = {
    "a method of an object that adds itself": _OBJECT + _RUN + '    kept = Activations(model, ["layer4"])\n' + _LOOP,
    "a method that a helper adds": _STORE + _RUN + "    kept = Store()\n    attach(model, kept)\n" + _LOOP,
    "a lambda": _RUN
    + "    kept = []\n    model.layer4.register_forward_hook(lambda m, i, out: kept.append(out))\n"
    + _LOOP,
    "a closure of a factory": _FACTORY
    + _RUN
    + "    kept = {}\n    for name, part in model.named_children():\n"
    + "        part.register_forward_hook(keep_in(kept, name))\n"
    + _LOOP,
    "a list of the module": _GLOBAL + _RUN + "    model.layer4.register_forward_hook(hook)\n" + _LOOP,
    "removed behind the loop": _GLOBAL
    + _RUN
    + "    handle = model.layer4.register_forward_hook(hook)\n"
    + _LOOP
    + "    handle.remove()\n",
}
_STAYS = {
    "an object that is emptied": _GROWS["a method of an object that adds itself"].replace(
        _LOOP, _CLEARED.format(place="kept.outputs")
    ),
    "an object that a helper adds, emptied": _GROWS["a method that a helper adds"].replace(
        _LOOP, _CLEARED.format(place="kept.outputs")
    ),
    "a lambda whose list is emptied": _GROWS["a lambda"].replace(_LOOP, _CLEARED.format(place="kept")),
    "a factory whose dict is emptied": _GROWS["a closure of a factory"].replace(_LOOP, _CLEARED.format(place="kept")),
    "a list of the module that is emptied": _GROWS["a list of the module"].replace(
        _LOOP, _CLEARED.format(place="outputs")
    ),
    "copies without the graph": _GROWS["a method of an object that adds itself"].replace(
        "append(output)", "append(output.detach().cpu())"
    ),
    "the last output alone": _GROWS["a closure of a factory"].replace(
        "store.setdefault(name, []).append(output)", "store[name] = output"
    ),
    "of another model": _GROWS["a list of the module"].replace("model.layer4.register", "resnet50().layer4.register"),
    "added and read in each round": _RUN
    + "    for x, y in loader:\n        kept = []\n"
    + "        handle = model.layer4.register_forward_hook(lambda m, i, out: kept.append(out))\n"
    + "        model(x.cuda())\n        handle.remove()\n        print(kept[0].mean().item())\n",
}


def _told(folder: Path, text: str) -> list[memlint.Finding]:
    (folder / "main.py").write_text(_HEAD + text, encoding="utf-8")
    result = memlint.lint([folder], isolated=True)
    assert not result.failures
    return list(result.findings)


@pytest.mark.parametrize("name", _GROWS)
def test_an_evaluation_whose_hook_keeps_outputs_is_an_error(tmp_path: Path, name: str) -> None:
    (one,) = (one for one in _told(tmp_path, _GROWS[name]) if one.code == "MEM201")
    assert "device memory grows by the graph of every batch" in one.message
    assert one.severity == "error"


@pytest.mark.parametrize("name", _STAYS)
def test_what_a_hook_lets_go_of_does_not_grow(tmp_path: Path, name: str) -> None:
    assert [one.message for one in _told(tmp_path, _STAYS[name]) if "grows" in one.message] == []


@pytest.mark.parametrize("name", _GROWS)
def test_under_a_guard_no_graph_grows(tmp_path: Path, name: str) -> None:
    text = _GROWS[name].replace("def collect", "@torch.no_grad()\ndef collect")
    assert [one.code for one in _told(tmp_path, text) if one.code in ("MEM102", "MEM201")] == []


def test_in_training_the_outputs_stay_without_what_backward_frees(tmp_path: Path) -> None:
    text = (
        _GROWS["a method that a helper adds"]
        .replace("    model.eval()\n", "    model.train()\n")
        .replace("        model(x.cuda())\n", "        cross_entropy(model(x.cuda()), y.cuda()).backward()\n")
    )
    (one,) = (one for one in _told(tmp_path, text) if one.code == "MEM102")
    assert one.severity == "warning"
    assert "backward() frees its saved activations, device memory grows by the tensor" in one.message
