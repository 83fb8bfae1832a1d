"""Hooks on a part of a module, whose arguments a list keeps, and the loops that run the module."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import severities_in

PROGRAM = """
import torch
from torch import nn

kept = []


def keep(module, inputs, output):
    kept.append(output)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.own = []
        self.body = nn.Linear(512, 512)
        self.head = nn.Linear(512, 5)
        self.body.register_forward_hook({hook})

    def keep(self, module, inputs, output):
        self.own.append(output)

    def forward(self, x):
        return self.head(self.body(x).relu())


def train(tagger, loader):
    optimizer = torch.optim.SGD(tagger.parameters(), lr=0.1)
    for x in loader:
        {step}
        optimizer.step()
        optimizer.zero_grad()


def main(loader):
    tagger = Tagger(){moved}
    {last}
"""
STEP = "tagger(x.cuda()).mean().backward()"


@pytest.mark.parametrize(
    ("hook", "step", "moved", "last", "expected"),
    [
        ("keep", STEP, ".cuda()", "train(tagger, loader)", ["error"]),
        ("self.keep", STEP, ".cuda()", "train(tagger, loader)", ["error"]),
        ("self.keep", STEP, ".to('cuda').train()", "train(tagger, loader)", ["error"]),
        ("self.keep", STEP, "", "train(tagger.cuda(), loader)", ["error"]),
        ("keep", STEP, ".cuda()", "return tagger", ["warning"]),
        ("lambda m, i, o: None", STEP, ".cuda()", "train(tagger, loader)", []),
        ("keep", f"{STEP}\n        kept.clear()", ".cuda()", "train(tagger, loader)", []),
        ("self.keep", f"{STEP}\n        tagger.own.clear()", ".cuda()", "train(tagger, loader)", []),
        ("keep", f"{STEP}\n        del kept[:]", ".cuda()", "train(tagger, loader)", []),
    ],
)
def test_a_list_keeps_what_a_part_gives(
    tmp_path: Path, hook: str, step: str, moved: str, last: str, expected: list[str]
) -> None:
    program = PROGRAM.format(hook=hook, step=step, moved=moved, last=last)
    assert severities_in(tmp_path, program, "MEM105") == expected


GIVEN = """
import torch


def collect(network, layer, {more}loader):
    kept = []
    handle = layer.register_forward_hook(lambda module, inputs, output: kept.append(output))
    for x in loader:
        {run}
        {then}
"""


HANDED_ON = """
import contextlib

import torch


def unhook(handles):
    for handle in handles:
        handle.remove()


def collect(network, layer, loader):
    kept = []
    {adds}
    for x in loader:
        network(x.cuda()).mean().backward()
        print(kept[-1].norm())
"""
ADDED = "layer.register_forward_hook(lambda module, inputs, output: kept.append(output))"


@pytest.mark.parametrize(
    ("adds", "expected"),
    [
        (ADDED, ["error"]),
        (f"handles = [{ADDED}]\n    network(loader.first)\n    unhook(handles)", []),
        (f"with contextlib.ExitStack() as stack:\n        stack.callback({ADDED}.remove)", []),
    ],
)
def test_handle_that_is_handed_on(tmp_path: Path, adds: str, expected: list[str]) -> None:
    assert severities_in(tmp_path, HANDED_ON.format(adds=adds), "MEM105") == expected


@pytest.mark.parametrize(
    ("more", "run", "then", "expected"),
    [
        ("", "network(x.cuda()).mean().backward()", "print(kept[-1].norm())", ["error"]),
        ("criterion, ", "criterion(network(x.cuda())).backward()", "print(kept[-1].norm())", ["error"]),
        # what runs is no network, or one of two
        ("normalise, ", "print(normalise(x.cuda()))", "pass", []),
        ("model, ", "(model(x.cuda()) - network(x.cuda())).mean().backward()", "pass", []),
        ("", "network(x.cuda()).mean().backward()", "kept.clear()", []),
        # the layer is used by itself, once, so the network need not be its owner
        ("", "network(x.cuda()).mean().backward()", "pass\n    layer(loader.first)", []),
    ],
)
def test_part_and_network_are_given(tmp_path: Path, more: str, run: str, then: str, expected: list[str]) -> None:
    assert severities_in(tmp_path, GIVEN.format(more=more, run=run, then=then), "MEM105") == expected


WATCHES = """
import torch


class Watcher:
    def __init__(self, network, name):
        self.network = network{moved}
        self.kept = {{}}
        dict(network.named_modules())[name].register_forward_hook(self.keep(name))

    def keep(self, name):
        def hook(module, inputs, output):
            {store}

        return hook

    def __call__(self, x):
        return self.network(x)

    def peek(self, x):
        if not self.kept:
            self.network(x)
        return x.shape

    def shown(self, x):
        return self.kept, x.shape

    def watch(self, loader):
        {own}


def main(network, loader):
    watcher = Watcher(network.cuda(), "head")
    {use}
"""
APPENDS = "self.kept.setdefault(name, []).append(output)"
EACH = "for x in loader:\n        watcher(x.cuda())"
OWN = "for x in loader:\n            self.network(x.cuda())"


@pytest.mark.parametrize(
    ("moved", "store", "own", "use", "expected"),
    [
        ("", APPENDS, "pass", EACH, ["error"]),
        (
            ".cuda()",
            APPENDS,
            "for x in loader:\n            self.network(x.cuda())",
            "watcher.watch(loader)",
            ["error"],
        ),
        ("", "self.kept[name] = output", "pass", EACH, []),
        ("", APPENDS, "pass", f"{EACH}\n        watcher.kept.clear()", []),
        ("", APPENDS, f"{OWN}\n            self.kept = {{}}", EACH, []),
        ("", APPENDS, "pass", "watcher(next(iter(loader)))", []),
        # the loop does not run the network, or runs another one
        ("", APPENDS, "pass", "for x in loader:\n        print(watcher.shown(x))", []),
        ("", APPENDS, "pass", "for x in loader:\n        print(x, watcher)", []),
        ("", APPENDS, "pass", "for x in loader:\n        print(watcher.peek(x))", []),
        ("", APPENDS, f"self.network = self.network.head\n        {OWN}", "watcher.watch(loader)", []),
    ],
)
def test_object_that_is_given_the_network(
    tmp_path: Path, moved: str, store: str, own: str, use: str, expected: list[str]
) -> None:
    program = WATCHES.format(moved=moved, store=store, own=own, use=use)
    assert severities_in(tmp_path, program, "MEM105") == expected


UNHOOKS = """
import torch


class Watcher:
    def __init__(self, network):
        self.kept = []
        self.handle = network.head.register_forward_hook(self.keep)

    def keep(self, module, inputs, output):
        self.kept.append(output)

    def close(self):
        self.handle.remove()

    def __enter__(self):
        return self

    def __exit__(self, *raised):
        self.close()


def watch(network, loader):
    {watch}


def main(network, loader):
    {first}
    for x in loader:
        network(x.cuda()).mean().backward()
    {last}
"""


@pytest.mark.parametrize(
    ("watch", "first", "last", "expected"),
    [
        ("pass", "watcher = Watcher(network)", "watcher.close()", ["error"]),
        ("pass", "watcher = Watcher(network)\n    network(loader.first)\n    watcher.close()", "pass", []),
        ("pass", "with Watcher(network) as watcher:\n        network(loader.first)", "pass", []),
        ("with Watcher(network):\n        network(loader.first)", "watch(network, loader)", "pass", []),
        ("with Watcher(network):\n        for x in loader:\n            network(x.cuda())", "pass", "pass", ["error"]),
    ],
)
def test_object_that_removes_its_hooks(tmp_path: Path, watch: str, first: str, last: str, expected: list[str]) -> None:
    program = UNHOOKS.format(watch=watch, first=first, last=last)
    assert severities_in(tmp_path, program, "MEM105") == expected


TENSORS = """
import torch
from torch import nn

kept = []


class Keeper:
    def __init__(self):
        self.grads = []

    def keep(self, grad):
        self.grads.append(grad)


def keep_in(grads):
    def hook(grad):
        grads.append(grad)

    return hook


def keeping():
    grads = []

    def hook(grad):
        grads.append(grad)

    return hook


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(512, 512)
        self.head = nn.Linear(512, 5)
        self.own = []

    def keep(self, grad):
        self.own.append(grad)

    def forward(self, x):
        x = self.body(x)
        {inside}
        return self.head(x)


def train(loader):
    net, keeper = Net().cuda(), Keeper()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in loader:
        out = net(x.cuda())
        {outside}
        out.mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        {then}
"""


@pytest.mark.parametrize(
    ("inside", "outside", "then", "expected"),
    [
        ("pass", "out.register_hook(lambda grad: kept.append(grad))", "pass", ["error"]),
        ("pass", "out.register_hook(lambda grad: kept.append(grad))", "kept.clear()", []),
        ("pass", "local = []\n        out.register_hook(lambda grad: local.append(grad))", "pass", []),
        ("pass", "out.register_hook(lambda grad: grad.clamp(-1, 1))", "pass", []),
        ("x.register_hook(self.keep)", "pass", "pass", ["warning"]),
        ("if x.requires_grad:\n            x.register_hook(self.keep)", "pass", "pass", ["warning"]),
        ("if self.watched:\n            x.register_hook(self.keep)", "pass", "pass", []),
        ("x.register_hook(lambda grad: grad.clamp(-1, 1))", "pass", "pass", []),
        ("x.register_hook(self.keep)", "pass", "net.own.clear()", []),
        # what keeps the gradients is made anew, too
        ("pass", "out.register_hook(keeper.keep)", "pass", ["error"]),
        ("pass", "keeper = Keeper()\n        out.register_hook(keeper.keep)", "pass", []),
        ("pass", "out.register_hook(Keeper().keep)", "pass", []),
        ("keeper = Keeper()\n        x.register_hook(keeper.keep)", "pass", "pass", []),
        ("pass", "out.register_hook(keep_in(kept))", "pass", ["error"]),
        ("pass", "out.register_hook(keeping())", "pass", []),
        # not in each round
        ("if self.quiet:\n            return self.head(x)\n        x.register_hook(self.keep)", "pass", "pass", []),
        ("pass", "if x.seen:\n            continue\n        out.register_hook(keeper.keep)", "pass", []),
    ],
)
def test_tensors_that_are_made_anew(tmp_path: Path, inside: str, outside: str, then: str, expected: list[str]) -> None:
    program = TENSORS.format(inside=inside, outside=outside, then=then)
    assert severities_in(tmp_path, program, "MEM105") == expected
