"""Copies of models that are put aside: which stay on the device, which grow, and which are no snapshots."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

LOOP = """
import collections
import copy
from copy import deepcopy

import torch
from torch import nn
from somewhere import deepcopy as other_copy, fit, score

SAVED = []


def train(model: nn.Module, optimizer, loaders, epochs, device, flags):
    {moved}
    best, lowest, count = None, 1.0, 0
    kept = {made}
    for {target} in {over}:
        loss = fit(model)
        {statement}
    {behind}
"""


def severities(tmp_path: Path, text: str, name: str = "code") -> list[str]:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / f"{name}.py").write_text(text)
    return [one.severity for one in memlint.lint([tmp_path], isolated=True).findings if one.code == "MEM111"]


def loop(tmp_path: Path, **parts: str) -> list[str]:
    fields = {
        "moved": "model.to(device)",
        "made": "[]",
        "target": "epoch",
        "over": "range(epochs)",
        "statement": "kept.append(copy.deepcopy(model.state_dict()))",
        "behind": "return best, kept",
        **parts,
    }
    return severities(tmp_path, LOOP.format(**fields))


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("kept.append(copy.deepcopy(model.state_dict()))", ["warning"]),
        ("kept.append(deepcopy(model))", ["warning"]),
        ("kept.append((epoch, deepcopy(model.state_dict())))", ["warning"]),
        ("kept.append({'epoch': epoch, 'model': deepcopy(model.state_dict())})", ["warning"]),
        ("kept.append({k: v.clone() for k, v in model.state_dict().items()})", ["warning"]),
        ("kept.append({k: v.detach().clone() for k, v in model.state_dict().items()})", ["warning"]),
        ("kept.append({k: v.data.clone() for (k, v) in model.state_dict().items()})", ["warning"]),
        ("kept.append(deepcopy(optimizer.state_dict()))", ["warning"]),
        ("kept.append(model.state_dict())", []),
        ("kept.append({k: v for k, v in model.state_dict().items()})", []),
        ("kept.append({k: v.cpu().clone() for k, v in model.state_dict().items()})", []),
        ("kept.append({k: v.to('cpu', copy=True) for k, v in model.state_dict().items()})", []),
        ("kept.append(deepcopy(model).cpu())", []),
        ("kept.append(deepcopy(model).to('cpu').state_dict())", []),
        ("kept.append(deepcopy(loss))", []),
        ("kept.append(deepcopy(flags))", []),
        ("kept.append(other_copy(model))", []),
        ("torch.save(deepcopy(model.state_dict()), f'{epoch}.pt')", []),
    ],
)
def test_which_copy(tmp_path: Path, statement: str, expected: list[str]) -> None:
    moved = "model.to(device); optimizer = torch.optim.Adam(model.parameters()); optimizer.to(device)"
    assert loop(tmp_path, statement=statement, moved=moved) == expected


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"target": "_", "over": "range(epochs)"}, ["warning"]),
        ({"target": "step", "over": "range(10_000)"}, ["warning"]),
        ({"target": "(x, y)", "over": "loaders['train_loader']"}, ["warning"]),
        ({"target": "step", "over": "range(5)"}, []),
        ({"target": "client", "over": "range(flags.clients)"}, []),
        ({"target": "fold", "over": "range(flags.folds)"}, []),
        ({"target": "task", "over": "loaders"}, []),
        ({"made": "{}", "statement": "kept[epoch] = deepcopy(model.state_dict())"}, ["warning"]),
        ({"made": "{}", "statement": "kept['last'] = deepcopy(model.state_dict())"}, []),
        ({"made": "{}", "statement": "for name in flags: kept[name] = deepcopy(model.state_dict())"}, []),
        ({"made": "{}", "statement": "for name in flags: kept[epoch, name] = deepcopy(model)"}, ["warning"]),
        ({"made": "collections.deque(maxlen=3)"}, []),
        ({"statement": "kept = []; kept.append(deepcopy(model.state_dict()))"}, []),
        ({"statement": "kept.append(deepcopy(model.state_dict())); kept = kept[-3:]"}, []),
        ({"statement": "kept.append(deepcopy(model)); count = len(kept)"}, []),
        ({"statement": "kept.append(deepcopy(model)); kept.pop(0)"}, []),
        ({"made": "nn.ModuleList()", "statement": "kept.append(deepcopy(model))"}, []),
        ({"made": "nn.ModuleDict()", "statement": "kept[str(epoch)] = deepcopy(model)"}, []),
        ({"statement": "kept.append(deepcopy(model)); del kept[:-3]"}, []),
        ({"statement": "kept.append(deepcopy(model))", "behind": "return sum(net(lowest) for net in kept)"}, []),
        ({"statement": "kept.append(deepcopy(model))", "behind": "for net in kept: print(net(lowest))"}, []),
    ],
)
def test_which_container(tmp_path: Path, parts: dict[str, str], expected: list[str]) -> None:
    assert loop(tmp_path, **parts) == expected


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("if loss < lowest: lowest, best = loss, 1; best = deepcopy(model.state_dict())", ["note"]),
        ("if loss < lowest: best = deepcopy(model.state_dict()); lowest = loss", ["note"]),
        ("if count > 3 and loss <= lowest: count = deepcopy(model.state_dict()); lowest = loss", ["note"]),
        ("if flags.is_best: count = deepcopy(model)", ["note"]),
        ("if flags.improved(loss): count = deepcopy(model)", ["note"]),
        ("if best is None or loss < lowest: best = {'state': deepcopy(model.state_dict())}", ["note"]),
        ("if best is None: best = deepcopy(model.state_dict())", []),
        ("best = deepcopy(model.state_dict())", []),
        ("if epoch % 10 == 0: count = deepcopy(model)", []),
        ("if loss < lowest: count = deepcopy(model.state_dict())", []),
        ("if loss < lowest: best = model.state_dict(); lowest = loss", []),
        ("if loss < lowest: best = deepcopy(model).cpu(); lowest = loss", []),
        ("if loss < lowest: best = deepcopy(model); best.cpu(); lowest = loss", []),
        ("if loss < lowest: best_teacher = deepcopy(model); lowest = loss", []),
        ("if loss < lowest: best = deepcopy(model); lowest = loss\n        print(best(epochs))", []),
        ("if loss < lowest: best = deepcopy(model); lowest = loss\n        fit(best)", []),
    ],
)
def test_the_best_so_far(tmp_path: Path, statement: str, expected: list[str]) -> None:
    assert loop(tmp_path, statement=statement, behind="model.load_state_dict(best)") == expected


@pytest.mark.parametrize(
    ("moved", "expected"),
    [
        ("model.cuda()", ["warning"]),
        ("model = model.to(device)", ["warning"]),
        ("model = nn.DataParallel(model).cuda()", ["warning"]),
        ("pass", ["warning"]),
        ("model.to('cpu')", []),
        ("model.cuda(); model.cpu()", []),
    ],
)
def test_where_the_model_is(tmp_path: Path, moved: str, expected: list[str]) -> None:
    assert loop(tmp_path, moved=moved) == expected


def test_a_program_of_the_host(tmp_path: Path) -> None:
    text = LOOP.replace("device, ", "").format(
        moved="pass",
        made="[]",
        target="epoch",
        over="range(epochs)",
        statement="kept.append(deepcopy(model))",
        behind="pass",
    )
    assert severities(tmp_path, text, "test_code") == []


STOPPING = """
import copy
import torch


class Stopping:
    def __init__(self, model):
        self.model = model.cuda()
        self.first = copy.deepcopy(model.state_dict())
        self.lowest, self.best = 1.0, None

    def update(self, loss):
        if loss < self.lowest:
            self.lowest = loss
            self.best = {copied}

    def finish(self, x):
        return {used}
"""


@pytest.mark.parametrize(
    ("copied", "used", "expected"),
    [
        ("copy.deepcopy(self.model.state_dict())", "self.model.load_state_dict(self.best)", ["note"]),
        ("{k: v.clone() for k, v in self.model.state_dict().items()}", "self.best", ["note"]),
        ("self.model.state_dict()", "self.best", []),
        ("copy.deepcopy(self.model)", "self.model.eval()", ["note"]),
        ("copy.deepcopy(self.model)", "self.model.eval(), self.best(x)", []),
    ],
)
def test_an_attribute(tmp_path: Path, copied: str, used: str, expected: list[str]) -> None:
    assert severities(tmp_path, STOPPING.format(copied=copied, used=used)) == expected


def test_tests_are_left_alone(tmp_path: Path) -> None:
    text = LOOP.replace("def train(", "def test_train(").format(
        moved="model.cuda()",
        made="[]",
        target="epoch",
        over="range(epochs)",
        statement="kept.append(deepcopy(model))",
        behind="pass",
    )
    assert severities(tmp_path, text, "test_code") == []


TRIAL = """
import copy

from torch import nn
from somewhere import fit, keep


def search(model: nn.Module, loader, rates):
    model.{moved}
    {made}
    {between}
    {behind}
    return model
"""


@pytest.mark.parametrize(
    ("parts", "found"),
    [
        ({}, True),
        ({"made": "before = {k: v.clone() for k, v in model.state_dict().items()}"}, True),
        ({"between": "for rate in rates: fit(model, rate); model.load_state_dict(before)", "behind": "pass"}, True),
        ({"behind": "model.load_state_dict(before); del before"}, True),
        ({"moved": "cpu()"}, False),
        ({"made": "before = {k: v.cpu().clone() for k, v in model.state_dict().items()}"}, False),
        ({"made": "before = model.state_dict()"}, False),
        # nothing happens in between, or something else is done with the copy
        ({"between": "fit(rates)"}, False),
        ({"between": "fit(model, before)"}, False),
        ({"behind": "keep(before)"}, False),
        ({"behind": "model.load_state_dict({k: before[k] + v for k, v in model.state_dict().items()})"}, False),
    ],
)
def test_a_copy_that_is_brought_back(tmp_path: Path, parts: dict[str, str], found: bool) -> None:
    given = {
        "moved": "cuda()",
        "made": "before = copy.deepcopy(model.state_dict())",
        "between": "fit(model, rates)",
        "behind": "model.load_state_dict(before)",
    }
    (tmp_path / "train.py").write_text(TRIAL.format(**{**given, **parts}))
    severities = [item.severity for item in memlint.lint([tmp_path]).findings if item.code == "MEM111"]
    assert severities == (["note"] if found else [])
