"""Rounds without a backward whose graph is alive in the next round: which are, and what ends it."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint import Finding

PROGRAM = """
import math
import torch
from torch import nn
from library import consume


def train(model: nn.Module, loader, optimizer, criterion, options, training=True):
    {before}
    for step, (x, y) in enumerate(loader):
        {body}
"""


def found(tmp_path: Path, *body: str, before: str = "total = 0") -> list[Finding]:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(PROGRAM.format(body="\n        ".join(body), before=before))
    result = memlint.lint([tmp_path], isolated=True, preview=True)
    assert not result.failures
    return [each for each in result.findings if each.code == "MEM115"]


RUN = ("output = model(x.cuda())", "loss = criterion(output, y.cuda())")
LEARN = ("loss.backward()", "optimizer.step()", "optimizer.zero_grad()")


@pytest.mark.parametrize(
    "skip",
    [
        ("if not torch.isfinite(loss):", "    continue"),
        ("if math.isnan(loss.item()):", "    print('skipped')", "    continue"),
        ("if loss > 100:", "    optimizer.zero_grad()", "    torch.cuda.empty_cache()", "    continue"),
        ("if loss > 100:", "    if step > 3:", "        continue"),
        ("if loss > 100:", "    del output", "    continue"),
        ("if loss > 100:", "    loss = loss * 0", "    continue"),
    ],
)
def test_a_round_that_is_left(tmp_path: Path, skip: tuple[str, ...]) -> None:
    (finding,) = found(tmp_path, *RUN, *skip, *LEARN)
    assert (finding.severity, finding.growth.memory, finding.growth.kind) == ("note", "device-graph", "peak")
    assert "`loss` still holds" in finding.message


@pytest.mark.parametrize(
    "body",
    [
        pytest.param((*RUN, "if loss > 9:", "    del loss, output", "    continue", *LEARN), id="deleted"),
        pytest.param((*RUN, "if loss > 9:", "    loss = output = None", "    continue", *LEARN), id="let go"),
        pytest.param((*RUN, "if loss > 9:", "    loss.backward()", "    continue", *LEARN), id="freed there"),
        pytest.param((*RUN, "if loss > 9:", "    break", *LEARN), id="the last round"),
        pytest.param((*RUN, *LEARN, "if loss > 9:", "    continue", "print(loss)"), id="behind the backward"),
        pytest.param(("if len(x) < 2:", "    continue", *RUN, *LEARN), id="before the model"),
        pytest.param(("loss = output = None", *RUN, "if loss > 9:", "    continue", *LEARN), id="bound before it"),
        pytest.param(
            ("loss = criterion(model(x), y)", "if loss > 9:", "    loss = loss.item()", "    continue", *LEARN),
            id="only a number is left",
        ),
        pytest.param(
            ("try:", "    loss = criterion(model(x), y)", "except ValueError:", "    continue", *LEARN), id="raised"
        ),
        pytest.param(
            ("with torch.no_grad():", "    output = model(x)", "if output.max() > 9:", "    continue",
             "loss = criterion(model(x), y)", *LEARN), id="no graph"
        ),
        pytest.param((*RUN, "if loss > 9:", "    continue", "print(loss)"), id="no backward at all"),
        pytest.param((*RUN, "if not training:", "    continue", *LEARN), id="what the loop is for"),
        pytest.param(
            (*RUN, "total = total + loss", "if step % 4:", "    continue", "total.backward()", "total = 0"), id="a sum"
        ),
        pytest.param(
            ("kept = []", "for part in x:", "    kept.append(criterion(model(part), y))", "    if len(kept) < 4:",
             "        continue", "    torch.stack(kept).sum().backward()", "    kept = []"), id="several kept"
        ),
    ],
)  # fmt: skip
def test_a_round_whose_graph_is_gone(tmp_path: Path, body: tuple[str, ...]) -> None:
    assert found(tmp_path, *body) == []


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        ("step % 5 == 0", 1),
        ("loss > 0", 1),
        ("not torch.isnan(loss)", 1),
        ("training", 0),
        ("model.training", 0),
        ("options.learn", 0),
        ("optimizer is not None", 0),
        ("loss.requires_grad", 0),
        ("loss is not None", 0),
        ("not (loss is None)", 0),
        ("loss is not None and loss > 0", 1),
    ],
)
def test_a_backward_that_is_left_out(tmp_path: Path, test: str, expected: int) -> None:
    body = (*RUN, f"if {test}:", *(f"    {line}" for line in LEARN))
    assert len(found(tmp_path, *body)) == expected


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            (*RUN, "total = total + loss", "if step % 4 == 0:", "    total.backward()", "    total = 0"), id="sum"
        ),
        pytest.param((*RUN, "if loss > 0:", "    loss.backward()", "else:", "    del loss, output"), id="other side"),
        pytest.param((*RUN, "if step % 2 == 0:", "    loss.backward()", "loss = output = None"), id="let go"),
        pytest.param(("if step % 2 == 0:", *(f"    {line}" for line in (*RUN, *LEARN))), id="the model as well"),
    ],
)
def test_a_backward_that_is_not_missed(tmp_path: Path, body: tuple[str, ...]) -> None:
    assert found(tmp_path, *body) == []


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (("hidden = model(x, hidden)", "loss = criterion(hidden, y)"), 0),
        (("hidden = model(x, hidden.detach())", "loss = criterion(hidden, y)"), 1),
        (("scale = scale * 0.9", "loss = criterion(model(x), y) * scale"), 1),
        (("kept.append(criterion(model(x), y))", "loss = sum(kept)"), 0),
    ],
)
def test_what_goes_from_round_to_round(tmp_path: Path, body: tuple[str, ...], expected: int) -> None:
    skip = ("if loss > 9:", "    continue")
    before = "hidden, scale, kept = consume(), torch.ones(1), []"
    assert len(found(tmp_path, *body, *skip, *LEARN, before=before)) == expected


@pytest.mark.parametrize(
    "body",
    [
        pytest.param((*RUN, "total += loss", "if loss > 9:", "    continue", *LEARN), id="a sum keeps it"),
        pytest.param((*RUN, "kept.append(output)", "if step % 9 == 0:", "    loss.backward()"), id="a list keeps it"),
        pytest.param(
            (*RUN, "done = consume(output)", "if not done:", "    loss.backward()"), id="somebody else's backward"
        ),
    ],
)
def test_what_is_no_matter_of_variables(tmp_path: Path, body: tuple[str, ...]) -> None:
    assert found(tmp_path, *body, before="total, kept = 0, []") == []


def test_what_still_holds_it_is_named(tmp_path: Path) -> None:
    body = (*RUN, "if loss > 9:", "    del loss", "    continue", *LEARN)
    (finding,) = found(tmp_path, *body)
    assert "`output` still holds what `model` saved" in finding.message


ROUNDS = """
import torch
from torch import nn


def train(model: nn.Module, x, y, optimizer, criterion, count, limit=0.1):
    error = 1.0
    {head}:
        loss = criterion(model(x.cuda()), y.cuda())
        error = loss.item()
        if {test}:
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        {then}
"""


@pytest.mark.parametrize(
    ("head", "test", "then", "expected"),
    [
        ("while error > limit", "error > limit", "pass", 0),  # otherwise the loop ends
        ("while error > limit", "error > 2 * limit", "pass", 1),
        ("while error > limit", "error > limit", "error = 1.0", 1),
        ("for step in range(count + 1)", "step < count + 1", "pass", 0),
        ("for step in range(1, count)", "step < count", "pass", 0),
        ("for step in range(count)", "step < count - 1", "pass", 1),
        ("for step in range(count)", "step < count", "count = count - 1", 1),
        ("for step in range(0, count, 2)", "error < count", "pass", 1),
    ],
)
def test_a_condition_that_each_round_meets(tmp_path: Path, head: str, test: str, then: str, expected: int) -> None:
    (tmp_path / "train.py").write_text(ROUNDS.format(head=head, test=test, then=then))
    findings = memlint.lint([tmp_path], isolated=True, preview=True).findings
    assert [one.code for one in findings].count("MEM115") == expected
