"""``model.decoder(model.encoder(x))`` of a model that nobody in sight passes: the class with such modules tells."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

AUTOENCODER = """
import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Linear(4096, 4096)

    def forward(self, x):
        return self.layers(x).relu()


class Decoder(Encoder):
    pass


class Autoencoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = {encoder}
        self.decoder = {decoder}


def errors(model, loader):
    found = []
    for x in loader:
        {run}
        found.append((x - out).pow(2).mean().item())
    return found
"""

RUN = "out = model.decoder(model.encoder(x))"


@pytest.mark.parametrize(
    ("encoder", "decoder", "run", "codes"),
    [
        ("Encoder()", "Decoder()", RUN, ["MEM201"]),
        ("Encoder()", "nn.Linear(4096, 4096)", RUN, ["MEM201"]),
        ("Encoder()", "Decoder()", "with torch.no_grad():\n            " + RUN, []),
        # under these names the class keeps no modules
        ("make_encoder", "make_decoder", RUN, []),
    ],
)
def test_parts_are_those_of_the_class(tmp_path: Path, encoder: str, decoder: str, run: str, codes: list[str]) -> None:
    assert codes_in(tmp_path, AUTOENCODER.format(encoder=encoder, decoder=decoder, run=run)) == codes
