"""What the rows of a batch leave behind in a place that outlives the batches: it grows with these. Keys that tell one
sample from all others are new in each round; those that samples have in common come again."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

import memlint

EVALUATED = """
import torch
from torch import nn
from torch.utils.data import DataLoader


def evaluate(model, loader: DataLoader):
    model.cuda().eval()
    {begin}
    for x, y in loader:
        {each}
        out = model(x.cuda())
        {rows}
            {row}
    print({shown})


evaluate(nn.Linear(3, 3), DataLoader([]))
"""


@pytest.mark.parametrize(
    ("begin", "each", "rows", "row", "shown", "found"),
    [
        pytest.param("total = 0", "pass", "for a, b in zip(out, y):", "total += (a - b).pow(2).mean()", "total", True),
        pytest.param("total = 0", "pass", "for i in range(len(y)):", "total = total + out[i].mean()", "total", True),
        pytest.param("kept = []", "pass", "for row in out:", "kept.append(row)", "len(kept)", True),
        pytest.param("kept = []", "pass", "for i, row in enumerate(out):", "kept.append({'row': row})", "kept", True),
        pytest.param("total = 0", "total = 0", "for a, b in zip(out, y):", "total += (a - b).mean()", "total", False),
        pytest.param("kept = []", "kept = []", "for row in out:", "kept.append(row)", "len(kept)", False),
        pytest.param("total = 0", "pass", "for row in out:", "total += row.mean().item()", "total", False),
        pytest.param("kept = []", "pass", "for row in out:", "kept.append(row.detach().cpu())", "len(kept)", False),
    ],
)
def test_rows_of_an_evaluation(
    tmp_path: Path, begin: str, each: str, rows: str, row: str, shown: str, found: bool
) -> None:
    told = codes_in(tmp_path, EVALUATED.format(begin=begin, each=each, rows=rows, row=row, shown=shown))
    assert bool({"MEM101", "MEM102"} & set(told)) is found
    assert "MEM201" in told


TRAINED = """
from torch import nn, optim
from torch.utils.data import DataLoader


def train(model, loader: DataLoader, optimizer):
    model.cuda()
    total = 0
    for x, y in loader:
        loss = 0
        for a, b in zip(x.cuda(), y.cuda()):
            part = (model(a) - b).pow(2).mean()
            loss = loss + part
            {kept}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(float(total))


model = nn.Linear(3, 3)
train(model, DataLoader([]), optim.SGD(model.parameters(), lr=0.1))
"""


@pytest.mark.parametrize(("kept", "found"), [("total += part", ["MEM101"]), ("total += part.item()", []), ("pass", [])])
def test_parts_of_what_a_backward_goes_through(tmp_path: Path, kept: str, found: list[str]) -> None:
    """The sum that is trained by begins anew with each batch, and is none of a log."""
    assert codes_in(tmp_path, TRAINED.format(kept=kept)) == found


KEYED = """
import os

import torch
from torch import nn
from torch.utils.data import DataLoader


def embed(model, loader: DataLoader, folder):
    model.cuda().eval()
    kept = {{}}
    with torch.no_grad():
        {loop}
            {store}
    return kept


embed(nn.Linear(3, 3), DataLoader([]), "images")
"""
ROWS = "out = model(x.cuda())\n            for name, row in zip(names, out):\n                "


@pytest.mark.parametrize(
    ("loop", "store", "found"),
    [
        pytest.param("for x, names in loader:", "kept[names[0]] = model(x.cuda())", ["MEM104"], id="the first name"),
        pytest.param("for x, names in loader:", ROWS + "kept[name] = row", ["MEM104"], id="a name a row"),
        pytest.param(
            "for x, paths in loader:",
            "stem = os.path.basename(paths[0])\n            kept[stem] = model(x.cuda())",
            ["MEM104"],
            id="made of it",
        ),
        pytest.param(
            "for batch in loader:",
            'kept[batch["image_id"].item()] = model(batch["image"].cuda())',
            ["MEM104"],
            id="an id",
        ),
        pytest.param(
            "for x, names in loader:",
            'kept[names[0]] = {"out": model(x.cuda()), "count": len(x)}',
            ["MEM104"],
            id="a record",
        ),
        pytest.param(
            "for x, names in loader:",
            'kept[names[0]] = {"out": model(x.cuda()).cpu(), "count": len(x)}',
            [],
            id="a record on the host",
        ),
        pytest.param(
            "for x, names in loader:",
            "if names[0] not in kept:\n                kept[names[0]] = []\n"
            "            kept[names[0]].append(model(x.cuda()))",
            ["MEM104"],
            id="a list that is begun where there is none",
        ),
        pytest.param(
            "for x, names in loader:",
            "if len(x) > 3:\n                kept[names[0]] = []\n            kept[names[0]].append(model(x.cuda()))",
            [],
            id="a list that is begun anew",
        ),
        pytest.param("for x, names in loader:", "kept[names[0]] = model(x.cuda()).cpu()", [], id="on the host"),
        pytest.param("for x, label in loader:", "kept[label[0]] = model(x.cuda())", [], id="a label comes again"),
        pytest.param("for x, y in loader:", "kept[y[0]] = model(x.cuda())", [], id="who knows what it is"),
        pytest.param("for x, class_names in loader:", "kept[class_names[0]] = model(x.cuda())", [], id="of a class"),
        pytest.param("for x, names in loader:", 'kept["last"] = model(x.cuda())', [], id="the same key"),
        pytest.param(
            "for x, paths in loader:",
            "kept[os.path.dirname(paths[0])] = model(x.cuda())",
            [],
            id="a folder comes again",
        ),
        pytest.param(
            "for x, names in loader:",
            "idx = model(x.cuda()).argmax().item()\n            kept[idx] = model(x.cuda())",
            [],
            id="what a model picks comes again",
        ),
        pytest.param(
            "for batch in loader:",
            "for name, value in model(batch).items():\n                kept[name] = value",
            [],
            id="what an output has comes again",
        ),
        pytest.param(
            "for x, names in loader:",
            "kept[names[0]] = model(x.cuda())\n            kept[names[0]] = kept[names[0]].cpu()",
            [],
            id="it is moved at once",
        ),
        pytest.param(
            "for x, names in loader:",
            "if names[0] not in kept:\n                kept[names[0]] = []\n"
            "            kept[names[0]].append(model(x.cuda()))\n            kept.pop(names[0])",
            [],
            id="it is taken out again",
        ),
        pytest.param(
            "for x, names in loader:",
            "out = model(x.cuda())\n            for i in range(len(names)):\n                kept[i] = out[i]",
            [],
            id="places in a batch come again",
        ),
        pytest.param(
            'for name in ["small", "large"]:',
            "kept[name] = model(torch.ones(3).cuda())",
            [],
            id="a handful of names",
        ),
    ],
)
def test_keys_of_samples(tmp_path: Path, loop: str, store: str, found: list[str]) -> None:
    assert codes_in(tmp_path, KEYED.format(loop=loop, store=store)) == found


RECORDS = """
import torch
from torch import nn
from torch.utils.data import DataLoader


def collect(model, loader: DataLoader):
    model.cuda().eval()
    kept = []
    with torch.no_grad():
        for x, names in loader:
            kept.append({record})
    return kept


collect(nn.Linear(3, 3), DataLoader([]))
"""


@pytest.mark.parametrize(
    ("record", "found"),
    [
        ("(names, model(x.cuda()))", ["MEM104"]),
        ("{'names': names, 'out': model(x.cuda())}", ["MEM104"]),
        ("(names, model(x.cuda()).cpu())", []),
        ("(names, model(x.cuda()).mean())", []),
        ("(names, len(x))", []),
    ],
)
def test_a_record_is_as_large_as_its_largest_part(tmp_path: Path, record: str, found: list[str]) -> None:
    assert codes_in(tmp_path, RECORDS.format(record=record)) == found


AUGMENTS = """
import torch
from torch import nn


def augment(images, rounds=8{more}):
    {layer}
    size = images.shape[0] // rounds
    out = None
    for i in range(rounds):
        part = layer({given})
        if i == 0:
            out = part
        else:
            out = torch.cat((out, part), 0)
    {end}


print(augment(torch.load("images.pt")).shape)
"""


@pytest.mark.parametrize(
    ("layer", "given", "end", "more", "severity"),
    [
        ("layer = nn.Conv2d(3, 3, 3)", "images[i * size : (i + 1) * size]", "return out", "", "note"),
        ("layer = nn.Conv2d(3, 3, 3)", "images[i : i + 1]", "return out.clamp(0, 1)", "", "note"),
        ("layer = nn.Conv2d(3, 3, 3)", "torch.rand(8, 3, 64, 64)", "return out", "", "warning"),
        ("layer.train()", "images[i * size : (i + 1) * size]", "return out", ", layer=nn.Conv2d(3, 3, 3)", "warning"),
    ],
)
def test_a_batch_that_is_put_together_again(
    tmp_path: Path, layer: str, given: str, end: str, more: str, severity: str
) -> None:
    (tmp_path / "augment.py").write_text(AUGMENTS.format(layer=layer, given=given, end=end, more=more))
    found = memlint.lint([tmp_path], min_confidence="low").findings
    assert [one.severity for one in found if one.code == "MEM302"] == [severity]


REPLAYS = """
import random
import torch
from torch import nn

net = nn.Conv2d(3, 64, 3).cuda()
optimizer = torch.optim.Adam(net.parameters())


def replay(memory, criterion):
    total = 0
    batch = {drawn}
    for {each} in batch:
        loss = criterion(net(state.cuda()), reward)
        total += loss
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {given}
"""


@pytest.mark.parametrize(
    ("drawn", "each", "given", "severity"),
    [
        ("random.sample(memory, 32)", "state, action, reward", "None", "note"),
        ("memory.sample(32)", "state, action, reward, after, done", "None", "note"),
        ("memory.loader()", "state, action, reward", "None", "warning"),
        ("random.sample(memory, 32)", "state, reward", "None", "warning"),
    ],
)
def test_sums_over_one_drawn_batch(tmp_path: Path, drawn: str, each: str, given: str, severity: str) -> None:
    (tmp_path / "replay.py").write_text(REPLAYS.format(drawn=drawn, each=each, given=given))
    found = memlint.lint([tmp_path], min_confidence="low").findings
    assert [one.severity for one in found if one.code == "MEM101"] == [severity]


STEPS = """
import torch
from torch import nn
from torch.utils.data import DataLoader

cell = nn.LSTMCell(512, 512).cuda()
optimizer = torch.optim.Adam(cell.parameters())


def train(dataset, criterion, forced):
    for tokens, target in DataLoader(dataset):
        state = None
        for i in range(tokens.shape[1]):
            {step}
        if out.shape[1] > 1:
            optimizer.zero_grad()
            criterion(out, target).backward()
            optimizer.step()


def main(dataset):
    train(dataset, nn.MSELoss(), True)
"""
FIRST = """{before}if i == {first}:
                out, state = cell(tokens[:, i].cuda(), state)
            else:
                part, state = cell(tokens[:, i].cuda(), state)
                out = torch.cat([out, part], dim=1)"""


@pytest.mark.parametrize(
    ("before", "first", "found"),
    [("", 0, False), ("i += 1\n            ", 1, False), ("", 1, True), ("i += 1\n            ", 0, True)],
)
def test_sequences_that_begin_anew_with_each_batch(tmp_path: Path, before: str, first: int, found: bool) -> None:
    text = STEPS.replace("{step}", FIRST.format(before=before, first=first))
    (tmp_path / "steps.py").write_text(text)
    codes = {one.code for one in memlint.lint([tmp_path], min_confidence="low").findings}
    assert ("MEM302" in codes) is found


SLICED = """
import torch


@torch.no_grad()
def encode(model, names, data, batch_size):
    model.cuda().eval()
    kept = []
    for start in range(0, len(names), {step}):
        out = model(data[start : start + {step}].cuda())
        {each}
        for name, row in zip(names[start : start + {step}], out):
            kept.append({kept})
    {last}
"""


@pytest.mark.parametrize(
    ("step", "each", "kept", "last", "found"),
    [
        ("batch_size", "pass", "row", "return torch.stack(kept).cpu()", True),
        ("batch_size", "pass", "row[0]", "return torch.stack(kept).cpu().numpy()", True),
        # a new list for each batch, or nothing of it stays on the device
        ("batch_size", "kept = []", "row", "return torch.stack(kept).cpu()", False),
        ("batch_size", "pass", "row.cpu()", "return torch.stack(kept)", False),
        ("batch_size", "out = out.cpu()", "row", "return torch.stack(kept)", False),
        # they are used on the device
        ("batch_size", "pass", "row", "return torch.stack(kept)", False),
        # nothing tells that these are batches
        ("3", "pass", "row", "return torch.stack(kept).cpu()", False),
    ],
)
def test_rows_of_the_slices_of_a_tensor(
    tmp_path: Path, step: str, each: str, kept: str, last: str, found: bool
) -> None:
    told = codes_in(tmp_path, SLICED.format(step=step, each=each, kept=kept, last=last))
    assert ("MEM104" in told) is found
