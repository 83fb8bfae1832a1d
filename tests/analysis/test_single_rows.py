"""A layer that gives one row saves next to nothing, however wide it is: what is done with the row tells."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from networks import IMPORTS, severities

PROGRAM = """
{made}


def evaluate(loader):
    head.eval()
    found = []
    for x, y in loader:
        {use}
    return found
"""
WIDE = "head = nn.Linear(library.INPUTS, library.WORDS)"
CHAIN = "head = nn.Sequential(nn.Linear(9000, library.HIDDEN), nn.ReLU(), nn.Linear(library.HIDDEN, library.WORDS))"
CONV = "head = nn.Sequential(nn.Conv2d(3, 64, 3), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))"
GATED = """
class Gated(nn.Module):
    def __init__(self, width, experts):
        super().__init__()
        self.gate = nn.Linear(width, experts)
        self.experts = nn.Parameter(library.weights(experts, width))

    def forward(self, x):
        weights = torch.softmax(self.gate(x), dim=-1)
        return library.mix(weights, self.experts, x)

    def penalty(self, other):
        return (other.T @ other).sum()

head = Gated(library.INPUTS, 8)
"""
ATTENDING = """
class Attending(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(-2, -1)
        scores = scores / 8
        return {weights} @ x

head = Attending(library.INPUTS)
"""
ONE_ROW = {
    "the most likely one": (WIDE, "found.append(int(head(x).argmax()))"),
    "of probabilities": (WIDE, "found.append(head(x).softmax(dim=-1).argmax(-1).item())"),
    "a single number": (WIDE, "found.append(torch.sigmoid(head(x)).item())"),
    "its best elements": (
        WIDE,
        """
        values, indices = torch.topk(torch.softmax(head(x), dim=-1), k=5)
        found += [(int(indices[i]), float(values[i].detach())) for i in range(5)]
        """,
    ),
    "an element by number": (
        WIDE,
        """
        logits = head(x)
        probs = F.softmax(logits, dim=0)
        found.append(probs[3].cpu().item())
        """,
    ),
    "of a chain of layers": (CHAIN, "found.append(int(torch.argmax(head(x))))"),
    "a gate, and one row that is made": (GATED, "found.append(head(x.unsqueeze(0))[0].norm().item())"),
}
MORE = {
    "a number for each of many rows": (WIDE, "found += [float(one) for one in head(x).argmax(1)]"),
    "rows by position": (
        WIDE,
        """
        scores = head(x)
        found += [float(scores[i]) for i in range(len(x))]
        """,
    ),
    "a mean over rows": (WIDE, "found.append(head(x).mean().item())"),
    "the labels that are met": (WIDE, "found.append((head(x).argmax(1).cpu() == y).sum().item())"),
    "the last of many tokens": (WIDE, "found.append(head(x)[:, -1].argmax().item())"),
    "a picture": (CONV, "found.append(int(head(x).argmax()))"),
    "attention by products": (
        ATTENDING.format(weights="torch.softmax(scores, dim=-1)"),
        "found.append(head(x.unsqueeze(0)).norm().item())",
    ),
    "attention by a method": (
        ATTENDING.format(weights="scores.softmax(-1)"),
        "found.append(head(x.unsqueeze(0)).norm().item())",
    ),
}


def program(made: str, use: str) -> str:
    lines = textwrap.dedent(use).strip("\n").replace("\n", "\n        ")
    return IMPORTS + PROGRAM.format(made=made, use=lines)


@pytest.mark.parametrize(("made", "use"), ONE_ROW.values(), ids=ONE_ROW)
def test_a_layer_that_gives_one_row_is_a_note(made: str, use: str, tmp_path: Path) -> None:
    assert severities(tmp_path, program(made, use)) == ["note"]


@pytest.mark.parametrize(("made", "use"), MORE.values(), ids=MORE)
def test_a_layer_that_gives_many_rows_stays_a_warning(made: str, use: str, tmp_path: Path) -> None:
    assert severities(tmp_path, program(made, use)) == ["warning"]
