"""What a test tells of a value: in the branch of numbers there is no graph to keep."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

INTEGRATOR = """
import torch


class Integrator:
    def __init__(self):
        self.values = {{}}

    def add(self, key, value):
        if {test}:
            {one}
        else:
            {other}

    def add_all(self, found):
        for key, value in found.items():
            self.add(key, value)


def train(model, loader, criterion, optimizer):
    integrator = Integrator()
    for x, y in loader:
        losses = {{"total": criterion(model(x), y)}}
        optimizer.zero_grad()
        losses["total"].backward()
        optimizer.step()
        integrator.add_all(losses)
    print(integrator.values)
"""
AS_IT_IS, AS_NUMBER = ("self.values[key] = self.values.get(key, 0) + value" + cut for cut in ("", ".mean().item()"))


@pytest.mark.parametrize(
    "test",
    [
        "isinstance(value, float)",
        "isinstance(value, float) or isinstance(value, int)",
        "type(value) == float or type(value) == int",
        "type(value) in (int, float)",
        "not (type(value) is not float and not isinstance(value, (int, str)))",
    ],
)
def test_a_number_has_no_graph(tmp_path: Path, test: str) -> None:
    assert codes(tmp_path, INTEGRATOR.format(test=test, one=AS_IT_IS, other=AS_NUMBER)) == []


@pytest.mark.parametrize(
    "test",
    [
        "isinstance(value, float) or key == 'total'",  # (one of them alone tells)
        "isinstance(value, float) or isinstance(key, str)",  # (the other tells of something else)
        "isinstance(value, (float, torch.Tensor))",
        "type(value) != float",
        "type(value) not in (int, float)",
    ],
)
def test_what_may_be_a_tensor_has_one(tmp_path: Path, test: str) -> None:
    assert codes(tmp_path, INTEGRATOR.format(test=test, one=AS_IT_IS, other=AS_NUMBER)) == ["MEM101"]


@pytest.mark.parametrize("test", ["type(value) != float", "type(value) not in (int, float)"])
def test_the_other_branch_of_what_denies_it(tmp_path: Path, test: str) -> None:
    assert codes(tmp_path, INTEGRATOR.format(test=test, one=AS_NUMBER, other=AS_IT_IS)) == []


def codes(folder: Path, text: str) -> list[str]:
    (folder / "train.py").write_text(text, encoding="utf-8")
    return [one.code for one in memlint.lint([folder], isolated=True).findings]


MEMBERS = """
import torch
from accelerate import Accelerator


@torch.no_grad()
def validate(model, loader):
    model.eval()
    results = []
    for batch in loader:
        scores = model(batch["image"]).mean(dim=(1, 2, 3)).tolist()
        {member}
        for i, score in enumerate(scores):
            results.append({{"axis": {one}, "score": score}})
    return results


def main(net, data):
    model, loader = Accelerator().prepare(net, torch.utils.data.DataLoader(data))
    print(validate(model, loader))
"""


@pytest.mark.parametrize(
    ("member", "one", "found"),
    [
        ('axes = batch["axes"]', "axes[i]", True),
        ('axes = batch.get("axes")', "axes[i]", True),
        ('axes = batch.get("axes", torch.zeros(8))', "axes[i]", True),
        ('axes = batch["axes"]', "axes[i] if axes is not None else None", True),
        ('axes = batch["axes"]', "axes[i] if axes else None", False),
        ('axes = batch.get("axes") or batch.get("axis", [None] * len(scores))', "axes[i]", False),
        ('axes = batch.get("axes", []).cuda()', "axes[i]", True),
        ('axes = batch.get("axes", []); axes = axes.to("cuda")', "axes[i]", True),
        ('axes = batch.get("axes", [None] * len(scores))', "axes[i]", False),
        ('axes = batch.get("axes", "xyz")', "axes[i]", False),
    ],
)
def test_a_member_of_a_batch_with_a_truth_value_is_no_tensor(
    tmp_path: Path, member: str, one: str, found: bool
) -> None:
    assert codes(tmp_path, MEMBERS.format(member=member, one=one)) == ["MEM104"] * found


WHOLE = """
import torch


@torch.no_grad()
def collect(model, loader):
    kept = []
    for batch in loader:
        {test}
            kept.append(batch["x"].cuda())
    return kept


collect(torch.nn.Linear(3, 3), torch.utils.data.DataLoader([]))
"""


@pytest.mark.parametrize("test", ["if batch:", "if not batch:\n            continue\n        else:"])
def test_a_batch_that_is_a_dictionary_has_a_truth_value(tmp_path: Path, test: str) -> None:
    assert codes(tmp_path, WHOLE.format(test=test)) == ["MEM104"]
