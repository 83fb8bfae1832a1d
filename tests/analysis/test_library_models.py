"""Models that a library made, loops over what a name hides, attributes in which the project's classes keep modules."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

HEAD = """
import numpy as np
import timm
import torch
from torchvision import models
from transformers import AutoModel

from parts import build
"""


def codes(folder: Path, text: str, **files: str) -> list[str]:
    for name, source in {"main": HEAD + text, **files}.items():
        (folder / f"{name}.py").write_text(source, encoding="utf-8")
    result = memlint.lint([folder / "main.py"], isolated=True)
    assert not result.failures
    return [one.code for one in result.findings]


EMBED = """
def embed(loader, path):
    model = {made}
    rows = []
    for batch in loader:
        out = model(batch)
        {use}
    return rows
"""
MADE = ['AutoModel.from_pretrained(path).to("cuda")', "models.resnet50(pretrained=True)", 'timm.create_model("vit")']


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("use", ["rows.append(out.detach().cpu().numpy())", "rows.append(out.argmax(-1).tolist())"])
def test_a_library_made_it_and_its_output_is_cut(tmp_path: Path, made: str, use: str) -> None:
    assert codes(tmp_path, EMBED.format(made=made, use=use)) == ["MEM201"]


@pytest.mark.parametrize("made", MADE)
@pytest.mark.parametrize("use", ["rows.append(out.cpu().numpy())", "out.sum().backward()", "yield out"])
def test_a_library_made_it_and_its_graph_is_wanted_or_not_there(tmp_path: Path, made: str, use: str) -> None:
    assert codes(tmp_path, EMBED.format(made=made, use=use)) == []


@pytest.mark.parametrize("made", ["load(path)", "build(path)"])
@pytest.mark.parametrize(
    ("use", "expected"),
    [
        # only what has a graph has to be detached
        ("rows.append(out.detach().cpu().numpy())", ["MEM201"]),
        ("rows.append(out.cpu().numpy())", []),
        ("rows.append(out.tolist())", []),
    ],
)
def test_what_only_its_use_shows_to_be_a_model(tmp_path: Path, made: str, use: str, expected: list[str]) -> None:
    text = EMBED.format(made=made, use=use)
    assert codes(tmp_path, text, parts="build = object()\n") == expected


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("out.type(torch.float16).view(torch.int16)", ["MEM201"]),
        ("out.type(torch.LongTensor)", ["MEM201"]),
        ("out.view(-1)", []),
    ],
)
def test_the_bits_of_an_output(tmp_path: Path, use: str, expected: list[str]) -> None:
    """Integers have no graph; what is returned with one may be trained by."""
    text = EMBED.format(made="models.resnet50()", use=f"rows.append({use})")
    found = codes(tmp_path, text)
    assert [code for code in found if code == "MEM201"] == expected


BAR = """
from tqdm import tqdm


def epoch(model, optimizer, {data}):
    {before}
        optimizer.feed(model, x)
        torch.cuda.empty_cache()
"""


@pytest.mark.parametrize(
    "before",
    [
        "for i, x in enumerate(loader):",
        "bar = tqdm(loader)\n    for i, x in enumerate(bar):",
        "bar = enumerate(tqdm(loader))\n    for i, x in bar:",
    ],
)
def test_a_loop_over_a_bar_is_one_over_its_loader(tmp_path: Path, before: str) -> None:
    assert codes(tmp_path, BAR.format(before=before, data="loader")) == ["MEM305"]


@pytest.mark.parametrize(
    "before",
    ["bar = tqdm(stages)\n    for i, x in enumerate(bar):", "bar = tqdm(loader)\n    bar = stages\n    for x in bar:"],
)
def test_a_bar_over_anything_else(tmp_path: Path, before: str) -> None:
    assert codes(tmp_path, BAR.format(before=before, data="loader, stages")) == []


LEARNERS = """
from torch import nn

KINDS = {{}}


class Learner:
    def __init__(self):
        self.critic = {kept}


class Other:
    def __init__(self, size):
        self.critic = {other}


def build(name):
    return KINDS[name]()
"""
ROLLOUT = """
def rollout(env, name):
    learner = build(name)
    values = []
    while True:
        values.append(learner.critic(env.observe()))
"""
LINEAR = "nn.Linear(3, 1)"


@pytest.mark.parametrize(
    ("kept", "other", "expected"),
    [
        (LINEAR, "nn.Sequential(nn.Linear(size, 1))", ["MEM102"]),
        (LINEAR, "None", ["MEM102"]),
        (LINEAR, "size", ["MEM102"]),
        (LINEAR, "lambda x: 1.0", []),
        ("open", "print", []),
    ],
)
def test_what_all_classes_keep_under_a_name(tmp_path: Path, kept: str, other: str, expected: list[str]) -> None:
    found = codes(tmp_path, ROLLOUT, parts=LEARNERS.format(kept=kept, other=other))
    assert [code for code in found if code == "MEM102"] == expected


STEP = """
import pytorch_lightning as pl


class Run(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Linear(3, 3)

    def shared(self, batch):
        image, mask = batch["image"], batch["mask"]
        loss = self.measure(self.net(image), mask)
        return {{"loss": loss, {kept}}}

    def validation_step(self, batch, batch_idx):
        results = self.shared(batch)
        return results

    def validation_epoch_end(self, outputs):
        print(len(outputs))
"""


@pytest.mark.parametrize(("kept", "expected"), [('"image": image', ["MEM104"]), ('"count": 1', [])])
def test_what_a_helper_gives_to_a_step(tmp_path: Path, kept: str, expected: list[str]) -> None:
    assert codes(tmp_path, STEP.format(kept=kept)) == expected


HELD = """
from typing import cast


class Embedder:
    def __init__(self, path):
        self.model = {made}
        self.model.eval()

    def embed(self, loader):
        for batch in tqdm(loader):
            out = {call}
            yield {given}


for row in Embedder("a").embed(torch.utils.data.DataLoader([])):
    print(row)
"""
PLAIN = "AutoModel.from_pretrained(path)"


@pytest.mark.parametrize(
    ("made", "call", "given", "found"),
    [
        (PLAIN, "self.model(**batch).pooler_output", "out.detach().cpu().numpy()", ["MEM201"]),
        (f"cast(AutoModel, {PLAIN})", "self.model(**batch).pooler_output", "out.detach().cpu().numpy()", ["MEM201"]),
        (PLAIN, "self.model(**batch).pooler_output", "out.numpy(force=True)", ["MEM201"]),
        (PLAIN, "self.model(**batch).pooler_output", "out.numpy()", []),
        (PLAIN, "self.model(**batch).pooler_output", "out.numpy(force=False)", []),
        (PLAIN, "self.model.vilt.encoder(batch).last_hidden_state", "out.detach().cpu()", ["MEM201"]),
        (PLAIN, "self.model.config.encoder(batch).width", "out", []),
        ("build(path)", "self.model.vilt.encoder(batch).rows", "out", []),
    ],
)
def test_what_an_object_holds_and_gives(tmp_path: Path, made: str, call: str, given: str, found: list[str]) -> None:
    """``cast`` gives what it is given; ``numpy(force=True)`` cuts a graph, where ``numpy()`` would raise."""
    assert codes(tmp_path, HELD.format(made=made, call=call, given=given).replace("tqdm(loader)", "loader")) == found
