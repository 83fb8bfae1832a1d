"""Functions that are chosen at run time from those in sight: each may be the one that is called."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint


def codes(folder: Path, **files: str) -> list[str]:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return [one.code for one in memlint.lint([folder], isolated=True).findings if one.severity != "note"]


COMMANDS = """
import torch


def show(args):
    model = torch.load(args.path)
    model.eval()
    for x in torch.utils.data.DataLoader(args.data):
        print(model(x.cuda()).argmax(1))


def count(args):
    print(len(args.data))


def main(args):
    with {guard}:
        COMMANDS[args.command](args)


COMMANDS = {{"show": show, "count": count}}
"""


@pytest.mark.parametrize(("guard", "found"), [("torch.no_grad()", []), ("open(args.log)", ["MEM201"])])
def test_a_table_of_commands(tmp_path: Path, guard: str, found: list[str]) -> None:
    assert codes(tmp_path, main=COMMANDS.format(guard=guard)) == found


LOSSES = """
def absolute(out, y):
    loss = (out - y).abs().sum()
    loss.backward()
    return {returned}


def squared(out, y):
    loss = (out - y).square().sum()
    loss.backward()
    return {returned}
"""
FIT = """
import torch
from losses import *


def fit(model, options, loader, optimizer):
    if options.loss == "absolute":
        criterion = absolute
    elif options.loss == "squared":
        criterion = squared
    else:
        raise ValueError(options.loss)

    def epoch():
        total = 0
        for x, y in loader:
            optimizer.zero_grad()
            loss = criterion(model(x), y)
            optimizer.step()
            total += loss
        return total

    for _ in range(10):
        print(float(epoch()))
"""


@pytest.mark.parametrize(("returned", "found"), [("loss.item()", []), ("loss", ["MEM101"])])
def test_a_loss_chosen_by_the_function_around(tmp_path: Path, returned: str, found: list[str]) -> None:
    assert codes(tmp_path, losses=LOSSES.format(returned=returned), train=FIT) == found


FROZEN = """
import torch
from torch import nn


def make(n):
    model, parts = nn.Linear(8, 4096), []
    for parameter in model.parameters():
        parameter.requires_grad = {flag}
    return model, parts


def evaluate(model, loader):
    model.eval()
    return [model(x.cuda()).argmax(1).tolist() for x in loader]


def main(loader):
    model, parts = make(3)
    print(evaluate(model, loader), parts)
"""


@pytest.mark.parametrize(("flag", "found"), [("False", []), ("True", ["MEM201"])])
def test_a_model_that_is_returned_frozen_beside_others(tmp_path: Path, flag: str, found: list[str]) -> None:
    assert codes(tmp_path, main=FROZEN.format(flag=flag)) == found


STEP = """
import torch


def step(out, y):
    loss = (out - y).abs().sum()
    {backward}
    return loss


def fit(model, loader, optimizer):
    total = 0
    for x, y in loader:
        optimizer.zero_grad()
        loss = step(model(x), y)
        optimizer.step()
        total += loss
    print(float(total))
"""


@pytest.mark.parametrize(("backward", "found"), [("loss.backward()", ["MEM101"]), ("loss.print()", [])])
def test_a_callee_that_runs_backward_tells_that_what_it_got_has_a_graph(
    tmp_path: Path, backward: str, found: list[str]
) -> None:
    assert codes(tmp_path, train=STEP.format(backward=backward)) == found


LOADED = """
import torch
import archive


def main(args, rows):
    whole = archive.load(args.path)["average"]{frozen}.to("cuda")
    net = whole.synthesis
    net.eval()
    for row in rows:
        print(net(row.cuda()).mean().item())
"""


@pytest.mark.parametrize(("frozen", "found"), [(".requires_grad_(False)", []), ("", ["MEM201"])])
def test_what_is_frozen_as_it_is_loaded(tmp_path: Path, frozen: str, found: list[str]) -> None:
    assert codes(tmp_path, main=LOADED.format(frozen=frozen)) == found


METRICS = """
import torch
import torch.nn.functional as F
from torch import nn


def rmse(out, y):
    return (out - y).pow(2).mean().sqrt()


def nll(out, y):
    return F.cross_entropy(out, y)


METRICS = {{"rmse": rmse, "nll": nll}}


def score(net, loader, others):
    scores = {{name: [] for name in METRICS}}
    total = 0
    net.cuda().eval()
    with {guard}:
        for x, y in loader:
            out = net(x.cuda())
            {loop}
    return scores, total


score(nn.Linear(3, 4096), torch.utils.data.DataLoader([]), {{}})
"""
LOOP = "for name, fn in {table}.items():\n                scores[name].append(fn(out, y.cuda()))"


@pytest.mark.parametrize(
    ("loop", "guard", "found"),
    [
        (LOOP.format(table="METRICS"), "open('log')", ["MEM102", "MEM201"]),
        (LOOP.format(table="METRICS"), "torch.no_grad()", []),
        (LOOP.format(table="others"), "open('log')", ["MEM201"]),
        (
            "for fn in METRICS.values():\n                total += fn(out, y.cuda())",
            "open('log')",
            ["MEM101", "MEM201"],
        ),
        (
            "for fn in METRICS.values():\n                total += fn(out, y.cuda()).item()",
            "open('log')",
            ["MEM201"],
        ),
    ],
)
def test_each_metric_of_a_table(tmp_path: Path, loop: str, guard: str, found: list[str]) -> None:
    told = codes(tmp_path, main=METRICS.format(loop=loop, guard=guard))
    assert sorted(set(told)) == found
