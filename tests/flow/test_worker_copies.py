"""Data sets that workers copy by reading them: what holds many objects, who reads it, and with how many workers."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

PROGRAM = """
import argparse, csv, json, os, pickle
import numpy as np
import torch
from pycocotools.coco import COCO
from torch.utils.data import ConcatDataset, DataLoader, Dataset, IterableDataset, Subset
from library import parse


class Rows({base}):
    def __init__(self, path, names):
        {body}

    def __len__(self):
        return 100

    def __getitem__(self, index):
        {item}


def main(options, number=4):
    data = Rows("train", [])
    {load}
"""


def found(tmp_path: Path, text: str, **options: str) -> list[str]:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "data.py").write_text(text)
    result = memlint.lint([tmp_path], isolated=True, preview=True, **options)
    assert not result.failures
    return [each.confidence for each in result.findings if each.code == "MEM403"]


def rows(tmp_path: Path, *body: str, **parts: str) -> list[str]:
    fields = {
        "base": "Dataset",
        "item": "return self.rows[index]",
        "load": "return DataLoader(data, num_workers=4)",
        **parts,
    }
    return found(tmp_path, PROGRAM.format(body="\n        ".join(body), **fields))


@pytest.mark.parametrize(
    "body",
    [
        ("self.rows = [line.split() for line in open(path)]",),
        ("self.rows = list(csv.reader(open(path)))",),
        ("with open(path) as f:", "    self.rows = [line.strip().split(',') for line in f.readlines()]"),
        ("self.rows = [(a, int(b), c) for a, b, c in csv.reader(open(path))]",),
        ("self.rows = [{'a': row['a'], 'b': row['b']} for row in csv.DictReader(open(path))]",),
        ("self.rows = []", "for line in open(path):", "    a, b, c = line.split()", "    self.rows.append((a, b, c))"),
        ("rows = []", "for line in open(path):", "    rows += [line.split()]", "self.rows = rows"),
        ("self.rows = {}", "for i, row in enumerate(csv.reader(open(path))):", "    self.rows[i] = row"),
        ("self.rows = {}", "for row in csv.reader(open(path)):", "    self.rows.setdefault(row[0], []).append(row[1])"),
        ("if path:", "    self.rows = list(csv.reader(open(path)))", "else:", "    self.rows = parse(path)"),
        ("lines = open(path).read().strip().split('\\n')", "self.rows = [line.split() for line in lines]"),
    ],
)  # fmt: skip
def test_a_record_for_each_sample(tmp_path: Path, body: tuple[str, ...]) -> None:
    assert rows(tmp_path, *body) == ["high"]


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(("self.rows = open(path).readlines()",), id="a string for each"),
        pytest.param(("self.rows = [line.split()[0] for line in open(path)]",), id="part of the line"),
        pytest.param(("self.rows = [(a, int(b)) for a, b in csv.reader(open(path))]",), id="a pair for each"),
        pytest.param(("self.rows = [(one['a'], one['b']) for one in json.load(open(path))]",), id="a pair of JSON's"),
        pytest.param(("self.rows = pickle.load(open(path, 'rb'))",), id="nobody knows what"),
        pytest.param(("self.rows = [parse(line) for line in open(path)]",), id="made by a library"),
        pytest.param(("self.rows = [(a, np.load(b), c) for a, b, c in csv.reader(open(path))]",), id="arrays"),
        pytest.param(("self.rows = np.array(list(csv.reader(open(path))))",), id="an array"),
        pytest.param(("rows = list(csv.reader(open(path)))", "self.rows = torch.tensor(rows)"), id="a tensor"),
        pytest.param(("self.rows = list(csv.reader(open(path)))", "self.rows = parse(self.rows)"), id="packed"),
        pytest.param(("self.rows = [(n, n + '.x', n + '.y') for n in os.listdir(path)]",), id="a folder"),
        pytest.param(("self.rows = json.load(open(path))",), id="nothing says that there are fields"),
        pytest.param(("self.other = list(csv.reader(open(path)))", "self.rows = names"), id="not what is read"),
        pytest.param(("self.rows = [(path, names, 3) for _ in range(9)]",), id="the same for each"),
    ],
)
def test_anything_else(tmp_path: Path, body: tuple[str, ...]) -> None:
    assert rows(tmp_path, *body) == []


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("return self.rows[index]['text']", 1),
        ("row = self.rows[index]\n        return row['text']", 1),
        ("row = self.rows[index % 7]\n        return row.get('text')", 1),
        ("a, b, c = self.rows[index]\n        return b", 1),
        ("return self.rows['data'][index]['text']", 1),
        ("key = self.keys[index]\n        return self.rows[key]['text']", 1),
        ("return self.load(index)\n\n    def load(self, i):\n        return self.rows[i]['text']", 1),
        ("return self.rows[index]", 0),
        ("return self.rows['size'] + index", 0),
        ("return self.rows['names'][3]", 0),
        ("a, b = self.rows[index]\n        return a", 0),
    ],
)
def test_what_is_taken_of_json(tmp_path: Path, item: str, expected: int) -> None:
    assert len(rows(tmp_path, "self.rows = json.load(open(path))", item=item)) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("return self.rows[index]", 1),
        ("a, b, c = self.rows[index]\n        return b", 1),
        ("a, b = self.rows[index]\n        return b", 0),
        ("return self.rows[index][0], self.rows[index][1]", 0),
        ("return self.rows[index][0], self.rows[index][2]", 1),
    ],
)
@pytest.mark.parametrize("body", ["[line.split() for line in open(path)]", "list(csv.reader(open(path)))"])
def test_lines_that_are_pairs(tmp_path: Path, body: str, item: str, expected: int) -> None:
    assert len(rows(tmp_path, f"self.rows = {body}", item=item)) == expected


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        ("return DataLoader(data, 32, num_workers=2)", ["high"]),
        ("return DataLoader(data, 32, False, None, None, 2)", ["high"]),
        ("return DataLoader(dataset=data, num_workers=number)", ["high"]),
        ("return DataLoader(data, num_workers=os.cpu_count() // 2)", ["high"]),
        ("return DataLoader(data, num_workers=min(8, os.cpu_count()))", ["high"]),
        ("return DataLoader(data, num_workers=4 if options else 0)", ["high"]),
        ("return DataLoader(Subset(data, [1]), num_workers=4)", ["high"]),
        ("return DataLoader(data)", []),
        ("return DataLoader(data, num_workers=0)", []),
        ("number = 0\n    return DataLoader(data, num_workers=number)", []),
        ("return DataLoader(data), DataLoader([1, 2], num_workers=4)", []),
        ("return data", []),
    ],
)
def test_who_reads_it(tmp_path: Path, load: str, expected: list[str]) -> None:
    assert rows(tmp_path, "self.rows = list(csv.reader(open(path)))", load=load) == expected


@pytest.mark.parametrize(
    ("option", "expected"),
    [
        ('add_argument("--num_workers", type=int, default=4)', ["high"]),
        ('add_argument("-j", "--num-workers", default=4)', ["high"]),
        ('add_argument("--threads", dest="num_workers", default=4)', ["high"]),
        ('add_argument("--num_workers", type=int, default=0)', []),
        ('add_argument("--num_workers", type=int)', []),
        ('add_argument("--batch", type=int)', ["low"]),
    ],
)
def test_an_option(tmp_path: Path, option: str, expected: list[str]) -> None:
    load = f"argparse.ArgumentParser().{option}\n    return DataLoader(data, num_workers=options.num_workers)"
    body = "self.rows = list(csv.reader(open(path)))"
    (tmp_path / "pyproject.toml").touch()
    fields = {"base": "Dataset", "item": "return self.rows[index]", "load": load, "body": body}
    assert found(tmp_path, PROGRAM.format(**fields), min_confidence="low") == expected


@pytest.mark.parametrize(("base", "expected"), [("IterableDataset", 0), ("object", 0), ("Dataset[int]", 1)])
def test_which_data_set(tmp_path: Path, base: str, expected: int) -> None:
    assert len(rows(tmp_path, "self.rows = list(csv.reader(open(path)))", base=base)) == expected


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("return self.coco.loadAnns(index)", 1),
        ("return self.load(index)\n\n    def load(self, i):\n        return self.coco.loadAnns(i)", 1),
        ("return self.ids[index]", 0),
    ],
)
def test_an_index_of_annotations(tmp_path: Path, item: str, expected: int) -> None:
    body = ("self.coco = COCO(path)", "self.ids = np.array(list(self.coco.imgs))")
    assert len(rows(tmp_path, *body, item=item)) == expected


def test_a_base_class_is_read_through_what_inherits_from_it(tmp_path: Path) -> None:
    text = PROGRAM.format(
        base="Dataset",
        body="self.rows = list(csv.reader(open(path)))",
        item="return self.rows[index]",
        load="return DataLoader(More('a', []), num_workers=2)\n\n\nclass More(Rows):\n    pass",
    )
    assert found(tmp_path, text) == ["high"]
