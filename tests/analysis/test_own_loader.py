"""Trainers of a class of their own, whose loader is an attribute that nobody in sight sets."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

TRAINER = """
import torch


class {bases}:
    def __init__(self, model, parts, criterion, optimizer, options):
        super().__init__()
        self.model = model
        self.parts = parts
        self.criterion = criterion
        self.optimizer = optimizer
        self.options = options

    def fit(self):
        shown = []
        for epoch in range(self.options.epochs):
            total = 0
            for step, (x, y) in {rounds}:
                x, y = x.cuda(), y.cuda()
                self.optimizer.zero_grad()
                if self.options.kind == "double":
                    out, aside = self.model(x)
                else:
                    out = self.model(x)
                loss = self.criterion(out, y)
                loss.backward()
                self.optimizer.step()
                total += loss
            shown.append(total / len(self.parts))
        return shown
"""


@pytest.mark.parametrize("rounds", ["enumerate(self.parts)", "enumerate(tqdm(self.parts))"])
def test_a_sum_over_the_batches_of_an_attribute(tmp_path: Path, rounds: str) -> None:
    text = "from tqdm import tqdm\n" + TRAINER.format(bases="Trainer", rounds=rounds)
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    found = memlint.lint([tmp_path], isolated=True).findings
    # (backward() frees the batches' graphs on whichever way they were made, so that the list keeps nodes alone)
    assert [(one.code, one.severity) for one in found] == [("MEM101", "warning"), ("MEM102", "note")]


def test_the_parts_of_a_module_are_no_batches(tmp_path: Path) -> None:
    text = TRAINER.format(bases="Trainer(torch.nn.Module)", rounds="enumerate(self.parts)")
    (tmp_path / "train.py").write_text(text.replace("x, y = x.cuda(), y.cuda()", "pass"), encoding="utf-8")
    found = memlint.lint([tmp_path], isolated=True).findings
    assert [one.code for one in found if one.severity != "note"] == []
