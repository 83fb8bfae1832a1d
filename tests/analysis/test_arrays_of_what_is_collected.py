"""NumPy raises for a tensor on an accelerator, so what it joins is on the host."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

PROGRAM = """
import numpy as np
import torch
from torch.utils.data import DataLoader


def encode(model, dataset, path):
    loader = DataLoader(dataset, batch_size=64)
    encoded = []
    model.cuda().eval()
    for ids, batch in loader:
        with torch.no_grad():
            reps = model.encode(batch)
            encoded.append(reps)
    {then}
    encoded = {joined}
    np.save(path, encoded)
"""


@pytest.mark.parametrize(
    ("joined", "codes"),
    [
        ("np.concatenate(encoded)", []),
        ("np.vstack(encoded)", []),
        ("np.asarray(encoded)", []),
        # each is moved to the host only after all are there
        ("np.concatenate([one.cpu() for one in encoded])", ["MEM104"]),
        ("torch.cat(encoded).cpu().numpy()", ["MEM104"]),
        # of torch, not of NumPy
        ("torch.vstack(encoded)", ["MEM104"]),
    ],
)
def test_what_numpy_joins_is_on_the_host(tmp_path: Path, joined: str, codes: list[str]) -> None:
    assert codes_in(tmp_path, PROGRAM.format(joined=joined, then="pass")) == codes


@pytest.mark.parametrize(
    ("then", "codes"),
    [
        ("encoded = torch.cat(encoded).cpu()", ["MEM104"]),
        ("encoded = [one.cpu() for one in encoded]", ["MEM104"]),
        ("torch.save(torch.cat(encoded), path)\n    encoded = [ids.numpy() for ids, _ in loader]", ["MEM104"]),
        ("count = len(encoded)", []),
    ],
)
def test_another_value_of_the_name_says_nothing_of_what_was_collected(
    tmp_path: Path, then: str, codes: list[str]
) -> None:
    program = PROGRAM.format(then=then, joined="np.stack(encoded)")
    assert codes_in(tmp_path, program) == codes


def test_nor_does_an_earlier_one(tmp_path: Path) -> None:
    program = PROGRAM.format(then="pass", joined="torch.cat(encoded).cpu()")
    earlier = "encoded = [np.zeros(3)]\n    first = np.stack(encoded)\n    encoded = []"
    assert codes_in(tmp_path, program.replace("encoded = []", earlier)) == ["MEM104"]
