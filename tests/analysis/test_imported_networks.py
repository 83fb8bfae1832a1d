"""Networks that a file imports from code outside the project."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from linting import codes_in

found = functools.partial(codes_in, name="evaluate.py")

EVALUATE = """
import torch
{imports}

{before}


def accuracy(loader):
    {first}
    hits = 0
    for x, y in loader:
        hits += (net(x.cuda()).argmax(1).cpu() == y).sum().item()
    return hits
"""


@pytest.mark.parametrize(
    ("imports", "before", "first", "codes"),
    [
        ("from outside import net", "", "net.eval()", ["MEM201"]),
        ("from outside import net", "net.cuda(); net.eval()", "", ["MEM201"]),
        ("from outside.models import best as net", "net.load_state_dict({}); net.eval()", "", ["MEM201"]),
        ("from .outside import net", "net.eval()", "", ["MEM201"]),
        # another file may set its mode, but nothing here tells that it is a network
        ("from outside import net", "", "", []),
        ("from outside import net", "net.start()", "", []),
        # guarded for good
        ("from outside import net", "net.eval(); torch.set_grad_enabled(False)", "torch.set_grad_enabled(False)", []),
        # a function of this file hides it
        ("from outside import net, trainer", "net.eval()", "net = trainer.run", []),
    ],
)
def test_an_imported_name_that_is_used_as_a_network(
    tmp_path: Path, imports: str, before: str, first: str, codes: list[str]
) -> None:
    text = EVALUATE.replace("{imports}", imports).replace("{before}", before).replace("{first}", first)
    assert found(tmp_path, text) == codes


ENGINE = """
from outside import engine

engine.train()


def scores(batches):
    engine.eval()
    return [engine.run(x.cuda()).tolist() for x in batches]
"""


def test_an_imported_name_that_is_not_called_is_no_network(tmp_path: Path) -> None:
    assert found(tmp_path, ENGINE) == []
