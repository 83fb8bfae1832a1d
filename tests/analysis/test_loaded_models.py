"""A project's own class, made from a file by what a library's base class has: ``Net.from_pretrained(name)``."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from tests.linting import codes_in

NET = """
import pytorch_lightning as pl
import torch
from diffusers import ConfigMixin, ModelMixin
from torch import nn
from transformers import AutoTokenizer, PreTrainedModel


class Net({bases}):
    def __init__(self, config):
        super().__init__(config)
        self.layers = nn.Sequential(nn.Embedding(30_000, 1024), nn.Linear(1024, 1024))

    def forward(self, ids):
        return self.layers(ids)

    @classmethod
    def read(cls, path):
        return torch.load(path)


class Encoder:
    def __init__(self, name):
        self.net = {made}
        self.tokenizer = AutoTokenizer.from_pretrained(name)

    def encode(self, texts):
        inputs = self.tokenizer(texts, return_tensors="pt").to("cuda")
        {run}
"""

USED_UP = "return self.net(inputs['input_ids']).detach().cpu().numpy()"
GUARDED = "with torch.no_grad():\n            return self.net(inputs['input_ids']).cpu().numpy()"


@pytest.mark.parametrize(
    ("bases", "made", "run", "codes"),
    [
        ("PreTrainedModel", "Net.from_pretrained(name)", USED_UP, ["MEM201"]),
        ("PreTrainedModel", "Net.from_pretrained(name).cuda()", USED_UP, ["MEM201"]),
        ("ModelMixin, ConfigMixin", "Net.from_config(name)", USED_UP, ["MEM201"]),
        ("pl.LightningModule", "Net.load_from_checkpoint(name, strict=False)", USED_UP, ["MEM201"]),
        ("PreTrainedModel", "Net.from_pretrained(name)", GUARDED, []),
        # its output is what the caller asks for, perhaps to train by it
        ("PreTrainedModel", "Net.from_pretrained(name)", "return self.net(inputs['input_ids'])", []),
        # a class that has no such method: what is named like a network and gets the tensors of a tokenizer is one
        ("nn.Module", "Net.from_pretrained(name)", USED_UP, ["MEM201"]),
        ("nn.Module", "Net.from_pretrained(name)", "return self.net(texts).tolist()", []),
    ],
)
def test_a_class_that_a_library_loads(tmp_path: Path, bases: str, made: str, run: str, codes: list[str]) -> None:
    assert codes_in(tmp_path, NET.format(bases=bases, made=made, run=run)) == codes


SERVER = """
import torch
from fastapi import FastAPI
from transformers import AutoModel

app = FastAPI()


class Worker:
    def __init__(self, name):
        self.model = AutoModel.from_pretrained(name).cuda()

    def vector(self, ids):
        {body}


@app.post("/vector")
async def vector(ids):
    return Worker("name").vector(ids)
"""


@pytest.mark.parametrize(
    ("body", "codes"),
    [
        ("return self.model(ids.cuda()).last_hidden_state.mean(1).tolist()", ["MEM201"]),
        (
            "out = self.model(ids.cuda())\n        data = out.last_hidden_state[0]\n"
            "        return {'vector': torch.mean(data, dim=0).tolist()}",
            ["MEM201"],
        ),
        (
            "with torch.no_grad():\n            return self.model(ids.cuda()).last_hidden_state.mean(1).tolist()",
            [],
        ),
        ("return self.model(ids.cuda()).last_hidden_state.mean(1)", []),
    ],
)
def test_what_users_call_and_uses_its_output_up(tmp_path: Path, body: str, codes: list[str]) -> None:
    assert codes_in(tmp_path, SERVER.format(body=body)) == codes


@pytest.mark.parametrize(
    "started", ["def main():\n    print(Worker('name').vector(torch.ones(1, 8).long()))\n", "Worker('a').vector(ids())"]
)
def test_a_program_that_runs_a_model_once(tmp_path: Path, started: str) -> None:
    body = "return self.model(ids.cuda()).last_hidden_state.mean(1).tolist()"
    source = SERVER.format(body=body).partition("@app.post")[0] + "\n" + started
    assert codes_in(tmp_path, source) == []


SCORES = """
import torch
from {package} import GPT2Model, GPT2Tokenizer


def evaluate(loader):
    made = {made}.from_pretrained("gpt2")
    total = 0
    for ids in loader:
        total += float(made.decode(ids.cuda())[0].mean())
    return total
"""


@pytest.mark.parametrize("package", ["transformers", "pytorch_transformers", "pytorch_pretrained_bert"])
@pytest.mark.parametrize(("made", "codes"), [("GPT2Tokenizer", []), ("GPT2Model", ["MEM201"])])
def test_a_tokenizer_is_no_network(tmp_path: Path, package: str, made: str, codes: list[str]) -> None:
    assert codes_in(tmp_path, SCORES.format(package=package, made=made)) == codes


RESUMED = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Linear(4096, 4096)

    def forward(self, x):
        return self.layers(x)


def score(loader, net):
    hits = 0
    for x, y in loader:
        hits += (net(x.cuda()).argmax(1).cpu() == y).sum().item()
    return hits


def train(loader, test_loader, path, resume):
    if resume:
        net = {loaded}
    else:
        net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), 0.1)
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    {tested}
"""


@pytest.mark.parametrize(
    ("loaded", "tested", "codes"),
    [
        ("torch.load(path).cuda()", "print(score(test_loader, net))", ["MEM201"]),
        ('torch.load(path)["net"].cuda()', "print(score(test_loader, net))", ["MEM201"]),
        ("torch.load(path).cuda()", "with torch.no_grad():\n        print(score(test_loader, net))", []),
        ("torch.load(path).cuda()", "print(score(test_loader, print))", []),
    ],
)
def test_what_is_loaded_or_else_made_is_a_network_in_a_callee(
    tmp_path: Path, loaded: str, tested: str, codes: list[str]
) -> None:
    (tmp_path / "train.py").write_text(RESUMED.format(loaded=loaded, tested=tested))
    found = memlint.lint([tmp_path], isolated=True).findings
    assert [one.code for one in found if one.code != "MEM404"] == codes
