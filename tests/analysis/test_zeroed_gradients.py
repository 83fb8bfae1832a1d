"""Gradients of zeros: where they are there during a forward, and where they cost nothing or are meant."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint.finding import Finding

PROGRAM = """
import torch
from torch import nn


def train(model, other, loader, optimizer, criterion, names, rate):
    for step, (x, y) in enumerate(loader):
        {body}
"""
FORWARD = "loss = criterion(model(x), y)"
BACKWARD = "loss.backward()"
#: what goes on to use the memory that the gradients had
FIXED = ["graph = torch.cuda.CUDAGraph()", "run = torch.cuda.make_graphed_callables", "at = p.grad.data_ptr()"]
STEP = "optimizer.step()"
FLAG = "optimizer.zero_grad(set_to_none=False)"


def found(folder: Path, *body: str, text: str = PROGRAM) -> list[Finding]:
    (folder / "pyproject.toml").touch()
    lines = "\n".join(body).replace("\n", "\n        ")
    (folder / "program.py").write_text(text.replace("{body}", lines), encoding="utf-8")
    return [one for one in memlint.lint([folder], isolated=True, preview=True).findings if one.code == "MEM306"]


def by_hand(zeroed: str, over: str = "model.parameters()", target: str = "p", test: str = "") -> str:
    lines = zeroed.split("; ")
    if test:
        lines = [f"if {test}:", *(f"    {line}" for line in lines)]
    return "\n".join([f"for {target} in {over}:", *(f"    {line}" for line in lines)])


@pytest.mark.parametrize(
    "zeroing",
    [
        FLAG,
        "optimizer.zero_grad(False)",
        "model.zero_grad(set_to_none=False)",
        by_hand("p.grad.zero_()"),
        by_hand("p.grad.data.zero_()"),
        by_hand("p.grad.detach_(); p.grad.zero_()"),
        by_hand("p.grad.fill_(0)"),
        by_hand("p.grad = torch.zeros_like(p)"),
        by_hand("p.grad.zero_()", test="p.grad is not None"),
        by_hand("p.grad.zero_()", test="p.requires_grad and p.grad is not None"),
        by_hand("p.grad.zero_()", "model.named_parameters()", "_, p", "p.grad is not None"),
    ],
)
@pytest.mark.parametrize("first", [True, False])
def test_zeros_during_a_forward(tmp_path: Path, zeroing: str, first: bool) -> None:
    body = (zeroing, FORWARD, BACKWARD, STEP) if first else (FORWARD, BACKWARD, STEP, zeroing)
    (one,) = found(tmp_path, *body)
    assert (one.severity, one.growth.memory, one.growth.kind) == ("note", "device-tensor", "peak")


@pytest.mark.parametrize(
    "body",
    [
        # the old gradients are there at the peak either way
        (FORWARD, FLAG, BACKWARD, STEP),
        (FORWARD, by_hand("p.grad.zero_()"), BACKWARD, STEP),
        (FORWARD, "with torch.no_grad():", "    model.zero_grad(False)", BACKWARD, STEP),
        # they go
        ("optimizer.zero_grad()", FORWARD, BACKWARD, STEP),
        ("optimizer.zero_grad(set_to_none=True)", FORWARD, BACKWARD, STEP),
        ("optimizer.zero_grad(set_to_none=rate)", FORWARD, BACKWARD, STEP),
        (by_hand("p.grad = None"), FORWARD, BACKWARD, STEP),
        # they are accumulated
        (FLAG, "for part in x:", "    loss = criterion(model(part), y)", "    loss.backward()", STEP),
        (FORWARD, BACKWARD, "if step % 8 == 0:", f"    {STEP}", f"    {FLAG}"),
        # some of them, or the step's own
        (by_hand("p.grad.zero_()", "model.named_parameters()", "n, p", "n in names"), FORWARD, BACKWARD, STEP),
        (by_hand("p.data -= rate * p.grad; p.grad.zero_()"), FORWARD, BACKWARD),
        (by_hand("p.grad.zero_()", test="p.grad is None"), FORWARD, BACKWARD),
        (by_hand("p.grad.zero_()", test="p.grad is not None or names"), FORWARD, BACKWARD),
        (by_hand("p.zero_()"), FORWARD, BACKWARD),
        (by_hand("p.grad.fill_(1)"), FORWARD, BACKWARD),
        (by_hand("other.grad.zero_()"), FORWARD, BACKWARD),
        # not a forward, or not a backward, in sight
        (FLAG, "loss = criterion(x, y)", BACKWARD, STEP),
        (FLAG, "if step:", "    loss = model(x)"),
        (FLAG, "print(model(x))"),
        (by_hand("p.grad.zero_()"), FORWARD, STEP),
        ("x.grad.zero_()", FORWARD, BACKWARD),
    ],
)
def test_where_nothing_is_to_be_gained(tmp_path: Path, body: tuple[str, ...]) -> None:
    assert found(tmp_path, *body) == []


@pytest.mark.parametrize("fixed", FIXED)
def test_gradients_whose_addresses_were_recorded(tmp_path: Path, fixed: str) -> None:
    assert found(tmp_path, FLAG, FORWARD, BACKWARD, STEP, text=f"{PROGRAM}\n\ndef record():\n    {fixed}\n") == []


def test_a_zero_grad_of_the_projects_own(tmp_path: Path) -> None:
    own = "\n\nclass Flat(torch.optim.SGD):\n    def zero_grad(self, set_to_none=True):\n        self.flat.zero_()\n"
    assert found(tmp_path, FLAG, FORWARD, BACKWARD, STEP, text=PROGRAM + own) == []


def test_the_fix_is_the_authors_to_take(tmp_path: Path) -> None:
    (one,) = found(tmp_path, FLAG, FORWARD, BACKWARD, STEP)
    assert one.fix is not None and one.fix.safety == "unsafe"
    assert [edit.content for edit in one.fix.edits] == ["True"]
    assert one.fix.doubt is not None and "momentum" in one.fix.doubt
    (one,) = found(tmp_path, by_hand("p.grad.zero_()"), FORWARD, BACKWARD, STEP)
    assert one.fix is None and "model.zero_grad()" in one.help
