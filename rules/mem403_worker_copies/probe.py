"""What the workers of a DataLoader come to own of a data set: `memlint verify --rules MEM403`.

The meters see what this process allocates, so a tensor of as many bytes stands for what the workers own alone: by the
kernel's account, beyond what they owned before they read the first sample."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

CLAIMS = {"": "peak"}
SAMPLES = 10_000
#: what each worker owned when it began
_OWNED: dict[int, int] = {}


def bad(device: str) -> Iterator[None]:
    """a list of 10,000 records of four fields, read by two workers"""

    class Captions(Dataset[int]):
        def __init__(self) -> None:
            self.records = [json.loads(line) for line in described()]

        def __len__(self) -> int:
            return len(self.records)

        def __getitem__(self, index: int) -> int:
            record = self.records[index]
            return len(record["image"]) + len(record["caption"]) + int(record["width"]) + int(record["height"])

    loader = DataLoader(
        Captions(),
        batch_size=2_500,
        shuffle=True,
        num_workers=2,
        collate_fn=owned,
        worker_init_fn=begin,
        multiprocessing_context=get_context("fork"),
    )
    while True:
        yield from epoch(loader, device)


def good(device: str) -> Iterator[None]:
    """the same records in one buffer, with their offsets"""

    class Captions(Dataset[int]):
        def __init__(self) -> None:
            lines = [line.encode() for line in described()]
            self.ends = torch.tensor([len(line) for line in lines]).cumsum(0)
            self.buffer = torch.frombuffer(bytearray().join(lines), dtype=torch.uint8)

        def __len__(self) -> int:
            return len(self.ends)

        def __getitem__(self, index: int) -> int:
            start = self.ends[index - 1] if index else 0
            record = json.loads(bytes(self.buffer[start : self.ends[index]].tolist()))
            return len(record["image"]) + len(record["caption"]) + int(record["width"]) + int(record["height"])

    loader = DataLoader(
        Captions(),
        batch_size=2_500,
        shuffle=True,
        num_workers=2,
        collate_fn=owned,
        worker_init_fn=begin,
        multiprocessing_context=get_context("fork"),
    )
    while True:
        yield from epoch(loader, device)


def epoch(loader: DataLoader[Any], device: str) -> Iterator[None]:
    gc.collect()
    found: dict[int, int] = {}
    for worker, grown in loader:
        found[worker] = max(grown, found.get(worker, 0))
    copies = torch.zeros(sum(found.values()), dtype=torch.uint8, device=device)
    yield
    del copies


def described() -> Iterator[str]:
    for number in range(SAMPLES):
        caption = f"what a person wrote of what is to be seen in image {number}"
        image = f"train/{number:012d}.jpg"
        yield json.dumps({"image": image, "caption": caption, "width": 600 + number, "height": 400 + number})


def begin(worker: int) -> None:
    _OWNED[worker] = own_bytes()


def owned(samples: list[int]) -> tuple[int, int]:
    """In a worker, what a batch is: who read it, and how much that worker owns by now."""
    info = get_worker_info()
    assert info is not None and samples
    return info.id, max(0, own_bytes() - _OWNED[info.id])


def own_bytes() -> int:
    """Bytes that no other process shares with this one."""
    with Path("/proc/self/smaps_rollup").open(encoding="ascii") as rows:
        return 1024 * sum(int(row.split()[1]) for row in rows if row.startswith("Private_"))
