"""Caches of functools on methods and functions: which keep what takes memory, and which do not."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

METHOD = """
import functools
from functools import cache, lru_cache, cached_property

import pytorch_lightning as pl
import torch
from torch import nn
from torch.utils.data import Dataset, IterableDataset, Sampler
from somewhere import lru_cache as other_cache

SIZE = 4
keep = lru_cache(maxsize=None)


class Owner({base}):
    {body}

    {decorators}
    def made({params}):
        return 1
"""


def severities(tmp_path: Path, text: str) -> list[str]:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "code.py").write_text(text)
    return [one.severity for one in memlint.lint([tmp_path], isolated=True).findings if one.code == "MEM109"]


def method(tmp_path: Path, decorators: str = "@cache", **parts: str) -> list[str]:
    fields = {"base": "nn.Module", "body": "kept = 1", "params": "self", **parts}
    return severities(tmp_path, METHOD.format(decorators="\n    ".join(decorators.split()), **fields))


@pytest.mark.parametrize(
    ("decorators", "expected"),
    [
        ("@cache", ["warning"]),
        ("@functools.cache", ["warning"]),
        ("@lru_cache(None)", ["warning"]),
        ("@lru_cache(maxsize=None)", ["warning"]),
        ("@keep", ["warning"]),
        ("@property @lru_cache(None)", ["warning"]),
        ("@lru_cache", ["note"]),
        ("@lru_cache()", ["note"]),
        ("@lru_cache(maxsize=8)", ["note"]),
        ("@lru_cache(SIZE)", ["note"]),
        ("@lru_cache(maxsize=0)", []),
        ("@cached_property", []),
        ("@other_cache(None)", []),
        ("@classmethod @cache", []),
    ],
)
def test_which_cache(tmp_path: Path, decorators: str, expected: list[str]) -> None:
    assert method(tmp_path, decorators) == expected


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("nn.Module", ["warning"]),
        ("pl.LightningModule", ["warning"]),
        ("pl.LightningDataModule", ["warning"]),
        ("Dataset", ["warning"]),
        ("IterableDataset", ["warning"]),
        ("Sampler", ["warning"]),
        ("torch.utils.data.ConcatDataset", ["warning"]),
        ("object", []),
        ("nn.Parameter", []),
        ("torch.optim.Optimizer", []),
    ],
)
def test_whose_method(tmp_path: Path, base: str, expected: list[str]) -> None:
    assert method(tmp_path, base=base) == expected


@pytest.mark.parametrize("body", ['__slots__ = ("a",)', "def __new__(cls): return ONE"])
def test_one_instance_is_kept_anyway(tmp_path: Path, body: str) -> None:
    assert method(tmp_path, body=body) == []


@pytest.mark.parametrize(("cleared", "expected"), [("made", []), ("other", ["warning"])])
def test_a_cache_that_is_emptied(tmp_path: Path, cleared: str, expected: list[str]) -> None:
    assert method(tmp_path, body=f"def close(self): Owner.{cleared}.cache_clear()") == expected


FUNCTION = """
import functools

import torch
from torch import nn


@functools.cache
def count({param}):
    return 1


def make():
    {call}
"""


@pytest.mark.parametrize(
    ("param", "call", "expected"),
    [
        ("model: nn.Module", "pass", ["note"]),
        ("x: torch.Tensor", "pass", ["note"]),
        ("x: torch.Tensor | None = None", "pass", ["note"]),
        ("model", "count(nn.Linear(2, 2))", ["note"]),
        ("model", "pass", []),
        ("n: int, device: torch.device", "pass", []),
        ("name", "count('a')", []),
    ],
)
def test_what_a_function_takes(tmp_path: Path, param: str, call: str, expected: list[str]) -> None:
    assert severities(tmp_path, FUNCTION.format(param=param, call=call)) == expected


def test_a_function_that_is_made_in_each_call(tmp_path: Path) -> None:
    text = """
import functools
from torch import nn


def sizes(models):
    @functools.cache
    def count(model: nn.Module):
        return len(list(model.parameters()))

    return [count(model) for model in models]
"""
    assert severities(tmp_path, text) == []


@pytest.mark.parametrize(
    ("base", "cached", "params", "growth"),
    [
        ("nn.Module", "@cache", "self", ("device-tensor", "per-epoch")),
        ("Dataset", "@cache", "self", ("host", "per-epoch")),
        ("Dataset", "@lru_cache", "self", ("host", "once")),
        ("nn.Module", "@cache", "self, x: torch.Tensor", ("device-tensor", "per-iteration")),
    ],
)
def test_how_it_grows(tmp_path: Path, base: str, cached: str, params: str, growth: tuple[str, str]) -> None:
    (tmp_path / "code.py").write_text(METHOD.format(base=base, body="kept = 1", decorators=cached, params=params))
    (found,) = memlint.lint([tmp_path], isolated=True).findings
    assert (found.growth.memory, found.growth.kind) == growth
