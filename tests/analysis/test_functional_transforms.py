"""Functions of torchvision and torchaudio that change pictures and sounds: of a tensor with a graph, they give one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in
from tests.trainings import SUMMED

HEAD = """
import torch
import torchaudio
import torchaudio.functional as AF
import torchvision.transforms as T
import torchvision.transforms.functional as TF
from PIL import Image
from torch import nn
from torchvision.transforms.v2 import functional as F
from torchvision.transforms.functional import normalize
from transformers import AutoModel
"""

COLLECTED = """

def features(loader, size):
    model = AutoModel.from_pretrained("some/vit").cuda()
    rows = []
    for x in loader:
        rows.append(model(x.cuda()).last_hidden_state)
    rows = torch.cat(rows)
    return {}
"""

GUIDED = """

def guide(latents, steps):
    generator = nn.Sequential(nn.Conv2d(4, 64, 3), nn.Conv2d(64, 3, 3)).cuda()
    critic = AutoModel.from_pretrained("some/clip").cuda()
    optimizer = torch.optim.Adam(generator.parameters())
    for _ in range(steps):
        picture = generator(latents)
        loss = critic({}).last_hidden_state.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        # the caller may differentiate what it gets
        ("TF.resize(rows, size)", []),
        ("T.functional.gaussian_blur(rows, 3)", []),
        ("F.center_crop(rows, size)", []),
        ("normalize(rows, [0.5], [0.5])", []),
        ("AF.resample(rows, 16000, 8000)", []),
        ("torchaudio.functional.gain(rows)", []),
        # no gradient comes through these
        ("TF.to_pil_image(rows[0])", ["MEM102", "MEM201"]),
        ("TF.get_image_size(rows)", ["MEM102", "MEM201"]),
        ("F.get_dimensions(rows)", ["MEM102", "MEM201"]),
        ("TF.resize(rows.detach(), size)", ["MEM102", "MEM201"]),
    ],
)
def test_what_a_caller_gets(tmp_path: Path, given: str, expected: list[str]) -> None:
    assert sorted(codes_in(tmp_path, HEAD + COLLECTED.format(given))) == expected


@pytest.mark.parametrize(
    ("added", "expected"),
    [
        ("AF.gain(loss, 2.0)", ["MEM101"]),
        ("TF.adjust_gamma(loss, 2.0)", ["MEM101"]),
        ("TF.adjust_gamma(loss.detach(), 2.0)", []),
        ("TF.adjust_gamma(loss, 2.0).item()", []),
        ("len(TF.resize(Image.open('x.png'), 8).tobytes())", []),
    ],
)
def test_a_sum_of_what_they_give(tmp_path: Path, added: str, expected: list[str]) -> None:
    assert codes_in(tmp_path, HEAD + SUMMED.format(added)) == expected


@pytest.mark.parametrize("given", ["TF.resize(picture, [224, 224])", "F.normalize(picture, [0.5], [0.5])"])
def test_a_network_that_is_trained_through_them(tmp_path: Path, given: str) -> None:
    direct = codes_in(tmp_path, HEAD + GUIDED.format("picture"))
    assert codes_in(tmp_path, HEAD + GUIDED.format(given)) == direct
