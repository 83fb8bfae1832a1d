"""What empties the allocator's cache in each round of a loop, beside what does so now and then."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint.fix.edits import place, splice

TRAINING = """
import torch
from library import build, log, other


def release():
    torch.cuda.empty_cache()


def train(model, {data}, optimizer, criterion, config):
    for {target} in {over}:
        {body}
"""
STEP = "loss = criterion(model(x.cuda()), y.cuda()); optimizer.zero_grad(); loss.backward(); optimizer.step()"
EMPTY = "torch.cuda.empty_cache()"


def program(*body: str, target: str = "x, y", over: str = "loader", data: str = "loader") -> str:
    return TRAINING.format(target=target, over=over, data=data, body="\n        ".join(body))


def found(tmp_path: Path, code: str) -> list[tuple[int, str]]:
    (tmp_path / "program.py").write_text(code)
    result = memlint.lint([tmp_path])
    assert not result.failures
    assert {each.severity for each in result.findings if each.code == "MEM305"} <= {"note"}
    return [(each.line, each.confidence) for each in result.findings if each.code == "MEM305"]


@pytest.mark.parametrize(
    "code",
    [
        program(STEP, EMPTY),
        program(EMPTY, STEP),
        program(STEP, "release()"),
        program(STEP, EMPTY, target="i, (x, y)", over="enumerate(loader)"),
        program(STEP, EMPTY, target="x, y", over="batches", data="batches"),
        program("try:", f"    {STEP}", f"    {EMPTY}", "except RuntimeError:", "    log()"),
        program("if x is None:", "    continue", STEP, EMPTY),
        program(STEP, "for name in config: log(name)", EMPTY),
        program("other.step(x, y)", EMPTY, over="config.train_loader"),
    ],
)
def test_in_each_round(tmp_path: Path, code: str) -> None:
    assert [confidence for _, confidence in found(tmp_path, code)] == ["high"]


@pytest.mark.parametrize(
    "code",
    [
        program(STEP, f"if x.sum() > 3: {EMPTY}"),
        program(STEP, "if x.shape[0] % 7:", "    continue", EMPTY),
        program(f"if x is not None: {STEP}; continue", EMPTY),
        program("try:", f"    {STEP}", "except RuntimeError:", f"    {EMPTY}"),
        program("try:", f"    {STEP}", "finally:", f"    {EMPTY}"),
        program("try:", f"    {STEP}", "    continue", "except RuntimeError:", "    log()", EMPTY),
        program("model = build()", STEP, EMPTY),
        program(STEP, "del model", EMPTY),
        program(STEP, "model.cpu()", EMPTY),
        program(STEP, EMPTY, "break"),
        program(STEP, EMPTY, target="fold, (x, y)", over="config"),
        program(f"for x, y in loader: {STEP}", EMPTY, target="part", over="range(config.parts)"),
        program(f"for x, y in loader: {STEP}", EMPTY, target="loader", over="config.loaders"),
        program("other.fit(model)", EMPTY, target="part", over="range(config.parts)"),
        program("log(x)", EMPTY, target="x", over="config"),
        program(
            "model.eval()", "for t in config.steps: x = model(x)", "log(x.tolist())", EMPTY, target="x", over="config"
        ),
    ],
)
def test_now_and_then(tmp_path: Path, code: str) -> None:
    assert found(tmp_path, code) == []


def test_a_loop_that_may_be_over_anything(tmp_path: Path) -> None:
    code = program("model.eval()", "log(model(x).argmax().item())", EMPTY, target="x", over="config.rows")
    assert [confidence for _, confidence in found(tmp_path, code)] == ["medium"]


def test_a_helper_that_asks_is_silent(tmp_path: Path) -> None:
    code = program(STEP, "release()").replace("    torch.cuda.empty_cache()", "    if log(): torch.cuda.empty_cache()")
    assert found(tmp_path, code) == []


def test_a_statement_that_is_alone_becomes_pass(tmp_path: Path) -> None:
    code = program("with torch.cuda.device(0):", f"    {EMPTY}", STEP)
    (tmp_path / "program.py").write_text(code)
    finding = next(each for each in memlint.lint([tmp_path]).findings if each.code == "MEM305")
    assert finding.fix is not None
    assert [edit.content for edit in finding.fix.edits] == ["pass"]


@pytest.mark.parametrize("end", ["\n", "", "  # free\n", "  # free"])
def test_a_statement_is_removed_with_its_line(tmp_path: Path, end: str) -> None:
    code = program(STEP, EMPTY).rstrip() + end
    (tmp_path / "program.py").write_text(code)
    finding = next(each for each in memlint.lint([tmp_path]).findings if each.code == "MEM305")
    assert finding.fix is not None
    assert finding.fix.safety == "unsafe"
    fixed = splice(code, place(code, list(finding.fix.edits)))
    assert fixed.rstrip() == program(STEP).rstrip()
    compile(fixed, "program.py", "exec")


@pytest.mark.parametrize(
    ("test", "confidence"),
    [
        ("torch.cuda.is_available()", "high"),
        ("x.is_cuda", "high"),
        ("config.device == 'cuda'", "high"),
        ("config['speed'] == False", "medium"),
        ("not config.fast", "medium"),
        ("config.clear_cache", "medium"),
    ],
)
def test_under_what_all_rounds_answer_alike(tmp_path: Path, test: str, confidence: str) -> None:
    (finding,) = found(tmp_path, program(STEP, f"if {test}:", f"    {EMPTY}"))
    assert finding[1] == confidence


@pytest.mark.parametrize(
    "test",
    [
        "i % 7 == 0",
        "config.low_memory",
        "torch.cuda.memory_reserved() > config.most",
        "failed",
        "config.step == 'last'",
        "config.epochs == 3",
        "other(x)",
        "not torch.cuda.is_available() or log()",
        "config.used_memory > 3",
    ],
)
def test_under_what_some_rounds_ask(tmp_path: Path, test: str) -> None:
    code = program("failed = log()", STEP, f"if {test}:", f"    {EMPTY}", target="i, (x, y)", over="enumerate(loader)")
    assert found(tmp_path, code) == []


@pytest.mark.parametrize(
    ("end", "confidences"),
    [
        ("optimizer.step(); optimizer.zero_grad(set_to_none=True)", ["medium"]),
        ("log()", []),
        ("optimizer.step()", []),
        ("optimizer.zero_grad()", []),  # a batch that is left out
    ],
)
def test_at_the_end_of_several_rounds(tmp_path: Path, end: str, confidences: list[str]) -> None:
    body = ("criterion(model(x.cuda()), y.cuda()).backward()", "if (i + 1) % config.every == 0:", f"    {end}; {EMPTY}")
    code = program(*body, target="i, (x, y)", over="enumerate(loader)")
    assert [confidence for _, confidence in found(tmp_path, code)] == confidences


def test_beside_the_backward_of_a_phase(tmp_path: Path) -> None:
    assert found(tmp_path, program("if config.phase == 'train':", f"    {STEP}", f"    {EMPTY}")) != []
    assert found(tmp_path, program("if y.step % 4 == 0:", f"    {STEP}", f"    {EMPTY}")) == []


def test_by_the_accelerator_of_deepspeed(tmp_path: Path) -> None:
    code = program(STEP, "get_accelerator().empty_cache()")
    code = "from deepspeed.accelerator import get_accelerator\n" + code
    assert [confidence for _, confidence in found(tmp_path, code)] == ["high"]


def test_a_helper_that_asks_for_the_device(tmp_path: Path) -> None:
    asks = "    if torch.cuda.is_available():\n        torch.cuda.empty_cache()"
    code = program(STEP, "release()").replace("    torch.cuda.empty_cache()", asks)
    assert [confidence for _, confidence in found(tmp_path, code)] == ["high"]


CALLS = """
import torch
from torch import nn
from library import log


class Part(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        {forward}
        return neighbours(self.layer(x))


def neighbours(x):
    {called}
    return x.topk(3).indices


def step(model, x, optimizer):
    loss = model(x.cuda()).mean()
    loss.backward()
    optimizer.step()
    {step}
    return loss.item()


def score(model, x):
    {score}
    return model(x.cuda()).argmax().item()


def epoch(model, loader, optimizer):
    for x in loader:
        log(step(model, x, optimizer))
    {epoch}


def evaluate(model, loader):
    with torch.no_grad():
        for x in loader:
            got = score(model, x)
            log(got)


def main(model, loader, optimizer):
    for _ in range(9):
        epoch(model, loader, optimizer)
        evaluate(model, loader)
"""


@pytest.mark.parametrize(
    ("place", "text", "confidences"),
    [
        ("forward", EMPTY, ["medium"]),
        ("forward", f"{EMPTY}; x = x * 2; {EMPTY}", ["medium"]),
        ("called", f"if x.is_cuda: {EMPTY}", ["medium"]),
        ("step", EMPTY, ["high"]),
        ("step", f"if model.clean: {EMPTY}", ["medium"]),
        ("score", EMPTY, ["high"]),
        ("forward", f"key_block = x * 2; del key_block; {EMPTY}", ["medium"]),
        ("forward", f"del self.block; {EMPTY}", []),
        ("forward", f"layer = self.fetch(0); x = layer(x); del layer; {EMPTY}", []),
        ("score", f"del model; {EMPTY}", []),
        ("epoch", EMPTY, []),
        ("forward", f"self.net.to(x); {EMPTY}", ["medium"]),
        ("forward", f"self.net.to(x.device); {EMPTY}", ["medium"]),
        ("forward", f"self.net.to(self.device); {EMPTY}", []),
        ("forward", f"self.net.to(place); {EMPTY}", []),
        ("forward", f"self.net.to('cpu'); {EMPTY}", []),
        ("forward", f"if x.sum() > 3: {EMPTY}", []),
        ("forward", f"self.layer.cpu(); {EMPTY}", []),
        ("step", f"if loss.item() > 3: {EMPTY}", []),
        ("score", f"model.cpu(); {EMPTY}", []),
    ],
)
def test_in_each_call(tmp_path: Path, place: str, text: str, confidences: list[str]) -> None:
    parts = dict.fromkeys(("forward", "called", "step", "score", "epoch"), "pass") | {place: text}
    assert [confidence for _, confidence in found(tmp_path, CALLS.format(**parts))] == confidences


LOSS = """
import torch


class Loss:
    def __init__(self, warm, weight):
        self.warm, self.weight = warm, weight

    def __call__(self, outputs, targets, epoch):
        loss = (outputs - targets).abs().mean() * self.weight
        {inside}
        return loss


class Trainer:
    def __init__(self, model, loader, optimizer, warm):
        self.model, self.loader, self.optimizer = model, loader, optimizer
        self.loss, self.other = Loss(warm, 1.0), None

    def train(self, epochs):
        for epoch in range(epochs):
            for self.batch in self.loader:
                self.step(epoch)

    def step(self, epoch):
        images, targets = self.batch
        outputs = self.model(images.cuda())
        {call}
        loss.backward()
        self.optimizer.step()
"""
TAKEN = "loss = self.loss(outputs, targets.cuda(), epoch)"


@pytest.mark.parametrize(
    ("inside", "call", "confidences"),
    [
        (EMPTY, TAKEN, ["high"]),
        (f"if epoch < self.warm: {EMPTY}", TAKEN, ["medium"]),
        (EMPTY, f"with torch.autocast('cuda'): {TAKEN}", ["high"]),
        (f"if epoch % 5 == 0: {EMPTY}", TAKEN, []),
        (f"if loss > self.warm: {EMPTY}", TAKEN, []),
        (EMPTY, f"if outputs.sum() > 3: {TAKEN}", []),
    ],
)
def test_in_what_a_step_calls(tmp_path: Path, inside: str, call: str, confidences: list[str]) -> None:
    assert [confidence for _, confidence in found(tmp_path, LOSS.format(inside=inside, call=call))] == confidences


EPOCHS = """
import torch


class Trainer:
    def run(self, model, loader, optimizer):
        while {test}:
            self.epoch += 1
            self.pass_over(model, loader, optimizer)

    def pass_over(self, model, loader, optimizer):
        batches = iter(loader)
        while True:
            batch = next(batches, None)
            if batch is None:
                break
            optimizer.zero_grad()
            model(batch.cuda()).sum().backward()
            optimizer.step()
        torch.cuda.empty_cache()
"""


@pytest.mark.parametrize("test", ["self.epoch < self.num_epochs", "self.epoch <= 10"])
def test_once_an_epoch(tmp_path: Path, test: str) -> None:
    assert found(tmp_path, EPOCHS.format(test=test)) == []


HOOK = """
import torch
from lightning import LightningModule


class Task({base}):
    def {name}(self, batch, batch_idx):
        self.log("loss", self.criterion(self.net(batch["x"]), batch["y"]))
        torch.cuda.empty_cache()
"""


@pytest.mark.parametrize(
    ("base", "name", "confidences"),
    [
        ("LightningModule", "validation_step", ["high"]),
        ("LightningModule", "test_step", ["high"]),  # (which is no test)
        ("object", "test_step", []),
    ],
)
def test_in_a_hook_for_each_batch(tmp_path: Path, base: str, name: str, confidences: list[str]) -> None:
    assert [confidence for _, confidence in found(tmp_path, HOOK.format(base=base, name=name))] == confidences


TASKS = """
import torch


class Experiment:
    def run(self):
        for {target} in {over}:
            self.trainer.fit(self.model, {given})
            self.score()

    def score(self):
        torch.cuda.empty_cache()
        self.trainer.test(self.model)
"""


@pytest.mark.parametrize(
    ("target", "over", "given", "confidences"),
    [
        ("first_loader, second_dataloader", "zip(self.train_loader, self.valid_loader)", "first_loader", []),
        ("x, y", "self.train_loader", "x", ["high"]),
    ],
)
def test_a_loop_over_loaders(tmp_path: Path, target: str, over: str, given: str, confidences: list[str]) -> None:
    assert [each for _, each in found(tmp_path, TASKS.format(target=target, over=over, given=given))] == confidences
