"""A function that adds a hook to the model it is given and runs it on its input: each call leaves one more behind."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

SHOWN = """
import torch

seen = []


def keep(module, args, output):
    seen[:] = [output.detach()]


class Explainer:
    def __init__(self, model):
        self.model = model
        {made}

    def explain(self, x):
        {method}
        return self.model(x).softmax(1)


def cam(model, x, names, loader):
    layer = model
    for name in names:
        layer = dict(layer.named_children())[name]
    {added}
    {run}
    return torch.relu(seen[0] * scores.mean())


{calls}
"""

ADDED, RUN = "layer.register_forward_hook(keep)", "scores = model(x)"


def found(folder: Path, **parts: str) -> list[str]:
    filled = {"made": "pass", "method": "pass", "added": ADDED, "run": RUN, "calls": ""} | parts
    (folder / "cam.py").write_text(SHOWN.format(**filled), encoding="utf-8")
    result = memlint.lint([folder], select=["MEM105"], preview=True, isolated=True)
    assert not result.failures
    return [one.message.split(" adds ")[0] for one in result.findings]


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"run": "scores = model.features(x[None])"},
        {"added": "model.layer4.register_full_backward_hook(keep)"},
        {"added": "layer.seen = list(names)\n    layer.probe.register_forward_hook(keep)"},
        {"calls": "def show(model, images):\n    for one in images:\n        print(cam(model, one, [], None))"},
    ],
)
def test_each_input_adds_one(tmp_path: Path, parts: dict[str, str]) -> None:
    assert len(found(tmp_path, **parts)) == 1


def test_a_method_that_runs_the_model_of_its_object(tmp_path: Path) -> None:
    parts = {"added": "pass", "method": "self.model.layer4.register_forward_hook(keep)"}
    assert found(tmp_path, **parts) == ["`self.model.layer4.register_forward_hook`"]


@pytest.mark.parametrize(
    "parts",
    [
        {"added": f"handle = {ADDED}", "run": f"{RUN}\n    handle.remove()"},
        {"added": f"model.handle = {ADDED}"},
        {"added": f"with_handle({ADDED})"},
        {"added": "layer.probe = torch.nn.Identity()\n    layer.probe.register_forward_hook(keep)"},  # (a new one)
        {"added": f"if names:\n        {ADDED}"},
        {"run": "scores = torch.ones(3)"},  # (a helper that sets the model up)
        {"run": "scores = [model(one) for one in loader]"},  # (goes through all the data itself)
        {"added": f"{ADDED}\n    model.to(x.device)", "run": "scores = x"},
        {"calls": "net = torch.nn.Linear(2, 2)\nprint(cam(net, torch.rand(2, 2), [], None))"},  # (once)
        {"added": "pass", "made": "self.model.layer4.register_forward_hook(keep)"},
    ],
)
def test_what_adds_one_for_all(tmp_path: Path, parts: dict[str, str]) -> None:
    assert found(tmp_path, **parts) == []
