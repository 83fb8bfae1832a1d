"""Helpers that compute with an output before they cut its graph: the run has no other use, annotated or not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

UPSCALER = """
import torch


def to_picture({given}):
    {body}


class Upscaler:
    def __init__(self, model):
        self.model = model

    def run(self, picture):
        x = torch.from_numpy(picture).to("cuda")
        return to_picture(self.model(x))
"""


@pytest.mark.parametrize("given", ["image", "image: torch.Tensor"])
@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("return image.detach().cpu().numpy()", True),
        ("return (image * 255).detach().cpu().numpy()", True),
        ("image = image.squeeze(0).clamp(0, 1)\n    return image.cpu().detach().numpy()", True),
        ("if image.requires_grad:\n        image = image.detach()\n    return image.cpu().numpy()", True),
        # a graph leaves the helper, or numpy() shows that there is none
        ("return image.clamp(0, 1)", False),
        ("return (image * 255).cpu().numpy()", False),
    ],
)
def test_a_helper_cuts_what_it_computes(tmp_path: Path, given: str, body: str, found: bool) -> None:
    source = UPSCALER.format(given=given, body=body)
    assert ("MEM201" in codes_in(tmp_path, source)) is found
