"""A call that passes a literal runs one side of the tests that ask for it."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

import memlint

TRAIN = """
import contextlib
import torch
from torch import nn


{helper}


def fit(model, loader, optimizer):
    history = []
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        history.append({call})
    return [float(value) for value in history]
"""

COPY = """
def copied(value, cut={default}):
    if cut:
        value = value.detach()
    return value * 1
"""

MODE = """
def shown(value, how="value"):
    return value.item() if how == "number" else value
"""

ABSENT = """
def kept(value, to=None):
    if to is not None:
        value = value.detach().to(to)
    return value
"""


@pytest.mark.parametrize(
    ("helper", "call", "codes"),
    [
        (COPY.format(default="False"), "copied(loss, True)", []),
        (COPY.format(default="False"), "copied(loss, cut=True)", []),
        (COPY.format(default="False"), "copied(loss)", ["MEM102"]),
        (COPY.format(default="True"), "copied(loss)", []),
        (COPY.format(default="True"), "copied(loss, cut=False)", ["MEM102"]),
        (MODE, 'shown(loss, "number")', []),
        (MODE, "shown(loss)", ["MEM102"]),
        (ABSENT, 'kept(loss, "cpu")', []),
        (ABSENT, "kept(loss)", ["MEM102"]),
    ],
)
def test_the_side_that_the_literal_chooses(tmp_path: Path, helper: str, call: str, codes: list[str]) -> None:
    assert codes_in(tmp_path, TRAIN.format(helper=helper, call=call)) == codes


GUARD = """
import contextlib
import torch


class Runner:
    def __init__(self):
        self.model = torch.nn.Linear(8, 8).cuda()

    @contextlib.contextmanager
    def mode(self, training):
        self.model.train(training)
        with {guard}:
            yield

    def predict(self, loader):
        outputs = []
        with self.mode(False):
            for x in loader:
                outputs.append(self.model(x))
        return torch.cat(outputs).argmax(1).tolist()
"""


def test_a_guard_of_ones_own_is_what_its_flag_says(tmp_path: Path) -> None:
    assert codes_in(tmp_path, GUARD.format(guard="torch.set_grad_enabled(training)")) == []
    assert "MEM102" in codes_in(tmp_path, GUARD.format(guard="torch.set_grad_enabled(not training)"))


def test_a_flag_that_was_given_another_value_since_is_not_known(tmp_path: Path) -> None:
    helper = "def copied(value, cut=False):\n    cut = value.numel() > 3\n    return value.detach() if cut else value\n"
    assert codes_in(tmp_path, TRAIN.format(helper=helper, call="copied(loss, True)")) == ["MEM102"]


MERGED = """
import torch
from torch import nn


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = 4

    def forward(self, outputs, mask):
        for i in range(self.scales):
            outputs[i] = outputs[i][mask]
        return sum(outputs)
"""


def test_a_member_that_is_replaced_by_a_part_of_itself_does_not_grow(tmp_path: Path) -> None:
    assert codes_in(tmp_path, MERGED) == []


BOTH = """
import torch


def run_epoch(loader, model, criterion, optimizer=None):
    total = 0.0
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        if {test}:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total / len(loader)


def fit(train_loader, valid_loader, model, criterion, optimizer):
    for epoch in range(10):
        model.train()
        run_epoch(train_loader, model, criterion, optimizer)
        model.eval()
        {guard}
            run_epoch(valid_loader, model, criterion{given})
"""


@pytest.mark.parametrize("test", ["optimizer is not None", "optimizer != None", "optimizer", "not (optimizer is None)"])
@pytest.mark.parametrize(
    ("guard", "given", "expected"),
    [
        ("if True:", "", ["MEM201"]),
        ("if True:", ", None", ["MEM201"]),
        ("if True:", ", optimizer", []),
        ("with torch.no_grad():", "", []),
    ],
)
def test_a_helper_that_trains_where_it_gets_an_optimizer(
    tmp_path: Path, test: str, guard: str, given: str, expected: list[str]
) -> None:
    (tmp_path / "epochs.py").write_text(BOTH.format(test=test, guard=guard, given=given), encoding="utf-8")
    assert [one.code for one in memlint.lint([tmp_path], isolated=True).findings] == expected


NAMESAKE = """
import torch
from torch import nn


def warm_up(model, loader, optimizer, {flag}=False):
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x), y)
        if not {flag}:
            loss.backward()
        optimizer.step()


def fit(model, loader, optimizer, dry=False):
    history = []
    for x, y in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y)
        if not dry:
            loss.backward()
        optimizer.step()
        history.append(loss)
    return [float(value) for value in history]


def main(model, loader, optimizer):
    warm_up(model, loader, optimizer)
    fit(model, loader, optimizer, dry={passed})
"""


@pytest.mark.parametrize("flag", ["dry", "quiet"])
@pytest.mark.parametrize(("passed", "severity"), [("True", "note"), ("False", "warning")])
def test_a_flag_is_that_of_its_own_function(tmp_path: Path, flag: str, passed: str, severity: str) -> None:
    (tmp_path / "train.py").write_text(NAMESAKE.format(flag=flag, passed=passed))
    (found,) = memlint.lint([tmp_path], min_confidence="low").findings
    assert (found.code, found.severity) == ("MEM102", severity)
