"""Device tensors that are collected for somebody, and loops over a handful: no finding; the same for nobody: one."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint


def codes(folder: Path, text: str) -> list[str]:
    (folder / "main.py").write_text(text, encoding="utf-8")
    return [one.code for one in memlint.lint([folder], isolated=True).findings]


PROBE = """
import torch
from torch import nn


def embed(model, loader):
    model.cuda().eval()
    rows = {{"train": [], "test": []}}
    with torch.no_grad():
        for x, _ in loader:
            rows["train"].append(model(x.cuda()))
    return {use}


def fit(head, rows, optimizer):
    for row in rows:
        loss = head(row).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def score(rows):
    return [row.mean().item() for row in rows]
"""


@pytest.mark.parametrize(
    ("use", "found"),
    [
        ('fit(nn.Linear(8, 2).cuda(), rows["train"], torch.optim.SGD([torch.zeros(1)], lr=0.1))', []),
        ("fit(nn.Linear(8, 2).cuda(), rows, torch.optim.SGD([torch.zeros(1)], lr=0.1))", []),
        ('score(rows["train"])', ["MEM104"]),
    ],
)
def test_features_that_a_training_gets(tmp_path: Path, use: str, found: list[str]) -> None:
    assert codes(tmp_path, PROBE.format(use=use)) == found


HEAD = """
import torch
from torch import nn


def probe(model, loader, epochs):
    model.cuda().eval()
    rows = []
    with torch.no_grad():
        for x, _ in loader:
            rows.append(model(x.cuda()))
    features = torch.cat(rows)
    print(features.cpu())
    head = nn.Linear(8, 2).cuda()
    optimizer = torch.optim.SGD(head.parameters(), lr=0.1)
    for _ in range(epochs):
        loss = head({given}).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("given", "found"), [("features", []), ("torch.ones(4, 8).cuda()", ["MEM104"])])
def test_features_that_the_function_itself_trains_by(tmp_path: Path, given: str, found: list[str]) -> None:
    assert codes(tmp_path, HEAD.format(given=given)) == found


RANKED = """
import torch
from torch import nn


def evaluate(model, loader):
    model.eval()
    rows = []
    with torch.no_grad():
        for x, _ in loader:
            rows.append(model(x.cuda()))
    return {{"rows": torch.cat(rows).cpu(), "loss": 0.5}}


def train(model, loader, val_loader, optimizer, rank, epochs):
    model.cuda()
    best = 1.0
    if rank == 0:
        told = evaluate(model, val_loader)
        print(told["loss"])
    for _ in range(epochs):
        for x, y in loader:
            loss = (model(x.cuda()) - y.cuda()).mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if rank == 0:
            {again}
        {between}
        if rank == 0:
            if told["loss"] < best:
                best = told["loss"]
"""


@pytest.mark.parametrize(
    ("again", "between", "found"),
    [
        ("told = evaluate(model, val_loader)", "pass", ["MEM104"]),
        ("pass", "pass", []),
        ("told = evaluate(model, val_loader)", "print(told)", []),
    ],
)
def test_an_evaluation_of_one_process(tmp_path: Path, again: str, between: str, found: list[str]) -> None:
    assert codes(tmp_path, RANKED.format(again=again, between=between)) == found


STYLES = """
import torch


def spread(model, bank{parameter}):
    model.cuda().eval()
    drawn = []
    batches = list(bank.values())[:{count}]
    with torch.no_grad():
        for batch in batches:
            drawn.append(model(batch.to("cuda")))
    return [one.mean() for one in drawn]
"""


@pytest.mark.parametrize(
    ("parameter", "count", "found"),
    [
        ("", "4", []),
        (", count=4", "count", []),
        (", count=4000", "count", ["MEM104"]),
        (", count", "count", ["MEM104"]),
    ],
)
def test_a_slice_of_as_many_as_the_default_says(tmp_path: Path, parameter: str, count: str, found: list[str]) -> None:
    assert codes(tmp_path, STYLES.format(parameter=parameter, count=count)) == found


CHUNKS = """
import torch


def collect(model, items, dataset):
    model.cuda().eval()
    kept = []
    with torch.no_grad():
        {loop}
            kept.append(model({batch}.to("cuda")))
    return torch.cat(kept).cpu()
"""


@pytest.mark.parametrize(
    ("loop", "batch", "found"),
    [
        ("for i in range(0, len(items), 2):", "torch.stack(items[i : i + 2])", []),
        ("for style in items:", "style", []),
        ("for batch in items:", "batch", ["MEM104"]),
        ("for x, _ in torch.utils.data.DataLoader(items):", "x", ["MEM104"]),
        ("for i in range(0, len(dataset), 2):", "torch.stack(items[i : i + 2])", ["MEM104"]),
    ],
)
def test_a_loop_whose_names_tell_of_no_data(tmp_path: Path, loop: str, batch: str, found: list[str]) -> None:
    assert codes(tmp_path, CHUNKS.format(loop=loop, batch=batch)) == found


RETURNED = """
import torch
from torch import nn


def embed(model, loader):
    rows = []
    with torch.no_grad():
        for x, y in loader:
            rows.append(model(x.cuda()))
    return torch.cat(rows), len(rows)


def fit(head, rows, optimizer):
    def closure():
        optimizer.zero_grad()
        loss = head(rows).mean()
        loss.backward()
        return loss

    optimizer.step(closure)


def probe(model, loader):
    model.cuda().eval()
    rows, count = embed(model, loader)
    head = nn.Linear(8, 2).cuda()
    return {use}
"""


@pytest.mark.parametrize(
    ("use", "found"),
    [
        ("fit(head, rows, torch.optim.LBFGS(head.parameters()))", []),
        ("(rows @ head.weight.T).argmax(1)", []),
        ("rows.argmax(1).tolist()", ["MEM104"]),
    ],
)
def test_features_that_a_caller_trains_by(tmp_path: Path, use: str, found: list[str]) -> None:
    assert codes(tmp_path, RETURNED.format(use=use)) == found


CLOSURE = """
import torch
from torch import nn


def calibrate(model, loader, head, labels):
    model.cuda().eval()
    rows = []
    with torch.no_grad():
        for x, _ in loader:
            rows.append(model(x.cuda()))
    rows = torch.cat(rows)

    def closure():
        loss = (head({used}) - labels).square().mean()
        loss.backward()
        return loss

    torch.optim.LBFGS(head.parameters()).step(closure)
    return rows.cpu().mean().item()
"""


@pytest.mark.parametrize(("used", "found"), [("rows", []), ("labels", ["MEM104"])])
def test_features_that_a_closure_trains_by(tmp_path: Path, used: str, found: list[str]) -> None:
    assert codes(tmp_path, CLOSURE.format(used=used)) == found


BY_KEYS = """
import torch


class Collector:
    def __init__(self, loader):
        self.loader = loader
        self.kept = {{}}

    @torch.no_grad()
    def run(self):
        for batch in torch.utils.data.DataLoader(self.loader):
            batch = {{key: item.cuda() for key, item in batch.items()}}
            for key in {keys}:
                self.kept.setdefault(key, [])
                self.kept[key].append(batch[key])
"""


@pytest.mark.parametrize(
    ("keys", "told"),
    [('("fname", "index", "subset")', False), ('("image", "depth")', True), ('("label", "image")', True)],
)
def test_what_is_kept_under_names(tmp_path: Path, keys: str, told: bool) -> None:
    (tmp_path / "run.py").write_text(BY_KEYS.format(keys=keys), encoding="utf-8")
    assert any(one.code == "MEM104" for one in memlint.lint([tmp_path], isolated=True).findings) is told


WHOLE = """
import torch


def embed(model, loader):
    model.cuda().eval()
    rows = []
    with torch.no_grad():
        for x, _ in loader:
            rows.append(model(x.cuda()))
    {after}
    return {given}


def use(model, loader, means):
    found = embed(model, loader)
    {then}


use(None, torch.utils.data.DataLoader([]), torch.zeros(8).cuda())
"""


@pytest.mark.parametrize(
    ("after", "given", "then", "found"),
    [
        ("rows = torch.cat(rows)", "rows", "print((means + found).norm())", []),
        ("pass", "torch.cat(rows)", "print(means - found)", []),
        ("pass", "rows", "print(torch.stack(found) - means)", []),
        ("rows = torch.cat(rows)", "rows", "print(found.cpu().numpy())", ["MEM104"]),
        ("rows = torch.cat(rows)", "rows", "print(found.tolist())", ["MEM104"]),
        ("rows = torch.cat(rows).cpu()", "rows", "print(found)", ["MEM104"]),
        ("pass", "rows", "print([row.sum().item() for row in found])", ["MEM104"]),
    ],
    ids=[
        "met by another",
        "put together as it is returned",
        "by the caller",
        "moved",
        "listed",
        "moved here",
        "by rows",
    ],
)
def test_what_is_put_together_may_be_wanted_whole(
    tmp_path: Path, after: str, given: str, then: str, found: list[str]
) -> None:
    assert codes(tmp_path, WHOLE.format(after=after, given=given, then=then)) == found


BANKS = """
import torch


def neighbours(model, loaders, queries):
    model.cuda().eval()
    banks = {start}
    with torch.no_grad():
        for task, loader in enumerate(loaders):
            bank = []
            for x, _ in loader:
                bank.append(model(x.cuda()).data.t())
            bank = torch.cat(bank, dim=1)
            {put}
        for task in range(len(banks)):
            for x, _ in queries:
                print({asked})
"""


@pytest.mark.parametrize(
    ("start", "put", "asked", "found"),
    [
        ("[]", "banks.append(bank)", "torch.mm(model(x.cuda()), banks[task]).argmax(1)", []),
        ("{}", "banks[task] = bank", "(model(x.cuda()) @ banks[task]).argmax(1)", []),
        ("[]", "banks.append(bank)", "model(x.cuda()).argmax(1), banks[task].shape", ["MEM104"]),
        ("[]", "banks.append(len(loader))", "torch.mm(model(x.cuda()), model.weight).argmax(1)", ["MEM104"]),
    ],
)
def test_banks_of_features_in_a_list(tmp_path: Path, start: str, put: str, asked: str, found: list[str]) -> None:
    """A bank that what comes later is multiplied with is wanted on the device, in whatever it is held until then."""
    assert codes(tmp_path, BANKS.format(start=start, put=put, asked=asked)) == found
