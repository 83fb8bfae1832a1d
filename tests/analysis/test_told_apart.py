"""What a test, a literal or a loop over all members tells apart: each member is judged by what it is there."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint


def codes(folder: Path, **files: str) -> set[str]:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    result = memlint.lint([folder], isolated=True)
    assert not result.failures
    return {one.code for one in result.findings}


STORED = """
import torch


class Average:
    def __init__(self):
        self.sum = 0

    def update(self, value):
        self.sum += value


class Trainer:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.store = {{"a": Average(), "b": Average()}}

    def remark(self, *args):
        for i, name in enumerate(self.store.keys()):
            {remark}

    def train(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            loss = self.model(x).sum()
            loss.backward()
            self.optimizer.step()
            self.remark(loss, loss * 2)
"""
TOLD = """if isinstance(args[i], torch.Tensor):
                self.store[name].update(args[i].item())
            else:
                self.store[name].update(args[i])"""


@pytest.mark.parametrize(
    ("remark", "found"),
    [
        pytest.param(TOLD, set(), id="a member that is no tensor"),
        pytest.param(
            TOLD.replace("isinstance(args[i], torch.Tensor)", "torch.is_tensor(args[i])"), set(), id="is_tensor"
        ),
        pytest.param(
            "self.store[name].update(args[i].item() if isinstance(args[i], torch.Tensor) else args[i])",
            set(),
            id="in an expression",
        ),
        pytest.param(TOLD.replace("update(args[i].item())", "update(args[i])"), {"MEM101"}, id="the tensor itself"),
        pytest.param(TOLD.replace("(args[i], torch", "(name, torch"), {"MEM101"}, id="something else is asked for"),
    ],
)
def test_a_member_that_was_told_to_be_no_tensor_has_no_graph(tmp_path: Path, remark: str, found: set[str]) -> None:
    assert codes(tmp_path, main=STORED.format(remark=remark)) == found


REPLACED = """
import torch


def train(model, loader, optimizer, criterion):
    total = 0
    for x, y in loader:
        values = {losses}
        values["loss"] = values["a"] + values["b"]
        optimizer.zero_grad()
        values["loss"].backward()
        optimizer.step()
        for key, value in values.items():
            {replace}
        total += values["loss"]
    return total
"""
NUMBER = "values[key] = value.item()"


@pytest.mark.parametrize("losses", ["criterion(model(x), y)", '{"a": model(x).sum(), "b": model(x).mean()}'])
@pytest.mark.parametrize(
    ("replace", "found"),
    [
        pytest.param(NUMBER, False, id="each member"),
        pytest.param(
            f"if isinstance(value, torch.Tensor):\n                {NUMBER}", False, id="each that is a tensor"
        ),
        pytest.param(f"if value.ndim:\n                {NUMBER}", True, id="some"),
        pytest.param(f"if key == 'loss':\n                continue\n            {NUMBER}", True, id="all but one"),
        pytest.param("value = value.item()", True, id="the name alone"),
        pytest.param('values["a"] = value.item()', True, id="one"),
        pytest.param("values[key] = value.cpu()", True, id="by what has the graph"),
        pytest.param(f"{NUMBER}\n            break", True, id="the first"),
    ],
)
def test_a_loop_over_all_items_replaces_each(tmp_path: Path, losses: str, replace: str, found: bool) -> None:
    text = REPLACED.format(losses=losses, replace=replace)
    assert bool(codes(tmp_path, main=text) & {"MEM101", "MEM102"}) is found


IN_A_HELPER = """
import torch


def shown(history, values):
    for key, value in values.items():
        {replace}
    for key, value in values.items():
        history[key].append(value)


def train(model, loader, optimizer):
    history = {{"loss": []}}
    for x, y in loader:
        losses = {{"loss": model(x).sum()}}
        optimizer.zero_grad()
        losses["loss"].backward()
        optimizer.step()
        shown(history, losses)
    return history
"""


@pytest.mark.parametrize(
    ("replace", "found"),
    [(f"if isinstance(value, torch.Tensor):\n            {NUMBER}", set()), (NUMBER, set()), ("pass", {"MEM102"})],
)
def test_so_does_a_helper(tmp_path: Path, replace: str, found: set[str]) -> None:
    assert codes(tmp_path, main=IN_A_HELPER.format(replace=replace)) == found


RUNS = """
import torch


def run(model, batch, moved=False):
    if moved:
        return batch[0].shape
    return model(batch[0])
"""
CALLS = """
from torch.utils.data import DataLoader
from helper import run


def collect(model, data):
    model.eval()
    kept = []
    for batch in DataLoader(data, batch_size=8):
        kept.append(run(model, batch, {moved}))
    print(kept)
"""


@pytest.mark.parametrize(("moved", "found"), [("moved=True", set()), ("True", set()), ("moved=False", {"MEM102"})])
def test_a_literal_that_makes_a_function_return_early_runs_no_model(
    tmp_path: Path, moved: str, found: set[str]
) -> None:
    assert codes(tmp_path, helper=RUNS, main=CALLS.format(moved=moved)) - {"MEM201"} == found


HANDLED = """
import torch


def train(model, loader, optimizer, steps):
    model.train()
    for inputs, labels in loader:
        outputs = model(inputs, labels=labels)
        if isinstance(outputs, list) or isinstance(outputs, tuple):
            loss = outputs[0]
        elif isinstance(outputs, dict):
            loss = outputs["loss"]
        else:
            print("not handled")
            {otherwise}
        if steps > 1:
            loss = loss / steps
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""


@pytest.mark.parametrize(
    ("otherwise", "found"),
    [("assert False", set()), ("assert 0, 'what is this?'", set()), ("print(steps)", {"MEM103"})],
)
def test_nothing_runs_behind_an_assertion_that_fails(tmp_path: Path, otherwise: str, found: set[str]) -> None:
    assert codes(tmp_path, main=HANDLED.format(otherwise=otherwise)) == found


BELOW = """
import torch
from torch import nn


class Base(nn.Module):
    def collect(self, loader):
        self.eval()
        kept = []
        for batch in loader:
            with torch.no_grad():
                found = self.decode_batch(batch.cuda())
            kept += found
        return kept


class Recognizer(Base):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(64, 64)

    def decode_batch(self, x):
        best = self.encoder(x).argmax(-1)
        return {given}
"""


@pytest.mark.parametrize(
    ("given", "found"), [("[one.item() for one in best]", set()), ("[self.encoder(one) for one in x]", {"MEM104"})]
)
def test_a_base_class_of_modules_runs_what_the_classes_below_define(
    tmp_path: Path, given: str, found: set[str]
) -> None:
    assert codes(tmp_path, main=BELOW.format(given=given)) == found


GUARDED = """
import torch

HAS_TORCH = hasattr(torch, "no_grad")


class Encoder:
    def __init__(self, vae):
        self.vae = vae

    @{decorator}
    def encode(self, loader):
        self.vae.eval()
        return [self.vae.encode(x)[0].detach().cpu().numpy() for x in loader]
"""


@pytest.mark.parametrize(
    ("decorator", "found"),
    [
        ("torch.no_grad() if HAS_TORCH else (lambda f: f)", set()),
        ("(lambda f: f) if not HAS_TORCH else torch.no_grad()", set()),
        ("(lambda f: f)", {"MEM201"}),
        ("torch.no_grad() if not HAS_TORCH else (lambda f: f)", {"MEM201"}),
    ],
)
def test_a_decorator_that_a_flag_chooses_guards(tmp_path: Path, decorator: str, found: set[str]) -> None:
    assert codes(tmp_path, main=GUARDED.format(decorator=decorator)) == found


GROWS = """
import torch
from torch.utils.data import DataLoader


@torch.no_grad()
def generate(model, tokens, length, feats):
    state = None
    {loop}:
        {fed}
        logits, state = model(given, state)
        tokens = torch.cat((tokens, {grown}), 1)
    return tokens
"""


@pytest.mark.parametrize(
    ("loop", "fed", "grown", "judged"),
    [
        ("while tokens.shape[1] < length", "given = feats", "logits.argmax(-1)", ("note", "low")),
        ("for feats in length", "given = tokens", "logits.argmax(-1)", ("note", "low")),
        ("for feats in length", "given = feats", "logits.argmax(-1)", ("note", "low")),
        ("for feats in DataLoader(length)", "given = feats", "logits.argmax(-1)", ("note", "high")),
        (
            "for at in range(0, length.n, length.batch_size)",
            "given = feats[at : at + length.batch_size]",
            "logits.argmax(-1)",
            ("note", "high"),
        ),
    ],
)
def test_what_a_model_generates(tmp_path: Path, loop: str, fed: str, grown: str, judged: tuple[str, str]) -> None:
    """A few numbers for each step cost nothing beside the network; those of each batch of data are a note."""
    (tmp_path / "main.py").write_text(GROWS.format(loop=loop, fed=fed, grown=grown), encoding="utf-8")
    found = memlint.lint([tmp_path], isolated=True, min_confidence="low").findings
    assert {(one.severity, one.confidence) for one in found if one.code == "MEM302"} == {judged}


SPOKEN = """
import torch


@torch.no_grad()
def collect(model, loader):
    kept = []
    for batch in loader:
        answer = model(batch.cuda()){cleaned}
        kept.append(answer)
    return kept
"""


@pytest.mark.parametrize(("cleaned", "found"), [(".strip()", set()), (".lower().rstrip()", set()), ("", {"MEM104"})])
def test_text_is_no_tensor(tmp_path: Path, cleaned: str, found: set[str]) -> None:
    assert codes(tmp_path, main=SPOKEN.format(cleaned=cleaned)) == found


AGENT = """
import torch
from parlai.core.torch_agent import TorchAgent, Output


class Generator(TorchAgent):
    def {step}(self, batch):
        self.model.eval()
        scores = self.model(batch.text_vec)
        return Output(scores.argmax(-1).tolist())
"""


@pytest.mark.parametrize(("step", "found"), [("eval_step", set()), ("evaluate", {"MEM201"})])
def test_a_framework_guards_the_evaluation_of_its_agents(tmp_path: Path, step: str, found: set[str]) -> None:
    assert codes(tmp_path, main=AGENT.format(step=step)) == found
