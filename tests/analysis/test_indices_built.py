"""Functions that build something by their name: layers, or a table of what a model says of data."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

BUILDER = """
import torch
from torch import nn


def {name}(model, loader, sizes):
    model.eval()
    found = []
    for {target}:
        found.append({kept})
    return {given}


def main(model, loader):
    print({name}(model, loader, [8, 8]))


main(nn.Linear(3, 4).cuda(), torch.utils.data.DataLoader(range(9)))
"""


@pytest.mark.parametrize("name", ["build_index", "create_embeddings", "_build_memory"])
def test_what_a_model_says_of_data_is_kept_with_its_graph(tmp_path: Path, name: str) -> None:
    source = BUILDER.format(
        name=name, target="x in loader", kept="model(x.cuda())", given="torch.cat(found).detach().cpu().numpy()"
    )
    assert sorted(codes_in(tmp_path, source)) == ["MEM102", "MEM201"]


@pytest.mark.parametrize(
    ("name", "target", "kept"),
    [
        ("build_layers", "size in sizes", "nn.Linear(size, size)"),
        ("create_blocks", "size in sizes", "model(size)"),
        ("make_layer", "size in sizes", "model(size)"),
    ],
)
def test_layers_are_put_together(tmp_path: Path, name: str, target: str, kept: str) -> None:
    source = BUILDER.format(name=name, target=target, kept=kept, given="nn.Sequential(*found)")
    assert "MEM102" not in codes_in(tmp_path, source)
