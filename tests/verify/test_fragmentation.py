"""Memory that is reserved and cannot be used: what is said of it, and when nothing is."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from commands import verify

from memlint.measure.memory.meters import allocator_variable
from memlint.verifier.judging.leftover import fragmentation, out_of_memory

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


#: as the allocator of CUDA words it
MESSAGE = (
    "CUDA out of memory. Tried to allocate {asked}. GPU 1 has a total capacity of 23.69 GiB of which 10 MiB is free. "
    "Including non-PyTorch memory, this process has 23.68 GiB memory in use. Of the allocated memory 20.01 GiB is "
    "allocated by PyTorch, and {unused} is reserved by PyTorch but unallocated. If reserved but unallocated memory is "
    "large try setting something."
)


@pytest.mark.parametrize(
    ("asked", "unused", "helps"),
    [
        ("512.00 MiB", "3.12 GiB", True),
        ("2.00 GiB", "2.00 GiB", True),
        ("2.00 GiB", "900.00 MiB", False),
        ("20.00 MiB", "512.00 KiB", False),
        ("20.00 MiB", "512 bytes", False),
    ],
)
@pytest.mark.parametrize("variable", ["PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"])
def test_after_an_error_it_is_said_whether_a_setting_helps(asked: str, unused: str, helps: bool, variable: str) -> None:
    end = {"kind": "failed", "message": MESSAGE.format(asked=asked, unused=unused)}
    said = out_of_memory({"end": end, "allocator_variable": variable})
    assert said.startswith("cuda:1 was out of memory") and asked in said and unused in said
    assert (f"set {variable}=expandable_segments:True" in said) == helps
    assert ("no setting" in said) != helps


@pytest.mark.parametrize("message", [None, "", "out of memory", "Tried to allocate 3 apples"])
def test_nothing_is_said_of_a_setting_where_the_message_does_not_tell(message: str | None) -> None:
    assert out_of_memory({"end": {"kind": "failed", "message": message}}) == ""


def test_the_variable_is_the_one_that_torch_reads() -> None:
    new, old = SimpleNamespace(_accelerator_setAllocatorSettings=None), SimpleNamespace()
    assert allocator_variable(SimpleNamespace(_C=new)) == "PYTORCH_ALLOC_CONF"
    assert allocator_variable(SimpleNamespace(_C=old)) == "PYTORCH_CUDA_ALLOC_CONF"
