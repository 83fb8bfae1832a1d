"""Programs that train nothing: a model that they run over data is evaluated, whatever its mode and the names."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import findings_in

APPLY = """
import torch
from transformers import AutoModelForCausalLM
{imports}

def perplexity(model, encodings, stride=512):
    losses = []
    for i in range(0, encodings.size(1), stride):
        ids = encodings[:, i : i + stride].to("cuda")
        losses.append(model(ids, labels=ids).loss)
    return torch.exp(torch.stack(losses).mean())


{start}
"""
START = """
if __name__ == "__main__":
    net = {model}
    print(perplexity(net, torch.load('ids.pt')))
"""
PRETRAINED = 'AutoModelForCausalLM.from_pretrained("gpt2").cuda()'
HELPERS = "def show(x):\n    print(x)\n"
TRAINS = "def fit_head(loss, optimizer):\n    loss.backward()\n    optimizer.step()\n"


def severities(folder: Path, source: str) -> list[str]:
    return [found.severity for found in findings_in(folder, source, "apply.py") if found.code == "MEM201"]


@pytest.mark.parametrize(
    ("model", "severity"), [(PRETRAINED, ["warning"]), ("torch.nn.Sequential(torch.nn.Linear(4, 4)).cuda()", ["note"])]
)
def test_a_program_without_a_backward_evaluates(tmp_path: Path, model: str, severity: list[str]) -> None:
    (tmp_path / "helpers.py").write_text(HELPERS)
    source = APPLY.format(imports="from helpers import show", start=START.format(model=model))
    assert severities(tmp_path, source) == severity


@pytest.mark.parametrize(
    ("imports", "start"),
    [
        pytest.param("from train import fit_head", START, id="it imports code that trains"),
        pytest.param("from steps import run", START, id="what it imports does"),
        pytest.param("", "", id="it may be anybody's"),
    ],
)
def test_code_that_may_train_is_left_alone(tmp_path: Path, imports: str, start: str) -> None:
    (tmp_path / "train.py").write_text(TRAINS)
    (tmp_path / "steps.py").write_text("from train import fit_head as run\n")
    assert severities(tmp_path, APPLY.format(imports=imports, start=start.format(model=PRETRAINED))) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        pytest.param("losses = []", "model.train()\n    losses = []", id="a mode that somebody asks for"),
        pytest.param("losses.append(model(ids, labels=ids).loss)", "viewer.show(model(ids))", id="unresolved code"),
        pytest.param("print(perplexity(net, torch.load('ids.pt')))", "viewer.show(perplexity(net, 1))", id="behind it"),
        pytest.param("return torch.exp", "model.last = losses\n    return torch.exp", id="an attribute"),
    ],
)
def test_who_may_want_gradients_is_left_alone(tmp_path: Path, old: str, new: str) -> None:
    source = APPLY.format(imports="import viewer", start=START.format(model=PRETRAINED))
    assert severities(tmp_path, source) == ["warning"]
    assert severities(tmp_path, source.replace(old, new)) == []


def test_another_program_may_train_with_it(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(f"from apply import perplexity\n\n\n{TRAINS}")
    assert severities(tmp_path, APPLY.format(imports="", start=START.format(model=PRETRAINED))) == []


INDEX = """
import torch
from torchvision import models

INDEX = {}
model = models.resnet50(weights="DEFAULT").cuda()


def add(name, image):
    INDEX[name] = model(image.cuda())


def main(paths):
    for path in paths:
        add(path, torch.load(path))
    torch.save(INDEX, "index.pt")


if __name__ == "__main__":
    main(open("paths.txt").read().split())
"""


def test_a_variable_of_such_a_program_is_read_by_it_alone(tmp_path: Path) -> None:
    assert severities(tmp_path, INDEX) == ["note"]
    assert severities(tmp_path, INDEX.replace("INDEX = {}", "INDEX = defaultdict(list)")) == ["note"]
    assert severities(tmp_path, INDEX.replace("INDEX = {}", "from shelf import INDEX")) == []
    assert severities(tmp_path, INDEX.replace("INDEX = {}", "import shelf\n\nINDEX = shelf.INDEX")) == []
    (tmp_path / "train.py").write_text(f"from apply import INDEX, add\n\n\n{TRAINS}")
    assert severities(tmp_path, INDEX) == []
