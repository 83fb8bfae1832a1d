"""Where tensors are, and how large: the facts that MEM104 stands on, seen through its findings."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent
from typing import Literal

import pytest

import memlint

_HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader
"""


def lines(
    tmp_path: Path, code: str, code_name: str = "MEM104", confidence: Literal["low", "medium"] = "medium"
) -> list[str]:
    """The source lines on which the rule speaks."""
    file = tmp_path / "train.py"
    file.write_text(_HEAD + dedent(code), encoding="utf-8")
    (tmp_path / "pyproject.toml").touch()
    text = file.read_text(encoding="utf-8").splitlines()
    found = memlint.lint([file], select=[code_name], preview=True, min_confidence=confidence).findings
    return [text[finding.line - 1].strip() for finding in found]


_LOOP = """
    @torch.no_grad()
    def collect(model, loader, args, device, rank):
        model.eval()
        kept = []
        for x, other in loader:
            {0}
            kept.append({1})
        return kept
"""


@pytest.mark.parametrize(
    "moved",
    [
        "x = x.cuda()",
        "x = x.cuda(non_blocking=True)",
        'x = x.to("cuda:1")',
        "x = x.to(device)",
        "x = x.to(args.device, non_blocking=True)",
        "x = x.to(device=rank)",
        "x, other = x.to(device), other.to(device)",
        "x, other = [t.to(device) for t in (x, other)]",
    ],
)
def test_outputs_are_where_their_inputs_are(tmp_path: Path, moved: str) -> None:
    assert lines(tmp_path, _LOOP.format(moved, "model(x)")) == ["kept.append(model(x))"]


@pytest.mark.parametrize(
    "kept",
    [
        "model(x).cpu()",
        'model(x).to("cpu")',
        "model(x).cpu().numpy()",
        "model(x).tolist()",
        "model(x).argmax(dim=1)",
        "model(x).mean()",
        "nn.functional.cross_entropy(model(x), other)",
        "model(x).shape",
        "(model(x) > 0).sum().item()",
    ],
)
def test_small_or_moved_away(tmp_path: Path, kept: str) -> None:
    assert lines(tmp_path, _LOOP.format("x = x.cuda()", kept)) == []


def test_a_part_of_the_output_named_like_a_loss_is_a_number(tmp_path: Path) -> None:
    code = """
    @torch.no_grad()
    def evaluate(model, loader, device):
        model.eval()
        losses, logits = [], []
        for batch in loader:
            batch = {key: value.to(device) for key, value in batch.items()}
            output = model(**batch)
            losses.append(output.loss)
            logits.append(output.logits)
        return losses, logits
    """
    assert lines(tmp_path, code) == ["logits.append(output.logits)"]


def test_sampling_steps_are_no_batches(tmp_path: Path) -> None:
    code = """
    @torch.no_grad()
    def sample(model, noise, steps):
        model.cuda().eval()
        image, states = noise.cuda(), []
        for step in steps:
            image = model(image, step)
            states.append(image)
        return states
    """
    assert lines(tmp_path, code) == []


def test_objects_that_move_themselves_are_no_data(tmp_path: Path) -> None:
    code = """
    class Boxes:
        def to(self, device):
            self.places = []
            for part in self.parts:
                moved = part.to(device)
                self.places.append(moved)
            return self
    """
    assert lines(tmp_path, code) == []


def test_a_helper_that_moves_any_nesting(tmp_path: Path) -> None:
    code = """
    def to_device(data, device):
        if isinstance(data, (list, tuple)):
            return [to_device(part, device) for part in data]
        return data.to(device)


    @torch.no_grad()
    def extract(model, loader, device):
        model.eval()
        features = []
        for batch in loader:
            x, _ = to_device(batch, device)
            features.append(model(x))
        return features
    """
    assert lines(tmp_path, code) == ["features.append(model(x))"]


def test_a_predict_callback_gets_batches_on_the_device(tmp_path: Path) -> None:
    code = """
    from lightning.pytorch.callbacks import Callback


    class Collect(Callback):
        def __init__(self):
            self.inputs, self.outputs = [], []

        def on_predict_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx=0):
            self.inputs.append(batch[1])
            self.outputs.append(outputs)
    """
    assert lines(tmp_path, code) == ["self.inputs.append(batch[1])", "self.outputs.append(outputs)"]


def test_an_ignite_metric_may_get_outputs_with_their_graph(tmp_path: Path) -> None:
    code = """
    from ignite.metrics import Metric


    class Stored(Metric):
        def reset(self):
            self.kept, self.cut = [], []

        def update(self, output):
            y_pred, y = output
            self.kept.append(y_pred.to("cpu"))
            self.cut.append(y_pred.detach().to("cpu"))
    """
    # whether they have one is up to the engine, which evaluates under no_grad most of the time
    assert lines(tmp_path, code, "MEM102", "low") == ['self.kept.append(y_pred.to("cpu"))']
    assert lines(tmp_path, code, "MEM102") == []


def test_a_library_metric_keeps_no_graph_and_no_batch(tmp_path: Path) -> None:
    code = """
    import torchmetrics


    def train(model, loader, optimizer, device):
        accuracy = torchmetrics.Accuracy(task="multiclass", num_classes=10).to(device)
        history = []
        for x, y in loader:
            x, y = x.to(device), y.to(device)
            output = model(x)
            loss = nn.functional.cross_entropy(output, y)
            loss.backward()
            optimizer.step()
            accuracy.update(output, y)
            history.append(accuracy.compute())
    """
    assert lines(tmp_path, code, "MEM1") == []


_MODULE = """
    class Net(nn.Module):
        {0}

        def mask(self, x):
            return torch.ones(len(x), device={1})

        def forward(self, x):
            return self.lift(x) * self.mask(x)

    @torch.no_grad()
    def collect(data):
        model = Net()
        model.eval()
        kept = []
        for x in DataLoader(data, batch_size=100):
            kept.append(model(x))
        return kept
"""


_ASKS = "@property\n        def device(self):\n            return next(self.parameters()).device"


@pytest.mark.parametrize(
    ("member", "where", "found"),
    [
        (_ASKS, "self.device", False),
        ("made = 0", "x.device", False),
        ("made = 0", '"cuda"', True),
        ('device = torch.device("cuda")', "self.device", True),
    ],
)
def test_a_module_that_asks_where_it_is_may_be_on_the_host(
    tmp_path: Path, member: str, where: str, found: bool
) -> None:
    kept = lines(tmp_path, _MODULE.format(member, where))
    assert kept == (["kept.append(model(x))"] if found else [])


def test_the_device_of_a_lightning_module_is_its_own(tmp_path: Path) -> None:
    code = "import pytorch_lightning as pl\n" + dedent(_MODULE).replace("nn.Module", "pl.LightningModule")
    assert not lines(tmp_path, code.format("made = 0", "self.device"))
    assert lines(tmp_path, code.format("made = 0", '"cuda"')) == ["kept.append(model(x))"]


_ASKED = """
    class Net(nn.Module):
        @property
        def device(self):
            return next(self.parameters()).device

    @torch.no_grad()
    def collect(model: Net, loader):
        model.eval()
        device = model.device
        kept = []
        for x in loader:
            {0}
            kept.append(model(x))
        return kept
"""


@pytest.mark.parametrize(("moved", "found"), [("x = x.to(device)", True), ("pass", False)])
def test_who_moves_batches_to_the_module_has_an_accelerator_in_mind(tmp_path: Path, moved: str, found: bool) -> None:
    assert lines(tmp_path, _ASKED.format(moved)) == (["kept.append(model(x))"] if found else [])


@pytest.mark.parametrize(("kept", "found"), [("model(x.cuda()).data[0]", False), ("model(x.cuda()).data", True)])
def test_the_number_that_old_torch_takes_out_of_a_loss(tmp_path: Path, kept: str, found: bool) -> None:
    told = lines(tmp_path, _LOOP.format("pass", kept))
    assert told == ([f"kept.append({kept})"] if found else [])


_ARGUMENTS = """
    def detached({0}, device):
        out = []
        for one in {0}:
            if not isinstance(one, torch.Tensor):
                out.append(one)
                continue
            x = one.to(device=device).detach()
            out.append(x)
        return tuple(out)
"""


def test_arguments_that_are_asked_whether_they_are_tensors_are_no_batches(tmp_path: Path) -> None:
    assert lines(tmp_path, _ARGUMENTS.format("inputs")) == []


def test_a_loader_gives_batches_whatever_is_asked_of_them(tmp_path: Path) -> None:
    assert lines(tmp_path, _ARGUMENTS.format("loader")) == ["out.append(x)"]


_DUMP = """
    class Action:
        @classmethod
        @torch.no_grad()
        def run(cls, model, loader):
            context = cls.begin()
            for x, name in loader:
                cls.keep(context, {{"name": "row"}}, {given})
            cls.end(context)


    class Dump(Action):
        @classmethod
        def begin(cls):
            return {{"rows": []}}

        {kind}
        def keep({own}context, row, output):
            row["output"] = output
            context["rows"].append(row)

        @classmethod
        def end(cls, context):
            torch.save(context["rows"], "rows.pt")


    def main(net: nn.Module, loader: DataLoader):
        Dump.run(net.cuda().eval(), loader)
"""


@pytest.mark.parametrize(
    ("kind", "own", "given", "found"),
    [
        ("@classmethod", "cls, ", "model(x.cuda())", True),
        ("@classmethod", "cls, ", "model(x.cuda()).cpu()", False),
        ("@classmethod", "cls, ", "model(x.cuda()).argmax(1).tolist()", False),
        ("@register", "cls, ", "model(x.cuda())", False),
    ],
)
def test_records_that_a_class_method_of_a_subclass_keeps(
    tmp_path: Path, kind: str, own: str, given: str, found: bool
) -> None:
    said = lines(tmp_path, _DUMP.format(kind=kind, own=own, given=given))
    assert said == ([f'cls.keep(context, {{"name": "row"}}, {given})'] if found else [])


_PASSED = """
    class Writer:
        def __init__(self):
            self.rows = []

        def add(self, row):
            self.rows.append(row)


    @torch.no_grad()
    def collect(model, loader):
        writer = Writer()
        for x, other in loader:
            writer.add({0})
        return writer.rows
"""


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ('{"name": "a", "output": model(x.cuda())}', True),
        ('(3, model(x.cuda()))', True),
        ('{"name": "a", "output": model(x.cuda()).cpu()}', False),
        ('{"name": "a", "output": find(x)}', False),
        ('(3, "a")', False),
        ('model(x.cuda()) if other else 0', False),
    ],
)  # fmt: skip
def test_records_that_a_method_keeps(tmp_path: Path, row: str, found: bool) -> None:
    assert lines(tmp_path, _PASSED.format(row)) == ([f"writer.add({row})"] if found else [])
