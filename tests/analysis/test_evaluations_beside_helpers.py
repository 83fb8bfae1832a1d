"""Evaluations whose model runs in a helper, or by a name that holds its method, and those that a name alone tells."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from tests.linting import codes_in

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader
from library import data_set, save


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Linear(8, 8)

    def forward(self, x):
        return self.layers(x)

    def encode(self, x):
        return self.layers(x)


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = Net(), Net()
"""


def lines(folder: Path, text: str) -> tuple[list[int], list[int]]:
    """Where MEM201 stands, and where it should."""
    text = HEAD + text
    (folder / "main.py").write_text(text, encoding="utf-8")
    result = memlint.lint([folder], isolated=True)
    assert not result.failures
    found = [one.line for one in result.findings if one.code == "MEM201"]
    return found, [number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# here")]


HELD = """
def main(options):
    pair = Pair().cuda()
    pair.load_state_dict(torch.load("pair.pt", map_location="cpu"))
    {mode}
    encode = {held}
    {again}
    for x in DataLoader(data_set):
        save(encode(x.cuda()))  {place}


main(1)
"""


@pytest.mark.parametrize(
    ("mode", "held", "again", "place"),
    [
        ("pair.eval()", "pair.a.encode", "", "# here"),
        ("pair.eval()", "pair.a.encode if options.forth else pair.b.encode", "", "# here"),
        ("pair.a.eval()", "pair.a.encode if options.forth else pair.b.encode", "", ""),
        ("pair.train()", "pair.a.encode", "", ""),
        ("pair.eval()", "pair.a.encode", "encode = Net().cuda().encode", ""),
    ],
)
def test_a_name_that_holds_a_method(tmp_path: Path, mode: str, held: str, again: str, place: str) -> None:
    found, wanted = lines(tmp_path, HELD.format(mode=mode, held=held, again=again, place=place))
    assert found == wanted


HELPED = """
class Trainer:
    def __init__(self, net):
        self.net = net

    def predict(self, x):
        return {{"out": self.net(x.cuda())}}  {inside}

    def evaluate(self, loader):
        self.net.eval()
        right = 0
        for x, y in loader:
            {guard}right += (self.predict(x)["out"].argmax(1) == y).sum().item()  {outside}
        return right

    {other}


trainer = Trainer(Net().cuda())
trainer.evaluate(DataLoader(data_set))
{used}
"""
SINGLE = """def one(self, x):
        self.net.eval()
        return self.predict(x)["out"].argmax(1)  {place}
"""


@pytest.mark.parametrize(
    ("guard", "other", "inside", "outside"),
    [
        ("", "pass", "", "# here"),
        ("", SINGLE.format(place="# here"), "", "# here"),
        ("with torch.no_grad(): ", "pass", "", ""),
    ],
)
def test_a_guard_belongs_where_the_model_is_put_into_eval_mode(
    tmp_path: Path, guard: str, other: str, inside: str, outside: str
) -> None:
    used = "trainer.one(data_set[0])" if other.startswith("def one") else ""
    found, wanted = lines(tmp_path, HELPED.format(guard=guard, other=other, inside=inside, outside=outside, used=used))
    assert found == wanted


NAMED = """
def {name}(net, loader, criterion):
    total = 0
    for x, y in loader:
        total += criterion(net(x.cuda()), y.cuda()){cut}  {place}
    return total / len(loader)


def train(net, loader, other):
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for epoch in range(10):
        for x, y in loader:
            optimizer.zero_grad()
            criterion(net(x.cuda()), y.cuda()).backward()
            optimizer.step()
        {used}


train(Net().cuda(), DataLoader(data_set), DataLoader(data_set))
"""


@pytest.mark.parametrize(
    ("name", "cut", "used", "place"),
    [
        ("evaluate", "", "print({name}(net, other, criterion))", "# here"),
        ("evaluate", ".item()", "print({name}(net, other, criterion))", "# here"),
        ("evaluate", "", "{name}(net, other, criterion).backward()", ""),
        ("test_epoch", ".item()", "print({name}(net, other, criterion))", "# here"),
        ("measure", ".item()", "print({name}(net, other, criterion))", "# here"),
    ],
)
def test_what_keeps_its_graphs_for_nobody(tmp_path: Path, name: str, cut: str, used: str, place: str) -> None:
    text = NAMED.format(name=name, cut=cut, used=used.format(name=name), place=place)
    found, wanted = lines(tmp_path, text)
    assert found == wanted


SAMPLES = """
class Trainer:
    def __init__(self, net):
        self.net = net
        self.optimizer = torch.optim.SGD(net.parameters(), 0.1)

    def run(self, x):
        {first}
        return {given}

    def show(self, samples):
        out = self.run(samples)  {place}
        for row in range(samples.size(0)):
            {shown}

    def train(self, loader, samples):
        for step, x in enumerate(loader):
            self.optimizer.zero_grad()
            loss = self.run(x.cuda()).sum()
            loss.backward()
            self.optimizer.step()
            if step % 100 == 0:
                self.show(samples)


Trainer(Net().cuda()).train(DataLoader(data_set), next(iter(DataLoader(data_set))).cuda())
"""


@pytest.mark.parametrize(
    ("first", "given", "shown", "place"),
    [
        ("pass", "self.net(x)", "save(out[row].cpu().data.numpy())", "# here"),
        ("pass", "self.net(x)", "save(out[row])", ""),
        ("self.last = self.net(x)", "self.last", "save(out[row].cpu().data.numpy())", ""),
        ("self.net(x).sum().backward()", "self.net(x)", "save(out[row].cpu().data.numpy())", ""),
    ],
)
def test_what_a_helper_gives_back_and_one_caller_uses_up(
    tmp_path: Path, first: str, given: str, shown: str, place: str
) -> None:
    found, wanted = lines(tmp_path, SAMPLES.format(first=first, given=given, shown=shown, place=place))
    assert found == wanted


HELD_BY_OPTIONS = """
class Tester:
    def __init__(self, options, loader):
        self.options, self.loader = options, loader
        {load}
        self.test()

    def load(self):
        self.options.{model}.load_state_dict(torch.load("net.pt", map_location="cpu"))
        self.options.{model}.eval()

    def test(self):
        right = 0
        for x, y in self.loader:
            {guard}right += (self.options.net(x.cuda()).argmax(1) == y).sum().item()  {place}
        print(right)
"""


@pytest.mark.parametrize(
    ("load", "model", "guard", "place"),
    [
        ("self.load()", "net", "", "# here"),
        ("self.load()", "net", "with torch.no_grad(): ", ""),
        ("self.load()", "other", "", ""),
    ],
)
def test_a_model_that_another_method_tells_to_be_one(
    tmp_path: Path, load: str, model: str, guard: str, place: str
) -> None:
    found, wanted = lines(tmp_path, HELD_BY_OPTIONS.format(load=load, model=model, guard=guard, place=place))
    assert found == wanted


STEP_INSIDE = """
import torch
from torch import nn, optim
from torchvision.models import resnet18


def main(loader, epochs):
    net = resnet18().cuda()
    optimizer = optim.SGD(net.parameters(), lr=0.1)
    fixed = torch.rand(64, 3, 224, 224, device="cuda")
    kept = {{}}

    def step(x):
        net.train()
        net.zero_grad()
        loss = {loss}
        loss.backward()
        optimizer.step()
        return loss.item()

    for epoch in range(epochs):
        for x, _ in loader:
            net.train()
            {before}
            print(step(x.cuda()))
        net.eval()
        sample = net(fixed).cpu()
        {after}
        print(sample.mean().item())


main([], 3)
"""


@pytest.mark.parametrize(
    ("loss", "before", "after", "found"),
    [
        pytest.param("net(x).mean()", "pass", "pass", True, id="the step inside trains by its own loss"),
        pytest.param("net(x).mean() + sample.mean()", "sample = net(fixed)", "step(fixed)", False, id="by the sample"),
        pytest.param("kept['out'].mean()", "kept['out'] = net(x.cuda())", "kept['out'] = sample; step(x)", False),
    ],
)
def test_a_training_step_that_is_defined_inside(
    tmp_path: Path, loss: str, before: str, after: str, found: bool
) -> None:
    codes = codes_in(tmp_path, STEP_INSIDE.format(loss=loss, before=before, after=after))
    assert ("MEM201" in codes) is found
