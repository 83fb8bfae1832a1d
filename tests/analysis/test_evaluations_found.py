"""Evaluations that record, in the ways that projects write them: what guards or trains beside them is silent."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from tests.linting import codes_in


def told(folder: Path, only: str = ".", **files: str) -> set[str]:
    """The codes of what is no note."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    found = memlint.lint([folder / only], isolated=True).findings
    return {one.code for one in found}


METRIC = """
import torch


def validate(loader, model, criterion):
    model.eval()
    total = 0.0
    for batch, labels in loader:
        {scores}
        total += losses.mean().{number}
        print(hits.mean().cpu().numpy())
    return total
"""


@pytest.mark.parametrize(
    ("scores", "number", "codes"),
    [
        # a criterion that is not in sight gives a metric beside the loss: numpy() of the metric tells nothing
        ("losses, hits = criterion(model(batch.cuda()), labels.cuda())", "detach().cpu().numpy()", {"MEM201"}),
        # numpy() of what the model itself gives would raise if it recorded
        ("losses = hits = model(batch.cuda())", "cpu().numpy()", set()),
    ],
)
def test_numpy_of_what_an_unknown_call_gives(tmp_path: Path, scores: str, number: str, codes: set[str]) -> None:
    assert told(tmp_path, validate=METRIC.format(scores=scores, number=number)) == codes


BACKBONE = """
import torch
from torch import nn
from torchvision import models


class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(2048, 10)

    def forward(self, x):
        return self.fc(x)


class Parts(nn.Module):
    def __init__(self):
        super().__init__()
        backbone = models.resnet50()
        self.backbone = backbone
        self.backbone.layer4[0].conv2.stride = (1, 1)
        for part in range(6):
            setattr(self, f"head{part}", Head())

    def forward(self, x):
        x = self.backbone.conv1(x)
        x = self.backbone.layer4(x)
        scores = {}
        for part in range(6):
            head = getattr(self, f"head{part}")
            scores[part] = head(torch.squeeze(x[:, :, part]))
        return [scores[part] for part in range(6)]
"""
BY_PARTS = """
import torch
from parts import Parts


def extract(model, loader):
    for images, _ in loader:
        {guard}
            print(model(images.cuda())[0].data.cpu())


model = Parts().eval()
extract(model, torch.utils.data.DataLoader([1]))
"""


@pytest.mark.parametrize(("guard", "codes"), [("if True:", {"MEM201"}), ("with torch.no_grad():", set())])
def test_layers_of_a_well_known_network(tmp_path: Path, guard: str, codes: set[str]) -> None:
    """What a module reads of its own parts while it is made is asked before it is made: the answer is not kept."""
    assert told(tmp_path, "extract.py", parts=BACKBONE, extract=BY_PARTS.format(guard=guard)) == codes


BY_NAME = """
import torch


def {name}(model, loader, criterion, optimizer, interval):
    model.train()
    total = 0
    for step, batch in enumerate(range(0, 10000, 32)):
        optimizer.zero_grad()
        loss = criterion(model(loader[batch]), loader[batch])
        loss.backward()
        optimizer.step()
        total += loss
        if step % interval == 0:
            print(total)
"""


@pytest.mark.parametrize(("name", "codes"), [("train", {"MEM101"}), ("test_training", set())])
def test_a_script_named_as_tests_are(tmp_path: Path, name: str, codes: set[str]) -> None:
    """A file named ``…_test.py`` is one of tests where it holds one."""
    assert told(tmp_path, copy_test=BY_NAME.format(name=name)) == codes


SCRIPT = """
import torch
from torch import nn
from nets import build, writer

def evaluate(epoch{takes}):
    net.eval()
    for images, labels in loader:
        print(criterion(net(images.cuda()), labels.cuda()).item())

if __name__ == "__main__":
    net = build()
    loader = torch.utils.data.DataLoader([1])
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    example = torch.rand(1, 3, 32, 32, requires_grad=True)
    writer.add_graph(net, example)
    evaluate(1{gives})
"""


@pytest.mark.parametrize(("takes", "gives", "codes"), [("", "", {"MEM201"}), (", example", ", example", set())])
def test_what_requires_grad_beside_the_call(tmp_path: Path, takes: str, gives: str, codes: set[str]) -> None:
    """An input that requires grad in the caller matters where the evaluation is given it."""
    assert told(tmp_path, script=SCRIPT.format(takes=takes, gives=gives)) == codes


FORWARD = """
import torch


class Trainer:
    def __init__(self, model, task):
        self.model = model
        self.task = task

    def run(self, batch):
        return self.model.forward(self.task, batch)

    {decorator}
    def validate(self, loader):
        self.model.eval()
        for batch in loader:
            print(self.run(batch)["loss"].data.cpu().numpy())
"""
#: projects define many forwards: which one is meant cannot be told, that it is a model's can
FORWARDS = "from torch import nn\n" + "".join(
    f"class Net{number}(nn.Module):\n    def forward(self, task, batch):\n        return batch\n"
    for number in range(40)
)


@pytest.mark.parametrize(("decorator", "codes"), [("# recorded", {"MEM201"}), ("@torch.no_grad()", set())])
def test_forward_by_its_name(tmp_path: Path, decorator: str, codes: set[str]) -> None:
    files = {"trainer": FORWARD.format(decorator=decorator), "nets": FORWARDS}
    assert told(tmp_path, "trainer.py", **files) == codes


ABSTRACT = """
import torch
from torch import nn


class Base(nn.Module):
    {decorator}
    def predict(self, batches):
        self.eval()
        return [self.forward(batch).cpu().data.numpy() for batch in batches]
"""


@pytest.mark.parametrize(("decorator", "codes"), [("# recorded", {"MEM201"}), ("@torch.no_grad()", set())])
def test_the_forward_that_subclasses_define(tmp_path: Path, decorator: str, codes: set[str]) -> None:
    assert told(tmp_path, base=ABSTRACT.format(decorator=decorator)) == codes


ASKED = """
import torch
from torch import nn


class Unet(nn.Module):
    def forward(self, x):
        return self.decoder(self.encoder(x))

    def mask(self, images):
        {ask}
        return [self.forward(image) > 0 for image in images]
"""


@pytest.mark.parametrize(
    ("ask", "codes"),
    [
        ("if self.training: self.eval()", {"MEM201"}),
        ("if self.training: print('it trains')", set()),
    ],
)
def test_eval_where_it_trains(tmp_path: Path, ask: str, codes: set[str]) -> None:
    """Where it does not train, it is in eval mode already."""
    assert told(tmp_path, unet=ASKED.format(ask=ask)) == codes


PHASES = """
import torch


def fit(model, loaders, criterion, optimizer):
    for epoch in range(25):
        for phase in ["train", {other!r}]:
            model.train() if phase == "train" else model.eval()
            {first}
            for inputs, labels in loaders[phase]:
                optimizer.zero_grad()
                {around}
                    outputs = model(inputs.cuda())
                    loss = criterion(outputs, labels.cuda())
                    if {test}:
                        loss.backward()
                        optimizer.step()
                print(loss.item())
"""


@pytest.mark.parametrize(
    ("other", "around", "test", "codes"),
    [
        ("val", "if True:", "phase == 'train'", {"MEM201"}),
        ("val", "if True:", "phase != 'val'", {"MEM201"}),
        ("val", "with torch.set_grad_enabled(phase == 'train'):", "phase == 'train'", set()),
        ("val", "if True:", "phase in ('train', 'val')", set()),
        ("val", "if phase == 'train':", "phase == 'train'", set()),
        ("develop", "if True:", "phase == 'train'", {"MEM201"}),  # the loop puts the model into eval mode
        ("val", "if True:", "loss > 0", {"MEM115"}),  # a round that is left out leaves its graph in `loss`
    ],
)
def test_one_body_for_two_phases(tmp_path: Path, other: str, around: str, test: str, codes: set[str]) -> None:
    assert told(tmp_path, fit=PHASES.format(other=other, around=around, test=test, first="pass")) == codes


@pytest.mark.parametrize(("other", "codes"), [("val", {"MEM201"}), ("develop", set())])
def test_phase_without_eval_mode(tmp_path: Path, other: str, codes: set[str]) -> None:
    """Only the name of the phase can then say that it evaluates."""
    source = PHASES.format(other=other, around="if True:", test="phase == 'train'", first="pass")
    mode = 'model.train() if phase == "train" else model.eval()'
    assert mode in source
    assert told(tmp_path, fit=source.replace(mode, "model.train()")) == codes


@pytest.mark.parametrize(
    ("first", "codes"),
    [
        ("print(phase)", {"MEM201"}),
        ("if phase == 'val': validate(model); continue", set()),
        ("mode = torch.enable_grad if phase == 'train' else torch.no_grad", set()),
    ],
)
def test_what_else_tells_the_phases_apart(tmp_path: Path, first: str, codes: set[str]) -> None:
    text = PHASES.format(other="val", around="if True:", test="phase == 'train'", first=first)
    assert told(tmp_path, fit=text) == codes


SEVERAL = """
from typing import Dict
import torch
from torch import nn
from nets import Generator, Judge


class Trainer:
    def __init__(self, nets{note}, loader):
        self.nets = nets
        self.loader = loader

    def step(self, batch):
        print(self.nets["generator"](batch.cuda()).mean().item())

    {guard}
    def evaluate(self):
        for key in self.nets:
            self.nets[key].eval()
        for batch in self.loader:
            self.step(batch)


def main(loader):
    nets = {{"generator": Generator().cuda(), "judge": Judge().cuda()}}
    Trainer(nets, loader).evaluate()
"""


@pytest.mark.parametrize("note", ["", ": Dict[str, nn.Module]"])
@pytest.mark.parametrize(("guard", "codes"), [("# recorded", {"MEM201"}), ("@torch.no_grad()", set())])
def test_a_dictionary_of_models(tmp_path: Path, note: str, guard: str, codes: set[str]) -> None:
    nets = "from torch import nn\n" + "".join(
        f"class {name}(nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.body = nn.Linear(8, 8)\n"
        "    def forward(self, x):\n        return self.body(x)\n"
        for name in ("Generator", "Judge")
    )
    assert told(tmp_path, "trainer.py", nets=nets, trainer=SEVERAL.format(note=note, guard=guard)) == codes


BASE = """
import torch
from torch import nn


class Base(nn.Module):
    def forward(self, x, train):
        self.train(train)
        return x / 255


class Net(Base):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def forward(self, x, train):
        return self.body(super().forward(x, train))


class Evaluator:
    def __init__(self, net: Base):
        self.net = net

    {guard}
    def evaluate(self, loader, criterion):
        errors = []
        for x, y in loader:
            errors.append(criterion(self.net.forward(x.cuda(), train=False), y.cuda()).mean())
        return torch.stack(errors).mean().item()
"""


@pytest.mark.parametrize(("guard", "codes"), [("# recorded", {"MEM102", "MEM201"}), ("@torch.no_grad()", set())])
def test_a_base_class_whose_subclasses_run_layers(tmp_path: Path, guard: str, codes: set[str]) -> None:
    assert told(tmp_path, evaluator=BASE.format(guard=guard)) == codes


STATEFUL = """
import torch


class Trainer:
    def __init__(self, model, criterion):
        self.model, self.criterion = model, criterion

    def train(self, loader, optimizer):
        self.model.train()
        for x, y in loader:
            loss = self.criterion(self.model(x.cuda()), y.cuda(), self.model.device_id)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    def evaluate(self, loader):
        self.model.eval()
        for x, y in loader:
            scores = self.model(x.cuda())
            {keep}
            print(scores.argmax(1).tolist())

    def regularize(self, optimizer):
        self.kept.mean().backward()
"""


@pytest.mark.parametrize(("keep", "codes"), [("self.model.last = scores", {"MEM201"}), ("self.kept = scores", set())])
def test_another_method_trains_by_another_part(tmp_path: Path, keep: str, codes: set[str]) -> None:
    """A place of the model that a loss is computed with is not every place of the model."""
    assert told(tmp_path, trainer=STATEFUL.format(keep=keep)) == codes


PASSED = """
import torch


def score(model, loader, device):
    total = 0
    model = model.to(device)
    for images, labels in loader:
        images = images.to(device)
        {guard}
            scores = {called}(images)
        total += (scores[0].detach().cpu().argmax(1) == labels).sum().item()
    return total
"""


@pytest.mark.parametrize(
    ("guard", "called", "codes"),
    [
        ("if True:", "model", {"MEM201"}),
        ("with torch.no_grad():", "model", set()),
        ("if True:", "transform", set()),  # what it runs, nothing tells
    ],
)
def test_a_model_by_its_name(tmp_path: Path, guard: str, called: str, codes: set[str]) -> None:
    """Nothing is known of what is passed but that it is named as models are, and called with a batch."""
    assert told(tmp_path, score=PASSED.format(guard=guard, called=called)) == codes


EXCHANGED = """
import torch


def project(operator, slices):
    kept = []
    for one in slices:
        kept.append(torch.from_dlpack(operator.forward(one)).cuda())
    return torch.stack(kept).cpu()
"""


def test_what_another_library_gives_has_no_graph(tmp_path: Path) -> None:
    """dlpack refuses tensors that require grad."""
    assert "MEM102" not in told(tmp_path, project=EXCHANGED)


BY_HAND = """
import torch
from torch import nn


class Tree(nn.Module):
    def train_{number}(self, batch):
        loss = self.layer(batch).mean()
        {end}
        return loss.item()


def predict_all(trees, batches):
    for tree in trees:
        tree.eval()
        for batch in batches:
            print(tree.train_{number}(batch.cuda()))
"""


@pytest.mark.parametrize(("end", "codes"), [("loss.backward()", set()), ("print(loss)", {"MEM201"})])
def test_a_method_that_trains_by_itself(tmp_path: Path, end: str, codes: set[str]) -> None:
    assert told(tmp_path, trees=BY_HAND.format(end=end, number=1)) == codes


ITSELF = """
import torch


def features(owner, loader):
    owner.eval()
    for x in loader:
        print(owner(x.cuda()).argmax())


class Owner(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(3, 3)

    def forward(self, x):
        return self.layer(x)

    def run(self, loader):
        features(self, loader)


Owner().run(loader=[torch.ones(3)])
"""


def test_a_module_that_hands_itself_on(tmp_path: Path) -> None:
    """What its method is called on is no argument of the call."""
    assert told(tmp_path, owner=ITSELF) == {"MEM201"}


SAMPLES = """
import torch
from torch import nn


class Posterior(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8).cuda()

    def {name}(self, x):
        self.eval()
        return self.net(x)
"""


@pytest.mark.parametrize(("name", "codes"), [("draw_samples", {"MEM201"}), ("rsample_from_base_samples", set())])
def test_samples_that_can_be_differentiated(tmp_path: Path, name: str, codes: set[str]) -> None:
    assert told(tmp_path, samples=SAMPLES.format(name=name)) == codes


IN_TRAINING_STEP = """
import pytorch_lightning as pl
import torch
from torch.nn import functional as F


class Model(pl.LightningModule):
    def __init__(self, net, batches):
        super().__init__()
        self.net, self.batches = net, batches

    def training_step(self, batch, index):
        x, y = batch
        loss = F.cross_entropy(self.net(x), y)
        {called}
        return loss

    {guard}
    def check(self):
        self.net.eval()
        right = 0
        for x, y in {batches}:
            out = self.net(x.cuda())
            {use}
        self.net.train()
        return right
"""
COUNTS = "right += (out.argmax(1) == y.cuda()).sum().item()"
LOGGED = "self.log('check', self.check())"


@pytest.mark.parametrize(
    ("called", "guard", "batches", "use", "expected"),
    [
        (LOGGED, "", "self.batches", COUNTS, ["MEM201"]),
        (LOGGED, "", "self.val_dataloader()", COUNTS, ["MEM201"]),
        (LOGGED, "@torch.no_grad()", "self.batches", COUNTS, []),
        ("with torch.no_grad():\n            self.check()", "", "self.batches", COUNTS, []),
        ("loss = loss + self.check()", "", "self.batches", "right = right + F.cross_entropy(out, y)", []),
    ],
)
def test_evaluation_in_a_training_step(
    tmp_path: Path, called: str, guard: str, batches: str, use: str, expected: list[str]
) -> None:
    source = IN_TRAINING_STEP.format(called=called, guard=guard, batches=batches, use=use)
    assert codes_in(tmp_path, source) == expected


BY_PARTS_IN_EVAL_MODE = """
import torch
from torch import nn
import torchvision


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.cnn, self.fc = torchvision.models.resnet50(), nn.Linear(1000, 2)

    def collect(self, {bag}):
        self.cnn.eval()
        parts = []
        for x in {bag}:
            {take}
        {give}

    def forward(self, bag):
        {forward}


def fit(net, loader, opt):
    for bag, y in loader:
        loss = nn.functional.cross_entropy(net(bag), y.cuda())
        opt.zero_grad()
        loss.backward()
        opt.step()
"""
PART = "parts.append(self.cnn(x.cuda()))"


@pytest.mark.parametrize(
    ("bag", "take", "give", "forward"),
    [
        ("loader", PART, "return torch.cat(parts)", "return self.fc(self.collect(bag))"),
        ("bag", PART, "return torch.stack(parts).mean(0)", "return self.fc(self.collect(bag))"),
        ("loader", PART, "self.parts = parts", "self.collect(bag)\n        return self.fc(torch.cat(self.parts))"),
        ("loader", "self.parts.append(self.cnn(x.cuda()))", "", "self.collect(bag); return torch.cat(self.parts)"),
        ("loader", "self.total = self.total + self.cnn(x.cuda())", "", "self.collect(bag)\n        return self.total"),
    ],
)
def test_parts_in_eval_mode_that_are_trained(tmp_path: Path, bag: str, take: str, give: str, forward: str) -> None:
    """Batch norm that keeps its statistics while a method's output is trained: a guard would stop the training."""
    source = BY_PARTS_IN_EVAL_MODE.format(bag=bag, take=take, give=give, forward=forward)
    assert "MEM201" not in codes_in(tmp_path, source)
