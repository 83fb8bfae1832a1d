"""A guard takes nothing that a backward goes through, wherever that is called."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixed_programs import findings

import memlint

PAIR = """
import torch
from torch import nn

class Pair(nn.Module):
    def __init__(self, tells=False):
        super().__init__()
        self.tells = tells
        self.body = nn.Linear(4, 4)

    def forward(self, x):
        out = self.body(x)
        return out, out.mean(), 0.0

{extra}

def rounds(data, pair, optimizer=None):
    kept = []
    for x in data:
        if pair.tells:
            out, mean, loss = pair(x)
            kept.append(out.detach())
        else:
            out, loss, mean = pair(x)
        if optimizer is not None:
            {update}
    return kept

def main(train, valid):
    pair = Pair()
    optimizer = torch.optim.SGD(pair.parameters(), lr=0.1)
    for epoch in range(100):
        pair.train()
        print(len(rounds(train, pair, optimizer)))
        pair.eval()
        print(len(rounds(valid, pair)))

main([], [])
"""
UPDATE = "optimizer.zero_grad(); loss.backward(); optimizer.step()"
DEEPER = "def update(loss, optimizer):\n    optimizer.zero_grad()\n    loss.backward()\n    optimizer.step()\n"


@pytest.mark.parametrize(
    ("update", "extra"), [(UPDATE, ""), ("update(loss, optimizer)", DEEPER)], ids=["callee", "callee of it"]
)
def test_a_loop_in_which_a_callee_trains_is_not_guarded(update: str, extra: str, tmp_path: Path) -> None:
    text = PAIR.format(update=update, extra=extra)
    epochs = next(number for number, line in enumerate(text.splitlines(), 1) if "for epoch" in line)
    found = findings(tmp_path, text, "MEM201")
    lines = [edit.span.line for one in found if one.fix is not None for edit in one.fix.edits]
    assert found and epochs not in lines


def test_what_the_text_sends_into_a_backward_is_not_guarded(tmp_path: Path) -> None:
    """The values do not know what a part of an output is on a path that this program never takes: the call that
    evaluates may be guarded, and nothing in what trains as well."""
    text = PAIR.format(update=UPDATE, extra="")
    evaluates = next(number for number, line in enumerate(text.splitlines(), 1) if "rounds(valid" in line)
    found = findings(tmp_path, text, "MEM201")
    lines = {edit.span.line for one in found if one.fix is not None for edit in one.fix.edits}
    assert found and lines <= {evaluates}


FROZEN = """
import copy
import torch
from torch import nn

class Error(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))

    def forward(self, x, y):
        return ((x - y) * self.scale).mean()

def run(batches, target):
    model = nn.Linear(4, 4)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    error = Error()
    for batch in batches:
        layer = copy.deepcopy(model)
        optimizer.zero_grad()
        if batch.ndim > 2:
            loss = error(layer(batch), target)
        else:
            loss = error(batch, target)
        loss.backward()
        optimizer.step()
"""


def test_the_operation_that_a_backward_is_called_on_is_not_guarded(tmp_path: Path) -> None:
    """Nobody trains the loss; but without its graph, the backward raises on that path."""
    for code in ("MEM201", "MEM202"):
        assert all(one.fix is None for one in findings(tmp_path, FROZEN, code))


ATTACKED = """
import torch
from torch import nn
from somewhere import make, run_attack

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(4, 4)

    def forward(self, x):
        return self.body(x)

def evaluate(loader, net: Net):
    net.eval()
    adversary = make(net, eps=0.1)
    right = 0
    for x, y in loader:
        out = net(x)
        right += (out.argmax(1) == y).sum().item()
        {attack}
    return right
"""


@pytest.mark.parametrize("attack", ["adversary.perturb(x, y)", "run_attack(net, x, y)"])
def test_no_guard_is_put_over_what_may_differentiate(tmp_path: Path, attack: str) -> None:
    """An attack of another library needs the gradients of the input: a guard over the function would make it raise."""
    titles = []
    for body in (attack, "pass"):
        (tmp_path / "main.py").write_text(ATTACKED.format(attack=body), encoding="utf-8")
        found = memlint.lint([tmp_path], select=["MEM201"], isolated=True).findings
        assert [one.code for one in found] == ["MEM201"]
        assert found[0].fix is not None
        titles.append(found[0].fix.title)
    assert titles == ["run it under `with torch.no_grad():`", "decorate the function with `@torch.no_grad()`"]
