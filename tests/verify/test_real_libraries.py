"""Programs whose loops are those of the real Trainer of transformers, Lightning, Accelerate, stable-baselines3, skorch
and Ignite: each keeps what it should not, or does not. MEMLINT_LIBRARIES_PYTHON names a Python that has them."""

from __future__ import annotations

import functools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from runs import Done, verified

from memlint.measure.retention.naming import pattern
from memlint.verifier.model import BAD

pytestmark = pytest.mark.slow

#: bytes of an output of 16 rows and 64 columns
OUTPUT = 4 * 16 * 64
_DATA = """\
import sys

import numpy as np
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

torch.manual_seed(0)
X, Y = torch.randn(40 * 16, 16), torch.randn(40 * 16, 64)
loader = DataLoader(TensorDataset(X, Y), batch_size=16)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(16, 32), nn.ReLU())
        self.head = nn.Linear(32, 64)

    def forward(self, x):
        return self.head(self.body(x))


"""

TRANSFORMERS = """\
from transformers import Trainer, TrainerCallback, TrainingArguments


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return len(X)

    def __getitem__(self, index):
        return {{"x": X[index], "labels": Y[index]}}


class Collecting(Trainer):
    losses = []
    outputs = []

    def compute_loss(self, model, inputs, return_outputs=False, **_):
        out = model(inputs["x"])
        loss = (out - inputs["labels"]).square().mean()
        if model.training:
            self.losses.append({loss})
        else:
            self.outputs.append({out})
        return (loss, {{"loss": loss, "out": out}}) if return_outputs else loss


class Watching(TrainerCallback):
    def __init__(self):
        self.seen = []

    def on_step_end(self, args, state, control, **kwargs):
        self.seen.append({callback})


arguments = TrainingArguments(
    "out", per_device_train_batch_size=16, per_device_eval_batch_size=16, num_train_epochs=2, report_to=[],
    use_cpu=True, save_strategy="no", disable_tqdm=True, logging_strategy="no", remove_unused_columns=False,
    label_names=["labels"], gradient_accumulation_steps={each},
)
trainer = Collecting(Net(), arguments, train_dataset=Rows(), eval_dataset=Rows(), callbacks=[Watching()])
{run}
print("ran to its end")
"""

LIGHTNING = """\
import lightning


class Task(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = Net()
        self.losses, self.outputs, self.predicted = [], [], []

    def training_step(self, batch, number):
        loss = nn.functional.mse_loss(self.net(batch[0]), batch[1])
        self.losses.append({loss})
        self.log("loss", loss)
        return loss

    def validation_step(self, batch, number):
        out = self.net(batch[0])
        self.outputs.append({out})

    def on_validation_epoch_end(self):
        {epoch_end}

    def predict_step(self, batch, number):
        out = self.net(batch[0])
        self.predicted.append({out})

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)


class Watching(lightning.Callback):
    def __init__(self):
        self.seen = []

    def on_train_batch_end(self, trainer, module, outputs, batch, number):
        self.seen.append({callback})


task = Task()
trainer = lightning.Trainer(
    max_epochs=3, accelerator="cpu", logger=False, enable_checkpointing=False, enable_progress_bar=False,
    enable_model_summary=False, callbacks=[Watching()], default_root_dir="out",
)
{run}
print("ran to its end")
"""

ACCELERATE = """\
from accelerate import Accelerator

accelerator = Accelerator(cpu=True, gradient_accumulation_steps={each})
model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)


def evaluate():
    model.eval()
    outputs = []
    with torch.no_grad():
        for x, _ in loader:
            out = accelerator.gather_for_metrics(model(x))
            outputs.append({out})
    model.train()
    return len(outputs)


def train(epochs):
    losses = []
    for _ in range(epochs):
        for x, y in loader:
            with accelerator.accumulate(model):
                loss = nn.functional.mse_loss(model(x), y)
                accelerator.backward(loss)
                optimizer.step()
                optimizer.zero_grad()
            losses.append({loss})
    print(evaluate(), float(sum(losses)))


train(2)
print("ran to its end")
"""

BASELINES = """\
import gymnasium
from stable_baselines3 import A2C, DQN, PPO
from stable_baselines3.common.callbacks import BaseCallback


class Line(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (8,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self.observation_space.sample(), {{}}

    def step(self, action):
        self.steps += 1
        return self.observation_space.sample(), float(action), self.steps >= 50, False, {{}}


class Values(BaseCallback):
    def __init__(self):
        super().__init__()
        self.values = []

    def _on_step(self):
        policy = self.model.policy
        seen, _ = policy.obs_to_tensor(self.locals["new_obs"])
        value = policy.q_net(seen) if hasattr(policy, "q_net") else policy.predict_values(seen)
        self.values.append({value})
        return True

    def _on_rollout_end(self):
        {rollout_end}


callback = Values()
{run}
model.learn(1_200, callback=callback)
print("ran to its end")
"""

SKORCH = """\
from skorch import NeuralNetRegressor
from skorch.callbacks import Callback
from skorch.dataset import ValidSplit


class Watching(Callback):
    def initialize(self):
        self.seen, self.valid = [], []
        return self

    def on_batch_end(self, net, batch=None, training=None, loss=None, y_pred=None, **_):
        if training:
            self.seen.append({callback})
        else:
            out = y_pred
            self.valid.append({out})


watching = Watching()
net = NeuralNetRegressor(
    Net, max_epochs=3, batch_size=16, lr=0.01, verbose=0, callbacks=[("watching", watching)], train_split=ValidSplit(2)
)
net.fit(X.numpy(), Y.numpy())
print("ran to its end")
"""

IGNITE = """\
from ignite.engine import Engine, Events, create_supervised_evaluator
from ignite.metrics import Loss

model = Net()
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
seen, valid = [], []


def update(engine, batch):
    optimizer.zero_grad()
    out = model(batch[0])
    loss = nn.functional.mse_loss(out, batch[1])
    loss.backward()
    optimizer.step()
    return {{"loss": loss, "out": out.detach()}}


trainer = Engine(update)
evaluator = create_supervised_evaluator(model, metrics={{"mse": Loss(nn.functional.mse_loss)}})


@trainer.on(Events.ITERATION_COMPLETED)
def watch(engine):
    seen.append({callback})


@evaluator.on(Events.ITERATION_COMPLETED)
def look(engine):
    out = engine.state.output[0]
    valid.append({out})


@trainer.on(Events.EPOCH_COMPLETED)
def validate(engine):
    evaluator.run(loader)


trainer.run(loader, max_epochs=3)
print("ran to its end")
"""

#: what stands in the places of a program that keeps nothing it should not
HEALTHY = {
    "loss": "loss.item()",
    "out": "out.mean().item()",
    "value": "value.mean().item()",
    "callback": "1.0",
    "epoch_end": "self.outputs.clear()",
    "rollout_end": "pass",
    "each": "1",
}


class Leak(NamedTuple):
    """A program that keeps something. ``each``: the bytes of tensors of an iteration; None where it is only the graph;
    ``holder``: who keeps it."""

    program: str
    parts: dict[str, str]
    each: int | None
    holder: str


_PPO = {"run": 'model = PPO("MlpPolicy", Line(), n_steps=64, batch_size=32, n_epochs=2, device="cpu", seed=0)'}
_A2C = {"run": 'model = A2C("MlpPolicy", Line(), device="cpu", seed=0)'}
_DQN = {"run": 'model = DQN("MlpPolicy", Line(), learning_starts=20, buffer_size=200, device="cpu", seed=0)'}
_TRAIN, _EVALUATE = {"run": "trainer.train()"}, {"run": "trainer.evaluate()"}
_FIT, _VALIDATED = {"run": "trainer.fit(task, loader)"}, {"run": "trainer.fit(task, loader, loader)"}
_VALIDATE, _PREDICT = {"run": "trainer.validate(task, loader)"}, {"run": "trainer.predict(task, loader)"}

LEAKS = {
    "transformers loss": Leak(TRANSFORMERS, {**_TRAIN, "loss": "loss"}, None, "Collecting.losses[]"),
    "transformers accumulated": Leak(
        TRANSFORMERS, {**_TRAIN, "loss": "loss", "each": "4"}, None, "Collecting.losses[]"
    ),
    "transformers evaluation": Leak(TRANSFORMERS, {**_EVALUATE, "out": "out"}, OUTPUT, "Collecting.outputs[]"),
    "transformers callback": Leak(TRANSFORMERS, {**_TRAIN, "callback": "torch.ones(16, 64)"}, OUTPUT, ".seen[]"),
    "lightning loss": Leak(LIGHTNING, {**_FIT, "loss": "loss"}, None, "task.losses[]"),
    "lightning validation": Leak(
        LIGHTNING, {**_VALIDATED, "out": "out", "epoch_end": "pass"}, OUTPUT, "task.outputs[]"
    ),
    "lightning validate": Leak(LIGHTNING, {**_VALIDATE, "out": "out", "epoch_end": "pass"}, OUTPUT, "task.outputs[]"),
    "lightning predict": Leak(LIGHTNING, {**_PREDICT, "out": "out"}, OUTPUT, "task.predicted[]"),
    "lightning callback": Leak(LIGHTNING, {**_FIT, "callback": "torch.ones(16, 64)"}, OUTPUT, ".seen[]"),
    "accelerate loss": Leak(ACCELERATE, {"loss": "loss"}, None, "losses[]"),
    "accelerate accumulated": Leak(ACCELERATE, {"loss": "loss", "each": "4"}, None, "losses[]"),
    "stable-baselines3 A2C": Leak(BASELINES, {**_A2C, "value": "value.repeat(1, 512)"}, None, "callback.values[]"),
    "stable-baselines3 PPO": Leak(BASELINES, {**_PPO, "value": "value.repeat(1, 512)"}, None, "callback.values[]"),
    "stable-baselines3 DQN": Leak(BASELINES, {**_DQN, "value": "value"}, None, "callback.values[]"),
    "stable-baselines3 rollout": Leak(
        BASELINES, {**_A2C, "rollout_end": "self.values.append(torch.ones(16, 64))"}, OUTPUT, "callback.values[]"
    ),
    "skorch training": Leak(SKORCH, {"callback": "y_pred.detach()"}, OUTPUT, "watching.seen[]"),
    "skorch validation": Leak(SKORCH, {"out": "out"}, OUTPUT, "watching.valid[]"),
    "ignite training": Leak(IGNITE, {"callback": 'engine.state.output["out"]'}, OUTPUT, "seen[]"),
    "ignite loss": Leak(IGNITE, {"callback": 'engine.state.output["loss"]'}, None, "seen[]"),
    "ignite evaluation": Leak(IGNITE, {"out": "out"}, OUTPUT, "valid[]"),
}

WELL = {
    "transformers": (TRANSFORMERS, {"run": "trainer.train()\ntrainer.evaluate()"}),
    "transformers accumulated": (TRANSFORMERS, {**_TRAIN, "each": "4"}),
    "lightning fit": (LIGHTNING, {**_VALIDATED, "out": "out"}),
    "lightning validate": (LIGHTNING, _VALIDATE),
    "lightning predict": (LIGHTNING, _PREDICT),
    "accelerate": (ACCELERATE, {}),
    "stable-baselines3 A2C": (BASELINES, _A2C),
    "stable-baselines3 PPO": (BASELINES, _PPO),
    "stable-baselines3 DQN": (BASELINES, _DQN),
    "skorch": (SKORCH, {}),
    "ignite": (IGNITE, {}),
}


@functools.cache
def _python_with(package: str) -> str | None:
    for python in (os.environ.get("MEMLINT_LIBRARIES_PYTHON"), os.environ.get("MEMLINT_TORCH_PYTHON"), sys.executable):
        if python is not None:
            code = f"import importlib.util as u, sys; sys.exit(u.find_spec({package!r}) is None)"
            if subprocess.run([python, "-c", code], check=False).returncode == 0:
                return python
    return None


def _run(tmp_path: Path, name: str, program: str, parts: dict[str, str]) -> Done:
    package = name.split()[0].replace("-", "_")
    python = _python_with(package)
    if python is None:
        pytest.skip(f"no {package} here; MEMLINT_LIBRARIES_PYTHON names a Python that has it")
    text = _DATA + program.format(**{**HEALTHY, "run": "", **parts})
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    done = verified("train.py", cwd=tmp_path, python=python)
    assert done.report, done.said
    assert done.report["run"]["end"] in ("finished", "stopped"), done.said
    return done


def _bad(report: dict[str, Any]) -> list[tuple[int | None, list[str]]]:
    """What grows: the bytes of tensors an iteration, and who keeps them."""
    found = []
    for row in report["findings"]:
        verdict = row["verdict"]
        if verdict["verdict"] in BAD:
            each = verdict["bytes_per_iteration"]["exact"] if verdict["verdict"] == "confirmed" else None
            found.append((each, [pattern(holder["path"]) for holder in verdict["holders"]]))
    for loop in report["unattributed"]["loops"]:
        holders = [pattern(holder["path"]) for stack in loop["stacks"] for holder in stack["holders"]]
        found.append((loop["bytes_per_iteration"], holders))
    return found


def _grows(loop: dict[str, Any]) -> bool:
    return bool(loop["host_bytes_per_iteration"]) or any((loop["bytes_per_iteration"] or {}).values())


@pytest.mark.parametrize("name", LEAKS)
def test_what_a_program_keeps_is_found_in_a_library_s_loop_with_its_holder(tmp_path: Path, name: str) -> None:
    leak = LEAKS[name]
    done = _run(tmp_path, name, leak.program, leak.parts)
    ((each, holders),) = _bad(done.report)
    assert leak.each is None or each == leak.each
    assert any(leak.holder in holder for holder in holders), done.report
    loops = done.report["loops"]
    assert any(_grows(loop) or loop["until_its_end"] for loop in loops), loops


@pytest.mark.parametrize("name", WELL)
def test_what_keeps_nothing_is_flat(tmp_path: Path, name: str) -> None:
    done = _run(tmp_path, name, *WELL[name])
    assert _bad(done.report) == []
    assert done.code == 0
    assert not any(map(_grows, done.report["loops"])), done.report["loops"]
