"""``backward(retain_graph=True)`` in loops that use objects, settings and functions made before them."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

HEAD = """
import somewhere
import torch
from torch import nn

"""


def told(folder: Path, text: str) -> list[str]:
    (folder / "train.py").write_text(HEAD + text, encoding="utf-8")
    result = memlint.lint([folder], isolated=True)
    assert not result.failures
    return [one.severity for one in result.findings if one.code == "MEM112"]


OBJECT = """
class Schedule:
    def __init__(self, steps):
        self.kept = torch.linspace(0.9, 0.1, steps).cuda()
        self.noise = (1 - self.kept).sqrt()
        self.seen = []

    def add(self, x, noise):
        return self.kept[0] * x + self.noise[0] * noise

    def put(self, value):
        self.kept = value

    def hook(self, module, args, output):
        self.kept = output


class Holder:
    def __init__(self, inner):
        self.inner = inner


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 8)


def train(loader, code):
    model = nn.Linear(8, 8).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    schedule = Schedule(1000)
    {before}
    for x in loader:
        x = x.cuda()
        noise = torch.randn_like(x)
        out = model(schedule.add(x, noise))
        loss = (out - noise).square().mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        {after}
"""


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("pass", "pass", ["warning"]),
        ("pass", "print(schedule.kept.mean())", ["warning"]),
        ("pass", "schedule.seen.append(loss.item())", ["warning"]),
        ("pass", "schedule.kept = out", []),
        ("pass", "if loss > 1:\n            schedule.put(out)", []),
        ("pass", "schedule.put(out)", []),
        ("pass", "schedule.kept += out", []),
        ("pass", "setattr(schedule, 'kept', out)", []),
        ("pass", "vars(schedule)['kept'] = out", []),
        ("pass", "somewhere.step(schedule)", []),
        ("pass", "somewhere.step([schedule])", []),
        ("alias = schedule", "alias.kept = out", []),
        ("box = [schedule]", "box[0].kept = out", []),
        ("box = {'a': schedule}", "for name in box:\n            box[name].put(out)", []),
        ("box = Holder(schedule)", "box.inner.put(out)", []),
        ("put = schedule.put", "put(out)", []),
        ("model.register_forward_hook(schedule.hook)", "pass", []),
        ("somewhere.call(lambda value: schedule.put(value))", "pass", []),
        ("schedule.kept = code", "pass", []),
        ("schedule.kept = model(code)", "pass", []),
        ("schedule.kept.requires_grad_()\n    schedule.kept = schedule.kept * 2", "pass", []),
        ("net = Net()\n    net.head.requires_grad_()", "pass", ["warning"]),
    ],
)
def test_a_member_of_an_object_that_the_function_makes(
    tmp_path: Path, before: str, after: str, expected: list[str]
) -> None:
    assert told(tmp_path, OBJECT.format(before=before, after=after)) == expected


RUN_BY_OTHERS = """
class Base:
    def attach(self, module):
        module.register_forward_hook(self.hook)


class Schedule(Base):
    def __init__(self, module):
        self.kept = torch.linspace(0.9, 0.1, 8).cuda()
        self.last = None
        {begin}

    def add(self, x):
        return self.kept * x

{method}


def train(loader):
    model = nn.Linear(8, 8).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    schedule = Schedule(model)
    {before}
    for x in loader:
        x = x.cuda()
        out = model(schedule.add(x))
        loss = (out - x).square().mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        schedule.last = out
        {after}
"""
PUT = "    def put(self):\n        self.kept = self.last"


@pytest.mark.parametrize(
    ("begin", "method", "before", "after", "expected"),
    [
        ("pass", PUT, "pass", "pass", ["warning"]),
        ("self.put()", PUT, "pass", "pass", ["warning"]),
        ("self.later = lambda: self.put()", PUT, "pass", "pass", []),
        ("pass", PUT.replace("put(self)", "hook(self, *args)"), "schedule.attach(model)", "pass", []),
        ("pass", PUT.replace("put", "__len__"), "pass", "len(schedule)", []),
        ("pass", PUT.replace("put(self)", "__exit__(self, *args)"), "pass", "with schedule:\n            pass", []),
        ("pass", "    def show(self):\n        return len(self.kept)", "pass", "schedule.show()", ["warning"]),
        ("pass", "    def __len__(self):\n        return len(self.kept)", "pass", "len(schedule)", ["warning"]),
        ("pass", "    def __new__(cls, module):\n        return somewhere.one(cls)", "pass", "pass", []),
        ("pass", "    @functools.cached_property\n    def more(self):\n        return self.kept", "pass", "pass", []),
    ],
)
def test_a_member_that_a_method_may_write_where_no_call_is_followed(
    tmp_path: Path, begin: str, method: str, before: str, after: str, expected: list[str]
) -> None:
    code = RUN_BY_OTHERS.format(begin=begin, method=method, before=before, after=after)
    assert told(tmp_path, code) == expected


WEIGHT = """
def train(loader, args, extra):
    model = nn.Linear(8, 16).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    beta = {begin}
    for x, y in loader:
        mean, scale = model(x.cuda()).chunk(2, 1)
        loss = (mean - y.cuda()).square().mean() + beta * scale.exp().mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        beta = {step}
"""


@pytest.mark.parametrize(
    ("begin", "step", "expected"),
    [
        ("0.0", "min(1.0, beta + 0.1)", ["warning"]),
        ("args.beta", "min(args.most, beta + args.step)", ["warning"]),
        ("0.0", "min(args.most, beta + args.step)", ["warning"]),
        ("extra", "beta + args.step", []),
        ("args.beta", "beta + extra", []),
        ("args.beta", "beta + args.step * loss", []),
        ("args.beta", "beta + args.step * loss.item()", ["warning"]),
    ],
)
def test_a_weight_that_settings_raise(tmp_path: Path, begin: str, step: str, expected: list[str]) -> None:
    assert told(tmp_path, WEIGHT.format(begin=begin, step=step)) == expected


CALLED = """
class Trainer:
    def __init__(self, model, criterion, target, weight):
        self.model = model
        self.optimizer = torch.optim.Adam(model.parameters())
        self.set(criterion, target, weight)

    def set(self, criterion, target, weight):
        self.criterion = criterion
        self.target = target
        self.weight = weight

    def train(self, loader):
        for x, y in loader:
            loss = {loss}
            self.optimizer.zero_grad()
            loss.backward(retain_graph=True)
            self.optimizer.step()


Trainer(nn.Linear(8, 8).cuda(), somewhere.criterion(), somewhere.target(), somewhere.weight()).train(somewhere.data())
"""


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("self.criterion(self.model(x.cuda()), y.cuda())", ["note"]),
        ("self.criterion(self.model(x.cuda()), self.target)", []),
        ("self.weight * self.criterion(self.model(x.cuda()), y.cuda())", []),
    ],
)
def test_a_loss_function_that_is_set_later_brings_no_graph(tmp_path: Path, loss: str, expected: list[str]) -> None:
    assert told(tmp_path, CALLED.format(loss=loss)) == expected


STATE = """
class Base(nn.Module):
    def reconstruct(self, x):
        raise NotImplementedError


class Coder(Base):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(8, 32), nn.Linear(32, 8)
        self.used = {begin}
        self.last = None

    def reconstruct(self, x):
        h = self.encoder(x).relu()
        {step}
        return self.decoder(h)

    def forward(self, x):
        return self.reconstruct(x)


def train(loader):
    model = Coder().cuda()
    optimizer = torch.optim.Adam(model.parameters())
    for x in loader:
        loss = (model(x.cuda()) - x.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("begin", "step", "expected"),
    [
        ("torch.zeros(32)", "pass", ["warning"]),
        ("torch.zeros(32)", "self.used += h.detach().sum(0).cpu()", ["warning"]),
        ("torch.zeros(32)", "self.used = 0.9 * self.used + 0.1 * h.detach().mean(0).cpu()", ["warning"]),
        ("torch.zeros(32)", "self.used = 0.9 * self.used + 0.1 * h.mean(0).cpu()", []),
        ("torch.zeros(32)", "self.used += h.sum(0).cpu()", []),
        ("torch.zeros(32, requires_grad=True) * 2", "self.used = self.used + h.detach().sum(0)", []),
        ("nn.Parameter(torch.zeros(32))", "self.used = self.used * 2", []),
        ("somewhere.state(self.encoder)", "self.used = self.used + h.detach().sum(0)", []),
        ("torch.zeros(32)", "self.used, self.last = self.used + self.last, h", []),
        ("torch.zeros(32)", "self.last = h + (0 if self.last is None else self.last)", []),
    ],
)
def test_running_sums_of_detached_values_in_a_model(tmp_path: Path, begin: str, step: str, expected: list[str]) -> None:
    assert told(tmp_path, STATE.format(begin=begin, step=step)) == expected


TABLE = """
STEPS = 1000
{made}


def train(loader, device):
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 8)).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    for x, t in loader:
        x = x.to(device)
        loss = (model(KEPT[t].to(device) * x) - x).square().mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()


{behind}
train(torch.utils.data.DataLoader([]), "cuda")
"""


@pytest.mark.parametrize(
    ("made", "behind", "expected"),
    [
        ("KEPT = torch.cumprod(1 - torch.linspace(0.0001, 0.02, STEPS), 0)", "pass", ["warning"]),
        ("RATE = torch.linspace(0.0001, 0.02, STEPS)\nKEPT = (1 - RATE).sqrt()", "pass", ["warning"]),
        ("KEPT = nn.Linear(8, 8)(torch.ones(STEPS, 8))", "pass", []),
        ("KEPT = somewhere.schedule(STEPS)", "pass", []),
        ("KEPT = torch.ones(STEPS, requires_grad=True) * 2", "pass", []),
        ("KEPT = torch.ones(STEPS)\n\n\ndef put(value):\n    KEPT[0] = value", "somewhere.call(put)", []),
        ("KEPT = torch.ones(STEPS)\n\n\ndef put(value):\n    KEPT[0].copy_(value)", "somewhere.call(put)", []),
        ("RATE = torch.ones(STEPS)\nRATE.requires_grad_()\nKEPT = RATE * 2", "pass", []),
        ("KEPT = torch.ones(STEPS)\n\n\ndef put(value, into=KEPT):\n    into[0] = value", "somewhere.call(put)", []),
        ("KEPT = torch.ones(STEPS)", "KEPT = nn.Linear(8, 8)(torch.ones(STEPS, 8))", []),
        (
            "KEPT = torch.ones(STEPS)\n\n\ndef change(model):\n    global KEPT\n    KEPT = model(KEPT)",
            "change(somewhere.model())",
            [],
        ),
        (
            "import train as this\n\nKEPT = torch.ones(STEPS)\n\n\ndef change(model):\n    this.KEPT = model(KEPT)",
            "change(somewhere.model())",
            [],
        ),
    ],
)
def test_a_tensor_of_the_module(tmp_path: Path, made: str, behind: str, expected: list[str]) -> None:
    assert told(tmp_path, TABLE.format(made=made, behind=behind)) == expected


FED = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(x)


def train(epochs, device, extra):
    model = Net().to(device)
    optimizer = torch.optim.Adam(model.parameters())
    {made}
    for epoch in range(epochs):
        for x, y in {data}:
            {moved}
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward(retain_graph=True)
            optimizer.step()
"""
MOVED = "x, y = x.to(device), y.to(device)"


@pytest.mark.parametrize(
    ("made", "data", "moved", "expected"),
    [
        ("loader, rest = somewhere.loaders()", "loader", MOVED, ["warning"]),
        ("loader = somewhere.loader()", "loader", MOVED, ["warning"]),
        ("batches = somewhere.batches()", "batches", MOVED, ["warning"]),
        ("pairs = somewhere.pairs()", "pairs", MOVED, []),
        ("loader, rest = somewhere.loaders()", "loader", "pass", []),
        ("parts = zip(Net().to(device)(extra).chunk(4), extra)", "parts", MOVED, []),
        ("parts = [(Net()(extra), extra)]", "parts", MOVED, []),
    ],
)
def test_batches_of_an_unknown_loader_in_each_epoch(
    tmp_path: Path, made: str, data: str, moved: str, expected: list[str]
) -> None:
    assert told(tmp_path, FED.format(made=made, data=data, moved=moved)) == expected
