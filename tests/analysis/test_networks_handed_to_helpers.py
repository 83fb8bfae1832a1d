"""Networks that an evaluation hands to a helper that calls what it is given; others hand other things to it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

HELPED = """
import torch
from torch import nn
from torch.nn import functional as F

{helper}


class Net(nn.Module):
    def __init__(self, body, head):
        super().__init__()
        self.body, self.head = body, head

    {guard}
    def forward(self, x):
        return {computed}


class Wrapped:
    def __init__(self, function):
        self.function = function

    def probabilities(self, x):
        return score(x, self.function)


def evaluate(body, head, loader):
    net = Net(body, head)
    {mode}
    right = 0
    for x, y in loader:
        out = {run}
        {use}
    return right
"""
CALLS = "def score(x, f):\n    return f(x)"
RUN = "score(x.cuda(), net)"
LAYERS = "self.head(self.body(x))"
COUNTS = "right += (out.argmax(1) == y.cuda()).sum().item()"


@pytest.mark.parametrize(
    ("helper", "run", "use", "found"),
    [
        (CALLS, RUN, COUNTS, ["MEM201"]),
        ("def score(x, f, *rest):\n    return F.softmax(f(x, *rest), dim=1)", RUN, COUNTS, ["MEM201"]),
        (
            "def score(x, f=None):\n    return f(x) if f is not None else x",
            "score(x.cuda(), f=net)",
            COUNTS,
            ["MEM201"],
        ),
        (
            "def score(x, f):\n    if hasattr(f, 'to'):\n        f = f.to(x.device)\n    return f(x)",
            RUN,
            COUNTS,
            ["MEM201"],
        ),
        ("def score(x, f):\n    return f(x).argmax(1)", RUN, "right += (out == y.cuda()).sum().item()", ["MEM201"]),
        # a guard, here or in the helper
        ("@torch.no_grad()\n" + CALLS, RUN, COUNTS, []),
        ("def score(x, f):\n    with torch.no_grad():\n        return f(x)", RUN, COUNTS, []),
        ("from library import guarded\n\n\n@guarded\n" + CALLS, RUN, COUNTS, []),
        ("def score(x, f):\n    f = torch.no_grad()(f)\n    return f(x)", RUN, COUNTS, []),
        # what the helper calls there may be no module
        (
            "def score(x, f):\n    if not isinstance(f, nn.Module):\n        return f(x)\n    with torch.no_grad():\n"
            "        return f(x)",
            RUN,
            COUNTS,
            [],
        ),
        (
            "def score(x, f):\n    trains = f.training\n    if trains:\n        return f(x)\n"
            "    with torch.no_grad():\n        return f(x)",
            RUN,
            COUNTS,
            [],
        ),
        (
            "def score(x, f):\n    match f:\n        case nn.Module():\n            with torch.no_grad():\n"
            "                return f(x)\n    return f(x)",
            RUN,
            COUNTS,
            [],
        ),
        ("def score(x, f):\n    if hasattr(f, 'predict'):\n        return f(x)\n    return x", RUN, COUNTS, []),
        ("def score(x, f):\n    f = torch.relu\n    return f(x)", RUN, COUNTS, []),
        ("def score(x, f):\n    return x + 1", RUN, COUNTS, []),
        ("def score(x, f):\n    f(x)\n    return x", RUN, COUNTS, []),
        # gradients are wanted
        (
            "def score(x, f):\n    x = x.clone().requires_grad_()\n    f(x).sum().backward()\n    return x.grad",
            RUN,
            COUNTS,
            [],
        ),
        (CALLS, "score(x.requires_grad_(), net)", "right += torch.autograd.grad(out.sum(), x)[0].sum().item()", []),
        (CALLS, RUN, "loss = F.cross_entropy(out, y)\n        loss.backward()\n        right += loss.item()", []),
    ],
)
def test_a_helper_that_calls_what_it_is_given(
    tmp_path: Path, helper: str, run: str, use: str, found: list[str]
) -> None:
    source = HELPED.format(helper=helper, guard="", computed=LAYERS, mode="net.eval()", run=run, use=use)
    assert codes_in(tmp_path, source) == found


@pytest.mark.parametrize(
    ("guard", "computed", "mode", "found"),
    [
        ("", LAYERS, "net.eval()", ["MEM201"]),
        ("@torch.no_grad()", LAYERS, "net.eval()", []),
        ("", LAYERS, "net.eval().requires_grad_(False)", []),
        ("", "1 - (x * x).mean()", "net.eval()", []),
    ],
)
def test_what_the_given_module_records(tmp_path: Path, guard: str, computed: str, mode: str, found: list[str]) -> None:
    source = HELPED.format(helper=CALLS, guard=guard, computed=computed, mode=mode, run=RUN, use=COUNTS)
    assert codes_in(tmp_path, source) == found
