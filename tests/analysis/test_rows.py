"""What grows by pictures, maps of features or scores of a vocabulary is a warning; by rows of a few numbers, a note."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

LARGE, NOT_LARGE = "warning", "note"

GROWN = """
import torch
from neighbours import nearest


@torch.no_grad()
def collect(model, loader, width):
    model.eval()
    rows = {start}
    hits = 0
    for x, y in loader:
        {name} = model(x.cuda())
        rows = {name} if rows is None else torch.cat([rows, {name}.cpu()])
        {use}
    return rows, hits
"""


def severity(tmp_path: Path, **parts: str) -> str:
    defaults = {"start": "None", "name": "outputs", "use": "pass"}
    (tmp_path / "collect.py").write_text(GROWN.format(**(defaults | parts)))
    (finding,) = memlint.lint([tmp_path]).findings
    assert finding.code == "MEM302"
    return finding.severity


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({}, NOT_LARGE),
        ({"start": "torch.empty(0, width)"}, NOT_LARGE),
        ({"start": "torch.empty(0, 2)"}, NOT_LARGE),
        ({"start": "torch.zeros((0, 1))"}, NOT_LARGE),
        ({"start": "torch.empty(0, 3, 64, 64)"}, LARGE),
        ({"start": "torch.zeros(0, 50257)"}, LARGE),
        ({"name": "logits"}, NOT_LARGE),
        ({"name": "image_log_probs"}, NOT_LARGE),
        ({"name": "image_features"}, NOT_LARGE),
        ({"name": "images"}, LARGE),
        ({"name": "pred_masks"}, LARGE),
        ({"name": "reconstruction"}, LARGE),
        ({"name": "images", "use": "hits = nearest(rows)"}, NOT_LARGE),
    ],
)
def test_rows_by_their_start_and_by_their_name(tmp_path: Path, parts: dict[str, str], expected: str) -> None:
    assert severity(tmp_path, **parts) == expected


KEPT = """
import torch
import torch.nn.functional as F
from torch import nn


class Net(nn.Module):
    def __init__(self, num_classes, vocab_size):
        super().__init__()
        self.conv = nn.Conv2d(3, 32, 3, padding=1)
        self.norm = nn.BatchNorm2d(32)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.classes = nn.Linear(32, num_classes)
        self.few = nn.Sequential(nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.Linear(32, 20))
        self.words = nn.Embedding(vocab_size, 64)
        self.head = nn.Linear(64, vocab_size)
        self.up = nn.Sequential(nn.MaxPool2d(2), nn.Upsample(scale_factor=2), nn.Conv2d(32, 1, 1))

    def maps(self, x):
        return F.relu(self.norm(self.conv(x)))

    def forward(self, x):
        return self.classes(self.pool(self.maps(x)).flatten(1))

    def scores(self, x):
        return self.few(self.maps(x))

    def segment(self, x):
        return self.up(self.maps(x))

    def continue_(self, ids):
        return self.head(self.words(ids))


@torch.no_grad()
def collect(net: Net, loader, gallery):
    net.cuda().eval()
    kept = []
    for x, y in loader:
        x = x.cuda()
        kept.append({kept})
    return kept
"""


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ("x", LARGE),
        ("net.maps(x)", LARGE),
        ("net.maps(x).flatten(1)", LARGE),
        ("net.maps(x).half()", LARGE),
        ("net.maps(x)[:, :8]", LARGE),
        ("net.segment(x)", LARGE),
        ("net.segment(x).sigmoid() > 0.5", LARGE),
        ("net.segment(x).argmax(dim=1)", LARGE),
        ("net.continue_(x)", LARGE),
        ("net.continue_(x).log_softmax(-1)", LARGE),
        ("net.continue_(x)[:, -1]", LARGE),
        ("F.interpolate(net.segment(x), size=(256, 256))", LARGE),
        ("net(x)", NOT_LARGE),
        ("net.scores(x)", NOT_LARGE),
        ("net.scores(x).softmax(dim=1)", NOT_LARGE),
        ("torch.sigmoid(net.scores(x))", NOT_LARGE),
        ("F.normalize(net.scores(x))", NOT_LARGE),
        ("net.maps(x).mean(dim=(2, 3))", NOT_LARGE),
        ("net.maps(x).mean([-2, -1])", NOT_LARGE),
        ("F.adaptive_avg_pool2d(net.maps(x), 1).flatten(1)", NOT_LARGE),
        ("net.segment(x).flatten(1).mean(1, keepdim=True)", NOT_LARGE),
    ],
)
def test_values_of_layers_in_sight(tmp_path: Path, kept: str, expected: str) -> None:
    (tmp_path / "collect.py").write_text(KEPT.replace("{kept}", kept))
    found = [one.severity for one in memlint.lint([tmp_path]).findings if one.code == "MEM104"]
    assert found in ([[expected]] if expected == LARGE else [[], [expected]])


COMPARED = """
import torch
from metrics import psnr


@torch.no_grad()
def evaluate(model, loader, criterion, iou):
    model.cuda().eval()
    kept = []
    for x, {target} in loader:
        y = {target}.cuda()
        out = model(x.cuda())
        {compare}
        kept.append(out)
    return kept
"""


@pytest.mark.parametrize(
    ("target", "compare", "expected"),
    [
        ("mask", "print(criterion(out, mask.cuda()))", LARGE),
        ("mask", "iou.update(out, mask)", LARGE),
        ("hr_image", "print(psnr(out, hr_image))", LARGE),
        ("label", "print(criterion(out, label.cuda()))", NOT_LARGE),
        ("mask", "print(out, mask)", NOT_LARGE),
        ("image_labels", "print(criterion(out, image_labels))", NOT_LARGE),
    ],
)
def test_what_is_compared_with_a_picture_is_one(tmp_path: Path, target: str, compare: str, expected: str) -> None:
    (tmp_path / "evaluate.py").write_text(COMPARED.format(target=target, compare=compare))
    found = [one.severity for one in memlint.lint([tmp_path]).findings if one.code == "MEM104"]
    assert found == [expected]


BESIDE = """
import torch


@torch.no_grad()
def collect(model, loader):
    model.cuda().eval()
    truth, kept = torch.tensor([]).cuda(), torch.tensor([]).cuda()
    for x, {target} in loader:
        truth = torch.cat((truth, {target}.cuda()), 0)
        kept = torch.cat((kept, model(x.cuda())), 0)
    return truth, kept
"""


@pytest.mark.parametrize(
    ("target", "lead", "other", "expected"),
    [("labels", "kept", "truth", NOT_LARGE), ("target", "kept", "truth", NOT_LARGE), ("mask", "truth", "kept", LARGE)],
)
def test_the_larger_of_two_speaks_for_both(tmp_path: Path, target: str, lead: str, other: str, expected: str) -> None:
    text = BESIDE.format(target=target)
    (tmp_path / "collect.py").write_text(text)
    (found,) = memlint.lint([tmp_path]).findings
    assert (found.code, found.severity) == ("MEM302", expected)
    assert text.splitlines()[found.line - 1].strip().startswith(f"{lead} = ")
    assert [step.message for step in found.trace] == [f"`{other}` grows beside it"]


BATCHES = """
import torch


@torch.no_grad()
def collect(loader):
    kept = []
    for batch in loader:
        kept.append({kept})
    return kept
"""


@pytest.mark.parametrize(
    ("kept", "expected"),
    [
        ("batch[0].cuda().float()", LARGE),
        ("batch[1].cuda().float()", NOT_LARGE),
        ("batch['image'].cuda().float()", LARGE),
        ("batch['input_ids'].cuda().float()", NOT_LARGE),
        ("batch['attention_mask'].cuda().float()", NOT_LARGE),
        ("batch['embedding'].cuda().float()", NOT_LARGE),
    ],
)
def test_parts_of_batches(tmp_path: Path, kept: str, expected: str) -> None:
    (tmp_path / "collect.py").write_text(BATCHES.format(kept=kept))
    found = [one.severity for one in memlint.lint([tmp_path]).findings if one.code == "MEM104"]
    assert found in ([[expected]] if expected == LARGE else [[], [expected]])


MODELS = """
import torch
import timm
import torchvision
import segmentation_models_pytorch as smp
from transformers import AutoModel, AutoModelForCausalLM, AutoModelForSequenceClassification


@torch.no_grad()
def collect(loader):
    model = {made}
    model.cuda().eval()
    kept = []
    for x in loader:
        kept.append({kept})
    return kept
"""


@pytest.mark.parametrize(
    ("made", "kept", "expected"),
    [
        ("torchvision.models.resnet50()", "model(x.cuda())", NOT_LARGE),
        ("timm.create_model('vit_base')", "model(x.cuda())", NOT_LARGE),
        ("torchvision.models.segmentation.fcn_resnet50()", "model(x.cuda())['out']", LARGE),
        ("smp.Unet('resnet34')", "model(x.cuda())", LARGE),
        ("AutoModelForSequenceClassification.from_pretrained('b')", "model(x.cuda()).logits", NOT_LARGE),
        ("AutoModelForCausalLM.from_pretrained('b')", "model(x.cuda()).logits", LARGE),
        ("AutoModel.from_pretrained('b')", "model(x.cuda()).last_hidden_state", LARGE),
        ("AutoModel.from_pretrained('b')", "model(x.cuda()).pooler_output", NOT_LARGE),
        ("AutoModel.from_pretrained('b')", "model(x.cuda()).last_hidden_state[:, 0]", NOT_LARGE),
        ("AutoModel.from_pretrained('b')", "model(x.cuda()).hidden_states[-1]", LARGE),
        ("AutoModel.from_pretrained('b')", "model(x.cuda())[0]", LARGE),
        ("AutoModel.from_pretrained('b')", "model.get_image_features(x.cuda())", NOT_LARGE),
    ],
)
def test_values_of_models_of_libraries(tmp_path: Path, made: str, kept: str, expected: str) -> None:
    (tmp_path / "collect.py").write_text(MODELS.format(made=made, kept=kept))
    found = [one.severity for one in memlint.lint([tmp_path]).findings if one.code == "MEM104"]
    assert found == [expected]
