"""Graphs that somebody else wants, numbers that only look like tensors, and copies that no list can save."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

PENALTY = """
import torch


class Anchor:
    def __init__(self, weight):
        self.weight = weight
        self.old = {{}}

    def before_backward(self, trainer):
        penalty = torch.tensor(0.0).to(trainer.device)
        for task in range(trainer.tasks):
            for name, param in trainer.model.named_parameters():
                penalty += (param - self.old[task][name]).pow(2).sum()
        {use}
{more}
"""

STEP = """
class Trainer:
    def forward(self, x):
        self.objective = self.model(x).mean()
        self.anchor.before_backward(self)

    def backward(self):
        self.objective.backward()
"""


@pytest.mark.parametrize(
    ("use", "more", "codes"),
    [
        ("trainer.loss += self.weight * penalty", "", []),
        ("trainer.objective = trainer.objective + penalty", STEP, []),
        ("trainer.shown = self.weight * penalty", "", ["MEM101"]),
    ],
)
def test_a_sum_that_becomes_a_part_of_a_loss(tmp_path: Path, use: str, more: str, codes: list[str]) -> None:
    (tmp_path / "anchor.py").write_text(PENALTY.format(use=use, more=more))
    assert [found.code for found in memlint.lint([tmp_path]).findings] == codes


GIVEN_UP = """
import torch
from torch import nn


def step(model, optimizer, x, y):
    loss = nn.functional.cross_entropy(model(x), y)
    if {test}:
        return loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def fit(loader, optimizer):
    model = nn.Linear(8, 8)
    total = 0
    for x, y in loader:
        total += step(model, optimizer, x, y)
    return total
"""


@pytest.mark.parametrize(("test", "codes"), [("loss == 0.0", []), ("loss < 0.1", ["MEM101"])])
def test_what_equals_a_number_and_is_returned_is_that_number(tmp_path: Path, test: str, codes: list[str]) -> None:
    (tmp_path / "fit.py").write_text(GIVEN_UP.format(test=test))
    assert [found.code for found in memlint.lint([tmp_path]).findings] == codes


SEARCH = """
import torch


@torch.no_grad()
def search(model, x):
    model.eval()
    found = torch.ones(4, 1, 64, 64).cuda()
    while True:
        maps = model(x.cuda())
        order = maps.sum(dim=(1, 2)).sort()[1]
        found = torch.cat([{old}, maps[order].unsqueeze(1)], dim=1)
        if order[0] == 0:
            return found
"""


@pytest.mark.parametrize(("old", "severity"), [("found[order]", "note"), ("found", "warning")])
def test_rows_that_are_brought_into_another_order_are_copied_anyway(tmp_path: Path, old: str, severity: str) -> None:
    (tmp_path / "search.py").write_text(SEARCH.format(old=old))
    assert [found.severity for found in memlint.lint([tmp_path], select=["MEM302"]).findings] == [severity]


FORCES = """
import torch
from torch import nn
from forces import parts


class Potential(nn.Sequential):
    def forward(self, graph):
        graph["positions"].requires_grad_(True)
        for module in self:
            graph = module(graph)
        return graph


def infer(loader):
    model = Potential(*parts()).cuda()
    model.eval()
    energies = []
    for graph in loader:
        result = model(graph.to("cuda"))
        energies.append({kept})
    print(len(energies))
"""


@pytest.mark.parametrize(("kept", "codes"), [("result", {"MEM102"}), ("result.detach().cpu()", set())])
def test_a_model_that_differentiates_needs_no_guard_and_its_outputs_need_a_cut(
    tmp_path: Path, kept: str, codes: set[str]
) -> None:
    (tmp_path / "infer.py").write_text(FORCES.format(kept=kept))
    assert {one.code for one in memlint.lint([tmp_path], isolated=True).findings} == codes


FILLED = """
import torch
from torch import nn


class Trainer:
    def __init__(self, loader, optimizer):
        self.depth = nn.Linear(4, 4)
        self.control = nn.Linear(4, 4)
        self.loader = loader
        self.optimizer = optimizer

    def set_train(self):
        self.depth.eval()
        self.control.train()

    def predict(self, inputs, outputs):
        control = self.control(inputs)
        {place} = self.depth(control)

    def run(self):
        self.set_train()
        for inputs in self.loader:
            outputs = {{"other": self.control(inputs)}}
            self.predict(inputs, outputs)
            self.optimizer.zero_grad()
            outputs[{read}].abs().mean().backward()
            self.optimizer.step()
"""


@pytest.mark.parametrize(
    ("place", "read", "found"),
    [
        pytest.param('outputs["disp"]', '"disp"', 0, id="a key"),
        pytest.param('outputs[("disp", 0)]', '("disp", 0)', 0, id="a tuple as key"),
        pytest.param('outputs["disp"]', '"other"', 1, id="what else is in it"),
        pytest.param("outputs", '"other"', 1, id="a name of the callee alone"),
    ],
)
def test_what_a_callee_puts_into_its_argument(tmp_path: Path, place: str, read: str, found: int) -> None:
    """A model in eval mode, of which a backward comes by way of the dictionary that the callee has filled."""
    (tmp_path / "train.py").write_text(FILLED.format(place=place, read=read))
    result = memlint.lint([tmp_path], select=["MEM201"])
    assert len(result.findings) == found


LINE_SEARCH = """
import torch


def total(model, loader):
    losses = []
    for x in loader:
        losses.append(model(x).mean())
    return torch.stack(losses).mean(), len(losses)


def search(model, loader):
    before, _ = total(model, loader)
    {gradient}
    before.detach_()
    for _ in range(10):
        after, _ = total(model, loader)
        if after < before:
            return after.item()


search(torch.nn.Linear(3, 1).cuda(), torch.utils.data.DataLoader([]))
"""


@pytest.mark.parametrize(
    ("gradient", "expected"),
    [
        ("print(torch.autograd.grad(before, model.parameters()))", False),
        ("before.backward()", False),
        ("print(before)", True),
        ("tracker.update(before)", True),
    ],
)
def test_what_a_caller_is_cut_off_from_after_its_backward(tmp_path: Path, gradient: str, expected: bool) -> None:
    (tmp_path / "search.py").write_text(LINE_SEARCH.format(gradient=gradient))
    assert ("MEM102" in {one.code for one in memlint.lint([tmp_path]).findings}) is expected
