"""Functions that are handed to code of a library, which calls them: under the grad mode that was there, most likely."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

SOURCE = """
import functools

import torch
from solvers import BaseSolver


class Solver(BaseSolver):
    def run(self):
        with {guard}:
            {handed}

    def evaluate(self):
        raise NotImplementedError


class Own(Solver):
    def __init__(self, model: torch.nn.Module, loader):
        self.model = model
        self.loader = loader

    def evaluate(self):
        self.model.eval()
        for x in self.loader:
            print(self.model(x).argmax())
"""


@pytest.mark.parametrize(("guard", "codes"), [("torch.no_grad()", []), ("self.best_state()", ["MEM201"])])
@pytest.mark.parametrize(
    "handed",
    [
        pytest.param('self.run_stage("evaluate", self.evaluate)', id="the method that is overridden"),
        pytest.param("self.run_stage(functools.partial(self.evaluate))", id="a partial function of it"),
        pytest.param('self.run_stage({"valid": self.run, "eval": self.evaluate}[self.stage])', id="out of a table"),
    ],
)
def test_an_override_that_the_base_hands_to_a_library(
    tmp_path: Path, handed: str, guard: str, codes: list[str]
) -> None:
    source = SOURCE.format(guard=guard, handed=handed)
    assert codes_in(tmp_path, source) == codes


SIBLING = """

class Other(Solver):
    def evaluate_all(self):
        with torch.no_grad():
            self.run_stage("evaluate", self.evaluate)
"""


@pytest.mark.parametrize(
    "handed",
    [
        pytest.param("pass", id="nowhere else"),
        pytest.param('self.run_stage("evaluate", self.evaluate)', id="elsewhere under none"),
    ],
)
def test_what_another_class_hands_on_is_its_own(tmp_path: Path, handed: str) -> None:
    source = SOURCE.format(guard="self.best_state()", handed=handed) + SIBLING
    assert codes_in(tmp_path, source) == ["MEM201"]


FUNCTION = """
import torch
from runners import run


def evaluate(model: torch.nn.Module, loader):
    model.eval()
    for x in loader:
        print(model(x).argmax())


def main(model: torch.nn.Module, loader):
    with torch.no_grad():
        run(evaluate, model, loader)
{also}
"""


@pytest.mark.parametrize(
    ("also", "codes"),
    [
        pytest.param("", [], id="only there"),
        pytest.param("    evaluate(model, loader)", ["MEM201"], id="called under none"),
    ],
)
def test_a_function_that_is_handed_to_a_library(tmp_path: Path, also: str, codes: list[str]) -> None:
    assert codes_in(tmp_path, FUNCTION.format(also=also)) == codes
