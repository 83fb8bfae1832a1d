"""Hooks of an object that keeps what each part of a model gets, and hooks whose model is trained by a function."""

from __future__ import annotations

import threading
from pathlib import Path
from types import FrameType

import pytest

import memlint


def leaks(folder: Path, text: str) -> bool:
    (folder / "code.py").write_text(text)
    result = memlint.lint([folder], isolated=True, preview=True)
    assert not result.failures
    return any(one.code == "MEM105" for one in result.findings)


COLLECTS = """
import torch
from torch import nn


class Collector:
    def __init__(self):
        self.kept, self.done = {{}}, set()

    def capture(self, module, args):
        {capture}

    def attach(self, model):
        for name, part in model.named_modules():
            {attach}


def train(loader):
    model = nn.Sequential(nn.Linear(512, 512), nn.Linear(512, 5)).cuda()
    collector = Collector()
    collector.attach(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x in loader:
        model(x.cuda()).mean().backward()
        optimizer.step()
        optimizer.zero_grad()
"""
ON_DEMAND = "if id(module) not in self.kept:\n            self.kept[id(module)] = []\n        "


@pytest.mark.parametrize(
    ("capture", "attach", "expected"),
    [
        (ON_DEMAND + "self.kept[id(module)].append(args)", "part.register_forward_pre_hook(self.capture)", True),
        ("self.kept.setdefault(id(module), []).append(args)", "part.register_forward_pre_hook(self.capture)", True),
        (
            ON_DEMAND + "self.kept[id(module)].append((module.tag, args))",
            "part.tag = name\n            part.register_forward_pre_hook(self.capture)",
            True,
        ),
        (ON_DEMAND + "self.kept[id(module)] = [args]", "part.register_forward_pre_hook(self.capture)", False),
        (
            "self.kept[id(module)] = []\n        self.kept[id(module)].append(args)",
            "part.register_forward_pre_hook(self.capture)",
            False,
        ),
        (
            "if module not in self.done:\n            self.kept[id(module)] = []\n        "
            "self.kept[id(module)].append(args)",
            "part.register_forward_pre_hook(self.capture)",
            False,
        ),
    ],
)
def test_lists_that_the_hook_makes(tmp_path: Path, capture: str, attach: str, expected: bool) -> None:
    assert leaks(tmp_path, COLLECTS.format(capture=capture, attach=attach)) is expected


RUNS = """
import torch
import torchvision

features = []


def keep(module, args, output):
    features.append(output)


def train_one_epoch(model, loader, optimizer):
    for x, y in loader:
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda())
        loss.backward()
        optimizer.step()


def fit(net, loader, optimizer, epochs):
    for epoch in range(epochs):
        train_one_epoch(net, loader, optimizer)


def look(model, loader, optimizer):
    for x, y in loader:
        print(model(x.cuda()).shape)
        break


def save(model, loader, optimizer):
    torch.save(model.state_dict(), "net.pt")


if __name__ == "__main__":
    model = torchvision.models.resnet18().cuda()
    other = torchvision.models.resnet18().cuda()
    loader = torch.utils.data.DataLoader([])
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    {before}
    handle = model.layer4.register_forward_hook(keep)
    {behind}
"""


@pytest.mark.parametrize(
    ("before", "behind", "expected"),
    [
        ("pass", "train_one_epoch(model, loader, optimizer)", True),
        ("pass", "for _ in range(3):\n        train_one_epoch(model, loader, optimizer)", True),
        ("pass", "fit(model, loader, optimizer, 3)", True),
        ("pass", "fit(loader=loader, net=model, optimizer=optimizer, epochs=3)", True),
        ("pass", "fit(other, loader, optimizer, 3)", False),
        ("fit(model, loader, optimizer, 3)", "pass", False),
        ("pass", "handle.remove()\n    fit(model, loader, optimizer, 3)", False),
        ("pass", "look(model, loader, optimizer)", False),
        ("pass", "save(model, loader, optimizer)", False),
    ],
)
def test_a_function_runs_the_model(tmp_path: Path, before: str, behind: str, expected: bool) -> None:
    assert leaks(tmp_path, RUNS.format(before=before, behind=behind)) is expected


def test_each_function_is_examined_once_in_the_search_for_a_loop(tmp_path: Path) -> None:
    count, calls = 24, 8
    lines = ["from torch import nn", "kept = []", "def note(module, args, out):", "    kept.append(out)"]
    for place in range(count):
        lines.append(f"def f{place}(net, x):")
        lines += [f"    f{other % count}(net, x)" for other in range(place + 1, place + 1 + calls)]
    lines += ["def start(net: nn.Module, x):", "    net.register_forward_hook(note)", "    f0(net, x)"]
    (tmp_path / "case.py").write_text("\n".join(lines), "utf-8")
    examined = 0

    def count_examined(frame: FrameType, event: str, arg: object) -> None:
        nonlocal examined
        examined += event == "call" and frame.f_code.co_name == "loop_behind"

    threading.setprofile(count_examined)
    try:
        memlint.lint([tmp_path], isolated=True)
    finally:
        threading.setprofile(None)
    assert 0 < examined <= count
