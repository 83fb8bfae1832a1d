#!/usr/bin/env python3
"""Which layers compute other bits without gradients: ``python benchmarks/grad_mode_bits.py --device cuda --out FILE``.

A guard that a fix adds must change no number. Each layer of torch.nn runs twice on the same input and from the same
seed, once while autograd records and once under ``torch.no_grad()``, in train and eval mode, in float32 and bfloat16,
at a small and a larger size. ``same`` is whether all outputs are equal bit for bit, in every combination that the layer
runs in; ``largest`` the largest difference. ``repeatable`` says whether two recording runs agree with each other: where
they do not, a difference says nothing of the grad mode.

The linter reads no result file: ``memlint/knowledge/torch.toml`` names the layers that these files show to be the same,
and a test compares.
"""

from __future__ import annotations

import argparse
import itertools
import json
import platform
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import nn

N, C, L, H = 8, 16, 12, 10

Case = tuple[str, Callable[[int], nn.Module], Callable[[int], tuple[Any, ...]]]


def flat(k: int) -> torch.Tensor:
    return torch.randn(N * k, C)


def seq(k: int) -> torch.Tensor:
    return torch.randn(N * k, C, L * k)


def image(k: int) -> torch.Tensor:
    return torch.randn(N, C, H * k, H * k)


def volume(k: int) -> torch.Tensor:
    return torch.randn(2, C, H, H, H)


def steps(k: int) -> torch.Tensor:
    return torch.randn(L * k, N, C)


def cases() -> Iterator[Case]:
    """(name in torch.nn, builder, inputs), by size."""
    plain = (
        "ReLU ReLU6 LeakyReLU ELU CELU SELU GELU SiLU Mish Sigmoid Tanh Tanhshrink Softplus Softsign Softshrink "
        "Hardshrink Hardtanh Hardsigmoid Hardswish LogSigmoid Identity Flatten Dropout AlphaDropout "
        "FeatureAlphaDropout RReLU PReLU GLU"
    )
    for name in plain.split():
        yield name, lambda k, name=name: getattr(nn, name)(), lambda k: (flat(k),)
    for name in ("Softmax", "LogSoftmax", "Softmin"):
        yield name, lambda k, name=name: getattr(nn, name)(dim=-1), lambda k: (flat(k),)
    yield "Threshold", lambda k: nn.Threshold(0.1, 0.0), lambda k: (flat(k),)
    yield "Linear", lambda k: nn.Linear(C, 32 * k), lambda k: (flat(k),)
    yield "Bilinear", lambda k: nn.Bilinear(C, C, 8), lambda k: (flat(k), flat(k))
    yield "Embedding", lambda k: nn.Embedding(50, C), lambda k: (torch.randint(50, (N * k, L)),)
    yield "EmbeddingBag", lambda k: nn.EmbeddingBag(50, C), lambda k: (torch.randint(50, (N * k, L)),)
    for number, data in ((1, seq), (2, image), (3, volume)):
        yield f"Conv{number}d", lambda k, n=number: getattr(nn, f"Conv{n}d")(C, 2 * C, 3, padding=1), one(data)
        yield (
            f"ConvTranspose{number}d",
            lambda k, n=number: getattr(nn, f"ConvTranspose{n}d")(C, C, 2, stride=2),
            one(data),
        )
        yield f"BatchNorm{number}d", lambda k, n=number: getattr(nn, f"BatchNorm{n}d")(C), one(data)
        yield f"InstanceNorm{number}d", lambda k, n=number: getattr(nn, f"InstanceNorm{n}d")(C), one(data)
        for pool in ("MaxPool", "AvgPool"):
            yield f"{pool}{number}d", lambda k, p=pool, n=number: getattr(nn, f"{p}{n}d")(2), one(data)
        for pool in ("AdaptiveAvgPool", "AdaptiveMaxPool"):
            yield f"{pool}{number}d", lambda k, p=pool, n=number: getattr(nn, f"{p}{n}d")(3), one(data)
        yield f"Dropout{number}d", lambda k, n=number: getattr(nn, f"Dropout{n}d")(), one(data)
    for pad in ("ZeroPad2d", "ReflectionPad2d", "ReplicationPad2d", "CircularPad2d"):
        yield pad, lambda k, p=pad: getattr(nn, p)(1), one(image)
    yield "ConstantPad2d", lambda k: nn.ConstantPad2d(1, 0.5), one(image)
    yield "LayerNorm", lambda k: nn.LayerNorm(C), one(flat)
    yield "RMSNorm", lambda k: nn.RMSNorm(C), one(flat)
    yield "GroupNorm", lambda k: nn.GroupNorm(4, C), one(image)
    yield "LocalResponseNorm", lambda k: nn.LocalResponseNorm(3), one(image)
    yield "Upsample", lambda k: nn.Upsample(scale_factor=2, mode="bilinear"), one(image)
    yield "UpsamplingNearest2d", lambda k: nn.UpsamplingNearest2d(scale_factor=2), one(image)
    yield "UpsamplingBilinear2d", lambda k: nn.UpsamplingBilinear2d(scale_factor=2), one(image)
    yield "PixelShuffle", lambda k: nn.PixelShuffle(2), one(image)
    yield "PixelUnshuffle", lambda k: nn.PixelUnshuffle(2), one(image)
    yield "Unfold", lambda k: nn.Unfold(3), one(image)
    yield "Unflatten", lambda k: nn.Unflatten(1, (4, 4)), one(flat)
    yield "ChannelShuffle", lambda k: nn.ChannelShuffle(4), one(image)
    yield "CosineSimilarity", lambda k: nn.CosineSimilarity(), lambda k: (flat(k), flat(k))
    yield "PairwiseDistance", lambda k: nn.PairwiseDistance(), lambda k: (flat(k), flat(k))
    for name in ("RNN", "LSTM", "GRU"):
        yield name, lambda k, n=name: getattr(nn, n)(C, 24 * k, num_layers=2), one(steps)
    for name in ("RNNCell", "LSTMCell", "GRUCell"):
        yield name, lambda k, n=name: getattr(nn, n)(C, 24 * k), one(flat)
    for name in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss"):
        yield name, lambda k, n=name: getattr(nn, n)(), lambda k: (flat(k), flat(k))
    yield "CrossEntropyLoss", lambda k: nn.CrossEntropyLoss(), lambda k: (flat(k), torch.randint(C, (N * k,)))
    yield "NLLLoss", lambda k: nn.NLLLoss(), lambda k: (flat(k).log_softmax(-1), torch.randint(C, (N * k,)))
    yield "BCELoss", lambda k: nn.BCELoss(), lambda k: (flat(k).sigmoid(), torch.rand(N * k, C))
    yield "BCEWithLogitsLoss", lambda k: nn.BCEWithLogitsLoss(), lambda k: (flat(k), torch.rand(N * k, C))
    yield "KLDivLoss", lambda k: nn.KLDivLoss(), lambda k: (flat(k).log_softmax(-1), flat(k).softmax(-1))
    yield "MultiheadAttention", lambda k: nn.MultiheadAttention(C, 2), lambda k: (x := steps(k), x, x, padded(k))
    yield (
        "TransformerEncoderLayer",
        lambda k: nn.TransformerEncoderLayer(C, 2, 32, batch_first=True),
        lambda k: (steps(k).transpose(0, 1), None, padded(k)),
    )
    yield (
        "TransformerEncoder",
        lambda k: nn.TransformerEncoder(nn.TransformerEncoderLayer(C, 2, 32, batch_first=True), 2),
        lambda k: (steps(k).transpose(0, 1), None, padded(k)),
    )
    yield (
        "TransformerDecoderLayer",
        lambda k: nn.TransformerDecoderLayer(C, 2, 32, batch_first=True),
        lambda k: (x := steps(k).transpose(0, 1), x),
    )
    yield (
        "Transformer",
        lambda k: nn.Transformer(C, 2, 1, 1, 32, batch_first=True),
        lambda k: (x := steps(k).transpose(0, 1), x),
    )


def one(data: Callable[[int], torch.Tensor]) -> Callable[[int], tuple[Any, ...]]:
    return lambda k: (data(k),)


def padded(k: int) -> torch.Tensor:
    mask = torch.zeros(N, L * k, dtype=torch.bool)
    mask[:, L * k // 2 :] = True
    return mask


def tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value.detach()
    elif isinstance(value, tuple | list):
        for item in value:
            yield from tensors(item)


def run(module: nn.Module, inputs: tuple[Any, ...], recording: bool) -> list[torch.Tensor]:
    torch.manual_seed(1)
    state = {name: value.clone() for name, value in module.state_dict().items()}
    with torch.set_grad_enabled(recording):
        found = [item.clone() for item in tensors(module(*inputs))]
    module.load_state_dict(state)  # running statistics
    return found


def measure(case: Case, device: str) -> dict[str, Any]:
    name, build, data = case
    row: dict[str, Any] = {"layer": name, "same": True, "largest": 0.0, "repeatable": True, "ran": 0, "differs": []}
    for size, training, dtype in itertools.product((1, 4), (False, True), (torch.float32, torch.bfloat16)):
        torch.manual_seed(0)
        try:
            module = build(size).to(device, dtype).train(training)
            inputs = tuple(moved(item, device, dtype) for item in data(size))
            recorded, again, plain = (run(module, inputs, recording) for recording in (True, True, False))
        except (RuntimeError, NotImplementedError, ValueError, AssertionError) as error:
            row.setdefault("failed", f"{type(error).__name__}: {str(error)[:80]}")
            continue
        row["ran"] += 1
        row["repeatable"] &= same(recorded, again)
        if not same(recorded, plain):
            row["same"] = False
            row["differs"].append(f"size {size}, {'train' if training else 'eval'}, {str(dtype)[6:]}")
            row["largest"] = max(row["largest"], largest(recorded, plain))
    return row


def moved(item: Any, device: str, dtype: torch.dtype) -> Any:
    if not isinstance(item, torch.Tensor):
        return item
    return item.to(device, dtype) if item.is_floating_point() else item.to(device)


def same(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return len(left) == len(right) and all(torch.equal(a, b) for a, b in zip(left, right, strict=True))


def largest(left: list[torch.Tensor], right: list[torch.Tensor]) -> float:
    pairs = [(a, b) for a, b in zip(left, right, strict=False) if a.shape == b.shape and a.numel()]
    return max([float((a.float() - b.float()).abs().nan_to_num(1e9).max()) for a, b in pairs], default=-1.0)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    rows = [measure(case, given.device) for case in cases()]
    found = {
        "command": " ".join(["python", *sys.argv]),
        "device": torch.cuda.get_device_name() if given.device.startswith("cuda") else platform.processor() or "cpu",
        "versions": {"torch": torch.__version__, "cuda": torch.version.cuda, "python": platform.python_version()},
        "rows": rows,
    }
    text = json.dumps(found, indent=1) + "\n"
    if given.out:
        Path(given.out).write_text(text, encoding="utf-8")
    for row in rows:
        if not row["same"] or not row["ran"] or not row["repeatable"]:
            print({key: value for key, value in row.items() if key != "ran"})
    print(f"{sum(row['same'] and row['ran'] > 0 for row in rows)} of {len(rows)} layers are the same bit for bit")


if __name__ == "__main__":
    main()
