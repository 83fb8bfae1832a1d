"""The programs of benchmarks/practices.py: each of PRACTICES, without it and, where ``used``, with it.

A program yields once when all is set up, and once after each step.
"""

from __future__ import annotations

import ctypes
import gc
import itertools
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import torch
from torch import distributed as dist
from torch import nn
from torch.nn.functional import cross_entropy
from torch.nn.utils import prune
from torch.utils.checkpoint import checkpoint

WIDTH = {"small": 1024, "large": 4096}
ROWS, LAYERS, CLASSES = 2048, 8, 1000
#: sixteenths of a batch, so that each step asks for blocks of other sizes than the one before it
LENGTHS = (3, 9, 5, 12, 7, 14, 10, 16)
Program = Iterator[None]
_host = 0


def mark(start: bool = False) -> int:
    """The most bytes that no file backs, of those places in a program that call this, since ``start``."""
    global _host
    now = 1024 * int(re.findall(r"RssAnon:\s+(\d+)", Path("/proc/self/status").read_text("ascii"))[0])
    _host = now if start else max(_host, now)
    return _host


def net(size: str, device: str = "cuda", layers: int = LAYERS) -> nn.Sequential:
    width = WIDTH[size]
    hidden = [module for _ in range(layers) for module in (nn.Linear(width, width, device=device), nn.GELU())]
    return nn.Sequential(*hidden, nn.Linear(width, CLASSES, device=device))


def data(size: str, rows: int = ROWS, device: str = "cuda") -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(rows, WIDTH[size], device=device), torch.randint(CLASSES, (rows,), device=device)


def sgd(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.SGD(model.parameters(), lr=0.01)


def train(model: nn.Module, optimizer: torch.optim.Optimizer, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    optimizer.zero_grad()
    loss = cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return loss


def training(model: nn.Module, x: torch.Tensor, y: torch.Tensor, after: Callable[[], Any] | None = None) -> Program:
    optimizer = sgd(model)
    yield
    while True:
        train(model, optimizer, x, y)
        if after:
            after()
        yield


def evaluation(
    model: nn.Module, x: torch.Tensor, y: torch.Tensor, mode: Callable[[], AbstractContextManager]
) -> Program:
    model.eval()
    yield
    while True:
        with mode():
            cross_entropy(model(x), y)
        yield


def inplace_activation(size: str, used: bool) -> Program:
    width = {"small": 32, "large": 64}[size]
    layers: list[nn.Module] = [nn.Conv2d(3, width, 3, padding=1)]
    for _ in range(LAYERS):
        layers += [nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(inplace=used)]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(width, CLASSES)).cuda()
    return training(model, torch.randn(128, 3, width, width, device="cuda"), data(size, 128)[1])


def empty_cache(size: str, used: bool) -> Program:
    return training(net(size), *data(size), torch.cuda.empty_cache if used else None)


def gc_collect(size: str, used: bool) -> Program:
    return training(net(size), *data(size), gc.collect if used else None)


def pinned_memory(size: str, used: bool) -> Program:
    model, y = net(size), data(size)[1]
    optimizer, batches = sgd(model), [data(size, device="cpu")[0] for _ in range(4)]
    if used:
        batches = [x.pin_memory() for x in batches]
    yield
    for x in itertools.cycle(batches):
        train(model, optimizer, x.to("cuda", non_blocking=used), y)
        yield


def preallocation(size: str, used: bool) -> Program:
    chunk, pieces = data(size, 128)[0], {"small": 64, "large": 256}[size]
    yield
    while True:
        if used:
            result = torch.empty(128 * pieces, WIDTH[size], device="cuda")
            for index in range(pieces):
                result[index * 128 : (index + 1) * 128] = chunk
        else:
            result = torch.empty(0, WIDTH[size], device="cuda")
            for _ in range(pieces):
                result = torch.cat([result, chunk])
        del result
        yield


def autocast_bfloat16(size: str, used: bool, kind: torch.dtype = torch.bfloat16) -> Program:
    model, (x, y) = net(size), data(size)
    optimizer, scaler = sgd(model), torch.amp.GradScaler("cuda", enabled=used and kind is torch.float16)
    yield
    while True:
        optimizer.zero_grad()
        with torch.autocast("cuda", kind, enabled=used):
            loss = cross_entropy(model(x), y)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        yield


def autocast_float16(size: str, used: bool) -> Program:
    return autocast_bfloat16(size, used, torch.float16)


def checkpointing(size: str, used: bool) -> Program:
    class Blocks(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = net(size)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for first in range(0, 2 * LAYERS, 4):
                block = self.net[first : first + 4]
                x = checkpoint(block, x, use_reentrant=False) if used else block(x)
            return self.net[-1](x)

    return training(Blocks(), *data(size))


def gradient_accumulation(size: str, used: bool) -> Program:
    model, (x, y) = net(size), data(size)
    optimizer, parts = sgd(model), 4 if used else 1
    yield
    while True:
        optimizer.zero_grad()
        for some, target in zip(x.chunk(parts), y.chunk(parts), strict=True):
            (cross_entropy(model(some), target) / parts).backward()
        optimizer.step()
        yield


def set_to_none(size: str, used: bool) -> Program:
    model, (x, y) = net(size), data(size)
    optimizer = sgd(model)
    yield
    while True:
        cross_entropy(model(x), y).backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=used)
        yield


def memory_fraction(size: str, used: bool) -> Program:
    if used:
        torch.cuda.set_per_process_memory_fraction(0.5)
    return training(net(size), *data(size))


def expandable_segments(size: str, used: bool) -> Program:
    model, (x, y) = net(size), data(size)
    optimizer = sgd(model)
    assert used is any(segment["is_expandable"] for segment in torch.cuda.memory_snapshot())
    yield
    while True:
        for length in LENGTHS:
            rows = ROWS * length // 16
            train(model, optimizer, x[:rows], y[:rows])
        yield


def del_loss(size: str, used: bool) -> Program:
    model, (x, y) = net(size), data(size)
    optimizer = sgd(model)
    yield
    while True:
        optimizer.zero_grad()
        out = model(x)
        loss = cross_entropy(out, y)
        loss.backward()
        optimizer.step()
        if used:
            del out, loss
        yield


def del_graph(size: str, used: bool) -> Program:
    model, (x, y) = net(size), data(size)
    yield
    while True:
        loss = cross_entropy(model(x), y)
        if used:
            loss = None  # noqa: F841
        yield


@contextmanager
def saved(model: nn.Module) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        torch.save(model.state_dict(), Path(folder, "model.pt"))
        yield Path(folder, "model.pt")


def map_location(size: str, used: bool) -> Program:
    model = net(size)
    with saved(model) as path:
        yield
        while True:
            model.load_state_dict(torch.load(path, map_location="cpu" if used else None, weights_only=True))
            yield


def mmap(size: str, used: bool) -> Program:
    with saved(net(size, "cpu")) as path:
        model = net(size, "cpu")
        yield
        while True:
            state = torch.load(path, mmap=used, weights_only=True)
            mark()
            model.load_state_dict(state)
            mark()
            del state
            yield


def assign(size: str, used: bool) -> Program:
    with saved(net(size, "cpu")) as path:
        yield
        while True:
            model = net(size, "meta") if used else net(size, "meta").to_empty(device="cpu")
            state = torch.load(path, weights_only=True)
            mark()
            model.load_state_dict(state, assign=used)
            mark()
            del model, state
            yield


def pruned(model: nn.Sequential, remove: bool) -> nn.Sequential:
    for layer in model[::2]:
        prune.l1_unstructured(layer, "weight", amount=0.5)
        if remove:
            prune.remove(layer, "weight")
    return model


def pruning(size: str, used: bool) -> Program:
    return training(pruned(net(size), remove=False) if used else net(size), *data(size))


def pruning_removed(size: str, used: bool) -> Program:
    return evaluation(pruned(net(size), remove=True) if used else net(size), *data(size), torch.no_grad)


def fused_optimizer(size: str, used: bool, **options: bool) -> Program:
    model, (x, y) = net(size), data(size, 64)  # so that the peak is in the update, and not in the forward
    optimizer = torch.optim.AdamW(model.parameters(), **(options or ({"fused": True} if used else {})))
    yield
    while True:
        train(model, optimizer, x, y)
        yield


def foreach_optimizer(size: str, used: bool) -> Program:
    return fused_optimizer(size, used, foreach=used)


def no_grad(size: str, used: bool) -> Program:
    return evaluation(net(size), *data(size), torch.no_grad if used else nullcontext)


def inference_mode(size: str, used: bool) -> Program:
    return evaluation(net(size), *data(size), torch.inference_mode if used else torch.no_grad)


def item_sum(size: str, used: bool) -> Program:
    model, (x, y) = net(size, layers=20), data(size, 64)
    optimizer, total = sgd(model), 0.0
    yield
    while True:
        loss = train(model, optimizer, x, y)
        total += loss.item() if used else loss
        yield


def data_parallel(size: str, used: bool) -> Program:
    return training(nn.DataParallel(net(size), [0, 1]) if used else net(size), *data(size))


def distributed(size: str, used: bool) -> Program:
    if not used:
        return data_parallel(size, used=True)
    store = str(Path(tempfile.mkdtemp()) / "store")
    subprocess.Popen([sys.executable, __file__, size, store])
    return replica(size, 0, store)


def replica(size: str, rank: int, store: str) -> Program:
    """Half of the batch, in the process of one device of two."""
    torch.cuda.set_device(rank)
    dist.init_process_group("nccl", f"file://{store}", rank=rank, world_size=2)
    model = nn.parallel.DistributedDataParallel(net(size), device_ids=[rank])
    yield from training(model, *data(size, ROWS // 2))


PRACTICES = (
    *(inplace_activation, empty_cache, gc_collect, pinned_memory, preallocation, autocast_bfloat16, autocast_float16),
    *(checkpointing, gradient_accumulation, set_to_none, memory_fraction, expandable_segments, del_loss, del_graph),
    *(map_location, mmap, assign, pruning, pruning_removed, fused_optimizer, foreach_optimizer, no_grad),
    *(inference_mode, item_sum, data_parallel, distributed),
)
HOST = {"mmap", "assign", "item_sum"}
DEVICES = {"data_parallel": 2, "distributed": 2}
ENVIRONMENT = {"expandable_segments": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}}
#: steps in a stretch, where a step is long or says little
STEPS = {"expandable_segments": 2, "map_location": 2, "mmap": 2, "assign": 2, "item_sum": 100}

if __name__ == "__main__":
    # the other process is killed when it has measured: this one must not wait for it in a collective
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    for _ in replica(sys.argv[1], 1, sys.argv[2]):
        pass
