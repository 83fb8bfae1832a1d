"""Data sets that lie on the device as a whole: which data, of which classes, and by whose wish."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

PROGRAM = """
import h5py
import numpy as np
import pandas as pd
import torch
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset
from library import Rows, read

DEVICE = torch.device("cuda:0")
HOST = torch.device("cpu")


class {name}({base}):
    def __init__(self, path, paths, x, device, {params}preload=False):
        self.device = device
        {body}

    def __len__(self):
        return len(self.data)

    def __getitem__(self, index):
        {item}
"""


def found(tmp_path: Path, text: str) -> list[str]:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "data.py").write_text(text)
    result = memlint.lint([tmp_path], isolated=True)
    assert not result.failures
    return [each.severity for each in result.findings if each.code == "MEM402"]


def of_class(tmp_path: Path, *body: str, item: str = "return self.data[index]", **parts: str) -> int:
    fields = {"name": "Spectra", "base": "Dataset", "params": "", **parts}
    return len(found(tmp_path, PROGRAM.format(body="\n        ".join(body), item=item, **fields)))


@pytest.mark.parametrize(
    "body",
    [
        ("self.data = torch.load(path).cuda()",),
        ("self.data = torch.load(path, map_location=HOST).to(device)",),
        ("self.data = torch.from_numpy(np.load(path)).to(DEVICE).float()",),
        ("self.data = torch.tensor(np.load(path), device=DEVICE)",),
        ("x = torch.from_numpy(x)", "x = x.float().to(device)", "self.data = x"),
        ("self.data, self.labels = torch.from_numpy(x).cuda(), path",),
        ("self.data = [torch.load(one).to(device) for one in paths]",),
        ("self.data = [(torch.load(one).to(device), one) for one in paths]",),
        ("self.data = []", "for one in paths:", "    self.data.append(torch.load(one).cuda())"),
        ("self.data = x.to(device)",),
    ],
)
def test_what_lies_there(tmp_path: Path, body: tuple[str, ...]) -> None:
    assert of_class(tmp_path, *body) == 1


@pytest.mark.parametrize(
    "body",
    [
        ("self.data = torch.load(path, map_location=HOST)",),
        ("self.data = torch.load(path).to(HOST)",),
        ("self.data = torch.load(path).cuda().cpu()",),
        ("self.data = torch.from_numpy(x).to(torch.float16)",),
        ("self.data = torch.load(path, map_location=HOST).to(x.device)",),
        ("self.data = torch.tensor(pd.read_csv(path).values).to(device)",),
        ("self.data = torch.linspace(0, 1, 100).to(device)",),
        ("self.data = torch.randn(len(paths), 2).to(device)",),
        ("table = pd.read_csv(path)", "self.data = torch.tensor(table.to_numpy()).to(device)"),
        ("self.data = torch.load(path).cuda()", "self.data = self.data.cpu()"),
        ("self.data = torch.zeros(64, 3).to(device)",),
        ("if preload:", "    self.data = torch.load(path).cuda()", "else:", "    self.data = read(path)"),
        ("if preload:", "    self.data = torch.load(path).cuda()"),
        ("self.data = paths", "self.other = torch.load(path).cuda()"),
    ],
)
def test_what_does_not(tmp_path: Path, body: tuple[str, ...]) -> None:
    assert of_class(tmp_path, *body) == 0


@pytest.mark.parametrize(
    ("item", "number"),
    [
        ("return self.data[index]", 1),
        ("return self.data[:, index]", 1),
        ("row = self.order[index]\n        return self.data[row : row + 8]", 1),
        ("return self.data[0] + index", 0),
        ("return self.data, index", 0),
        ("return read(self.paths[index])", 0),
    ],
)
def test_what_samples_are_taken_from(tmp_path: Path, item: str, number: int) -> None:
    assert of_class(tmp_path, "self.data = torch.load(path).cuda()", item=item) == number


@pytest.mark.parametrize("name", ["labels", "train_targets", "y", "class_ids", "edge_index", "gpu_images", "cache"])
def test_names_of_small_things_and_of_wishes(tmp_path: Path, name: str) -> None:
    body = f"self.{name} = torch.load(path).cuda()"
    assert of_class(tmp_path, body, item=f"return self.{name}[index]") == 0


@pytest.mark.parametrize(
    ("parts", "number"),
    [
        ({"base": "torch.utils.data.Dataset"}, 1),
        ({"base": "Dataset[torch.Tensor]"}, 1),
        ({"base": "object"}, 0),
        ({"base": "IterableDataset"}, 0),
        ({"base": "Rows"}, 0),
        ({"name": "ReplayBuffer"}, 0),
        ({"name": "CudaImages"}, 0),
        ({"name": "CachedOnDevice"}, 0),
        ({"params": "where=torch.device('cpu'), "}, 1),
    ],
)
def test_which_classes(tmp_path: Path, parts: dict[str, str], number: int) -> None:
    assert of_class(tmp_path, "self.data = torch.load(path).cuda()", **parts) == number


def test_a_device_that_is_the_hosts_unless_told_otherwise(tmp_path: Path) -> None:
    body = "self.data = torch.load(path, map_location=HOST).to(dev)"
    assert of_class(tmp_path, body, params='dev="cpu", ') == 0
    assert of_class(tmp_path, body, params='dev="cuda", ') == 1


def test_one_finding_a_class(tmp_path: Path) -> None:
    body = ("self.data = torch.load(path).cuda()", "self.masks = torch.load(path).cuda()")
    assert of_class(tmp_path, *body, item="return self.data[index], self.masks[index]") == 1


def test_a_method_that_nobody_calls_when_it_is_made(tmp_path: Path) -> None:
    body = ("self.data = read(path)", "", "    def move(self, path):", "    self.data = torch.load(path).cuda()")
    body = (body[0], "\n    def move(self, path):", "self.data = torch.load(path).cuda()")
    assert of_class(tmp_path, *body) == 0
    assert of_class(tmp_path, "self.move(path)", *body[1:]) == 1


SCRIPT = """
import numpy as np
import torch
from torch.utils.data import DataLoader, TensorDataset

DEVICE = torch.device("cuda")


def prepare(path, model, rounds):
    x = torch.from_numpy(np.load(path))
    labels = torch.from_numpy(np.load(path + ".labels"))
    {body}
"""


@pytest.mark.parametrize(
    ("body", "number"),
    [
        (("return DataLoader(TensorDataset(x.to(DEVICE)), 64)",), 1),
        (("x = x.cuda()", "data = TensorDataset(x, labels)", "return DataLoader(dataset=data)"), 1),
        (
            (
                "a = DataLoader(TensorDataset(x[:9].to(DEVICE)))",
                "b = DataLoader(TensorDataset(x[9:].to(DEVICE)))",
                "return a, b",
            ),
            1,
        ),
        (("return DataLoader(TensorDataset(x, labels.to(DEVICE)))",), 0),
        (("return DataLoader(TensorDataset(labels.to(DEVICE)))",), 0),
        (("return TensorDataset(x.to(DEVICE))",), 0),
        (("for _ in range(rounds):", "    yield DataLoader(TensorDataset(model(x.to(DEVICE))))"), 0),
        (("return DataLoader(TensorDataset(torch.arange(9).to(DEVICE)))",), 0),
        (("replay = x.to(DEVICE)", "return DataLoader(TensorDataset(replay))"), 0),
    ],
)
def test_a_data_set_of_tensors(tmp_path: Path, body: tuple[str, ...], number: int) -> None:
    assert found(tmp_path, SCRIPT.format(body="\n    ".join(body))) == ["note"] * number
