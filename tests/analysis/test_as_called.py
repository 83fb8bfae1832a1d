"""Flags and grad mode that callers choose together, and what a use of a value tells of its graph."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint


def said(folder: Path, text: str) -> list[tuple[str, str]]:
    (folder / "main.py").write_text(text, encoding="utf-8")
    found = memlint.lint([folder], isolated=True).findings
    return [(one.code, one.growth.memory) for one in found]


STEP = """
import torch


def run(model, loader, optimizer, train=False):
    total = 0
    for x, y in loader:
        loss = (model(x.cuda()) - y.cuda()).square().mean()
        if train:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss
    return float(total)


def main(model, loader, held_out, optimizer):
    model.cuda()
    for _ in range(90):
        run(model, loader, optimizer, train={train})
        {guard}
            print(run(model, held_out, optimizer))
"""


@pytest.mark.parametrize(
    ("train", "guard", "memory"),
    [
        ("True", "with torch.no_grad():", "host"),
        ("True", "if True:", "device-graph"),
        ("False", "with torch.no_grad():", "device-graph"),
    ],
)
def test_who_trains_records_and_who_does_not_guards(tmp_path: Path, train: str, guard: str, memory: str) -> None:
    assert ("MEM101", memory) in said(tmp_path, STEP.format(train=train, guard=guard))


MODES = """
import torch


def run(loader, model, criterion, optimizer):
    total = 0
    for x, y in loader:
        loss = criterion(model(x.cuda()), y.cuda())
        if model.training:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += len(x) * loss
    return total / len(loader)


def main(loader, held_out, model, criterion, optimizer):
    for epoch in range(90):
        model.train(True)
        run(loader, model, criterion, optimizer)
        {guard}
            model.eval()
            print(run(held_out, model, criterion, optimizer))
"""


@pytest.mark.parametrize(("guard", "memory"), [("with torch.no_grad():", "host"), ("if True:", "device-graph")])
def test_who_trains_by_the_mode_of_the_model(tmp_path: Path, guard: str, memory: str) -> None:
    assert ("MEM101", memory) in said(tmp_path, MODES.format(guard=guard))


WORLDS = """
import torch


class Trainer:
    def __init__(self, model, optimizer, criterion):
        self.model, self.optimizer, self.criterion = model.cuda(), optimizer, criterion

    def inner(self, loader, mode="train"):
        loss = 0
        for x, y in loader:
            if mode != "train":
                torch.set_grad_enabled(False)
            made = self.criterion(self.model(x.cuda()), y.cuda())
            if mode == "train":
                loss += made
            else:
                loss += made.item()
        if mode == "train":
            loss.backward()
            self.optimizer.step()
            {number}
        elif mode == "test" or mode == "valid":
            print(mode)
        torch.set_grad_enabled(True)
        return {{"loss": loss}}

    def outer(self, tasks, mode):
        total = 0
        for loader in tasks:
            results = self.inner(loader, mode=mode)
            total += results["loss"]
        print(total)

    def run(self, tasks, held_out):
        for epoch in range(90):
            self.outer(tasks, "train")
            self.outer(held_out, "test")
"""


@pytest.mark.parametrize(("number", "found"), [("loss = loss.item()", False), ("pass", True)])
def test_a_mode_that_is_handed_on_is_the_same_in_all_branches(tmp_path: Path, number: str, found: bool) -> None:
    assert ("MEM101" in {code for code, _ in said(tmp_path, WORLDS.format(number=number))}) is found


PREDICT = """
import numpy as np
import torch


def predict(net, loader):
    net.eval()
    kept = []
    for row in loader:
        guess = net(row)
        kept.append(guess)
    return {use}
"""


@pytest.mark.parametrize(
    ("use", "kept"), [("np.array(kept)", False), ("[np.asarray([guess]), kept][0]", False), ("len(kept)", True)]
)
def test_numpy_makes_no_array_of_what_has_a_graph(tmp_path: Path, use: str, kept: bool) -> None:
    assert ("MEM102" in {code for code, _ in said(tmp_path, PREDICT.format(use=use))}) is kept


CALLBACK = """
from lightning.pytorch.callbacks import Callback


class Show(Callback):
    def __init__(self, loader):
        self.loader = loader

    def {hook}(self, trainer, model):
        model.eval()
        for x, _ in self.loader:
            print(model(x.cuda()).argmax(1))
"""


@pytest.mark.parametrize(("hook", "found"), [("on_validation_epoch_end", []), ("on_train_end", ["MEM201"])])
def test_a_callback_runs_under_the_grad_mode_of_its_loop(tmp_path: Path, hook: str, found: list[str]) -> None:
    assert [code for code, _ in said(tmp_path, CALLBACK.format(hook=hook))] == found


COLLECT = """
from lightning.pytorch.callbacks import Callback


class Collect(Callback):
    def __init__(self):
        self.kept = []

    def on_validation_batch_end(self, trainer, model, outputs, batch, batch_idx):
        self.kept.append(outputs["{key}"])
"""


@pytest.mark.parametrize(("key", "found"), [("preds", []), ("features", ["MEM104"])])
def test_class_indices_that_a_step_gives_are_small(tmp_path: Path, key: str, found: list[str]) -> None:
    assert [code for code, _ in said(tmp_path, COLLECT.format(key=key))] == found


BEAM = """
import torch


def search(decoder, state, width):
    decoder.eval()
    words = torch.zeros(width, 1, 512, device="cuda")
    maps = torch.zeros(width, 1, 512, device="cuda")
    while True:
        scores = decoder(words[:, -1] + state)
        best, rows = scores.view(-1).topk(width)
        maps = torch.cat([{old}, scores.softmax(-1).unsqueeze(1)], dim=1)
        if maps.size(1) > 50:
            break
    return maps.tolist()
"""


@pytest.mark.parametrize(("old", "found"), [("maps[rows]", False), ("maps", True)])
def test_a_beam_that_selects_its_rows_anew(tmp_path: Path, old: str, found: bool) -> None:
    assert (("MEM302", "device-graph") in said(tmp_path, BEAM.format(old=old))) is found


HANDED_ON = """
import torch


def step(model, optimizer, batch, train=True):
    scores, loss = model(batch.cuda())
    if train:
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    return scores, loss


def run(model, optimizer, loader, train=True):
    model.train() if train else model.eval()
    kept = []
    for batch in loader:
        scores, loss = step(model, optimizer, batch, train)
        kept.append(scores)
    return torch.cat(kept)


def main(model, optimizer, loader):
    run(model, optimizer, loader, train=True)
    {guard}
        run(model, optimizer, loader, train=False)
"""


@pytest.mark.parametrize(
    ("guard", "said"), [("with torch.no_grad():", "backward() frees"), ("if True:", "where no backward() runs")]
)
def test_a_flag_that_is_handed_on(tmp_path: Path, guard: str, said: str) -> None:
    (tmp_path / "run.py").write_text(HANDED_ON.format(guard=guard), encoding="utf-8")
    (found,) = (one for one in memlint.lint([tmp_path], isolated=True).findings if one.code == "MEM102")
    assert said in found.message


SCORED = """
import torch
from torch_geometric.nn import GAE


def fit(encoder, data, epochs):
    model = GAE(encoder).cuda()

    def test(edges):
        model.eval()
        with torch.no_grad():
            z = model.encode(data.x, edges)
        return model.{method}(z, edges)

    values = []
    for epoch in range(epochs):
        area, precision = test(data.edges)
        values.append(precision)
    return values
"""


def test_what_a_method_of_a_model_gives(tmp_path: Path) -> None:
    """What no code in sight defines, and whose name says nothing, need not give the model's output."""
    (tmp_path / "fit.py").write_text(SCORED.format(method="test"), encoding="utf-8")
    assert "MEM102" not in {one.code for one in memlint.lint([tmp_path], isolated=True).findings}
