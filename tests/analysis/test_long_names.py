"""Names of thousands of characters are names like any other."""

from __future__ import annotations

import re

import pytest

import memlint

PROGRAM = """
import torch
import torch.nn as nn

class Net(nn.Module):
    def forward(self, x):
        self.kept = x
        return getattr(self, "kept")

def train(model, loader, opt):
    total, out = 0, []
    for x, y in loader:
        loss = model(x).sum()
        loss.backward()
        opt.step()
        total += loss
        out.append(model(x)["score"])
    return total, out

if __name__ == "__main__":
    train(Net(), torch.load("data.pth"), None)
"""
NAMES = ("Net", "kept", "train", "model", "loader", "opt", "total", "out", "loss", "score", "x")


@pytest.mark.parametrize("stem", ["a", "_", "_a", "n_", "attr", "é", "x1", "vae_unet"])
def test_long_names_change_no_finding(tmp_path, monkeypatch, stem):
    (tmp_path / "pyproject.toml").touch()
    monkeypatch.chdir(tmp_path)
    found = []
    for length in (0, 20_000):
        text = PROGRAM
        for name in NAMES:
            text = re.sub(rf"\b{name}\b", name + (stem * length)[:length], text)
        (tmp_path / "m.py").write_text(text, encoding="utf-8")
        result = memlint.lint(["m.py"], preview=True)
        assert not result.failures
        found.append([(each.code, each.line) for each in result.findings])
    assert found[0] == found[1] != []
