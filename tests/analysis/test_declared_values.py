"""Values of which nothing is known but what the code declares: by annotations, ``isinstance`` and ``cast``."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

HEAD = """
from __future__ import annotations

from typing import Optional, Union, cast

import torch
from elsewhere import Base, build
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(3, 64, 3)

    def forward(self, x):
        return self.layer(x)

    def loss_of(self, x):
        return self.layer(x).mean()


class Guarded(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Conv2d(3, 64, 3)

    @torch.no_grad()
    def loss_of(self, x):
        return self.layer(x).mean()


class Remote:
    def loss_of(self, x):
        return ask("loss", x.tolist())

"""

IN_FUNCTION = """
def load(cfg) -> {cls}:
    return build(cfg)


def evaluate(cfg, loader):
    {made}
    for x in loader:
        print(model.loss_of(x.cuda()).item())
"""

IN_OBJECT = """
class Evaluator(Base):
    {declared}

    def __init__(self, cfg):
        super().__init__(cfg)
        {first}

    def setup(self, cfg):
        {later}

    @property
    def network(self) -> {cls}:
        return self.get("network")

    def evaluate(self, loader):
        for x in loader:
            print({used}.loss_of(x.cuda()).item())
"""


@pytest.mark.parametrize(
    "made",
    [
        "model: {cls}\n    model = build(cfg)",
        "model: {cls} = build(cfg)",
        "model: Optional[{cls}] = None\n    if model is None:\n        model = build(cfg)",
        "model = build(cfg)\n    assert isinstance(model, {cls})",
        "model = build(cfg)\n    if not isinstance(model, {cls}):\n        raise TypeError(model)",
        "model = cast({cls}, build(cfg))",
        'model = cast("{cls}", build(cfg))',
        "model = load(cfg)",
    ],
)
def test_of_a_variable(tmp_path: Path, made: str) -> None:
    for cls, found in (("Net", ["MEM201"]), ("Guarded", []), ("Remote", [])):
        assert codes_in(tmp_path, HEAD + IN_FUNCTION.format(cls=cls, made=made.format(cls=cls))) == found, cls


@pytest.mark.parametrize(
    "parts",
    [
        {"first": "self.model: Optional[{cls}] = None", "later": "self.model = build(cfg)"},
        {"first": "self.model: {cls} | None = None", "later": "self.model = build(cfg)"},
        {"first": "self.model: {cls} = build(cfg)"},
        {"declared": "model: {cls}", "later": "self.model = build(cfg)"},
        {"used": "self.network"},
    ],
)
def test_of_an_attribute(tmp_path: Path, parts: dict[str, str]) -> None:
    for cls, found in (("Net", ["MEM201"]), ("Guarded", []), ("Remote", [])):
        blanks = {"declared": "pass", "first": "pass", "later": "pass", "used": "self.model", **parts}
        source = IN_OBJECT.format(cls=cls, **{name: part.format(cls=cls) for name, part in blanks.items()})
        assert codes_in(tmp_path, HEAD + source) == found, cls


FROZEN = """
def load(cfg) -> nn.Module:
    model = build(cfg)
    {loaded}
    return model


class Evaluator(Base):
    kept: nn.Module

    def __init__(self, cfg):
        self.kept = build(cfg)
        self._given = build(cfg)
        {first}

    @property
    def given(self) -> nn.Module:
        return self._given

    def evaluate(self, cfg, loader: torch.utils.data.DataLoader):
        loaded = load(cfg)
        made = build(cfg)
        {here}
        renamed: nn.Module = made
        for x in loader:
            print({used}(x.cuda()).argmax(1).tolist())
"""


@pytest.mark.parametrize(
    ("used", "place", "name"),
    [
        ("loaded", "loaded", "model"),
        ("self.kept", "first", "self.kept"),
        ("self.given", "first", "self._given"),
        ("renamed", "here", "made"),
    ],
)
def test_what_was_frozen_before_it_was_declared(tmp_path: Path, used: str, place: str, name: str) -> None:
    blanks = dict.fromkeys(("loaded", "first", "here"), "pass")
    for frozen, found in (("requires_grad_(False)", []), ("freeze()", []), ("compile()", ["MEM201"])):
        source = FROZEN.format(**{**blanks, place: f"{name}.{frozen}"}, used=used)
        assert codes_in(tmp_path, HEAD + source) == found, frozen


TRAINS = """
def load(cfg) -> nn.Module:
    return build(cfg)


def train(cfg, loader):
    model = load(cfg)
    optimizer: torch.optim.Optimizer
    optimizer = build(cfg, model)
    total: float
    total = 0.0
    shown = []
    for x, y in loader:
        {body}
    return total, shown
"""

STEP = "loss = (model({of}) - y).mean(); optimizer.zero_grad(); loss.backward(); optimizer.step(); "


@pytest.mark.parametrize(
    ("body", "found"),
    [
        (STEP.format(of="x") + "total += loss.item()", []),
        (STEP.format(of="x") + "total += loss", ["MEM101"]),
        (STEP.format(of="x") + "shown.append(model)", []),
        (STEP.format(of="x") + "shown.append(model.state)", []),
        ("model.eval(); x.requires_grad_(True); shown.append(torch.autograd.grad(model(x).sum(), x)[0])", []),
    ],
)
def test_what_is_declared_may_train(tmp_path: Path, body: str, found: list[str]) -> None:
    assert codes_in(tmp_path, HEAD + TRAINS.format(body=body)) == found


@pytest.mark.parametrize(
    "made",
    [
        "model: object = build(cfg)",
        "model: Unheard = build(cfg)",
        "model = build(cfg)\n    assert not isinstance(model, Net)",
        "model = build(cfg)\n    if isinstance(model, Net):\n        raise TypeError(model)",
        "model = build(cfg)\n    assert isinstance(model, (Net, Remote))",
        "model = cast(object, build(cfg))",
        "model: Net\n    model = Remote()",
    ],
)
def test_no_declaration(tmp_path: Path, made: str) -> None:
    assert codes_in(tmp_path, HEAD + IN_FUNCTION.format(cls="object", made=made)) == []


CLASSES = """
def {name}(name) -> nn.Module:
    {body}


def evaluate(cfg, loader: torch.utils.data.DataLoader):
    {made}
    model.eval()
    {guard}:
        for x in loader:
            print(model(x.cuda()).argmax(1))
"""


@pytest.mark.parametrize(
    ("name", "body", "made"),
    [
        ("find", "return MODELS[name]", "model = find(cfg.name)(cfg).cuda()"),
        ("find", "return MODELS.get(name)", "Model = find(cfg.name)\n    model = Model(cfg).cuda()"),
        ("find", "found = getattr(elsewhere, name)\n    return found", "kind = find(cfg.name)\n    model = kind(cfg)"),
        ("find", "return build(name)", "model = find(cfg.name)(cfg).cuda()"),
        ("get_model_class", "return build(name)", "kind = get_model_class(cfg.name)\n    model = kind(cfg).cuda()"),
        ("load", "return build(name)", "kind = load(cfg.name)\n    model = kind(cfg).cuda()"),
        ("load", "return build(name)", "model = load(cfg.name)"),
    ],
)
def test_a_function_that_gives_a_class(tmp_path: Path, name: str, body: str, made: str) -> None:
    for guard, found in (("if True", ["MEM201"]), ("with torch.no_grad()", [])):
        source = CLASSES.format(name=name, body=body, made=made, guard=guard)
        assert codes_in(tmp_path, HEAD + source) == found, guard


RECORDS = """
from dataclasses import dataclass

import torch
from elsewhere import build, make_model


@dataclass
class Output:
    loss: torch.Tensor


class Step:
    def __init__(self):
        self.loss = None


{made}


def train(loader):
    model = make_model().cuda()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    total = 0.0
    for x in loader:
        optimizer.zero_grad()
        out = run(model, x.cuda())
        out.loss.backward()
        optimizer.step()
        total += out.loss
    return total
"""


@pytest.mark.parametrize("cls", ["Output", "Step"])
@pytest.mark.parametrize(
    "made",
    [
        "def run(model, x) -> {cls}:\n    return build(model(x))",
        "def run(model, x):\n    out: {cls}\n    out = build(model(x))\n    return out",
        "def run(model, x):\n    out = model(x)\n    assert isinstance(out, {cls})\n    return out",
    ],
)
def test_a_record_of_a_step_keeps_its_graph(tmp_path: Path, cls: str, made: str) -> None:
    assert codes_in(tmp_path, RECORDS.format(made=made.format(cls=cls))) == ["MEM101"]


RUNNERS = """
import torch
from elsewhere import build
from torch import nn


class Runner:
    def run(self, model):
        raise NotImplementedError


class Pictures(Runner):
    def __init__(self, loader):
        self.loader = loader

    def run(self, model: nn.Module):
        {guard}:
            for x in self.loader:
                print(model(x.cuda()).argmax(1))


def main(cfg, model: nn.Module):
    runner: Runner
    runner = build(cfg.runner)
    model.eval()
    runner.run(model)
"""


@pytest.mark.parametrize(("guard", "found"), [("if True", ["MEM201"]), ("with torch.no_grad()", [])])
def test_of_an_object_that_runs_the_network(tmp_path: Path, guard: str, found: list[str]) -> None:
    assert codes_in(tmp_path, RUNNERS.format(guard=guard)) == found
