"""An evaluation of a network that is known to be large is a warning, also where it runs once a call."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

HANDLER = """
import torch
import torchvision
from torch import nn
from diffusers import AutoencoderKL
from flask import Flask, request
from transformers import AutoModel, AutoTokenizer, BertModel

app = Flask(__name__)
tokens = AutoTokenizer.from_pretrained("bert-base-uncased")


class Wrapped(nn.Module):
    def __init__(self):
        super().__init__()
        self.bert = BertModel.from_pretrained("bert-base-uncased")
        self.head = nn.Linear(768, 2)

    def forward(self, ids):
        return self.head(self.bert(ids).pooler_output)


class Server:
    def __init__(self):
        self.net = {made}
        self.net.cuda().eval()

    def answer(self, x):
        return self.net(x).argmax(1).tolist()


net = {made}.cuda()
net.eval()


@app.route("/answer", methods=["POST"])
def answer():
    inputs = tokens(request.json["text"], return_tensors="pt").to("cuda")
    return net(**inputs).argmax(1).tolist()


def once(network, x):
    network.eval()
    return network(x).argmax(1).tolist()


def main():
    given = {made}
    print(once(given.cuda(), torch.zeros(1, 8)))
"""


@pytest.mark.parametrize(
    "made",
    [
        "AutoModel.from_pretrained('bert-base-uncased')",
        "AutoencoderKL.from_pretrained('stabilityai/sd-vae-ft-mse')",
        "torchvision.models.detection.fasterrcnn_resnet50_fpn(weights='DEFAULT')",
        "Wrapped()",
    ],
)
def test_large_networks_outside_of_loops(tmp_path: Path, made: str) -> None:
    (tmp_path / "serve.py").write_text(HANDLER.format(made=made))
    found = [one.severity for one in memlint.lint([tmp_path], min_confidence="low").findings if one.code == "MEM201"]
    assert found == ["warning"] * 3


@pytest.mark.parametrize("made", ["torchvision.models.resnet18()", "library.small()"])
def test_networks_of_any_size(tmp_path: Path, made: str) -> None:
    text = HANDLER.format(made=made).replace("import torchvision\n", "import library\nimport torchvision\n")
    (tmp_path / "serve.py").write_text(text)
    found = {one.severity for one in memlint.lint([tmp_path]).findings if one.code == "MEM201"}
    assert found <= {"note"}


SCRIPT = """
import torch
from torch.utils.data import DataLoader
from transformers import AutoTokenizer, BertModel
from texts import given, Texts

tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
device = torch.device("{device}")
net = BertModel.from_pretrained("bert-base-uncased").to(device)
net.eval()
{run}
"""
LOOP = """
for ids in DataLoader(Texts(), batch_size={size}):
    print(net(ids.to(device)).pooler_output.detach().cpu().numpy())
"""


@pytest.mark.parametrize(
    ("run", "device", "expected"),
    [
        ('print(net(**tokenizer("a text", return_tensors="pt")).pooler_output.tolist())', "cuda", "note"),
        ("print(net(torch.tensor([given]).to(device)).pooler_output.tolist())", "cuda", "note"),
        ("print(net(given.unsqueeze(0)).pooler_output.tolist())", "cpu", "note"),
        ("print(net(given.to(device)).pooler_output.tolist())", "cuda", "warning"),
        (LOOP.format(size=1), "cpu", "note"),
        (LOOP.format(size=32), "cpu", "warning"),
        (LOOP.format(size=1), "cuda", "warning"),
    ],
)
def test_scripts_that_show_single_samples(tmp_path: Path, run: str, device: str, expected: str) -> None:
    (tmp_path / "show.py").write_text(SCRIPT.format(run=run, device=device))
    found = [one.severity for one in memlint.lint([tmp_path], min_confidence="low").findings if one.code == "MEM201"]
    assert found == [expected]
