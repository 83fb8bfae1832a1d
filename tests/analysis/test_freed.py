"""Whether a backward has freed what is kept: on the paths that make a graph, not on those that make none."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

HEAD = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.kept = []

    def forward(self, x):
        return self.layer(x)

    def step(self, loss, optimizer):
        if not torch.isfinite(loss):
            return None
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss


"""

LOOP = """def train(loader, optimizer, net=Net()):
    total = 0
    for x in loader:
{body}
    return float(total)
"""

BRANCH = """        if x.numel() > 0:
            loss = net(x).mean()
            total += loss
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()"""

SOMETIMES = """        loss = net(x).mean()
        total += loss
        if x.numel() > 0:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()"""

GIVEN_UP = """        loss = net(x).mean()
        net.step(loss, optimizer)
        total += loss"""

SKIPPED = """        loss = net(x).mean()
        if torch.isnan(loss).any():
            continue
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss"""

EARLY = """        loss = one(net, x, optimizer)
        total += loss


def one(net, x, optimizer):
    if x is None:
        return 0
    loss = net(x).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


def other(total):"""


@pytest.mark.parametrize(
    ("body", "memory"),
    [
        pytest.param(BRANCH, "host", id="in the branch that makes it"),
        pytest.param(GIVEN_UP, "host", id="unless the loss is no number"),
        pytest.param(SKIPPED, "host", id="after a skipped round"),
        pytest.param(EARLY, "host", id="unless it returns early"),
        pytest.param(SOMETIMES, "device-graph", id="on some paths only"),
    ],
)
def test_how_bad_a_sum_of_losses_is(tmp_path: Path, body: str, memory: str) -> None:
    (tmp_path / "train.py").write_text(HEAD + LOOP.format(body=body))
    result = memlint.lint([tmp_path])
    assert not result.failures
    assert [(found.code, found.growth.memory) for found in result.findings if found.code == "MEM101"] == [
        ("MEM101", memory)
    ]


BY_NAME = """
import torch


class Base:
    def learn(self, loss, optimizer):
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Agent:
    def __init__(self, net, optimizer):
        self.net = net
        self.optimizer = optimizer

    def train(self, loader):
        total = torch.tensor(0.0)
        for x in loader:
            loss = self.net(x).mean()
            self.net.learn(loss, self.optimizer)
            total += loss
        return total.item()
"""


def test_a_method_that_is_known_by_its_name_may_have_freed_it(tmp_path: Path) -> None:
    (tmp_path / "agent.py").write_text(BY_NAME)
    assert [found.severity for found in memlint.lint([tmp_path]).findings if found.code == "MEM101"] == ["warning"]


FORWARD = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4096)
        self.kept = []

    def forward(self, x):
        hidden = self.layer(x)
        self.kept.append(hidden)
        return hidden.relu()
"""


def test_what_a_forward_keeps_is_freed_by_whoever_trains_it(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(FORWARD)
    (found,) = memlint.lint([tmp_path]).findings
    assert found.code == "MEM102"
    assert "backward() frees its saved activations, device memory grows by the tensor" in found.message


LIMITED = """
import torch


def features(model, loader):
    model.cuda().eval()
    kept = []
    with torch.no_grad():
        for i, x in enumerate(loader):
{limit}            kept.append(model(x.cuda()))
    return torch.cat(kept)
"""


@pytest.mark.parametrize(
    ("limit", "codes"),
    [("", ["MEM104"]), ("            if i >= 4:\n                break\n", [])],
)
def test_a_collection_that_ends_at_a_limit(tmp_path: Path, limit: str, codes: list[str]) -> None:
    (tmp_path / "features.py").write_text(LIMITED.format(limit=limit))
    assert [found.code for found in memlint.lint([tmp_path]).findings] == codes


MEMBERS = """
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 1)

    def forward(self, x):
        return self.layer(x)


class Wrapped:
    def __init__(self, head):
        self.head = head

    def error(self, x):
        return self.head(x).mean()


def compare(x, {given}):
    wrapped = []
    for _ in range(count):
        wrapped.append(Wrapped(Head()))
    total = 0.0
    for {each} in {over}:
        total += {error}.error(x)
    return total.item()
"""


@pytest.mark.parametrize(
    ("given", "each", "over", "error", "codes"),
    [
        ("count", "one", "wrapped", "one", []),
        ("count, loader", "x", "loader", "wrapped[0]", ["MEM101"]),
    ],
)
def test_members_of_an_ensemble_are_no_data(
    tmp_path: Path, given: str, each: str, over: str, error: str, codes: list[str]
) -> None:
    (tmp_path / "compare.py").write_text(MEMBERS.format(given=given, each=each, over=over, error=error))
    found = memlint.lint([tmp_path]).findings
    assert [item.code for item in found if item.code == "MEM101"] == codes


OTHERWISE = """
import torch


def run(model, data, optimizer, training=True, whole=False):
    if training:
        if whole:
            loss = model(data).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            return loss.item()
    else:
        outputs = []
        for x in data:
            outputs.append(model(x))
        return torch.stack(outputs).detach().numpy()


def main(model, train, test, optimizer):
    model = torch.nn.Linear(8, 8)
    for epoch in range(100):
        run(model, train, optimizer)
    model.eval()
    return run(model, test, optimizer, training=False)
"""


def test_a_backward_on_the_other_side_of_a_test_is_no_part_of_the_step(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(OTHERWISE)
    found = [(item.code, item.growth.memory) for item in memlint.lint([tmp_path]).findings]
    assert ("MEM102", "device-graph") in found


AFTER = """
import torch


def train(model, loader, optimizer):
    reported = []
    for x in loader:
        out = model(x)
        penalty = out ** 2
        loss = (out + penalty).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        reported.append(penalty.mean())
    return [value.item() for value in reported]
"""


def test_a_number_that_is_computed_from_a_freed_graph(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(AFTER)
    assert [(item.code, item.severity) for item in memlint.lint([tmp_path]).findings] == [("MEM102", "warning")]


ROUNDS = """
import torch


def {name}(steps):
    model = torch.nn.Linear(8, 8).eval()
    state, kept = torch.zeros(8), []
    for _ in range(steps):
        state = model(state)
        kept.append(state)
    return torch.stack(kept).tolist()
"""


@pytest.mark.parametrize(
    ("file", "name", "found"),
    [("states", "predict", True), ("test_states", "test_states", False), ("states", "test_states", True)],
)
def test_the_few_rounds_of_a_test(tmp_path: Path, file: str, name: str, found: bool) -> None:
    (tmp_path / f"{file}.py").write_text(ROUNDS.format(name=name))
    assert ("MEM102" in {item.code for item in memlint.lint([tmp_path]).findings}) is found


MOVED = """
import torch


def predict(model, inputs):
    model.cuda().eval()
    held = []
    with torch.no_grad():
        for x in inputs:
            held.append({value})
    return held
"""


@pytest.mark.parametrize(("value", "codes"), [("x.cuda()", []), ("model(x.cuda())", ["MEM104"])])
def test_a_collection_that_is_brought_to_the_device(tmp_path: Path, value: str, codes: list[str]) -> None:
    (tmp_path / "predict.py").write_text(MOVED.format(value=value))
    assert [item.code for item in memlint.lint([tmp_path]).findings] == codes


REPLACED = """
import torch


def bring(items, device="cuda"):
    for i, item in enumerate(items):
        if isinstance(item, torch.Tensor):
            {place}[i] = item.pin_memory().cuda()


def train(model, loader):
    kept = {{}}
    for items in loader:
        bring(items)
        model(items)
"""


def test_members_that_are_replaced(tmp_path: Path) -> None:
    (tmp_path / "bring.py").write_text(REPLACED.format(place="items"))
    assert [item.code for item in memlint.lint([tmp_path]).findings] == []


MATCHED = """
import torch


def matched(model, loader, optimizer, mode):
    losses = []
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        match mode:
            case "a":
                loss.backward()
            case {last}:
                loss.backward()
        losses.append(loss)
    return [float(one) for one in losses]
"""


@pytest.mark.parametrize(("last", "memory"), [("_", "host"), ("other", "host"), ('"b"', "device-graph")])
def test_every_case_frees_it(tmp_path: Path, last: str, memory: str) -> None:
    (tmp_path / "matched.py").write_text(MATCHED.format(last=last))
    assert [item.growth.memory for item in memlint.lint([tmp_path]).findings] == [memory]


STATISTICS = """
import torch
import torch.nn.functional as F


class Party:
    def step(self, data, target, statistics):
        loss = F.nll_loss(self.model(data), target)
        loss.backward()
        total, seen = statistics
        total = total + loss
        return total, seen

    def fit(self, loader):
        statistics = self.begin()
        for data, target in loader:
            statistics = self.step(data, target, statistics)
"""


def test_what_began_before_the_loop_is_not_what_grows_in_it(tmp_path: Path) -> None:
    (tmp_path / "run.py").write_text(STATISTICS)
    assert not [one for one in memlint.lint([tmp_path]).findings if "that no backward() frees" in one.message]
