"""What does not grow though it stands in a loop: stores of a last round, dictionaries that go with their lists, places
that indices name, parts of a network; and evaluations that nobody needs to hear of."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from tests.linting import codes_in

LAST = """
import torch


def run(loader, model, optimizer, start):
    total = 0.0
    for i, (x, y) in enumerate(loader):
        if i < start:
            continue
        loss = (model(x) - y).sum()
        loss.backward()
        optimizer.step()
        total += loss
        {end}
    return float(total)
"""


@pytest.mark.parametrize(
    ("end", "expected"),
    [("break", []), ("pass", ["MEM101"]), ("if loss < 0.1: break", ["MEM101"])],
)
def test_a_round_that_is_the_last(tmp_path: Path, end: str, expected: list[str]) -> None:
    assert codes_in(tmp_path, LAST.format(end=end)) == expected


RESET = """
from collections import defaultdict

import torch


def train(accelerator, model, loader, steps, epochs):
    for epoch in range(epochs):
        info = {made}
        for batch in loader:
            for step in steps:
                loss = model(batch, step).sum()
                info["loss"].append(loss)
                accelerator.backward(loss)
                if accelerator.sync_gradients:
                    print({{key: torch.stack(rows).mean() for key, rows in info.items()}})
                    {end}
"""


@pytest.mark.parametrize("made", ["defaultdict(list)", '{"loss": []}'])
@pytest.mark.parametrize(("again", "expected"), [(True, []), (False, ["MEM102"])])
def test_a_dictionary_goes_with_its_lists(tmp_path: Path, made: str, again: bool, expected: list[str]) -> None:
    assert codes_in(tmp_path, RESET.format(made=made, end=f"info = {made}" if again else "pass")) == expected


INDEXED = """
import torch
from torch import nn


def train(loader, optimizer):
    model = nn.Linear(3, 8).cuda()
    sums = torch.zeros(100).cuda()
    for x, rows in loader:
        out = model(x.cuda())
        out.sum().backward()
        optimizer.step()
        sums.{update}
    return sums.sum().item()
"""


@pytest.mark.parametrize(
    ("update", "expected"),
    [
        ("index_add_(0, out.max(dim=-1).indices, torch.ones(4).cuda())", []),
        ("scatter_add_(0, out, torch.ones(4).cuda())", []),
        ("index_add_(0, rows.cuda(), out.absgrad.norm(dim=-1))", []),
        ("index_add_(0, rows.cuda(), out.norm(dim=-1))", ["MEM103"]),
        ("add_(out.norm(dim=-1))", ["MEM103"]),
    ],
)
def test_where_a_tensor_is_told_to_put_it(tmp_path: Path, update: str, expected: list[str]) -> None:
    assert codes_in(tmp_path, INDEXED.format(update=update)) == expected


MAPS = """
import torch


def maps_of(net, x, count):
    for layer in range({count}):
        one = net(x, layer).detach()
        if layer == 0:
            maps = one
        else:
            maps = torch.cat((maps, one), 1)
    return maps
"""


@pytest.mark.parametrize(("count", "expected"), [("net.num_layers", []), ("net.rows", ["MEM302"])])
def test_the_parts_of_a_network_are_few(tmp_path: Path, count: str, expected: list[str]) -> None:
    assert [code for code in codes_in(tmp_path, MAPS.format(count=count)) if code == "MEM302"] == expected


SAMPLES = """
import torch


def train(loader, limit):
    shown = {{}}
    for x, y in loader:
        if not shown:
            shown["x"], shown["y"] = x[:1].clone(), y[:1].clone()
        elif {test}:
            shown["x"] = torch.cat((shown["x"], x[:1]), 0)
            shown["y"] = torch.cat((shown["y"], y[:1]), 0)
    return shown
"""


@pytest.mark.parametrize(
    ("test", "found"),
    [
        pytest.param('shown["x"].size(0) < 10', 0, id="size"),
        pytest.param('shown["x"].shape[0] < 10', 0, id="shape"),
        pytest.param('limit and len(shown["x"]) <= 10', 0, id="length, beside another test"),
        pytest.param('shown["x"].size(0) < limit', 1, id="a limit that may be any"),
        pytest.param('shown["x"].size(0) < 5000', 1, id="a limit that is none"),
        pytest.param('shown["x"].size(1) < 10', 1, id="another size"),
        pytest.param('limit or len(shown["x"]) < 10', 1, id="length, or another test"),
        pytest.param('shown["x"].size(0) > 10', 1, id="no limit"),
    ],
)
def test_a_few_samples_are_no_growth(tmp_path: Path, test: str, found: int) -> None:
    assert codes_in(tmp_path, SAMPLES.format(test=test)).count("MEM302") == found


GREEDY = """
import torch
from torch import nn


def search(loader):
    model = nn.Linear(8, 8)
    model.eval()
    {warm}
    rows = []
    for x in loader:
        rows.append(model(x).argmax().item())
    return rows
"""


@pytest.mark.parametrize(("folder", "expected"), [("tests", []), ("tools", ["MEM201"])])
def test_what_serves_tests(tmp_path: Path, folder: str, expected: list[str]) -> None:
    (tmp_path / folder).mkdir()
    assert codes_in(tmp_path, GREEDY.format(warm="pass"), f"{folder}/greedy.py") == expected


def test_a_run_that_warms_up(tmp_path: Path) -> None:
    """One that gives nothing to nobody is not worth a word; the loop after it is."""
    (tmp_path / "greedy.py").write_text(GREEDY.format(warm="model(torch.zeros(1, 8))"))
    (found,) = [one for one in memlint.lint([tmp_path]).findings if one.code == "MEM201"]
    assert found.line == 12


OUTER = """
import torch


class Model(torch.nn.Module):
    def fit(self, loader):
        self.shadow.eval()
        print(self.shadow.evaluate(loader))

    def evaluate(self, loader):
        rows = []
        for x in loader:
            rows.append(self.evaluate_one(x))
        return rows

    def evaluate_one(self, x):
        {guard}
            return self.net(x).sum()
"""


@pytest.mark.parametrize(("guard", "expected"), [("with torch.no_grad():", []), ("if x is not None:", ["MEM201"])])
def test_a_method_that_calls_a_guarded_one(tmp_path: Path, guard: str, expected: list[str]) -> None:
    found = codes_in(tmp_path, OUTER.format(guard=guard))
    assert sorted(set(found) & {"MEM201"}) == expected


ARRAY = """
import numpy as np
import torch
from torch import nn


def embed(loader):
    net = nn.Linear(8, 8)
    net.eval()
    rows = []
    for x in loader:
        rows.append(np.asarray({given}))
    return rows
"""


@pytest.mark.parametrize(("given", "expected"), [("net(x)", []), ("net(x).detach()", ["MEM201"])])
def test_an_array_of_a_tensor(tmp_path: Path, given: str, expected: list[str]) -> None:
    """numpy refuses a tensor with a graph, so that there is none in a program that runs."""
    assert codes_in(tmp_path, ARRAY.format(given=given)) == expected


HELD = """
import torch
from torch import nn


class Algorithm:
    def __init__(self, net):
        self.net = net.cuda()
        self.info = {{}}

    def reset_info(self):
        self.info.update(kl=torch.tensor(0.0))

    def penalty(self, batch):
        kl = self.net(batch).mean()
        self.info.update(kl=self.info["kl"] + kl)
        return kl


class Trainer:
    def __init__(self, algorithm):
        self.algorithm = algorithm

    def fit(self, loader, optimizer):
        {before}
        for batch in loader:
            {inside}
            loss = self.algorithm.penalty(batch)
            loss.backward()
            optimizer.step()
"""


@pytest.mark.parametrize(
    ("before", "inside", "expected"),
    [
        ("pass", "self.algorithm.reset_info()", []),
        ("self.algorithm.reset_info()", "pass", ["MEM101"]),
        ("pass", "self.algorithm.penalty(batch)", ["MEM101"]),
    ],
)
def test_an_unknown_object_that_is_told_to_begin(tmp_path: Path, before: str, inside: str, expected: list[str]) -> None:
    found = codes_in(tmp_path, HELD.format(before=before, inside=inside))
    assert sorted(set(found) & {"MEM101"}) == expected


BUILT = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(x)


def evaluate(loader, {name}: Net):
    rows = []
    for x in loader:
        rows.append({name}(x).sum().item())
    return rows
"""


@pytest.mark.parametrize(("name", "expected"), [("net", ["MEM201"]), ("net_cls", [])])
def test_a_class_that_is_annotated_as_its_objects_are(tmp_path: Path, name: str, expected: list[str]) -> None:
    assert codes_in(tmp_path, BUILT.format(name=name)) == expected


@pytest.mark.parametrize(
    ("kept", "shown"), [("out / len(out)", "`(out / len(out)).cpu()`"), ("out[0, 1]", "`out[0, 1].cpu()`")]
)
def test_advice_that_can_be_copied(tmp_path: Path, kept: str, shown: str) -> None:
    code = (
        "import torch\nfrom torch import nn\n\n\ndef run(loader):\n    net = nn.Linear(8, 8).cuda()\n    rows = []\n"
        "    with torch.no_grad():\n        for x in loader:\n            out = net(x.cuda())\n"
        f"            rows.append({kept})\n    return torch.cat(rows)\n"
    )
    (tmp_path / "run.py").write_text(code)
    (found,) = memlint.lint([tmp_path]).findings
    assert shown in found.help
