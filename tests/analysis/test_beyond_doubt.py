"""How far a severity goes: batches of one sample, tensors of unknown size, lookups, shape probes, pools that fill."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint


def said(folder: Path, text: str) -> set[tuple[str, str]]:
    (folder / "main.py").write_text(text, encoding="utf-8")
    result = memlint.lint([folder], isolated=True)
    assert not result.failures
    return {(one.code, one.severity) for one in result.findings}


COLLECT = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.{layer}

    def forward(self, x):
        return self.layer(x)


@torch.no_grad()
def collect(model: Net, loader):
    kept = []
    for batch, labels_batch in loader:
        {name} = model(batch.cuda())
        labels_batch = labels_batch.cuda()
        kept.append({kept})
    return torch.cat(kept)


def main(dataset, options):
    print(collect(Net().cuda().eval(), DataLoader(dataset{size})))
"""


def collect(
    name: str = "features", kept: str = "", size: str = ", batch_size=64", layer: str = "Conv2d(3, 64, 3)"
) -> str:
    return COLLECT.format(name=name, kept=kept or name, size=size, layer=layer)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(collect(), {("MEM104", "warning")}, id="a layer's output"),
        pytest.param(collect(layer="Linear(8, 20)"), {("MEM104", "note")}, id="a few numbers a sample"),
        pytest.param(collect(kept="labels_batch"), set(), id="one number a sample"),
        pytest.param(collect(size=""), {("MEM104", "note")}, id="batches of one sample"),
        pytest.param(collect(size=", 1"), {("MEM104", "note")}, id="batches of one sample, said"),
        pytest.param(collect(size=", batch_size=options.size"), {("MEM104", "warning")}, id="batches of some size"),
        pytest.param(
            collect(size=", batch_sampler=options.sampler"), {("MEM104", "warning")}, id="a sampler's batches"
        ),
        pytest.param(collect(size=", **options"), {("MEM104", "warning")}, id="batches of a size that is not told"),
    ],
)
def test_what_is_known_of_the_size(tmp_path: Path, text: str, expected: set[tuple[str, str]]) -> None:
    assert said(tmp_path, text) == expected


UNKNOWN = """
import torch


@torch.no_grad()
def collect(model, loader):
    kept = []
    for batch in loader:
        kept.append(model(batch.cuda()))
    return torch.cat(kept)
"""


def test_what_a_model_gives_that_nobody_sees(tmp_path: Path) -> None:
    assert said(tmp_path, UNKNOWN) == {("MEM104", "note")}


LOOKUP = """
import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(100, 8)
        self.out = nn.Linear(8, 100)

    def forward(self, words):
        return self.out(self.embedding(words))


def evaluate(decoder: Decoder, loader):
    decoder.eval()
    for words in loader:
        rows = {call}
        print(rows.sum().item())
"""


@pytest.mark.parametrize(
    ("call", "codes"),
    [
        ("decoder.embedding(words)", set()),
        ("decoder.out(decoder.embedding(words))", {"MEM201"}),
        ("decoder(words)", {"MEM201"}),
    ],
)
def test_rows_of_a_table_save_next_to_nothing(tmp_path: Path, call: str, codes: set[str]) -> None:
    assert {code for code, _ in said(tmp_path, LOOKUP.format(call=call))} == codes


SHAPE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3)
        self.out = nn.Linear(self.evaluate_size(size, None), 10)

    def evaluate_size(self, size, images):
        x = {x}
        x = self.conv(x)
        return x.size(1) * x.size(2)
"""


@pytest.mark.parametrize(("x", "codes"), [("torch.ones(1, 3, size, size)", set()), ("images", {"MEM201"})])
def test_a_tensor_that_is_there_for_its_shape(tmp_path: Path, x: str, codes: set[str]) -> None:
    assert {code for code, _ in said(tmp_path, SHAPE.format(x=x))} == codes


TOKENS = """
import torch
from torch import nn
from transformers import BertTokenizer


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def encode(self, x):
        return self.layer(x)


class Rows:
    def __init__(self, tokenizer{kind}, loader):
        self.rows = []
        for line in loader:
            words = tokenizer.encode(line)
            self.rows.append(len(words) + words.argmax().item())
"""


@pytest.mark.parametrize(("kind", "codes"), [(": BertTokenizer", set()), (": Encoder", {"MEM201"})])
def test_a_type_from_outside_is_no_model_of_the_project(tmp_path: Path, kind: str, codes: set[str]) -> None:
    assert {code for code, _ in said(tmp_path, TOKENS.format(kind=kind))} == codes


POOL = """
import torch


class Pool:
    def __init__(self, size):
        self.size = size
        self.count = 0
        self.images = []

    def query(self, image):
        {test}:
            {count}
            self.images.append(image)
        return image


def train(net, critic, loader, optimizer, pool: Pool):
    net.cuda()
    for x in loader:
        fake = net(x.cuda())
        loss = critic(pool.query(fake)).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def main(net, critic, loader, optimizer):
    train(net, critic, loader, optimizer, Pool(50))
"""


@pytest.mark.parametrize(
    ("test", "count", "codes"),
    [
        ("if self.count < self.size", "self.count += 1", set()),
        ("if image.max() < self.size", "self.count += 1", {"MEM102"}),
    ],
)
def test_a_pool_that_is_filled_once(tmp_path: Path, test: str, count: str, codes: set[str]) -> None:
    assert {code for code, _ in said(tmp_path, POOL.format(test=test, count=count))} == codes


SUM = """
import torch


def train(net, loader, optimizer, every):
    net.cuda()
    total = 0
    for step, x in enumerate(loader):
        total += net(x.cuda()).mean()
        if step % every == 0:
            total = total / every
            total.backward(retain_graph=True)
            optimizer.step()
            {after}
    print(total)
"""


@pytest.mark.parametrize(
    ("after", "found"), [("total = 0", False), ("total, n = 0, 0", False), ("n = total", True), ("total *= 0.9", True)]
)
def test_a_sum_that_its_backward_needs(tmp_path: Path, after: str, found: bool) -> None:
    codes = {code for code, _ in said(tmp_path, SUM.format(after=after))}
    assert bool(codes & {"MEM101", "MEM103"}) is found


MEMBER = """
import torch
import lightning as L


class Log(L.Callback):
    def __init__(self):
        self.kept = []

    def on_validation_batch_end(self, trainer, module, outputs, batch, batch_idx):
        self.kept.append(outputs["{key}"])
"""


@pytest.mark.parametrize(("key", "found"), [("hypotheses", False), ("features", True)])
def test_a_member_of_what_a_step_gave(tmp_path: Path, key: str, found: bool) -> None:
    assert (said(tmp_path, MEMBER.format(key=key)) != set()) is found


FIRST = """
import torch


def score(net, criterion, loader):
    net.cuda()
    kept = []
    for step, x in enumerate(loader):
        loss = criterion(net(x.cuda()))
        loss.backward()
        kept.append(loss)
        if step == {limit}:
            break
    return len(kept)
"""


@pytest.mark.parametrize(("limit", "found"), [(5, False), (50_000, True)])
def test_the_first_few_rounds(tmp_path: Path, limit: int, found: bool) -> None:
    assert ("MEM102" in {code for code, _ in said(tmp_path, FIRST.format(limit=limit))}) is found


BARE = """
import torch


def evaluate(net, loader):
    net.eval()
    torch.no_grad()
    {head}
        for x in loader:
            print(net(x).argmax().item())
    {behind}
"""


@pytest.mark.parametrize(
    ("head", "behind", "found"),
    [
        ("with torch.no_grad():", "pass", False),
        ("with torch.no_grad():", "print(net(loader.first).argmax().item())", True),
        ("if net.ready:", "pass", True),
    ],
)
def test_a_guard_beside_one_that_guards(tmp_path: Path, head: str, behind: str, found: bool) -> None:
    assert ("MEM203" in {code for code, _ in said(tmp_path, BARE.format(head=head, behind=behind))}) is found
