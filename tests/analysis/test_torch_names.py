"""Every torch name that the tables spell out exists in torch: a row that names nothing is a fact about nothing."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from importlib import resources
from typing import Any

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


def _functions(graph: str) -> list[str]:
    table = tomllib.loads(resources.files("memlint.knowledge").joinpath("torch.toml").read_text(encoding="utf-8"))
    found = [name for row in table["function"] if row.get("graph", "none") == graph for name in row["names"]]
    # (the helpers of layers repeat what they are given, which is a number)
    return [name for name in found if name in names() and ".modules.utils." not in name]


def _graphs(call: Callable[..., Any]) -> set[bool]:
    """Whether what is computed from a tensor with a graph has one, for every way of calling that raises nothing."""
    import torch

    found: set[bool] = set()
    for shape in ((3, 3), (4,)):
        given = torch.rand(shape, requires_grad=True) * 0.9
        for more in ((), (given,), (0,), (0.5,), (2,), ((2, 2),), (given, given)):
            try:
                result = call(given.clone(), *more)
            except Exception:  # (it is not called so)
                continue
            parts = result if isinstance(result, tuple | list) else (result,)
            found |= {part.requires_grad for part in parts if isinstance(part, torch.Tensor)}
    return found


@pytest.mark.torch
@pytest.mark.parametrize("name", _functions("none"))
def test_functions_that_give_no_graph(name: str) -> None:
    call = _resolve(name)
    assert not callable(call) or True not in _graphs(call)


@pytest.mark.torch
@pytest.mark.parametrize("name", _functions("given"))
def test_functions_that_give_the_graph_of_a_tensor_alone(name: str) -> None:
    import torch

    call = _resolve(name)
    assert callable(call)
    kind = torch.double if name == "torch.DoubleTensor" else torch.float
    assert True in _graphs(lambda given, *more: call(given.to(kind), *more))
    if name != "torch.normal":
        assert not call([torch.rand(1, requires_grad=True)[0]]).requires_grad


@pytest.mark.torch
def test_methods_that_cut_the_graph() -> None:
    import torch

    table = tomllib.loads(resources.files("memlint.knowledge").joinpath("torch.toml").read_text(encoding="utf-8"))
    # (`new` is called with sizes, but of a tensor gives an alias)
    methods = {name: getattr(torch.Tensor, name) for name in table["methods"]["cut"] if name != "new"}
    assert not [name for name, call in methods.items() if callable(call) and True in _graphs(call)]


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
