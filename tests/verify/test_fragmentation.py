"""Memory that is reserved and cannot be used: what is said of it, and when nothing is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from commands import verify

from memlint.verifier.leftover import fragmentation

MIB = 2**20

#: each of the layers leaves a MiB for each of `{rows}`
PROGRAM = """\
import random
import torch
from torch import nn

random.seed(0)
device = torch.device("cuda")
layers = [layer for _ in range(6) for layer in (nn.Conv1d(64, 64, 3, padding=1), nn.ReLU())]
model = nn.Sequential(nn.Conv1d(8, 64, 3, padding=1), *layers, nn.Conv1d(64, 1, 1)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=1e-4)
kept = []
for step in range(40):
    loss = model(torch.randn(1, 8, 4096 * ({rows}), device=device)).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    {more}
"""


def _run(reserved: Sequence[int], peak: Sequence[int], allocated: int = 0) -> dict[str, Any]:
    """A loop whose tops read so, in MiB."""
    rows = [
        {"reserved": one * MIB, "peak": most * MIB, "allocated": allocated * MIB, "split": 0}
        for one, most in zip(reserved, peak, strict=True)
    ]
    return {"loops": [{"id": 1, "readings": [{"fragments": {"cuda:0": row}} for row in rows]}]}


def test_advice_names_what_is_reserved_and_never_used() -> None:
    [said] = fragmentation(_run(range(1000, 2300, 100), [500] * 13, allocated=100))
    assert said.device == "cuda:0"
    assert said.reserved == (1000 * MIB, 2200 * MIB)
    assert said.peak == (500 * MIB, 500 * MIB)
    assert "expandable_segments:True" in said.advice


@pytest.mark.parametrize(
    ("reserved", "peak"),
    [
        pytest.param([1000] * 13, [500] * 13, id="nothing more is reserved"),
        pytest.param(range(1000, 2300, 100), range(1000, 2300, 100), id="a step needs more than those before it"),
        pytest.param([1000] * 6 + [1400] * 7, [500] * 13, id="one more segment, once"),
        pytest.param(range(1000, 1013), [500] * 13, id="too little to speak of"),
        pytest.param(range(824, 1123, 23), [*range(710, 910, 17), 911], id="measured with expandable segments"),
        pytest.param(range(0, 1300, 100), [1300] * 13, id="the cache was emptied, and fills again"),
    ],
)
def test_no_advice_where_memory_is_of_use(reserved: Sequence[int], peak: Sequence[int]) -> None:
    assert fragmentation(_run(reserved, peak)) == []


def _fragments(cwd: Path, rows: str, more: str = "pass", settings: str = "") -> list[dict[str, Any]]:
    (cwd / "train.py").write_text(PROGRAM.format(rows=rows, more=more))
    done = verify("train.py", "--isolated", "--output-format", "json", cwd=cwd,
                  more={"PYTORCH_CUDA_ALLOC_CONF": settings})  # fmt: skip
    assert done.returncode < 2, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["fragmentation"]
    return found


_SHAPES = pytest.mark.parametrize(
    "rows",
    [
        pytest.param("32 + 8 * step", id="shortest first, so that each outgrows all that was freed"),
        pytest.param("random.randint(32, 352)", id="shuffled"),
    ],
)


@pytest.mark.gpu
@_SHAPES
def test_batches_of_many_sizes_leave_pieces_behind(tmp_path: Path, rows: str) -> None:
    [said] = _fragments(tmp_path, rows)
    assert said["reserved"][1] > 2 * said["peak"][1]


@pytest.mark.gpu
@_SHAPES
def test_expandable_segments_leave_none_behind(tmp_path: Path, rows: str) -> None:
    assert _fragments(tmp_path, rows, settings="expandable_segments:True") == []


@pytest.mark.gpu
@pytest.mark.parametrize("rows", ["64", "352 - 8 * step"])
def test_neither_does_a_shape_that_stays_or_fits(tmp_path: Path, rows: str) -> None:
    assert _fragments(tmp_path, rows) == []


@pytest.mark.gpu
def test_a_leak_is_told_as_a_leak(tmp_path: Path) -> None:
    assert _fragments(tmp_path, "64", more="kept.append(torch.zeros(64, 2**18, device=device))") == []
