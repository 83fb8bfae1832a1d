"""Runs beside the training step of a script."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from linting import codes_in

found = functools.partial(codes_in, name="train.py")

SCRIPT = """
import torch
from outside import make, draw

net = make().cuda()
criterion = torch.nn.CrossEntropyLoss()
optimizer = torch.optim.Adam(net.parameters())
step = 0
while step < 10000:
    step += 1
    x, y = draw()
    {test}
    loss = criterion(net(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("test", "codes"),
    [
        ("print((net(draw()[0].cuda()).argmax(1) == y.cuda()).sum().item())", ["MEM201"]),
        ("print(net(draw()[0].cuda()).detach().mean().item())", ["MEM201"]),
        ("with torch.no_grad(): print(net(draw()[0].cuda()).mean().item())", []),
        ("outside = net(draw()[0].cuda()); y = y + outside.sum()", []),
    ],
)
def test_a_run_beside_the_training_step_of_a_script(tmp_path: Path, test: str, codes: list[str]) -> None:
    assert found(tmp_path, SCRIPT.replace("{test}", test)) == codes
