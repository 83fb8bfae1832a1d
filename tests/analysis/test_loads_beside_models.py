"""Checkpoints that are loaded onto their device in a function that makes the model: whether both are there at once."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

PROGRAM = """
import torch
from torch import nn


def main(path, device, train):
    model = nn.Sequential(nn.Linear(4096, 4096), nn.Linear(4096, 10))
    {body}
    train(model)


main("last.pt", torch.device("cuda"), print)
"""

LONG = ", ".join(f"number_{i}=path.number_{i}" for i in range(30))


def found(tmp_path: Path, body: tuple[str, ...]) -> list[str]:
    """The names of the checkpoints that MEM404 reports."""
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(PROGRAM.format(body="\n    ".join(body)))
    result = memlint.lint([tmp_path], isolated=True)
    assert not result.failures
    return [each.message.split("`")[-2] for each in result.findings if each.code == "MEM404"]


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (("saved = torch.load(path)", "model.load_state_dict(saved)", "model.to(device)"), "saved"),
        (("saved, step = torch.load(path)", "model.load_state_dict(saved)", "model.to(device)"), "saved"),
        (("step, saved = torch.load(path)", "model.load_state_dict(saved)", "model.cuda()", "del step"), "saved"),
        (("model.cuda()", "saved = torch.load(path)", "model.load_state_dict(saved)", "del saved"), "saved"),
        (("saved = torch.load(path)", "model.load_state_dict(saved)", "model[0].to(device)"), "saved"),
        (
            ("saved = 1", "del saved", "saved = torch.load(path)", "model.load_state_dict(saved)", "model.to(device)"),
            "saved",
        ),
        (
            (
                "saved = torch.load(path)",
                "state = saved['model']",
                "model.load_state_dict(state)",
                "del saved",
                "model.cuda()",
            ),
            "saved",
        ),
        (
            (
                "saved = torch.load(path)",
                "model.load_state_dict(saved)",
                "if train is None:",
                "    del saved",
                "model.cuda()",
            ),
            "saved",
        ),
        ((f"model = print({LONG}).to(device)", "saved = torch.load(path)", "model.load_state_dict(saved)"), "saved"),
    ],
)
def test_beside_its_model(tmp_path: Path, body: tuple[str, ...], name: str) -> None:
    assert found(tmp_path, body) == [name]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(("model.load_state_dict(torch.load(path))", "model.to(device)"), id="released before"),
        pytest.param(
            ("saved = torch.load(path)", "model.load_state_dict(saved)", "del saved", "model.to(device)"), id="deleted"
        ),
        pytest.param(
            (
                "saved = torch.load(path)",
                "state = saved['model']",
                "model.load_state_dict(state)",
                "del saved, state",
                "model.to(device)",
            ),
            id="deleted with its part",
        ),
        pytest.param(
            ("saved, step = torch.load(path)", "model.load_state_dict(saved)", "del saved", "model.to(device)"),
            id="its name of two is deleted",
        ),
        pytest.param(
            ("saved = torch.load(path)", "model.load_state_dict(saved)", "train(model[0].weight.to(device))"),
            id="a copy of a part is moved",
        ),
        pytest.param(("images, labels = torch.load(path)", "model.to(device)", "train(images, labels)"), id="data"),
        pytest.param(("model, saved = torch.load(path)", "model.to(device)", "train(saved)"), id="a whole model"),
    ],
)
def test_never_beside_its_model(tmp_path: Path, body: tuple[str, ...]) -> None:
    assert found(tmp_path, body) == []
