"""Every torch name that the tables spell out exists in torch: a row that names nothing is a fact about nothing."""

from __future__ import annotations

import importlib
import sys
from importlib import resources

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

#: names of torch releases before 2, which old code still calls
GONE = frozenset({"torch.nn.NLLLoss2d", "torch.nn.utils.clip_grad_norm"})


def names() -> list[str]:
    """The names under torch without a pattern."""
    table = tomllib.loads(resources.files("memlint.knowledge").joinpath("torch.toml").read_text(encoding="utf-8"))
    found = {name for row in table["function"] for name in row["names"]}
    return sorted(
        name
        for name in found
        if name.startswith("torch.") and not any(char in name for char in "*[?") and name not in GONE
    )


@pytest.mark.torch
@pytest.mark.parametrize("name", names())
def test_name_exists(name: str) -> None:
    assert _resolve(name) is not None


@pytest.mark.torch
@pytest.mark.parametrize("field", ["cut", "data", "alias", "move", "reduce", "op", "inplace"])
def test_methods_exist(field: str) -> None:
    import torch

    table = tomllib.loads(resources.files("memlint.knowledge").joinpath("torch.toml").read_text(encoding="utf-8"))
    missing = [name for name in table["methods"][field] if not hasattr(torch.Tensor, name)]
    assert not missing


@pytest.mark.torch
def test_methods_of_arrays_are_none_of_tensors() -> None:
    import torch

    table = tomllib.loads(resources.files("memlint.knowledge").joinpath("torch.toml").read_text(encoding="utf-8"))
    assert not [name for name in table["methods"]["arrays"] if hasattr(torch.Tensor, name)]


def _resolve(name: str) -> object | None:
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:size]))
        except ImportError:
            continue
        try:
            for part in parts[size:]:
                found = getattr(found, part)
        except AttributeError:
            continue
        return found
    return None
