"""``model, decoder, utils = torch.hub.load(…)``: of what comes with a model, nothing is known."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

LOADED = """
import torch


def main(paths):
    {loaded}
    kept = []
    for path in paths:
        kept.append({kept})
    return kept


if __name__ == "__main__":
    main(["a.wav"])
"""


@pytest.mark.parametrize(
    ("loaded", "kept"),
    [
        ("model, decoder, utils = torch.hub.load('a/b', 'stt')", "decoder(model(path.cuda()).cpu())"),
        ("model, decoder, utils = torch.hub.load('a/b', 'stt')", "decoder(path.cuda())"),
        ("model, utils = torch.hub.load('a/b', 'vad')\n    (stamps, _, read, *_) = utils", "stamps(read(path), model)"),
        ("model, utils = torch.hub.load('a/b', 'vad')\n    stamps = utils[0]", "stamps(path, model)"),
        ("_, encoder = torch.hub.load('a/b', 'vad')", "encoder(path.cuda())"),
        ("loaded = torch.hub.load('a/b', 'vad')\n    decoder = loaded[1]", "decoder(path.cuda())"),
        ("model, symbols, rate, _, speak = torch.hub.load('a/b', 'tts')", "speak(texts=[path], model=model)"),
    ],
)
def test_what_comes_with_a_model(tmp_path: Path, loaded: str, kept: str) -> None:
    assert codes_in(tmp_path, LOADED.format(loaded=loaded, kept=kept)) == []


@pytest.mark.parametrize(
    ("loaded", "kept"),
    [
        ("net = torch.hub.load('a/b', 'vits16').eval()", "net(path.cuda())"),
        ("net, utils = torch.hub.load('a/b', 'stt')\n    net.eval()", "net(path.cuda())"),
        ("loaded = torch.hub.load('a/b', 'vad')\n    net = loaded[0].eval()", "net(path.cuda())"),
        ("encoder, decoder = torch.hub.load('a/b', 'auto')\n    decoder.eval()", "decoder(path.cuda())"),
    ],
)
def test_a_model_is_one(tmp_path: Path, loaded: str, kept: str) -> None:
    assert "MEM201" in codes_in(tmp_path, LOADED.format(loaded=loaded, kept=kept))
