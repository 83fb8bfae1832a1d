"""Optimizers of large models: how large a model is known to be, and what its optimizer is told."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint import Finding
from memlint.knowledge.sizes import parameters_made_by, parameters_of

PROGRAM = """
import torch
import torchvision
from torch import nn, optim
from torch.optim import Adam, AdamW
from transformers import AutoModel, AutoModelForCausalLM, CLIPTextModel
from library import make

device = "cuda"
NAME = "facebook/opt-1.3b"


class Wide(nn.Module):
    def __init__(self, width=4096, layers=4):
        super().__init__()
        self.first = nn.Linear(width, width * 8)
        self.body = nn.Sequential(nn.Linear(width * 8, width), nn.ReLU(), nn.Linear(width, width))
        self.last = nn.Conv2d(width, width, kernel_size=3)


def train(given, flag, name):
    model = {model}
    return {optimizer}
"""
LARGE = "AutoModelForCausalLM.from_pretrained('facebook/opt-1.3b').to(device)"
PLAIN = "AdamW(model.parameters(), lr=1e-5)"


def found(tmp_path: Path, model: str = LARGE, optimizer: str = PLAIN, extra: str = "") -> list[Finding]:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "train.py").write_text(PROGRAM.format(model=model, optimizer=optimizer) + extra)
    result = memlint.lint([tmp_path], isolated=True, preview=True, select=["MEM407"])
    assert not result.failures
    return list(result.findings)


@pytest.mark.parametrize(
    ("model", "optimizer", "severity"),
    [
        (LARGE, PLAIN, "warning"),
        (LARGE, "optim.Adam(list(model.parameters()), lr=1e-5, foreach=None)", "warning"),
        (LARGE, "torch.optim.Adam(params=model.parameters(), fused=False)", "warning"),
        ("AutoModelForCausalLM.from_pretrained(NAME, torch_dtype=torch.bfloat16)", PLAIN, "note"),
        ("AutoModel.from_pretrained('bert-large-uncased').cuda()", PLAIN, "note"),
        ("torchvision.models.vit_h_14()", PLAIN, "note"),
        ("Wide()", PLAIN, "note"),
        ("Wide(8192)", PLAIN, "warning"),
        ("nn.Sequential(nn.Linear(20000, 20000), nn.ReLU(), nn.Linear(20000, 2))", PLAIN, "note"),
    ],
)
def test_large_models(tmp_path: Path, model: str, optimizer: str, severity: str) -> None:
    (finding,) = found(tmp_path, model, optimizer)
    assert (finding.severity, finding.growth.kind, finding.confidence) == (severity, "peak", "high")


@pytest.mark.parametrize(
    ("model", "optimizer"),
    [
        (LARGE, "AdamW(model.parameters(), foreach=False)"),
        (LARGE, "AdamW(model.parameters(), fused=True)"),
        (LARGE, "AdamW(model.parameters(), fused=flag)"),
        (LARGE, "AdamW(model.parameters(), **given)"),
        (LARGE, "AdamW(given)"),
        (LARGE, "AdamW(model.lm_head.parameters())"),
        (LARGE, "AdamW([{'params': model.parameters()}])"),
        (LARGE, "optim.SGD(model.parameters())"),
        (LARGE, "make.AdamW(model.parameters())"),
        ("AutoModel.from_pretrained(name)", PLAIN),
        ("AutoModel.from_pretrained('facebook/opt-1.3b', device_map='auto')", PLAIN),
        ("AutoModel.from_pretrained('facebook/opt-125m')", PLAIN),
        ("AutoModel.from_pretrained('someone/own')", PLAIN),
        ("CLIPTextModel.from_pretrained('openai/clip-vit-large-patch14')", PLAIN),
        ("make('facebook/opt-1.3b')", PLAIN),
        ("torchvision.models.resnet50()", PLAIN),
        ("Wide(64)", PLAIN),
        ("Wide(given)", PLAIN),
        ("given", PLAIN),
    ],
)
def test_what_is_not_known_to_be_one(tmp_path: Path, model: str, optimizer: str) -> None:
    assert found(tmp_path, model, optimizer) == []


@pytest.mark.parametrize("extra", ["from peft import get_peft_model\n", "# fsdp\nFSDP = FullyShardedDataParallel\n"])
def test_a_part_of_it(tmp_path: Path, extra: str) -> None:
    assert found(tmp_path, extra=extra) == []


def test_on_the_host(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        PROGRAM.format(model=LARGE.replace(".to(device)", ""), optimizer=PLAIN).replace('device = "cuda"', "")
    )
    assert not memlint.lint([tmp_path], isolated=True, preview=True, select=["MEM407"]).findings


def test_before_foreach(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch==1.13.1\n")
    assert found(tmp_path) == []


def test_small_beside_the_device(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.memlint]\ndevice-memory = "900 GiB"\n')
    (tmp_path / "train.py").write_text(PROGRAM.format(model=LARGE, optimizer=PLAIN))
    assert not memlint.lint([tmp_path], preview=True, select=["MEM407"]).findings


@pytest.mark.parametrize(
    ("name", "loader", "millions"),
    [
        ("meta-llama/Llama-2-7b-hf", "AutoModelForCausalLM", 7000),
        ("Qwen/Qwen2.5-0.5B-Instruct", "AutoModelForCausalLM", 500),
        ("EleutherAI/pythia-410m-deduped", "GPTNeoXForCausalLM", 410),
        ("Qwen/Qwen2.5-7B-Instruct-1M", "AutoModel", 7000),
        ("google-bert/bert-large-uncased", "BertModel", 336),
        ("stabilityai/stable-diffusion-2-1", "UNet2DConditionModel", 860),
        ("stabilityai/stable-diffusion-2-1", "AutoencoderKL", None),
        ("openai/clip-vit-large-patch14", "CLIPTextModel", None),
        ("google-t5/t5-large", "T5EncoderModel", None),
        ("mistralai/Mixtral-8x7B-v0.1", "AutoModelForCausalLM", None),
        ("laion/CLIP-ViT-B-32-laion2B-s34B-b79K", "CLIPModel", None),
        ("bert-base-uncased", "BertModel", None),
        ("checkpoints/epoch3", "AutoModel", None),
    ],
)
def test_sizes_by_name(name: str, loader: str, millions: int | None) -> None:
    assert parameters_of(name, loader) == (millions * 1_000_000 if millions else None)


def test_sizes_by_function() -> None:
    assert parameters_made_by("torchvision.models.vit_h_14") == 632_000_000
    assert parameters_made_by("torchvision.models.resnet50") is None
