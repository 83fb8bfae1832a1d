"""Models that a helper, a loader or the maker of an object freezes: what they run records nothing. Beside each, the
same program without that."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint


def codes(folder: Path, text: str) -> list[str]:
    (folder / "case.py").write_text(text, encoding="utf-8")
    return [one.code for one in memlint.lint([folder], isolated=True).findings]


HELPER = """
import torch
from torch import nn


class Base:
    def __init__(self):
        self.critic = nn.Linear(4, 1).cuda()
        self.maker = nn.Linear(4, 4).cuda()

    @staticmethod
    def switch(nets, wanted=False):
        if not isinstance(nets, list):
            nets = [nets]
        for net in nets:
            if net is not None:
                for param in net.parameters():
                    param.requires_grad = wanted


class Breeder(Base):
    def __init__(self, loader):
        super().__init__()
        self.optimizer = torch.optim.Adam(self.critic.parameters())
        self.step = 0

    def learn(self):
        if self.step % 2 == 0:
            {before}
            self.choose()
        else:
            self.switch(self.critic, True)
            self.optimizer.zero_grad()
            loss = self.critic(self.maker(torch.randn(64, 4).cuda())).mean()
            loss.backward()
            self.optimizer.step()
        self.step += 1

    def choose(self):
        best = 0.0
        for _ in range(10):
            score = self.evaluate()
            best = max(best, score)
        return best

    def evaluate(self):
        with torch.no_grad():
            data = self.maker(torch.randn(64, 4).cuda())
        fake = self.critic(data)
        return fake.data.mean().item()
"""


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("self.switch(self.critic, False)", []),
        ("self.switch(self.critic)", []),
        ("self.switch([self.maker, self.critic], False)", []),
        ("self.switch(self.critic, True)", ["MEM202", "MEM201"]),
        ("self.switch(self.maker, False)", ["MEM201"]),
    ],
)
def test_a_helper_that_goes_through_modules(tmp_path: Path, before: str, expected: list[str]) -> None:
    assert codes(tmp_path, HELPER.format(before=before)) == expected


LOADER = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(x)

    def evaluate(self, data):
        found = torch.softmax(self.forward(data), dim=-1)
        value, index = torch.max(found, 1)
        return value.cpu().detach().numpy(), index.cpu().detach().numpy()


def get_model(path):
    model = torch.load(path, map_location="cpu")
    model.eval()
    for p in model{part}.parameters():
        p.requires_grad = {wanted}
    return model


class Metric:
    def __init__(self, model):
        self.model = model

    def run(self, loader):
        total = 0
        for x in loader:
            value, index = self.model.evaluate(x)
            total += value[0]
        return total
{more}

def measure(model, loader):
    metric = Metric(model)
    return metric.run(loader)


def main(loader):
    print(measure(get_model("best.pt"), loader))
"""
AGAIN = """
    def again(self):
        self.model = Net()
"""


@pytest.mark.parametrize(
    ("part", "wanted", "more", "expected"),
    [
        ("", "False", "", []),
        ("", "True", "", ["MEM201", "MEM201"]),
        (".head", "False", "", ["MEM201", "MEM201"]),
        ("", "False", AGAIN, ["MEM201"]),
    ],
)
def test_a_loader_that_freezes_what_an_object_is_made_with(
    tmp_path: Path, part: str, wanted: str, more: str, expected: list[str]
) -> None:
    assert codes(tmp_path, LOADER.format(part=part, wanted=wanted, more=more)) == expected


ENERGY = """
from torch import nn


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 4)

    def encode(self, x):
        return self.encoder(x)


class Energy:
    def __init__(self, device):
        self.coder = Coder().to(device)
        for param in self.coder.parameters():
            param.requires_grad = {flag}


class Open:
    def __init__(self, device):
        self.coder = Coder().to(device)
"""
STEP = """
import torch
from torch import nn
from energy import *


def make(kind, device):
    if kind == "coder":
        energy = Energy(device)
    else:
        energy = {other}
    return energy


def step(energy, net, optimizer, x):
    codes = energy.coder.encode(x)
    loss = net(codes.detach()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def train(kind, loader, device):
    energy = make(kind, device)
    {after}
    net = nn.Linear(4, 1).to(device)
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for x in loader:
        step(energy, net, optimizer, x.to(device))


if __name__ == "__main__":
    train(input(), torch.utils.data.DataLoader([]), "cuda")
"""


@pytest.mark.parametrize(
    ("flag", "other", "after", "expected"),
    [
        ("False", "NotImplementedError", "pass", []),
        ("False", "None", "print(energy.coder.encoder)", []),
        ("True", "NotImplementedError", "pass", ["MEM202"]),
        ("False", "Open(device)", "pass", ["MEM202"]),
        ("False", "None", "energy.coder = Coder().to(device)", ["MEM202"]),
        ("False", "None", "thaw(energy.coder)", ["MEM202"]),
        ("False", "None", "thaw(energy.coder.parameters())", ["MEM202"]),
    ],
)
def test_a_model_that_the_class_of_its_holder_freezes(
    tmp_path: Path, flag: str, other: str, after: str, expected: list[str]
) -> None:
    (tmp_path / "energy.py").write_text(ENERGY.format(flag=flag))
    assert codes(tmp_path, STEP.format(other=other, after=after)) == expected


BY_A_METHOD = """
import torch
import torchvision
from torch import nn


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = torchvision.models.resnet50()
        self.head = nn.Linear(1000, 2)

    def {name}(self{params}):
        {body}

    def features(self, loader):
        self.eval()
        return [self.encoder(x.cuda()).argmax(1).tolist() for x, _ in loader]

    {more}


def fit(scorer, loader, args):
    {before}
    optimizer = torch.optim.Adam(scorer.head.parameters())
    for x, y in loader:
        loss = nn.functional.cross_entropy(scorer.head(scorer.encoder(x.cuda())), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
LOOP = "for param in self.encoder.parameters():\n            param.requires_grad = False"


@pytest.mark.parametrize(
    ("name", "params", "body", "more", "before", "expected"),
    [
        ("prepare", "", LOOP, "", "scorer.prepare()", []),
        ("prepare", "", "self.encoder.requires_grad_(False)", "", "scorer.prepare()", []),
        ("prepare", "", "self.requires_grad_(False)", "", "scorer.prepare()", []),
        ("prepare", "", LOOP, "", "pass", ["MEM201"]),
        ("prepare", "", LOOP, "", "if args.fixed:\n        scorer.prepare()", ["MEM201"]),
        ("prepare", ", on", LOOP.replace("False", "on"), "", "scorer.prepare(True)", ["MEM201"]),
        ("prepare", "", LOOP.replace("encoder", "head"), "", "scorer.prepare()", ["MEM201"]),
        (
            "prepare",
            ", on",
            "if on:\n            self.encoder.requires_grad_(False)",
            "",
            "scorer.prepare(1)",
            ["MEM201"],
        ),
        (
            "prepare",
            "",
            LOOP,
            "def release(self):\n        self.encoder.requires_grad_(True)",
            "scorer.prepare()",
            ["MEM201"],
        ),
    ],
)
def test_parts_that_a_called_method_freezes(
    tmp_path: Path, name: str, params: str, body: str, more: str, before: str, expected: list[str]
) -> None:
    text = BY_A_METHOD.format(name=name, params=params, body=body, more=more, before=before)
    assert [code for code in codes(tmp_path, text) if code == "MEM201"] == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ("scorer.prepare()", []),
        ("if scorer.prepare() is None:\n        pass", []),
        ("for _ in range(2):\n        scorer.prepare()", []),
        ("args.fixed and scorer.prepare()", ["MEM201"]),
        ("args.open or scorer.prepare()", ["MEM201"]),
        ("scorer.prepare() if args.fixed else None", ["MEM201"]),
        ("while args.fixed and scorer.prepare():\n        pass", ["MEM201"]),
        ("args.later = lambda: scorer.prepare()", ["MEM201"]),
        ("try:\n        scorer.prepare()\n    except OSError:\n        pass", ["MEM201"]),
    ],
)
def test_a_method_that_freezes_counts_where_its_call_is_surely_made(
    tmp_path: Path, call: str, expected: list[str]
) -> None:
    text = BY_A_METHOD.format(name="prepare", params="", body=LOOP, more="", before=call)
    assert [code for code in codes(tmp_path, text) if code == "MEM201"] == expected


MADE_BY_THE_CALLER = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Conv2d(3, 64, 3)
        self.dec = nn.Conv2d(64, 3, 3)

    def freeze(self):
        self.enc.requires_grad_(False)

    def freeze_by_name(self):
        for param in self.enc.parameters():
            param.requires_grad = False

    def freeze_through(self):
        self.freeze()

    def thaw(self):
        self.enc.requires_grad_(True)


class Holder:
    def __init__(self):
        self.net = Net()

    def freeze(self):
        self.net.enc.requires_grad_(False)


def freeze_of(net):
    net.enc.requires_grad_(False)


def made():
    net = Net()
    net.freeze()
    return net


def run(loader, args):
    {before}
    net.eval()
    out = []
    for x in loader:
        out.append({called}(x.cuda()))
    return out


run(torch.utils.data.DataLoader([]), input())
"""


@pytest.mark.parametrize(
    ("before", "called", "found"),
    [
        ("net = Net()\n    net.freeze()", "net.enc", False),
        ("net = Net()\n    net.freeze_by_name()", "net.enc", False),
        ("net = Net()\n    net.freeze_through()", "net.enc", False),
        ("net = Net()\n    freeze_of(net)", "net.enc", False),
        ("net = Net().cuda()\n    freeze_of(net=net)", "net.enc", False),
        ("net = made()", "net.enc", False),
        ("holder = Holder()\n    holder.freeze()\n    net = holder.net", "net.enc", False),
        ("net = Net()\n    net.freeze()\n    enc = net.enc", "enc", False),
        ("net = Net()\n    net.freeze()", "net.dec", True),
        ("net = Net()\n    net.freeze()\n    net.thaw()", "net.enc", True),
        ("net = Net()\n    net.freeze()\n    net = Net()", "net.enc", True),
        ("net, other = Net(), Net()\n    other.freeze()", "net.enc", True),
        ("net = Net()\n    if args:\n        net.freeze()", "net.enc", True),
        ("net = Net()\n    args and net.freeze()", "net.enc", True),
        ("net = Net()\n    args and freeze_of(net)", "net.enc", True),
        ("net = Net()\n    freeze_of(net) if args else None", "net.enc", True),
    ],
)
def test_parts_that_a_method_freezes_of_what_the_caller_made(
    tmp_path: Path, before: str, called: str, found: bool
) -> None:
    text = MADE_BY_THE_CALLER.format(before=before, called=called)
    assert ("MEM201" in codes(tmp_path, text)) is found


SWITCH = """
import torch
from torch import nn
from torchvision.models import resnet50


def set_requires_grad(requires_grad, *models):
    for model in models:
        if isinstance(model, {kind}):
            for param in model.parameters():
                param.requires_grad = requires_grad
        elif isinstance(model, (nn.Parameter, torch.Tensor)):
            model.requires_grad = requires_grad
        else:
            raise TypeError(model)


def main(loader):
    model = resnet50().cuda()
    set_requires_grad({wanted}, model)
    model.eval()
    kept = []
    for x, y in loader:
        kept.append(model(x.cuda()))
    return torch.cat(kept).std().item()
"""


@pytest.mark.parametrize(
    ("kind", "wanted", "told"),
    [
        ("nn.Module", "False", False),
        ("torch.nn.Module", "False", False),
        ("nn.Module", "True", True),
        ("nn.Conv2d", "False", True),
    ],
)
def test_a_helper_that_tells_modules_from_parameters(tmp_path: Path, kind: str, wanted: str, told: bool) -> None:
    assert ("MEM201" in codes(tmp_path, SWITCH.format(kind=kind, wanted=wanted))) is told
