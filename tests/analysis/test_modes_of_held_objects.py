"""A mode that the constructor of an object gives its networks, where another object holds it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

SOURCE = """
import torch
from torch import nn


class Parts:
    def __init__(self, path, is_eval=False):
        decoder = nn.LSTM(3, 3)
        if is_eval:
            decoder = decoder.eval()
        self.decoder = decoder.cuda()
        self.decoder.load_state_dict(torch.load(path, map_location="cpu"))

    def fit(self):
        {fit}


class Search:
    def __init__(self, path, flag):
        self.parts = Parts(path, {flag})
        {also}

    def best(self, x, steps):
        {first}
        state = None
        for _ in range(steps):
            out, state = self.parts.decoder(x, state)
            x = out.softmax(-1)
        return x

    def fit(self, loader, optimizer):
        {trains}


for item in torch.utils.data.DataLoader(range(9)):
    Search("weights.pt", False).best(item, 9)
"""


def found(folder: Path, **parts: str) -> list[str]:
    usual = {"fit": "pass", "flag": "is_eval=True", "also": "pass", "first": "pass", "trains": "pass"}
    return codes_in(folder, SOURCE.format(**{**usual, **parts}))


def test_the_flag_of_a_constructor_says_the_mode(tmp_path: Path) -> None:
    assert "MEM201" in found(tmp_path)
    assert "MEM201" in found(tmp_path, flag="True")


TRAINS = """for x in loader:
            self.best(x, 9).sum().backward()
            optimizer.step()"""


@pytest.mark.parametrize(
    "parts",
    [
        pytest.param({"flag": "is_eval=False"}, id="not in eval mode"),
        pytest.param({"flag": "flag"}, id="it is not known"),
        pytest.param({"fit": "self.decoder.train()"}, id="it has a method that changes the mode"),
        pytest.param({"also": "self.parts.decoder.train()"}, id="its holder changes the mode"),
        pytest.param({"first": "self.parts.decoder.train()"}, id="the mode is changed before the run"),
        pytest.param({"trains": TRAINS}, id="a backward reaches it"),
    ],
)
def test_the_mode_is_another_or_gradients_are_wanted(tmp_path: Path, parts: dict[str, str]) -> None:
    assert "MEM201" not in found(tmp_path, **parts)
