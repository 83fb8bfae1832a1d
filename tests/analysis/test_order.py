"""What is found in a file does not depend on which other files are named beside it, or in which order."""

from __future__ import annotations

import itertools
from pathlib import Path

import memlint

NET = """
import torch
from torch import nn


def parse(path):
    return [line.split() for line in open(path)]


class Darknet(nn.Module):
    def __init__(self, path):
        super().__init__()
        self.blocks = parse(path)
        self.models = self.create_network(self.blocks)
        self.loss = self.models[len(self.models) - 1]

    def forward(self, x):
        for index, block in enumerate(self.blocks):
            if block[0] == "conv":
                x = self.models[index](x)
        return x

    def create_network(self, blocks):
        models = nn.ModuleList()
        for block in blocks:
            if block[0] == "net":
                self.width = int(block[1])
            elif block[0] == "conv":
                models.append(nn.Conv2d(3, 3, 3))
        print(len(self.blocks), "blocks")
        return models
"""
VALID = """
import torch
from net import Darknet


def valid(path, loader):
    m = Darknet(path)
    m.load_state_dict(torch.load(path, map_location="cpu"))
    m.cuda()
    m.eval()
    rows = []
    for data in loader:
        rows.append(m(data.cuda()).cpu().data.numpy())
    return rows


if __name__ == "__main__":
    valid("net.cfg", torch.utils.data.DataLoader([]))
"""
EVAL = """
from net import Darknet


def show(model: Darknet):
    print(model.width)
"""


def test_a_file_that_is_named_as_well_hides_nothing(tmp_path: Path) -> None:
    for name, text in {"net": NET, "valid": VALID, "a_show": EVAL, "z_show": EVAL}.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text("", encoding="utf-8")
    others = [tmp_path / name for name in ("a_show.py", "net.py", "z_show.py")]
    line = next(number for number, text in enumerate(VALID.splitlines(), 1) if "m(data" in text)
    for count in range(len(others) + 1):
        for chosen in itertools.combinations(others, count):
            result = memlint.lint([tmp_path / "valid.py", *chosen])
            found = [(item.path.rsplit("/", 1)[-1], item.line) for item in result.findings if item.code == "MEM201"]
            assert found == [("valid.py", line)], [path.name for path in chosen]
