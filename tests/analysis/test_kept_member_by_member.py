"""Sums and lists that are kept member by member: in several meters at once, in records, in objects that are added."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

TRAINING = """
import operator
import random
from collections import Counter, defaultdict, deque, namedtuple
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import nn

{definitions}


def train(model: nn.Module, optimizer, loader, epochs):
    {begun}
    for epoch in range(epochs):
        for x, y in loader:
            out = model(x.cuda())
            loss = nn.functional.cross_entropy(out, y.cuda())
            penalty = out.abs().mean()
            parts = {{"loss": loss, "penalty": penalty}}
            optimizer.zero_grad()
            (loss + penalty).backward()
            optimizer.step()
            {kept}
"""


def told(folder: Path, definitions: str, begun: str, kept: str) -> list[str]:
    kept = kept.replace("\n", "\n            ")
    return codes_in(folder, TRAINING.format(definitions=definitions, begun=begun, kept=kept))


METER = """
class Meter:
    def __init__(self):
        self.sum = 0
        self.count = 0

    def update(self, value, n=1):
        self.sum += {added} * n
        self.count += n


class Meters:
    def __init__(self, *meters):
        self.meters = meters

    def add(self, *values):
        for meter, value in zip(self.meters, values):
            meter.update(value)
"""


def test_one_call_adds_to_each_of_several_meters(tmp_path: Path) -> None:
    begun = "meters = Meters(Meter(), Meter())"
    assert told(tmp_path, METER.format(added="value"), begun, "meters.add(loss, penalty)") == ["MEM101"]


@pytest.mark.parametrize(
    ("added", "begun", "kept"),
    [
        ("value.item()", "meters = Meters(Meter(), Meter())", "meters.add(loss, penalty)"),
        ("value", "meters = Meters(Meter(), Meter())", "meters.add(loss.item(), penalty.item())"),
        pytest.param("value", "pass", "meters = Meters(Meter())\nmeters.add(loss)", id="made anew in each round"),
    ],
)
def test_meters_of_numbers_are_none(tmp_path: Path, added: str, begun: str, kept: str) -> None:
    assert told(tmp_path, METER.format(added=added), begun, kept) == []


def test_members_of_a_batch_are_others_each_time(tmp_path: Path) -> None:
    source = """
class Tracks:
    def __init__(self, net):
        self.net = net

    def extend(self, loader):
        for track in loader:
            track.cost = track.cost + self.net(track.points)
"""
    assert codes_in(tmp_path, source) == []


SUMS = """
class Sums:
    def __init__(self, names):
        self.sums = {{name: 0.0 for name in names}}
        self.row = [0.0, 0.0]

    def add(self, values):
        {add}
"""


@pytest.mark.parametrize(
    "add",
    [
        "for name in self.sums: self.sums[name] += values[name]",
        "for name in self.sums: self.sums[name] = self.sums[name] + values[name]",
        "self.sums = {name: self.sums.get(name, 0) + value for name, value in values.items()}",
        "self.row = [old + new for old, new in zip(self.row, values.values())]",
    ],
)
def test_a_sum_for_each_name_of_an_object(tmp_path: Path, add: str) -> None:
    assert told(tmp_path, SUMS.format(add=add), 'sums = Sums(["loss"])', "sums.add(parts)") == ["MEM101"]


@pytest.mark.parametrize(
    "add",
    [
        "for name in self.sums: self.sums[name] += values[name].item()",
        "for name in self.sums: self.sums[name] = values[name]",
        "self.sums = {name: value for name, value in values.items()}",
        "self.row = [old + new.detach() for old, new in zip(self.row, values.values())]",
        "self.row = [old + 1 for old, new in zip(self.row, values.values())]",
    ],
)
def test_what_each_name_holds_anew_is_no_sum(tmp_path: Path, add: str) -> None:
    assert told(tmp_path, SUMS.format(add=add), 'sums = Sums(["loss"])', "sums.add(parts)") == []


@pytest.mark.parametrize(
    ("begun", "kept"),
    [
        ("sums = {}", "sums = {name: sums.get(name, 0) + value for name, value in parts.items()}"),
        ("sums = [0, 0]", "sums = [old + new for old, new in zip(sums, (loss, penalty))]"),
        ("sums = [0, 0]", "sums = [sum(pair) for pair in zip(sums, (loss, penalty))]"),
        ('sums = {"loss": 0}', "sums = {name: old + parts[name] for name, old in sums.items()}"),
        ("sums = Counter()", "sums = sums + Counter(parts)"),
    ],
)
def test_a_container_that_is_rebuilt_as_sums(tmp_path: Path, begun: str, kept: str) -> None:
    assert told(tmp_path, "", begun, kept) == ["MEM101"]


@pytest.mark.parametrize(
    ("begun", "kept"),
    [
        ("sums = {}", "sums = {name: sums.get(name, 0) + value.item() for name, value in parts.items()}"),
        ("sums = [0, 0]", "sums = [old + new for old, new in zip((1, 2), (loss, penalty))]"),
        ("sums = [0, 0]", "sums = [old + new.detach() for old, new in zip(sums, (loss, penalty))]"),
        ("sums = Counter()", "sums = Counter() + Counter(parts)"),
    ],
)
def test_what_is_rebuilt_of_others_is_no_sum(tmp_path: Path, begun: str, kept: str) -> None:
    assert told(tmp_path, "", begun, kept) == []


ADDED = """
class Stats({base}):
    def __add__(self, other):
        total = Stats()
        for name in set(self) | set(other):
            total[name] = {sum}
        return total
"""


@pytest.mark.parametrize(
    ("base", "sum_", "value", "found"),
    [
        ("Counter", "self[name] + other[name]", "loss", ["MEM101"]),
        ("dict", "self.get(name, 0) + other.get(name, 0)", "loss", ["MEM101"]),
        ("Counter", "self[name] + other[name]", "loss.item()", []),
        pytest.param("Counter", "float(self[name] + other[name])", "loss", [], id="numbers alone"),
        pytest.param("Counter", "other[name]", "loss", [], id="the last one alone"),
    ],
)
def test_objects_whose_class_says_what_their_sum_is(
    tmp_path: Path, base: str, sum_: str, value: str, found: list[str]
) -> None:
    kept = f'stats = Stats()\nstats["loss"] = {value}\ntotal = total + stats'
    assert told(tmp_path, ADDED.format(base=base, sum=sum_), "total = Stats()", kept) == found


MADE_ON_DEMAND = (
    METER.format(added="value")
    + """

class Tracker:
    def __init__(self):
        self.meters = {}

    def update(self, values):
        for name, value in values.items():
            if name not in self.meters:
                self.meters[name] = Meter()
            self.meters[name].update(value)
"""
)


@pytest.mark.parametrize(("given", "found"), [("loss", ["MEM101"]), ("loss.item()", [])])
def test_a_meter_for_each_name_that_comes(tmp_path: Path, given: str, found: list[str]) -> None:
    assert told(tmp_path, MADE_ON_DEMAND, "tracker = Tracker()", f'tracker.update({{"loss": {given}}})') == found


RECORDS = """
@dataclass
class Record:
    step: int
    loss: Any


class Step(NamedTuple):
    step: int
    loss: torch.Tensor


class History:
    def __init__(self):
        self.records = []
        self.last = deque(maxlen=8)

    def add(self, record):
        self.records.append(record)

    def remember(self, record):
        self.last.append(record)

    def log(self, step, values):
        row = {"step": step}
        row.update(values)
        self.records.append(row)
"""


@pytest.mark.parametrize(
    ("kept", "found"),
    [
        ("history.add(Record(epoch, loss))", ["MEM102"]),
        ("history.add(Step(epoch, loss))", ["MEM102"]),
        ("history.log(epoch, parts)", ["MEM102"]),
        ("history.add(Record(epoch, loss.item()))", []),
        ("history.add(Step(epoch, loss.detach().cpu()))", []),
        ('history.log(epoch, {"loss": loss.item()})', []),
        pytest.param("history.remember(Record(epoch, loss))", [], id="the last few"),
    ],
)
def test_records_that_another_object_keeps(tmp_path: Path, kept: str, found: list[str]) -> None:
    assert told(tmp_path, RECORDS, "history = History()", kept) == found


TRANSITIONS = """
Transition = namedtuple("Transition", ("state", "action", "reward"))


class Memory:
    def __init__(self):
        self.rows = []

    def push(self, *args):
        self.rows.append({row})


def play(env, net: nn.Module, optimizer, steps):
    memory = Memory()
    state = env.reset()
    for step in range(steps):
        values = net(state.cuda())
        action = values.argmax().item()
        state, reward = env.step(action)
        memory.push({given}, action, reward)
        batch = random.sample(memory.rows, 8)
        loss = net(torch.stack([row[2] for row in batch])).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("row", "given", "found"),
    [
        ("Transition(*args)", "values", ["MEM102"]),
        ("args", "values", ["MEM102"]),
        ("Transition(*args)", "values.detach().cpu()", []),
        ("args", "state", []),
    ],
)
def test_what_stands_beside_numbers_in_a_record(tmp_path: Path, row: str, given: str, found: list[str]) -> None:
    codes = told(tmp_path, TRANSITIONS.format(row=row, given=given), "pass", "pass")
    assert [code for code in codes if code == "MEM102"] == found


TABLE = """
class Mean:
    def __init__(self):
        self.total = 0.0

    def update(self, value):
        self.total += value


class Last:
    def __init__(self):
        self.value = 0.0

    def update(self, value):
        self.value = value


METERS = {"mean": Mean, "last": Last}
KINDS = {}


def register(cls):
    KINDS[cls.__name__] = cls
    return cls


@register
class Sum:
    def __init__(self):
        self.total = 0.0

    def update(self, value):
        self.total = self.total + value


def build(name):
    return KINDS[name]()
"""


@pytest.mark.parametrize(
    ("made", "found"),
    [
        ('METERS["mean"]()', ["MEM101"]),
        ('METERS["last"]()', []),
        ("METERS[epochs]()", ["MEM101"]),
        ("build(epochs)", ["MEM101"]),
    ],
)
def test_meters_of_a_table_of_classes(tmp_path: Path, made: str, found: list[str]) -> None:
    assert told(tmp_path, TABLE, f"meter = {made}", "meter.update(loss)") == found
