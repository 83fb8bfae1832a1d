"""Helpers that run a model for their caller, and give back parts of its output."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

PROGRAM = """
import torch
import torch.nn.functional as F


class Reader:
    def __init__(self, model):
        self.model = model
        self.model.eval()

    def once(self, token, state):
        output, state = self.model(token, state)
        return {given}

    def through(self, token, state):
        word, state = self.once(token, state)
        return word, state

    def read(self, tokens, state=None):
        counts = []
        for token in tokens:
            {body}
        return counts
"""

STEPS = (
    ("output.argmax(-1), state", ("word, state = self.once(token, state)", "print(word)"), "MEM103"),
    ("output, state", ("word, state = self.once(token, state=state)", "print(word.argmax().item())"), "MEM103"),
    ("output, state", ("word, state = self.through(token, state)", "print(word.argmax().item())"), "MEM103"),
    # the state ends with the iteration, or without its graph
    ("output, state", ("word, _ = self.once(token, None)", "print(word.argmax().item())"), ""),
    ("output, state.detach()", ("word, state = self.once(token, state)", "print(word.argmax().item())"), ""),
    ("output, state", ("word, state = self.once(token, state)", "state = state.detach()", "print(word.item())"), ""),
    ("output, state", ("with torch.no_grad():", "    word, state = self.once(token, state)"), ""),
    # the first state stays
    (
        "output, state",
        ("word, new = self.once(token, state)", "if state is None:", "    state = new", "print(word.item())"),
        "",
    ),
    (
        "output, state",
        ("word, new = self.once(token, state)", "state = new if state is None else state", "print(word.item())"),
        "",
    ),
    (
        "output, state",
        ("word, new = self.once(token, state)", "if state is not None:", "    state = new", "print(word.item())"),
        "MEM103",
    ),
    # the second part may be a count, which is displayed
    ("output, state", ("word, count = self.once(token, None)", "counts.append(count)", "print(word.item())"), ""),
    ("output, state", ("word, count = self.through(token, None)", "counts.append(count)", "print(word.item())"), ""),
    # a backward of each iteration would raise if the state kept its graph: the program resets it
    ("output, state", ("word, state = self.once(token, state)", "F.mse_loss(word, token).backward()"), ""),
)


@pytest.mark.parametrize(("given", "body", "code"), STEPS)
def test_state_through_helper(tmp_path: Path, given: str, body: tuple[str, ...], code: str) -> None:
    """A helper that unpacks the model's output hands the state on as the model does."""
    text = PROGRAM.format(given=given, body="\n            ".join(body))
    (tmp_path / "program.py").write_text(text, encoding="utf-8")
    result = memlint.lint([tmp_path], select=["MEM101", "MEM102", "MEM103"], isolated=True)
    assert not result.failures
    assert [finding.code for finding in result.findings] == ([code] if code else [])
