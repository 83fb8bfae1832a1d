"""Hooks: which keep what they are given, which pile up, and above all which do neither."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

FEATURES = """
import collections
import functools

import torch
from torch import nn
from torch.utils.data import DataLoader


def look(x):
    return x


def empty(kept):
    kept.clear()


def fit(model, loader: DataLoader, opt, device="cuda"):
    kept = {start}

    def keep(module, args, output):
        {store}

    {added}
    for step, x in enumerate(loader):
        {begin}
        loss = model(x.to(device)).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        {end}
    {behind}
"""


def found(tmp_path: Path, text: str) -> list[tuple[str, str]]:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "code.py").write_text(text)
    result = memlint.lint([tmp_path], isolated=True, preview=True)
    assert not result.failures
    return [(one.severity, one.confidence) for one in result.findings if one.code == "MEM105"]


def features(tmp_path: Path, **parts: str) -> list[str]:
    fields = {
        "start": "[]",
        "store": "kept.append(output)",
        "added": "model.layer.register_forward_hook(keep)",
        "begin": "pass",
        "end": "pass",
        "behind": "return None",
        **parts,
    }
    return [severity for severity, _ in found(tmp_path, FEATURES.format(**fields))]


@pytest.mark.parametrize(
    ("store", "expected"),
    [
        ("kept.append(output)", ["error"]),
        ("kept.append(output.detach())", ["error"]),
        ("kept.append(args[0])", ["error"]),
        ("kept.append((args, output))", ["error"]),
        ("kept.extend(output)", ["error"]),
        ("kept.append(output.relu())", ["error"]),
        ("kept.append(output.detach().cpu())", []),
        ("kept.append(output.cpu().numpy())", []),
        ("kept.append(output.norm().item())", []),
        ("kept.append(output.shape)", []),
        ("kept.append(look_elsewhere(output))", []),
        ("kept.append(module.weight)", []),
        ("kept[:] = [output]", []),
        ("kept.append(output); kept.pop(0)", []),
        ("if len(kept) < 4: kept.append(output)", []),
    ],
)
def test_what_is_kept(tmp_path: Path, store: str, expected: list[str]) -> None:
    assert features(tmp_path, store=store) == expected


@pytest.mark.parametrize(
    ("start", "store", "expected"),
    [
        ("collections.deque()", "kept.append(output)", ["error"]),
        ("collections.deque(maxlen=8)", "kept.append(output)", []),
        ("{}", "kept['last'] = output", []),
        ("{}", "kept[module] = output", []),
        ("{}", "kept.setdefault(module, []).append(output)", ["error"]),
        ("collections.defaultdict(list)", "kept['a'].append(output)", ["error"]),
    ],
)
def test_where(tmp_path: Path, start: str, store: str, expected: list[str]) -> None:
    assert features(tmp_path, start=start, store=store) == expected


@pytest.mark.parametrize(
    "parts",
    [
        {"begin": "kept.clear()"},
        {"begin": "kept = []"},
        {"end": "del kept[:]"},
        {"end": "feature = kept.pop()"},
        {"end": "empty(kept)"},
        {"end": "opt.report(kept)"},
        {"end": "other = kept; other.clear()"},
        {"begin": "if step % 10 == 0: kept.clear()"},
    ],
)
def test_somebody_may_empty_it(tmp_path: Path, parts: dict[str, str]) -> None:
    assert features(tmp_path, **parts) == []


@pytest.mark.parametrize(
    "parts",
    [
        {"end": "print(len(kept))"},
        {"end": "feature = kept[-1]"},
        {"behind": "features = torch.cat(kept)"},
    ],
)
def test_reading_empties_nothing(tmp_path: Path, parts: dict[str, str]) -> None:
    assert features(tmp_path, **parts) == ["error"]


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        ("model.register_full_backward_hook(keep)", ["error"]),
        ("model.blocks[0].attn.register_forward_pre_hook(keep)", ["error"]),
        ("handle = model.layer.register_forward_hook(keep)", ["error"]),
        ("for layer in model.children(): layer.register_forward_hook(keep)", ["error"]),
        ("handles = [layer.register_forward_hook(keep) for layer in model.modules()]", ["error"]),
        ("look.register_forward_hook(keep)", []),
        ("nn.Linear(2, 2).register_forward_hook(keep)", []),
        ("handle = model.layer.register_forward_hook(keep); model(opt.x); handle.remove()", []),
        ("model.layer.register_forward_hook(look)", []),
    ],
)
def test_which_module(tmp_path: Path, added: str, expected: list[str]) -> None:
    assert features(tmp_path, added=added) == expected


def test_what_is_collected_until_the_hook_goes(tmp_path: Path) -> None:
    text = """
import torch


@torch.no_grad()
def collect(model, loader):
    kept = []
    handle = model.layer.register_forward_hook(lambda module, args, output: kept.append(output))
    for x in loader:
        model(x.cuda())
    handle.remove()
    print(torch.cat(kept).shape)
"""
    assert found(tmp_path, text) == [("warning", "high")]
    host = text.replace(".cuda()", "")  # no graph, and no accelerator in sight
    assert found(tmp_path, host) == found(tmp_path, host.replace("(output))", "(output.detach()))")) == []
    assert found(tmp_path, text.replace("    for x in loader:\n        model(x.cuda())", "    model(loader)")) == []
    assert found(tmp_path, text.replace("model(x.cuda())", "model(x.cuda())\n        break")) == []


OBJECT = """
import torch
from torch import nn


class Recorder:
    def __init__(self, model):
        self.seen = []
        model.layer.register_forward_hook(self)

    def __call__(self, module, args, output):
        self.seen.append(output)

    {method}


def main(model, loader):
    recorder = Recorder(model)
    for x in loader:
        model(x.cuda())
        {use}
"""


@pytest.mark.parametrize(
    ("method", "use", "expected"),
    [
        ("pass", "pass", [("error", "high")]),
        ("def reset(self): self.seen = []", "recorder.reset()", []),
        ("def reset(self): self.seen.clear()", "recorder.reset()", []),
        ("pass", "recorder.seen.clear()", []),
        ("pass", "recorder.seen = []", []),
        ("pass", "setattr(recorder, 'seen', [])", []),
    ],
)
def test_an_object(tmp_path: Path, method: str, use: str, expected: list[tuple[str, str]]) -> None:
    assert found(tmp_path, OBJECT.format(method=method, use=use)) == expected


def test_another_class_empties_its_own(tmp_path: Path) -> None:
    text = OBJECT.format(method="pass", use="pass") + "\n\nclass Other:\n    def reset(self):\n        self.seen = []\n"
    assert found(tmp_path, text) == [("error", "high")]


FACTORY = """
from torch import nn


def into(kept):
    def hook(module, args, output):
        kept.append(output)

    return hook


class Decoder(nn.Module):
    def forward(self, x, kept):
        return x + kept.{read}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.kept = []
        self.body, self.decoder = nn.Linear(2, 2), Decoder()
        self.body.register_forward_hook(into(self.kept))

    def forward(self, x):
        return {result}
"""


@pytest.mark.parametrize(
    ("read", "result", "expected"),
    [
        ("pop()", "self.decoder(self.body(x), self.kept)", []),
        ("pop()", "self.body(x) + self.kept[-1]", [("warning", "medium")]),
        ("pop()", "self.body(x) + self.kept.pop()", []),
    ],
)
def test_a_list_that_is_handed_on_may_be_emptied(
    tmp_path: Path, read: str, result: str, expected: list[tuple[str, str]]
) -> None:
    assert found(tmp_path, FACTORY.format(read=read, result=result)) == expected


PILES = """
import torch
from torch import nn


KEPT = []


def show(module, args, output):
    print(output.shape)


def helper(model, x):
    {helper}


def train(model, models, loader, opt, flag):
    for step, x in enumerate(loader):
        {step}
        model(x.cuda()).mean().backward()
        opt.step()


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.added = nn.Linear(2, 2), False

    def forward(self, x):
        {forward}
        return self.body(x)
"""


def piles(tmp_path: Path, helper: str = "pass", step: str = "pass", forward: str = "pass") -> list[str]:
    return [severity for severity, _ in found(tmp_path, PILES.format(helper=helper, step=step, forward=forward))]


@pytest.mark.parametrize(
    ("step", "expected"),
    [
        ("model.layer.register_forward_hook(show)", ["warning"]),
        ("handle = model.layer.register_forward_hook(show)", ["warning"]),
        ("for m in model.modules(): m.register_forward_hook(show)", ["warning"]),
        (
            "for m in model.modules():\n            if isinstance(m, nn.Conv2d): m.register_forward_hook(show)",
            ["warning"],
        ),
        ("for p in model.parameters(): p.register_hook(lambda g: g * 2)", ["warning"]),
        ("handle = model.layer.register_forward_hook(show); handle.remove()", []),
        ("opt.handles.append(model.layer.register_forward_hook(show))", []),
        ("opt.handle = model.layer.register_forward_hook(show)", []),
        ("if step == 0: model.layer.register_forward_hook(show)", []),
        ("if flag: model.layer.register_forward_hook(show)", []),
        ("model.layer.register_forward_hook(show)\n        break", []),
        ("model.layer.register_forward_hook(show)\n        return", []),
        ("model = models[step]; model.register_forward_hook(show)", []),
        ("models[step].register_forward_hook(show)", []),
        ("x.register_hook(print)", []),
        ("opt.register_hook(show)", []),
        ("model.layer.register_forward_hook(show)\n        model.layer._forward_hooks.clear()", []),
    ],
)
def test_added_in_a_loop(tmp_path: Path, step: str, expected: list[str]) -> None:
    assert piles(tmp_path, step=step) == expected


@pytest.mark.parametrize(
    ("forward", "expected"),
    [
        ("self.body.register_forward_hook(show)", ["warning"]),
        ("if not self.added: self.body.register_forward_hook(show)", []),
        ("self.handle = self.body.register_forward_hook(show)", ["warning"]),  # (nothing removes it)
        ("self.handle = self.body.register_forward_hook(show); self.handle.remove()", []),
        ("x.register_hook(print)", []),
        ("y = self.body(x); y.register_hook(print)", []),
    ],
)
def test_added_in_a_forward(tmp_path: Path, forward: str, expected: list[str]) -> None:
    assert piles(tmp_path, forward=forward) == expected


@pytest.mark.parametrize(
    ("helper", "step", "expected"),
    [
        ("model.layer.register_forward_hook(show)", "helper(model, x)", ["warning"]),
        ("model.layer.register_forward_hook(show)", "if step == 0: helper(model, x)", []),
        ("model.layer.register_forward_hook(show)", "helper(models[step], x)", []),
        ("model.layer.register_forward_hook(show)", "helper(nn.Linear(2, 2), x)", []),
        ("return model.layer.register_forward_hook(show)", "helper(model, x).remove()", []),
        ("kept = []; model.register_forward_hook(lambda m, a, o: kept.append(o))", "helper(model, x)", ["error"]),
        ("model.register_forward_hook(lambda m, a, o: KEPT.append(o))", "helper(model, x); KEPT.clear()", ["warning"]),
    ],
)
def test_added_by_a_helper(tmp_path: Path, helper: str, step: str, expected: list[str]) -> None:
    assert piles(tmp_path, helper=helper, step=step) == expected
