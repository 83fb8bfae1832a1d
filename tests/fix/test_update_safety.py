"""Updates in place, tensors made on the device, and states: when their fixes are safe, and when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixed_programs import findings, safety

UPDATE = """
import torch

def relax(x, steps):
    field = torch.{made}
    for _ in range(steps):
        {update}
    return field
"""


@pytest.mark.parametrize(
    ("made", "update", "expected"),
    [
        ("rand(512, 512)", "field = field * 0.5", "safe"),
        ("rand(512, 512).half()", "field = field * 0.5", "safe"),
        ("rand(512, 512)", "field = field + 1", "safe"),
        ("rand(512, 512)", "field = field.clamp(0, 1)", "safe"),
        ("rand(512, 512)", "field = torch.tanh(field)", "safe"),
        ("rand(512, 512)", "field = field * steps", "unsafe"),
        ("rand(512, 512)", "field = field + field.t()", "unsafe"),
        ("rand(512, 512)", "field = field * field[0]", "unsafe"),
        ("ones_like(x)", "field = field * 0.5", "unsafe"),
        ("rand(512, 512).requires_grad_()", "field = field * 0.5", "unsafe"),
        ("rand(512, 512)", "field = (field  # the old one\n                 * 0.5)", "unsafe"),
    ],
)
def test_an_update_in_place(made: str, update: str, expected: str, tmp_path: Path) -> None:
    assert safety(tmp_path, UPDATE.format(made=made, update=update), "MEM301") == expected


@pytest.mark.parametrize(
    "made", ["rand(512, 512, requires_grad=True)", "randint(0, 9, (512, 512))", "rand(512, 1).expand(512, 512)"]
)
def test_no_update_in_place_is_proposed(made: str, tmp_path: Path) -> None:
    assert not findings(tmp_path, UPDATE.format(made=made, update="field = field * 0.5"), "MEM301")


DEVICE = """
import torch

def train(model, loader, optimizer, criterion, device):
    for x, _ in loader:
        target = torch.{made}
        loss = criterion(model(x.to(device)), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        ("zeros(x.size(0), 512, 512).to(device)", "safe"),
        ("ones(x.size(0), 512, 512).cuda()", "safe"),
        ("full((x.size(0), 512, 512), 0.5).to(device)", "safe"),
        ("randn(x.size(0), 512, 512).to(device)", "unsafe"),
        ("zeros(x.size(0), 512, 512, requires_grad=True).to(device)", "unsafe"),
        ("zeros(x.size(0), 512, 512).to(device, torch.float16)", "none"),
        ("zeros(x.size(0), 512, 512).to(device, non_blocking=True)", "none"),
        ("zeros(64, 512, 512).to(device)", "none"),
    ],
)
def test_made_on_the_device(made: str, expected: str, tmp_path: Path) -> None:
    assert safety(tmp_path, DEVICE.format(made=made), "MEM303") == expected


STATE = """
import torch
from torch import nn

def train(loader, begun=None):
    rnn = nn.{layer}(8, 8)
    optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)
    state = {begun}
    for x, y in loader:
        out, state = rnn(x, state)
        loss = nn.functional.mse_loss(out, y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
"""
PAIR = "(torch.zeros(1, 4, 8), torch.zeros(1, 4, 8))"


@pytest.mark.parametrize(
    ("layer", "begun", "written"),
    [
        ("GRU", "torch.zeros(1, 4, 8)", "state = state.detach()"),
        ("GRU", "torch.zeros(1, 4, 8).cuda()", "state = state.detach()"),
        ("LSTM", PAIR, "state = tuple(part.detach() for part in state)"),
        ("GRU", "None", None),
        ("LSTM", "None", None),
        ("LSTM", "begun", None),
    ],
)
def test_a_state_is_detached_only_where_its_form_is_known(
    layer: str, begun: str, written: str | None, tmp_path: Path
) -> None:
    (found,) = findings(tmp_path, STATE.format(layer=layer, begun=begun), "MEM103")
    if written is None:
        assert found.fix is None
    else:
        assert found.fix is not None and found.fix.safety == "unsafe"
        assert [edit.content.strip() for edit in found.fix.edits] == [written]
