"""What surely runs and what never does: tests that hold always, the program's end, guards that their name tells."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint import Finding


def findings(tmp_path: Path, text: str) -> list[Finding]:
    (tmp_path / "run.py").write_text(text)
    result = memlint.lint([tmp_path])
    assert not result.failures
    return list(result.findings)


ENDS = """
import os
import sys
from sys import exit as leave

import torch


def scores(model, loader):
    model.eval()
    kept = []
    {end}
    for x in loader:
        kept.append(model(x))
    return kept
"""


@pytest.mark.parametrize("end", ["sys.exit()", "exit(0)", "quit()", "os._exit(1)", "leave(2)"])
def test_nothing_runs_behind_the_end_of_the_program(tmp_path: Path, end: str) -> None:
    assert findings(tmp_path, ENDS.replace("{end}", end)) == []


@pytest.mark.parametrize(
    "end",
    [
        "if not kept:\n        print()",
        "model.exit()",
        "if loader is None:\n        sys.exit()",
        "exit",
        "os.kill(1, 15)",
    ],
)
def test_what_does_not_end_it(tmp_path: Path, end: str) -> None:
    assert {one.code for one in findings(tmp_path, ENDS.replace("{end}", end))} == {"MEM102", "MEM201"}


def test_an_exit_of_the_projects_own_may_come_back(tmp_path: Path) -> None:
    text = ENDS.replace("{end}", "exit(kept)") + "\n\ndef exit(value):\n    return value\n"
    assert {one.code for one in findings(tmp_path, text)} == {"MEM102", "MEM201"}


CHOICE = """
import torch


def train(model, loader, kind):
    kept = []
    for x in loader:
        loss = model(x).mean()
        if kind == "a":
            loss.backward()
        elif {test}:
            loss.backward()
        kept.append(loss)
"""


@pytest.mark.parametrize(
    ("test", "freed"),
    [('kind == "b" or "c"', True), ('kind == "b" or kind == "c"', False), ('kind == "b" or ""', False)],
)
def test_a_text_that_is_a_test_by_itself(tmp_path: Path, test: str, freed: bool) -> None:
    (found,) = findings(tmp_path, CHOICE.replace("{test}", test))
    assert ("backward() frees its saved activations" in found.message) is freed


GUARD = """
import torch
from outside import {name}


def scores(model, loader):
    model.eval()
    right = 0
    for x, y in loader:
        with {name}(model):
            right += (model(x).argmax(1) == y).sum().item()
    return right
"""


@pytest.mark.parametrize(
    ("name", "codes"),
    [
        ("ctx_noparamgrad_and_eval", []),
        ("disable_grad", []),
        ("NoGradScope", []),
        ("autocast", ["MEM201"]),
        ("mono_gradient_tape", ["MEM201"]),
        ("disable_gradient_checkpointing", ["MEM201"]),
        ("gradient_tape", ["MEM201"]),
    ],
)
def test_a_guard_that_cannot_be_followed_is_known_by_its_name(tmp_path: Path, name: str, codes: list[str]) -> None:
    assert [one.code for one in findings(tmp_path, GUARD.replace("{name}", name))] == codes


LOSSES = """
import torch


def check({loss}, model, loader):
    model.eval()
    total = 0.0
    for x, y in loader:
        with torch.no_grad():
            made = model(x)
        total += {loss}({args}).item()
    return total
"""


@pytest.mark.parametrize(
    ("loss", "args", "codes"),
    [
        ("loss_fn", "made, y", []),
        ("criterion", "made, y", []),
        ("net", "made, y", ["MEM201"]),
    ],
)
def test_a_loss_records_what_it_compares(tmp_path: Path, loss: str, args: str, codes: list[str]) -> None:
    text = (
        LOSSES.replace("{loss}", loss).replace("{args}", args).replace("model.eval()", f"model.eval(); {loss}.eval()")
    )
    assert [one.code for one in findings(tmp_path, text)] == codes


BRAIN = """
import speechbrain as sb
import torch


class Recogniser({base}):
    def __init__(self):
        self.net = torch.nn.Linear(3, 3)

    def {method}(self, batch, stage):
        return self.net(batch).argmax(-1).tolist()


def run(recogniser: Recogniser, loader):
    for batch in loader:
        recogniser.{method}(batch, 1)
"""


@pytest.mark.parametrize(
    ("base", "method", "codes"),
    [
        ("sb.Brain", "compute_forward", []),
        ("sb.Brain", "evaluate_batch", []),
        ("object", "compute_forward", ["MEM201"]),
    ],
)
def test_what_speechbrain_runs_in_training_and_under_a_guard(
    tmp_path: Path, base: str, method: str, codes: list[str]
) -> None:
    text = BRAIN.replace("{base}", base).replace("{method}", method)
    assert [one.code for one in findings(tmp_path, text)] == codes
