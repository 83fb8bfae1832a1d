"""Values with a graph that go through a project's own containers, and through what a forward is given."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

HEAD = """
import collections
import typing

import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(32, 10)

    def forward(self, x):
        return self.f(x)


"""


def codes(tmp_path: Path, text: str, *select: str) -> list[str]:
    (tmp_path / "train.py").write_text(HEAD + text)
    return sorted(one.code for one in memlint.lint([tmp_path], select=[*select]).findings)


STEP = """
class Box({base}):
    {body}


def train(loader, net: Net, opt):
    net.eval()
    for x, y in loader:
        opt.zero_grad()
        box = {made}
        {end}
        opt.step()
"""
SUM = "def total(self):\n        return sum(self)"
FIRST = "@property\n    def a(self):\n        return self[0]"
TOTAL = "def total(self):\n        return sum(self.values())"
LOSS = "F.cross_entropy(net(x), y)"


@pytest.mark.parametrize(
    ("base", "body", "made", "read"),
    [
        pytest.param("dict", TOTAL, f"Box(a={LOSS})", "box.total()", id="values"),
        pytest.param("dict", f"@property\n    {TOTAL}", f'Box({{"a": {LOSS}}})', "box.total", id="a property"),
        pytest.param("list", SUM, f"Box([{LOSS}])", "box.total()", id="itself"),
        pytest.param("tuple", FIRST, f"Box(({LOSS},))", "box.a", id="place"),
        pytest.param("dict", "__getattr__ = dict.__getitem__", f"Box(a={LOSS})", "box.a", id="attribute"),
        pytest.param("collections.OrderedDict", "pass", f"Box(a={LOSS})", 'box["a"]', id="ordered"),
        pytest.param("collections.UserDict", "pass", f"Box(a={LOSS})", 'box["a"]', id="of users"),
        pytest.param("typing.TypedDict", "a: torch.Tensor", f"Box(a={LOSS})", 'box["a"]', id="typed"),
        pytest.param(
            "dict",
            "def __init__(self, **words):\n        super().__init__(**words)",
            f"Box(a={LOSS})",
            'box["a"]',
            id="constructor",
        ),
        pytest.param(
            "tuple",
            "def __new__(cls, a):\n        return tuple.__new__(cls, (a,))",
            f"Box({LOSS})",
            "box[0]",
            id="what makes it is not followed",
        ),
    ],
)
def test_what_a_class_of_containers_is_made_with(tmp_path: Path, base: str, body: str, made: str, read: str) -> None:
    def found(end: str) -> list[str]:
        return codes(tmp_path, STEP.format(base=base, body=body, made=made, end=end), "MEM201")

    assert found(f"{read}.backward()") == []
    assert found(f"print({read}.item())") == ["MEM201"]


@pytest.mark.parametrize("made", ["Box()", "{}"])
@pytest.mark.parametrize("place", ["held", "self.held"])
def test_members_under_written_keys(tmp_path: Path, made: str, place: str) -> None:
    text = f"""
class Box(dict):
    pass


class Trainer:
    def __init__(self):
        self.net = Net()
        self.held = {made}

    def step(self, x, y):
        self.net.eval()
        held = {made}
        {place}["a"] = F.cross_entropy(self.net(x), y)
        sum({place}.values())END
"""
    assert codes(tmp_path, text.replace("END", ".backward()"), "MEM201") == []
    if place == "held":
        assert codes(tmp_path, text.replace("sum(", "print(sum(").replace("END", ".item())"), "MEM201") == ["MEM201"]


def test_a_history_that_is_a_dict(tmp_path: Path) -> None:
    """As one that has a dict, it keeps the graphs of what it is given."""
    text = """
class History(dict):
    def log(self, **words):
        for name, value in words.items():
            self.setdefault(name, []).append(value)


def train(net, loader, opt):
    history = History()
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        history.log(loss=loss)
"""
    assert codes(tmp_path, text, "MEM102") == ["MEM102"]
    assert codes(tmp_path, text.replace("log(loss=loss)", "log(loss=loss.item())"), "MEM102") == []


FILLS = """
class Fills(nn.Module):
    def __init__(self):
        super().__init__()
        self.f = nn.Linear(32, 10)

    def forward(self, batch):
        {put}


def train(loader):
    net = Fills().cuda()
    net.eval()
    for batch in loader:
        net(batch)
        {end}
"""


@pytest.mark.parametrize(
    ("put", "read"),
    [
        ('batch["out"] = self.f(batch["x"])', 'batch["out"]'),
        ('batch.update(out=self.f(batch["x"]))', 'batch["out"]'),
        ("batch.out = self.f(batch.x)\n        return batch", "batch.out"),
    ],
)
def test_a_forward_that_writes_into_its_argument(tmp_path: Path, put: str, read: str) -> None:
    assert codes(tmp_path, FILLS.format(put=put, end=f"F.cross_entropy({read}, batch['y']).backward()"), "MEM201") == []
    assert codes(tmp_path, FILLS.format(put=put, end=f"print({read}.argmax(1))"), "MEM201") == ["MEM201"]


KEPT = """
{helper}


def train(net, loader, opt):
    log = []
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        shown = {{"loss": loss}}
        {cut}
        log.append({kept})
    return log
"""


@pytest.mark.parametrize("over", ["shown", "shown.keys()", "list(shown)", "list(shown.keys())"])
def test_members_that_are_replaced_key_by_key(tmp_path: Path, over: str) -> None:
    def found(value: str) -> list[str]:
        cut = f"for name in {over}:\n            shown[name] = {value}"
        return codes(tmp_path, KEPT.format(helper="", cut=cut, kept="shown"), "MEM102")

    assert found("shown[name].item()") == []
    assert found("shown[name] * 2") == ["MEM102"]


SCALAR = """
def scalar(value):
    try:
        return value{call}
    except {raised}:
        return value
"""


@pytest.mark.parametrize(
    ("call", "raised", "kept"),
    [
        (".item()", "AttributeError", 0),
        (".detach().cpu()", "(AttributeError, TypeError)", 0),
        (".item()", "Exception", 1),
        (".rows", "AttributeError", 1),
    ],
)
def test_what_has_no_method_of_tensors_is_none(tmp_path: Path, call: str, raised: str, kept: int) -> None:
    helper = SCALAR.format(call=call, raised=raised)
    assert len(codes(tmp_path, KEPT.format(helper=helper, cut="pass", kept="scalar(loss)"), "MEM102")) == kept


TREE_MAP = """
def tree_map(fn, tree):
    if isinstance(tree, dict):
        return {key: tree_map(fn, value) for key, value in tree.items()}
    return fn(tree)
"""


@pytest.mark.parametrize(
    ("fn", "kept"),
    [("lambda one: one.item()", 0), ("lambda one: one.detach().cpu()", 0), ("lambda one: one * 2", 1)],
)
def test_a_function_for_each_leaf(tmp_path: Path, fn: str, kept: int) -> None:
    text = KEPT.format(helper=TREE_MAP, cut="pass", kept=f"tree_map({fn}, shown)")
    assert len(codes(tmp_path, text, "MEM102")) == kept


OWN_ITEMS = """
import torch
from torch import nn


class Report(dict):
    def __setitem__(self, key, value):
        super().__setitem__(key, {kept})


def train(net: nn.Module, loader, optimizer, report: Report):
    for i, (x, y) in enumerate(loader):
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        report[f"loss{{i}}"] = loss
"""


def test_what_a_projects_own_dict_takes_in(tmp_path: Path) -> None:
    (tmp_path / "case.py").write_text(OWN_ITEMS.format(kept="float(value)"), encoding="utf-8")
    assert not memlint.lint([tmp_path], isolated=True).findings


METER = """
import outside


class Meter({base}):
    pass


def train(loader, net: Net, opt):
    meter = Meter()
    for x, y in loader:
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        meter.append(loss)
    print(len(meter))
"""


@pytest.mark.parametrize(
    ("base", "found"),
    [("list", ["MEM102"]), ("typing.List", ["MEM102"]), ("collections.UserList", ["MEM102"]), ("outside.List", [])],
)
def test_a_library_s_class_of_that_name_may_hold_nothing(tmp_path: Path, base: str, found: list[str]) -> None:
    assert codes(tmp_path, METER.format(base=base), "MEM102") == found
