"""Programs that evaluate a network, and how severe MEM201 is for it."""

from __future__ import annotations

import textwrap
from pathlib import Path

import memlint

IMPORTS = """
import argparse
import copy
import gym
import library
import math
import torch
import torch.nn.functional as F
import torchvision
from torch import nn
from torch_geometric.nn import GCNConv

parser = argparse.ArgumentParser()
parser.add_argument("--hidden", type=int, default=16)
parser.add_argument("--wide", type=int, default=4096)
parser.add_argument("--required", type=int)
args = parser.parse_args()
"""
LOOP = """
def test(loader):
    model = {made}
    model.eval()
    hits = 0
    for x, y in loader:
        hits += (model(x.cuda()).argmax(1).cpu() == y).sum().item()
    return hits
"""


def evaluating(defined: str, made: str, loop: str = LOOP) -> str:
    """A program that evaluates a network, which is ``made`` of what is ``defined``."""
    return IMPORTS + textwrap.dedent(defined) + loop.format(made=made)


def severities(path: Path, text: str, code: str = "MEM201") -> list[str]:
    """Those of a rule in a program, linted in a folder of its own."""
    (path / "main.py").write_text(text)
    return [one.severity for one in memlint.lint([path], min_confidence="low").findings if one.code == code]
