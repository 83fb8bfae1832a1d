"""Dictionaries whose members are set by the identifiers of samples: each batch adds new ones, wherever that is done."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Evaluator:
    def __init__(self, model: nn.Module):
        self.model = model
        self.results = {}

"""

RUN = """
    @torch.no_grad()
    def run(self, loader: DataLoader):
        self.model.eval()
        for batch in loader:
            outputs = self.model(batch["image"].cuda())
            {call}

    def collect(self, {given}):
        {store}
{rest}
"""

#: what the loop does, the helper's parameters, and what the helper does
ROWS = ("self.collect(batch['image_id'], outputs)", "keys, rows")
SET = "self.results:\n                self.results[key] = row"
EACH = "for key, row in zip(keys, rows):\n            self.results[{key}] = {row}"


def codes(folder: Path, text: str) -> list[str]:
    (folder / "main.py").write_text(HEAD + text, encoding="utf-8")
    result = memlint.lint([folder], isolated=True)
    assert not result.failures
    return [one.code for one in result.findings]


@pytest.mark.parametrize(
    ("call", "given", "store", "expected"),
    [
        pytest.param(*ROWS, EACH.format(key="key", row="row"), ["MEM104"], id="rows in a helper"),
        pytest.param(*ROWS, EACH.format(key="key.item()", row="row"), ["MEM104"], id="rows by a number"),
        pytest.param(*ROWS, EACH.format(key="key.item()", row="row.cpu()"), [], id="rows on the host"),
        pytest.param(*ROWS, EACH.format(key="'last'", row="row"), [], id="one slot"),
        pytest.param(
            "self.collect(batch['label'], outputs)",
            "keys, rows",
            EACH.format(key="key.item()", row="row"),
            [],
            id="by label, of which there are a few",
        ),
        pytest.param(
            "self.collect(batch['label'], outputs)",
            "name, rows",
            "self.results[name.item()] = rows",
            [],
            id="by label, whatever the helper calls it",
        ),
        pytest.param(
            "self.collect(batch['name'], outputs)",
            "label, rows",
            "self.results[label.item()] = rows",
            ["MEM104"],
            id="by name, whatever the helper calls it",
        ),
        pytest.param(
            "self.collect(batch[0], outputs)",
            "name, rows",
            "self.results[name] = rows",
            ["MEM104"],
            id="by what only the helper names",
        ),
        pytest.param(
            "self.collect(batch[0], outputs)",
            "label, rows",
            "self.results[label] = rows",
            [],
            id="by what the helper calls a label",
        ),
        pytest.param(*ROWS, f"for key, row in zip(keys, rows):\n            if key in {SET}", [], id="those there"),
        pytest.param(
            *ROWS, f"for key, row in zip(keys, rows):\n            if key not in {SET}", ["MEM104"], id="those missing"
        ),
        pytest.param(
            "self.collect(batch, outputs)",
            "batch, rows",
            "self.results[batch['path'][0]] = rows",
            ["MEM104"],
            id="by a member of the batch",
        ),
        pytest.param(
            "self.collect(batch, outputs)",
            "batch, rows",
            "self.results[batch['phase'][0]] = rows",
            [],
            id="by a member that recurs",
        ),
        pytest.param(
            "self.results[batch['path'][0]] = outputs", "rows", "return rows", ["MEM104"], id="without a helper"
        ),
    ],
)
def test_attribute(call: str, given: str, store: str, expected: list[str], tmp_path: Path) -> None:
    assert codes(tmp_path, RUN.format(call=call, given=given, store=store, rest="")) == expected


@pytest.mark.parametrize(
    "rest",
    [
        pytest.param("        if len(self.results) > 100:\n            self.results.popitem()", id="the oldest goes"),
        pytest.param("        self.results.pop(keys[0])", id="taken out"),
        pytest.param(
            "        self.write()\n\n    def write(self):\n        for key in list(self.results):\n"
            "            if ready(key):\n                save(self.results.pop(key))",
            id="taken out when ready",
        ),
        pytest.param(
            "        for key in finished(self.results):\n            del self.results[key]",
            id="deleted when finished",
        ),
        pytest.param("        self.write()\n\n    def write(self):\n        self.results.clear()", id="emptied"),
    ],
)
def test_bounded(rest: str, tmp_path: Path) -> None:
    text = RUN.format(call=ROWS[0], given=ROWS[1], store=EACH.format(key="key", row="row"), rest=rest)
    assert codes(tmp_path, text) == []


HOOK = """
import torch
from torch import nn
from lightning import LightningModule


class Net(LightningModule):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)
        self.results = {{}}

    def training_step(self, batch, number):
        outputs = self.net(batch["image"])
        self.results[{key}] = outputs
        return outputs.mean()
"""


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param("batch['image_id'][0]", ["MEM102"], id="a sample's identifier"),
        pytest.param("batch['phase'][0]", [], id="a few phases"),
        pytest.param("number % 8", [], id="a ring"),
    ],
)
def test_hook(key: str, expected: list[str], tmp_path: Path) -> None:
    assert codes(tmp_path, HOOK.format(key=key)) == expected


FEW = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Trainer:
    def __init__(self, model: nn.Module, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.last = {{}}

    def record(self, name, value):
        self.last[name] = value

    def fit(self, loader: DataLoader):
        for x, y in loader:
            losses = {{"a": nn.functional.mse_loss(self.model(x.cuda()), y.cuda())}}
            self.optimizer.zero_grad()
            losses["a"].backward()
            self.optimizer.step()
            {recorded}

    @torch.no_grad()
    def test(self, datasets):
        self.model.eval()
        results = {{}}
        for name, data in datasets.items():
            results[name] = self.model(data.cuda())
        return results
"""


@pytest.mark.parametrize(
    "recorded",
    [
        pytest.param("self.record('a', losses['a'])", id="a literal"),
        pytest.param("for name, loss in losses.items():\n                self.record(name, loss)", id="each name"),
        pytest.param(
            "for key, (name, loss) in enumerate(losses.items()):\n                self.record(key, loss)",
            id="a number",
        ),
    ],
)
def test_a_few_names(recorded: str, tmp_path: Path) -> None:
    assert codes(tmp_path, FEW.format(recorded=recorded)) == []


BY_NUMBER = """
class Numbered:
    def __init__(self, model: nn.Module):
        self.model = model
        self.kept = {{}}

    @torch.no_grad()
    def run(self, loader, name):
        self.model.eval()
        for i, x in enumerate(loader):
            self.kept[i] = self.model(x.cuda())
            {taken}
"""


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        pytest.param("if name: self.kept.pop(name, None)", ["MEM104"], id="the same member each time"),
        pytest.param("if name in self.kept: self.kept.pop(name)", ["MEM104"], id="the same member if it is there"),
        pytest.param("if name: self.kept.pop(i, None)", [], id="the one that is set"),
        pytest.param("for key in list(self.kept): self.kept.pop(key, None)", [], id="each one"),
        pytest.param("key = next(iter(self.kept)); self.kept.pop(key, None)", [], id="one of the keys"),
        pytest.param("self.put(name); self.kept.pop(name, None)", [], id="other code may set it"),
        pytest.param("self.kept[name] = self.kept[i]; self.kept.pop(name, None)", [], id="the loop sets it"),
    ],
)
def test_taken_out_in_the_loop(taken: str, expected: list[str], tmp_path: Path) -> None:
    assert codes(tmp_path, BY_NUMBER.format(taken=taken)) == expected
