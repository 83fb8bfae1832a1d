"""Hooks whose handles are kept where nothing reads them, hooks of objects that are created for each input, and hooks
that collect until they are removed."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint


def found(folder: Path, code: str) -> list[str]:
    (folder / "program.py").write_text(code, encoding="utf-8")
    result = memlint.lint([folder], select=["MEM105"], preview=True, isolated=True)
    assert not result.failures
    return [one.severity for one in result.findings]


WATCHED = """
import torch
from torch import nn


def show(module, args, output):
    print(output.shape)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.handle, self.handles = None, []

    def forward(self, x):
        {forward}
        return self.body(x)

    def stop(self):
        {stop}
"""
ONE = "self.handle = self.body.register_forward_hook(show)"
MORE = "self.handles.append(self.body.register_forward_hook(show))"


@pytest.mark.parametrize(
    ("forward", "stop", "expected"),
    [
        (ONE, "pass", ["warning"]),
        (MORE, "pass", ["warning"]),
        (ONE, "self.handle.remove()", []),
        (MORE, "while self.handles: self.handles.pop().remove()", []),
        (MORE, "for one in self.handles: one.remove()", []),
        (ONE, "getattr(self, 'handle').remove()", []),
        (f"if not self.handles: {MORE}", "pass", []),
    ],
)
def test_a_handle_that_is_kept(tmp_path: Path, forward: str, stop: str, expected: list[str]) -> None:
    assert found(tmp_path, WATCHED.format(forward=forward, stop=stop)) == expected


EXPLAINED = """
import copy
import os
import torch
from torch import nn


def find(model, name):
    layer = model.features[name[0]]
    for part in name[1:]:
        layer = layer._modules[part]
    return {part}


class Explainer:
    def __init__(self, model, name):
        self.model = model{given}
        self.seen = {{}}

        def keep(module, args, output):
            self.seen["value"] = output

        layer = find(self.model, name)
        {add}

    def __call__(self, x):
        {call}


def load(path):
    return torch.load(path).cuda()


def run(folder, name, names):
    model = nn.Sequential(nn.Linear(8, 8)).cuda()
    x = load("first")
    for item in {items}:
        {step}
        {explain}
"""
PARTS = {
    "part": "layer",
    "given": "",
    "add": "layer.register_forward_hook(keep)",
    "call": "return self.model(x).max() * self.seen['value']",
    "items": "os.listdir(folder)",
    "step": "x = load(item)",
    "explain": "explainer = Explainer(model, name); print(explainer(x).shape)",
}


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"given": ".eval()"},
        {"explain": "for one in names:\n            explainer = Explainer(model, one); print(explainer(x).shape)"},
    ],
)
def test_an_object_for_each_input(tmp_path: Path, parts: dict[str, str]) -> None:
    assert found(tmp_path, EXPLAINED.format(**(PARTS | parts))) == ["warning"]


@pytest.mark.parametrize(
    "parts",
    [
        {"items": "names", "step": "pass", "explain": "explainer = Explainer(model, item); print(explainer(x).shape)"},
        {"explain": "explainer = Explainer(model, item); print(explainer(x).shape)"},  # (another layer in each)
        {"step": "x = load(item); model = load(item)"},
        {"explain": "explainer = Explainer(model, name); print(explainer(x).shape)\n        break"},
        {
            "explain": "if item == 'first':\n            explainer = Explainer(model, name)\n"
            "        print(explainer(x).shape)"
        },
        {
            "step": "x = load(item)\n        names.method = item",
            "explain": "if names.method == 'cam':\n            explainer = Explainer(model, name)\n"
            "        print(explainer(x).shape)",
        },
        {"step": "pass"},  # (what it is called with stays: the loop need not run often)
        {"add": "self.handle = layer.register_forward_hook(keep)", "call": "self.handle.remove()"},
        {"add": "self.handle = layer.register_forward_hook(keep)", "call": "getattr(self, 'hand' + x).remove()"},
        {"part": "copy.deepcopy(layer)"},
        {"given": ".copy()"},
    ],
)
def test_one_object_or_one_for_each_layer(tmp_path: Path, parts: dict[str, str]) -> None:
    assert found(tmp_path, EXPLAINED.format(**(PARTS | parts))) == []


COLLECTED = """
import torch


def use(kept):
    kept.clear()


def prune(model, loader, rounds):
    model.cuda().eval()
    {before}
    {hook}
    {loop}
    handle.remove()
    {after}
"""
HOOK = "kept = []\n    handle = model.layer4.register_forward_hook(lambda module, args, output: kept.append({}))"
LOOP = "with torch.no_grad():\n        for x in loader:\n            model(x.cuda())"
EPOCHS = "for _ in range(rounds):\n        with torch.no_grad():\n            for x in loader:\n"
CAT = "return torch.cat(kept).mean(dim=0)"


@pytest.mark.parametrize(
    ("kept", "loop", "after"),
    [
        ("output", LOOP, CAT),
        ("output.detach()", LOOP, CAT),
        ("output", LOOP, "kept = torch.cat(kept)\n    return kept.mean(dim=0)"),
        ("output", LOOP, "return kept"),
        ("output", LOOP, "means = [one.mean() for one in kept]\n    kept.clear()\n    return means"),
    ],
)
def test_emptied_when_the_loop_is_over(tmp_path: Path, kept: str, loop: str, after: str) -> None:
    code = COLLECTED.format(before="pass", hook=HOOK.format(kept), loop=loop, after=after)
    assert found(tmp_path, code) == ["warning"]


@pytest.mark.parametrize(
    ("kept", "loop", "after"),
    [
        ("output", f"{LOOP}\n            kept.clear()", "pass"),
        ("output", f"{LOOP}\n            use(kept)", "pass"),
        ("output", f"{LOOP}\n            kept = []", "pass"),
        ("output.mean().item()", LOOP, "return sum(kept)"),
        ("output.detach().cpu()", LOOP, CAT),
        # a round's worth is what the program wants
        ("output", f"{EPOCHS}                model(x.cuda())\n        print(len(kept))\n        kept.clear()", "pass"),
    ],
)
def test_emptied_while_the_loop_runs(tmp_path: Path, kept: str, loop: str, after: str) -> None:
    code = COLLECTED.format(before="pass", hook=HOOK.format(kept), loop=loop, after=after)
    assert found(tmp_path, code) == []
