"""Calls on objects of unknown class: what else a function uses of the object tells whose method or module they mean."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

HELD = """
import torch
from torch import nn


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.transform = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 8))

    def forward(self, x):
        return self.transform(x)
"""

ASKED = """
import numpy as np


class Wrapper:
    def __init__(self, data):
        self.scaler = data.scaler

    def load(self, rows):
        {before}
        return np.nan_to_num(self.scaler.transform(rows))
"""

ENCODED = """
import torch
from torch import nn


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 8))

    def encode(self, x):
        return self.layer(x)


usual = Coder()
"""

TEXTS = """
import numpy as np


class Texts:
    def __init__(self, coder):
        self.coder = coder

    def read(self, line):
        return self.encoded(line, 3).detach().numpy()

    def encoded(self, line, special):
        {before}
        return self.coder.encode(line)
"""

MAIN = """
import coder
import head
from torch.utils.data import DataLoader
from data import Wrapper
from texts import Texts
import sources


def main():
    wrapper, texts = Wrapper(sources.load()), Texts(sources.coder())
    for rows in DataLoader(sources.rows()):
        print(wrapper.load(rows), texts.read(sources.line()))


if __name__ == "__main__":
    main()
"""


def codes(folder: Path, **files: str) -> list[str]:
    files = {"coder": "", "head": "", "data": "", "texts": "", "main": MAIN, **files}
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    return [one.code for one in memlint.lint([folder], isolated=True, min_confidence="low").findings]


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("pass", ["MEM201"]),
        ("self.scaler.eval()", ["MEM201"]),
        ("rows = self.scaler.fit_transform(rows)", []),
        ("if hasattr(self.scaler, 'fit_transform'): rows = self.scaler.fit_transform(rows)", ["MEM201"]),
        ("self.scaler.fit_transform(rows); self.scaler = rows.head; self.scaler = rows.other", ["MEM201"]),
        ("self.scaler.palette = 3", ["MEM201"]),
        ("print(self.scaler.palette)", []),
    ],
)
def test_a_module_under_a_name(tmp_path: Path, before: str, expected: list[str]) -> None:
    assert codes(tmp_path, head=HELD, data=ASKED.format(before=before)) == expected


@pytest.mark.parametrize(
    ("name", "expected"), [pytest.param("palette", ["MEM201"], id="that"), pytest.param("colours", [], id="another")]
)
def test_an_attribute_that_other_code_sets(tmp_path: Path, name: str, expected: list[str]) -> None:
    sources = f"import head\n\n\ndef load():\n    one = head.Head()\n    one.{name} = 3\n    return Data(scaler=one)\n"
    data = ASKED.format(before="print(self.scaler.palette)")
    assert codes(tmp_path, head=HELD, data=data, sources=sources) == expected


@pytest.mark.parametrize(
    ("before", "expected"),
    [
        ("pass", ["MEM201"]),
        ("special = self.coder.piece_to_id(special)", []),
        ("self.coder.note = special", ["MEM201"]),
        ("try: return self.coder.fast(line)\n        except AttributeError: pass", ["MEM201"]),
        ("try: return self.coder.fast(line)\n        except (TypeError, AttributeError): pass", ["MEM201"]),
        ("try: return self.coder.fast(line)\n        except ValueError: pass", []),
        ("try: pass\n        except AttributeError: return self.coder.fast(line)", []),
    ],
)
def test_a_method_by_its_name(tmp_path: Path, before: str, expected: list[str]) -> None:
    assert codes(tmp_path, coder=ENCODED, texts=TEXTS.format(before=before)) == expected


@pytest.mark.parametrize(
    ("name", "expected"), [("__getattr__", ["MEM201"]), ("__getattribute__", ["MEM201"]), ("__getitem__", [])]
)
def test_a_class_that_answers_for_what_it_lacks(tmp_path: Path, name: str, expected: list[str]) -> None:
    given = f"\n    def {name}(self, name):\n        return answer(self, name)\n"
    coder = ENCODED.replace("\n\nusual", f"{given}\n\nusual")
    texts = TEXTS.format(before="self.coder.piece_to_id(special)")
    assert codes(tmp_path, coder=coder, texts=texts) == expected
