"""What is called on a module and is no model: its own machinery, tokenizers, functions that it was given."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint


def codes(tmp_path: Path, **files: str) -> list[str]:
    for name, code in files.items():
        (tmp_path / f"{name}.py").write_text(code)
    result = memlint.lint([tmp_path])
    assert not result.failures
    return [found.code for found in result.findings]


BASE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, body, score, tokenizer):
        super().__init__()
        self.body, self._score, self.tokenizer = body, score, tokenizer
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        return self.layer(x)

    def _apply(self, fn, recurse=True):
        for part in self.children():
            super(Net, part)._apply(fn, recurse=False)
        return self

    def compare(self, a, b):
        return self._score(torch.as_tensor(a), torch.as_tensor(b))

    def encode(self, x):
        return self.layer(x) * 2

    def preprocess(self, text):
        return self.tokenizer(text)

    def prepared(self, images):
        return self.backbone(images, return_tensors="pt")

    def features(self, images):
        return self.backbone(images)


class Named(Net):
    @property
    def measure(self):
        return self._name

    @measure.setter
    def measure(self, name):
        self._name = name
        self._measure = TABLE[name]

    def measured(self, a, b):
        return self._measure(a, b)


def evaluate(net: Named, loader):
    net.eval()
    for x in loader:
        print({call})
"""


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        pytest.param("net(x).cpu()", ["MEM201"], id="the model"),
        pytest.param("net.encode(x).cpu()", ["MEM201"], id="a part"),
        pytest.param("net.features(x).cpu()", ["MEM201"], id="a part that is not known"),
        pytest.param("net.prepared(x)", [], id="a processor, which the name of its argument tells"),
        pytest.param("net._apply(lambda part: part.half())", [], id="what moves it"),
        pytest.param("net.compare(x, x).cpu()", [], id="a function that it was given"),
        pytest.param("net.measured(x, x).cpu()", [], id="a function that a setter gave it"),
        pytest.param("net.preprocess(x).cpu()", [], id="a tokenizer"),
    ],
)
def test_calls_on_a_module(tmp_path: Path, call: str, expected: list[str]) -> None:
    assert codes(tmp_path, program=BASE.replace("{call}", call)) == expected


LOADED = """
import clip
import torch


def features(loader, device):
    model, transform = clip.load("ViT-B/32", device=device)
    model.eval()
    for image in loader:
        print({call}.detach().cpu())
"""


@pytest.mark.parametrize(("call", "expected"), [("model(image)", ["MEM201"]), ("transform(image)", [])])
def test_a_model_that_comes_with_its_transform(tmp_path: Path, call: str, expected: list[str]) -> None:
    assert codes(tmp_path, program=LOADED.format(call=call)) == expected


WEIGHTS = """
import torch
import torchvision
from torchvision.models.optical_flow import Raft_Large_Weights, raft_large

weights = Raft_Large_Weights.DEFAULT
transforms = weights.transforms()
model = raft_large(weights=weights).cuda().eval()


def warped(pairs, device):
    total = 0
    for first, second in pairs:
        first, second = {prepared}
        with torch.no_grad():
            flow = model(first, second)[-1]
        total += torch.sqrt((flow[:, 0] * first - second).square().mean())
    print(total.item())
"""


@pytest.mark.parametrize(
    ("prepared", "expected"),
    [
        ("transforms(first.to(device), second.to(device))", []),
        ("torchvision.ops.nms(first, second, 0.5), second", []),
        ("model(first, second)", ["MEM101", "MEM201"]),
    ],
)
def test_what_prepares_images_for_a_model_is_none(tmp_path: Path, prepared: str, expected: list[str]) -> None:
    assert sorted(codes(tmp_path, program=WEIGHTS.format(prepared=prepared))) == expected


FORWARD = """
import importlib

from torch import nn


class Agent(nn.Module):
    def __init__(self, name):
        super().__init__()
        self.model = importlib.import_module(name).make()

    def forward(self, x):
        return self.model.forward(x)

    def predict(self, x):
        self.model.eval()
        return self.forward(x).detach()

    def validate(self, loader):
        for x in loader:
            print(self.predict(x))


{others}
"""

OTHER = """
class Net{number}(nn.Module):
    def forward(self, x):
        return x
"""


def test_a_forward_is_one_however_many_there_are(tmp_path: Path) -> None:
    others = "\n".join(OTHER.format(number=number) for number in range(12))
    assert codes(tmp_path, program=FORWARD.replace("{others}", others)) == ["MEM201"]


SETTER = """
import torch
from torch import nn


class First(nn.Module):
    def set_names(self, names):
        self.names = names


class Second(nn.Module):
    def __init__(self):
        super().__init__()
        self.text = nn.Linear(8, 8)

    def set_names(self, names):
        self.embedded = self.text(names)


def validate(model, loader, names):
    model.eval()
    model.set_names(names)
    with torch.no_grad():
        for x in loader:
            print(model(x).mean())
"""


def test_a_setter_that_one_class_of_many_computes_in(tmp_path: Path) -> None:
    assert codes(tmp_path, program=SETTER) == []


INHERITED = """
import torch
from torch import nn


class Process(nn.Module):
    def predict(self, x):
        self.eval()
        self.set_data(x)
        with torch.no_grad():
            return self(x)


class Preferences(Process):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def set_data(self, x):
        self.known = self.layer(x)


def evaluate(process: Process, loader):
    process.eval()
    for x in loader:
        print(process.predict(x))
"""


def test_what_is_named_like_a_setter_and_gives_nothing_is_no_evaluation(tmp_path: Path) -> None:
    assert codes(tmp_path, program=INHERITED) == []


DECORATORS = """
import functools

import torch

NEW = torch.__version__ >= "1.9"


def either():
    def decorate(function):
        if torch.is_inference_mode_enabled():
            return function
        return (torch.inference_mode if NEW else torch.no_grad)()(function)

    return decorate


def inner(function):
    @torch.no_grad()
    @functools.wraps(function)
    def run(*args):
        return function(*args)

    return run


def timed(function):
    def run(*args):
        with torch.no_grad():
            print("begins")
        return function(*args)

    return run
"""

DECORATED = """
import torch
from torch import nn

from guards import either, inner, timed


class Text(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    {decorator}
    def encode(self, x):
        return self.layer(x)


def evaluate(text: Text, loader):
    text.eval()
    for x in loader:
        print(text.encode(x).cpu())
"""


@pytest.mark.parametrize(
    ("decorator", "expected"),
    [("@either()", []), ("@inner", []), ("@timed", ["MEM201"])],
)
def test_a_guard_that_the_projects_own_decorator_puts_around(
    tmp_path: Path, decorator: str, expected: list[str]
) -> None:
    assert codes(tmp_path, guards=DECORATORS, program=DECORATED.format(decorator=decorator)) == expected


LOOPED = """
import torch
from torch import nn
from dgl.nn import AvgPooling, GlobalAttentionPooling


def collect(model: nn.Module, loader, gate):
    model.eval()
    {before}
    kept = []
    for x in loader:
        {inside}
    print(kept)
"""


@pytest.mark.parametrize(
    ("before", "inside", "found"),
    [
        ("", "reply = model(x); print('answer: ' + reply); kept.append(reply)", {"MEM201"}),
        ("", "reply = model(x); print('answer:', reply); kept.append(reply)", {"MEM102", "MEM201"}),
        (
            "readout = AvgPooling()",
            "with torch.no_grad():\n            nodes = model(x)\n        kept.append(readout(x, nodes))",
            set(),
        ),
        (
            "readout = GlobalAttentionPooling(gate)",
            "with torch.no_grad():\n            nodes = model(x)\n        kept.append(readout(x, nodes))",
            {"MEM102"},
        ),
    ],
)
def test_what_is_kept_is_no_graph(tmp_path: Path, before: str, inside: str, found: set[str]) -> None:
    kept = codes(tmp_path, collect=LOOPED.format(before=before, inside=inside))
    assert {code for code in kept if code != "MEM201"} == found - {"MEM201"}


STACKED = """
from torch import nn


def layers(dims, norm: nn.Module{default}):
    built = []
    for size in dims:
        built.append(norm(size))
    return nn.Sequential(*built)
"""


def test_a_module_that_is_asked_for_by_a_class(tmp_path: Path) -> None:
    assert codes(tmp_path, layers=STACKED.format(default=" = nn.LayerNorm")) == []


COUNTED = """
class Agent:
    def __init__(self, options, model):
        self.options = options
        self.model = model
        self.seen = 0

    def backward(self, loss):
        every = self.options.get("update_freq", {default})
        loss = loss / every
        self.seen = (self.seen + 1) % every
        loss.backward()

    def train(self, loader):
        self.model.train()
        for batch in loader:
            self.backward(self.model(batch).mean())
"""


def test_an_option_is_no_tensor(tmp_path: Path) -> None:
    assert codes(tmp_path, agent=COUNTED.format(default="1")) == []


UNPACKED = """
import torch
from elsewhere import Scoring


class Engine:
    def __init__(self, args, loader):
        self.loader = loader
        self.model = self.get_model(args)
        self.model.classes = 3

    def train(self):
        self.prepare()
        for self.step, self.batch in self.bar:
            self.one_step()
            self.details()

    def one_step(self):
        images, targets = self.prepro(self.batch)
        with torch.autocast("cuda"):
            preds = self.model(images)
            total, items = self.compute_loss(preds, targets)
            if self.rank != -1:
                total *= self.world
        self.scaler.scale(total).backward()
        self.items = {kept}
        self.update_optimizer()

    def before(self):
        self.scaler = torch.cuda.amp.GradScaler()
        self.compute_loss = Scoring(0.5)

    def prepare(self):
        self.model.train()
        self.mean = torch.zeros(3)
        self.bar = enumerate(self.loader)

    def details(self):
        self.mean = (self.mean * self.step + self.items) / (self.step + 1)
        print(self.mean)
"""


@pytest.mark.parametrize(("kept", "found"), [("items", []), ("preds.mean()", ["MEM103"])])
def test_what_comes_beside_a_loss_is_not_known(tmp_path: Path, kept: str, found: list[str]) -> None:
    assert codes(tmp_path, engine=UNPACKED.format(kept=kept)) == found


TWICE = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4096)

    def forward(self, x):
        return self.layer(x)


def evaluate(net: Net, optimizer, train, labels, valid, test):
    kept, scores = [], []
    for _ in range(200):
        optimizer.zero_grad()
        nn.functional.cross_entropy(net(train), labels).backward()
        optimizer.step()
        net.eval()
        logits = net(valid)
        scores.append(logits.argmax(1).float().mean().item())
        logits = net(test)
        kept.append({kept})
    return len(kept)
"""


@pytest.mark.parametrize(("kept", "severity"), [("logits", "error"), ("logits.argmax(1).tolist()", "warning")])
def test_the_call_whose_graph_is_kept_is_the_error(tmp_path: Path, kept: str, severity: str) -> None:
    (tmp_path / "probe.py").write_text(TWICE.format(kept=kept))
    found = [item for item in memlint.lint([tmp_path]).findings if item.code == "MEM201"]
    assert [(item.line, item.severity) for item in found] == [(24 if severity == "error" else 22, severity)]


CHECKED = """
import torch


def check(layer, x):
    before = None
    for _ in range(10):
        y = layer(x)
        assert before is None or torch.equal(y, before)
        before = y


def checks(layer):
    x = torch.randn(32, 8{needs})
    layer.eval()
    check(layer, x)
"""


@pytest.mark.parametrize(("needs", "found"), [(", requires_grad=True", []), ("", ["MEM201"])])
def test_inputs_that_require_grad_are_no_evaluation(tmp_path: Path, needs: str, found: list[str]) -> None:
    assert codes(tmp_path, checks=CHECKED.format(needs=needs)) == found


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("scheduler", False),
        ("env", False),
        ("transform", False),
        ("dataset", False),
        ("val_transforms", False),
        ("env_model", True),
        ("actor", True),
        ("encoder", True),
    ],
)
def test_what_its_name_says_is_no_network_is_none_by_its_mode(tmp_path: Path, name: str, told: bool) -> None:
    (tmp_path / "main.py").write_text(
        f"import torch\n\n\ndef run(loader, task):\n    task.{name}.eval()\n    kept = []\n    for x in loader:\n"
        f"        kept.append(task.{name}(x))\n    return kept\n",
        encoding="utf-8",
    )
    result = memlint.lint([tmp_path], isolated=True)
    assert not result.failures
    assert ("MEM201" in {one.code for one in result.findings}) is told


HELD = """
import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.held = nn.{holder}({{}})
        self.base = nn.Linear(4, 4)

    def delta(self, name, x):
        held = self.held[name]
        return {used}

    def merge(self, names):
        self.eval()
        for name in names:
            self.base.weight.data = torch.mm(self.base.weight.data, self.delta(name, torch.eye(4, device="cuda")))
"""


@pytest.mark.parametrize(
    ("holder", "used", "found"),
    [("ParameterDict", "x / held[:, 0].norm()", []), ("ModuleDict", "held(x)", ["MEM201"])],
)
def test_parameters_that_a_module_holds(tmp_path: Path, holder: str, used: str, found: list[str]) -> None:
    assert codes(tmp_path, layer=HELD.format(holder=holder, used=used)) == found


STATS = """
import segmentation_models_pytorch as smp
import torch
from torch import nn
from torch.utils.data import DataLoader


def validate(model, loader: DataLoader):
    model.cuda().eval()
    rows = []
    with torch.no_grad():
        for image, mask in loader:
            out = model(image.cuda())
            tp, fp, fn, tn = smp.metrics.get_stats(out.argmax(1), mask.cuda(), mode="multiclass", num_classes=3)
            rows.append({{"tp": tp, "fp": fp, "out": {out}}})
    return rows


validate(nn.Conv2d(3, 3, 1), DataLoader([]))
"""


@pytest.mark.parametrize(("out", "expected"), [("out", ["MEM104"]), ("out.cpu()", [])])
def test_what_counts_is_no_number(tmp_path: Path, out: str, expected: list[str]) -> None:
    assert codes(tmp_path, program=STATS.format(out=out)) == expected


SCORES = """
import torch
from torch import nn


class Score(nn.Module):
    def __init__(self, margin):
        super().__init__()
        {parts}

    def forward(self, right, wrong):
        return {out}

    def predict(self, right, wrong):
        score = self.forward(right, wrong)
        return score.cpu().data.numpy()
"""


@pytest.mark.parametrize(
    ("parts", "out", "found"),
    [
        ("self.criterion = nn.LogSigmoid()", "-(self.criterion(right) + self.criterion(-wrong)).mean()", False),
        ("self.act, self.drop = nn.Mish(), nn.AlphaDropout()", "self.drop(self.act(right)) - wrong", False),
        ("self.up = nn.UpsamplingNearest2d(2)", "self.up(right) - wrong", False),
        (
            "self.margin = nn.Parameter(torch.tensor(margin))\n        self.margin.requires_grad = False\n"
            "        self.act = nn.Softsign()",
            "self.act(right - wrong + self.margin)",
            False,
        ),
        ("self.act = nn.PReLU()", "self.act(right - wrong)", True),
        ("self.act, self.mix = nn.LogSigmoid(), nn.Linear(8, 8)", "self.act(self.mix(right) - wrong)", True),
    ],
)
def test_a_module_without_trained_parameters_records_nothing(tmp_path: Path, parts: str, out: str, found: bool) -> None:
    source = SCORES.replace("{parts}", parts).replace("{out}", out)
    assert ("MEM201" in codes(tmp_path, score=source)) is found


MAKER = """
import torch
from torch import nn


def rebuild(model: nn.Module, options, path):
    {made} = model(**options)
    {used}
    return {made}


def show(loader, model, path):
    net = rebuild(model, {{"width": 8}}, path)
    for x in loader:
        print(net(x.cuda()).detach().cpu().numpy())
"""


@pytest.mark.parametrize(
    ("made", "used", "lines"),
    [
        ("made", "made.load_state_dict(torch.load(path, 'cpu'))", [15]),
        ("made", "made.eval()", [15]),
        ("made", "made = made.detach().cpu().numpy()", [7]),
    ],
)
def test_a_parameter_that_makes_a_module_is_a_class(tmp_path: Path, made: str, used: str, lines: list[int]) -> None:
    (tmp_path / "case.py").write_text(MAKER.format(made=made, used=used), encoding="utf-8")
    found = memlint.lint([tmp_path], isolated=True, min_confidence="low").findings
    assert [one.line for one in found if one.code == "MEM201"] == lines


TIED = """
import torch
from transformers import AutoModelForCausalLM


def is_tied(model):
    return model.{method}({given}) is not None


def main(loader):
    model = AutoModelForCausalLM.from_pretrained("gpt2").cuda().eval()
    for x in loader:
        print(is_tied(model))
        print(torch.from_numpy(model.{method}({given}).weight.detach().cpu().numpy()))
"""


@pytest.mark.parametrize(
    ("method", "given"),
    [("get_output_embeddings", ""), ("get_input_embeddings", ""), ("get_submodule", "'lm_head'")],
)
def test_a_method_that_gives_a_module_runs_none(tmp_path: Path, method: str, given: str) -> None:
    assert codes(tmp_path, case=TIED.format(method=method, given=given)) == []


SCORED = """
import gym
import torch
from torch import nn


class Agent(nn.Module):
    def __init__(self, {inner}):
        super().__init__()
        self.{inner} = {inner}
        self.layer = nn.Linear(2, 16)

    def forward(self, x):
        return torch.relu(self.layer(x)).cpu().data

    def score(self, steps=5000):
        total = 0.0
        for _ in range(steps):
            total += self.{inner}.{method}(self.forward(torch.ones(2).cuda()))
        return total


def search(agent, rounds):
    scores = []
    for _ in range(rounds):
        scores.append(agent.score())
    return scores


print(search(Agent(gym.make("Car")).cuda(), 500))
"""


@pytest.mark.parametrize(
    ("inner", "method", "found"),
    [
        ("env", "step", []),
        ("train_env", "step", []),
        ("critic", "encode", ["MEM102"]),
        ("env_encoder", "encode", ["MEM102"]),
    ],
)
def test_an_environment_of_a_module_is_no_layer(tmp_path: Path, inner: str, method: str, found: list[str]) -> None:
    assert codes(tmp_path, case=SCORED.format(inner=inner, method=method)) == found
