"""Objects of the program's own classes that hold a graph."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

_HEAD = """\
from dataclasses import dataclass
import torch
from torchvision.models import resnet50

"""
_DATA = "@dataclass\nclass Result:\n    logits: torch.Tensor\n    index: int\n\n\n"
_PLAIN = """\
class Result:
    def __init__(self, logits, index):
        self.logits = logits
        self.index = index


"""
_LOOP = """\
def evaluate(loader):
    model = resnet50().cuda()
    model.eval()
    results = []
    for i, (x, y) in enumerate(loader):
        out = model(x.cuda())
        {keep}
    return [one.index for one in results]
"""


def _severities(folder: Path, text: str) -> list[tuple[str, bool]]:
    (folder / "main.py").write_text(_HEAD + text, encoding="utf-8")
    result = memlint.lint([folder], isolated=True)
    assert not result.failures
    return [(one.severity, "grows" in one.message) for one in result.findings if one.code == "MEM201"]


@pytest.mark.parametrize("made", [_DATA, _PLAIN], ids=["dataclass", "class"])
@pytest.mark.parametrize(
    "keep", ["results.append(Result(out, i))", "one = Result(out, i)\n        results.append(one)"]
)
def test_an_object_that_is_kept_keeps_its_graph(tmp_path: Path, made: str, keep: str) -> None:
    assert _severities(tmp_path, made + _LOOP.format(keep=keep)) == [("error", True)]


@pytest.mark.parametrize(
    "made",
    [_DATA, _PLAIN.replace("= logits", "= logits.detach()"), _PLAIN.replace("= logits", "= logits.argmax(1)")],
    ids=["numbers", "detached", "labels"],
)
def test_an_object_of_numbers_keeps_none(tmp_path: Path, made: str) -> None:
    given = "out.argmax(1).tolist()" if made is _DATA else "out"
    told = _severities(tmp_path, made + _LOOP.format(keep=f"results.append(Result({given}, i))"))
    assert [grows for _, grows in told] == [False]


def test_it_is_said_to_detach_what_is_in_an_object(tmp_path: Path) -> None:
    text = _HEAD + _DATA + _LOOP.format(keep="results.append(Result(out, i))")
    (tmp_path / "main.py").write_text(text, encoding="utf-8")
    (one,) = (one for one in memlint.lint([tmp_path], isolated=True).findings if one.code == "MEM102")
    assert "each tensor in `Result(out, i)`" in one.help
