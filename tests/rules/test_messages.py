"""A message has at most two hundred characters: long names in it are shortened, the sentence is not (`programs.lint`
looks at the messages of all pages and fixtures)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from programs import assert_well_worded, findings

from memlint.wording import MOST, as_number, detached, fitted, grouped

LONG = """
import torch
from torch import nn


def train(model, LOADER, optimizer, criterion, HISTORY):
    TOTAL = 0
    for INPUTS, TARGETS in LOADER:
        LOSS = criterion(model(INPUTS.cuda()), TARGETS.cuda())
        optimizer.zero_grad()
        LOSS.backward()
        optimizer.step()
        TOTAL += LOSS
        HISTORY.append(LOSS)
    return TOTAL


def validate(MODEL: nn.Module, LOADER):
    MODEL.eval()
    OUTPUTS = []
    for INPUTS, _ in LOADER:
        OUTPUTS.append(MODEL(INPUTS.cuda()))
    return torch.cat(OUTPUTS).argmax(dim=1)


@torch.no_grad()
def features(MODEL: nn.Module, LOADER):
    MODEL.eval()
    OUTPUTS = []
    FEATURES = torch.empty(0).cuda()
    for INPUTS, _ in LOADER:
        OUTPUTS.append(MODEL.features(INPUTS.cuda()))
        FEATURES = torch.cat([FEATURES, MODEL.features(INPUTS.cuda())])
    return OUTPUTS, FEATURES
"""


@pytest.mark.parametrize("length", [1, 40, 200])
def test_long_names_are_shortened_and_the_sentence_is_not(length: int, tmp_path: Path) -> None:
    def named(length: int) -> str:
        return re.sub(r"\b[A-Z]{4,}\b", lambda word: word[0].lower() + "_of_a_long_name" * (length // 15), LONG)

    def prose(folder: str, text: str) -> list[tuple[str, str]]:
        found = findings(tmp_path / folder, {"train.py": text})
        assert_well_worded(found)
        return [(one.code, re.sub("`[^`]*`", "``", one.message)) for one in found]

    usual = prose("usual", named(0))
    assert {code for code, _ in usual} >= {"MEM101", "MEM102", "MEM104", "MEM201", "MEM302"}
    assert prose("long", named(length)) == usual


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("short `x`", "short `x`"),
        (f"`{'a' * 300}` grows", f"`{'a' * 128}…{'a' * 63}` grows"),
        (f"`{'a' * 120}` keeps `b` of `{'c' * 120}`", None),
    ],
)
def test_the_longest_names_give_way(message: str, expected: str | None) -> None:
    found = fitted(message)
    assert len(found) <= MOST
    assert expected in (None, found)
    assert re.sub("`[^`]*`", "``", found) == re.sub("`[^`]*`", "``", message)


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x", "x"),
        ("self.head.weight", "self.head.weight"),
        ("model(x)[0]", "model(x)[0]"),
        ("…().float().cpu()", "…().float().cpu()"),
        ("a + b", "(a + b)"),
        ("-x", "(-x)"),
        ("x if y else z", "(x if y else z)"),
        ("model(x, y, …", "(model(x, y, …)"),
    ],
)
def test_a_method_is_called_on_the_whole_expression(code: str, expected: str) -> None:
    assert grouped(code) == expected


@pytest.mark.parametrize(
    ("code", "expected", "number"),
    [
        ("loss", "loss.detach()", "loss.item()"),
        ("a + b", "(a + b).detach()", "(a + b).item()"),
        ("model(x).cpu()", "model(x).detach().cpu()", "model(x).item()"),
        ("out.to('cpu')", "out.detach().to('cpu')", "out.item()"),
        ('out.to("cpu", torch.float32)', 'out.detach().to("cpu", torch.float32)', "out.item()"),
        ("out.to(device='cpu')", "out.detach().to(device='cpu')", "out.item()"),
        ("out.to(torch.device('cpu'))", "out.detach().to(torch.device('cpu'))", "out.item()"),
        ("out.to(device)", "out.to(device).detach()", "out.to(device).item()"),
        ("out.cpu() + 1", "(out.cpu() + 1).detach()", "(out.cpu() + 1).item()"),
        ("out.cpu()[0]", "out.cpu()[0].detach()", "out.cpu()[0].item()"),
        ("a + b.cpu()", "(a + b.cpu()).detach()", "(a + b.cpu()).item()"),
    ],
)
def test_a_graph_is_cut_before_the_tensor_is_moved(code: str, expected: str, number: str) -> None:
    assert (detached(code), as_number(code)) == (expected, number)
