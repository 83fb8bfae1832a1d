"""Models whose class nothing tells: what a program detaches has a graph, so a callable of a model's name records it."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

SERVICE = """
import torch


class Service:
    def __init__(self, **given):
        for key, value in given.items():
            setattr(self, key, value)

    def vectors_of(self, words):
        {body}
"""


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("return self.model(words).detach().cpu().numpy()", True),
        ("return self.model(words).logits[0].cpu().detach()", True),
        ("features = self.model.encode_text(words)\n        return features.cpu().detach().numpy()", True),
        (
            "features = self.encoder(words)\n        features /= features.norm(dim=-1, keepdim=True)\n"
            "        return features.detach().tolist()",
            True,
        ),
        # a guard, and what shows no graph
        ("with torch.no_grad():\n            return self.model(words).detach().cpu()", False),
        ("return self.model(words).cpu().numpy()", False),
        # the forces are the gradient of the energy: the model raises under a guard
        ("return self.model(words)['forces'].detach().cpu().numpy()", False),
        ("out = self.model(words)\n        return out.energy.detach().cpu(), out.forces.detach().cpu()", False),
        ("return self.model(words, compute_stress=True)['energy'].detach().cpu()", False),
        # no model's name; a library's method that has a guard of its own; a name with several values
        ("return self.env.step(words).detach().cpu()", False),
        ("return self.model.generate(words).detach().cpu()", False),
        (
            "out = self.model(words)\n        out = self.cache.get(words)\n        return out.detach().cpu().numpy()",
            False,
        ),
    ],
)
def test_a_detached_output_shows_a_model(tmp_path: Path, body: str, found: bool) -> None:
    assert ("MEM201" in codes_in(tmp_path, SERVICE.format(body=body))) is found


def test_the_guard_of_the_only_caller_counts(tmp_path: Path) -> None:
    body = "return self.model(words).detach().cpu().numpy()"
    caller = """

def serve(requests):
    service = Service(model=load())
    with torch.no_grad():
        for words in requests:
            print(service.vectors_of(words))
"""
    assert codes_in(tmp_path, SERVICE.format(body=body) + caller) == []
