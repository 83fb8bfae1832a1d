"""A call of a method on a module whose class is not known: what the project's methods of that name give decides."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

CALLED = """
import torch
from torch import nn


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(4, 4)

    def forward(self, x):
        return self.lift(x)

    def draw(self, x):
{body}


def collect(model, loader):
    model.eval()
    kept = []
    for x in loader:
        kept.append(model.{call})
    print(len(kept))
"""


@pytest.mark.parametrize(
    ("body", "call", "codes"),
    [
        ("        return self.lift(x)", "draw(x)", {"MEM102", "MEM201"}),
        # the method turns grad mode off itself
        ("        with torch.no_grad():\n            return self.lift(x)", "draw(x)", set()),
        # text: the model records, but nothing keeps that
        ("        ids = self.lift(x).argmax(1)\n        return [str(i) for i in ids.tolist()]", "draw(x)", {"MEM201"}),
        ("        return self.lift(x).detach()", "draw(x)", {"MEM201"}),
        # gradients are wanted inside
        (
            "        loss = self.lift(x).sum()\n"
            "        grads = torch.autograd.grad(loss, self.lift.parameters(), create_graph=True)\n"
            "        return self.lift(x) - sum(grad.sum() for grad in grads)",
            "draw(x)",
            set(),
        ),
        # a module of the project keeps a layer under that name
        ("        return self.lift(x).detach()", "lift(x)", {"MEM102", "MEM201"}),
        # nobody in sight defines it, or it gives nothing
        ("        return self.lift(x)", "enlarge(x)", set()),
        ("        self.table = x", "draw(x)", set()),
        ("        return self.lift(x)", "generate(x)", set()),
    ],
)
def test_what_the_method_gives(tmp_path: Path, body: str, call: str, codes: set[str]) -> None:
    (tmp_path / "collect.py").write_text(CALLED.format(body=body, call=call))
    found = memlint.lint([tmp_path]).findings
    assert {item.code for item in found} == codes
    if codes == {"MEM201"}:
        assert [item.severity for item in found] == ["warning"]


WRAPPED = """
from torch import nn


class Wrapper(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x):
        return self.model(x)

    def generate(self, ids, **options):
        return self.model.{inner}(ids, **options)


def answers(model, prompts):
    model.eval()
    kept = []
    for ids in prompts:
        kept.extend(model.generate(ids))
    return [one.tolist() for one in kept]
"""


@pytest.mark.parametrize(("inner", "codes"), [("generate", set()), ("decoder", {"MEM102", "MEM201"})])
def test_a_method_that_hands_on_to_one_that_a_library_guards(tmp_path: Path, inner: str, codes: set[str]) -> None:
    (tmp_path / "answers.py").write_text(WRAPPED.format(inner=inner))
    assert {item.code for item in memlint.lint([tmp_path]).findings} == codes


CHOSEN = """
import torch
from torch import nn


class Split(nn.Module):
    def __init__(self):
        super().__init__()
        self.base = nn.Linear(4, 4)
        self.head = nn.Linear(4, 2)

    def forward(self, x):
        return self.head(self.base(x))

    def features(self, x, detach=True):
        give = (lambda y: y.detach().clone()) if detach else (lambda y: y)
        return give(self.base(x))


def means(model, loader):
    model.eval()
    kept = []
    for x, y in loader:
        kept.append(model.features(x{flag}))
    print(torch.cat(kept).mean().item())
"""


@pytest.mark.parametrize(
    ("flag", "codes"),
    [("", {"MEM201"}), (", detach=True", {"MEM201"}), (", detach=False", {"MEM102", "MEM201"})],
)
def test_a_flag_chooses_between_two_lambdas(tmp_path: Path, flag: str, codes: set[str]) -> None:
    (tmp_path / "means.py").write_text(CHOSEN.format(flag=flag))
    assert {item.code for item in memlint.lint([tmp_path]).findings} == codes


RUNNER = """
import torch


class Runner:
    def run(self, model, rows):
        model.eval()
        {guard}
            for row in rows:
                print(self._predict(row, model).argmax(1).sum().item())
"""
SCALED = """
import torch
from runner import Runner


class Scaled(Runner):
    def _predict(self, row, model):
        model.eval()
        kept = []
        for scale in (1.0, 0.5):
            kept.append(model(row * scale))
        return torch.stack(kept).max(0).values
"""


@pytest.mark.parametrize(("guard", "codes"), [("with torch.no_grad():", set()), ("if True:", {"MEM201"})])
def test_a_method_that_only_a_class_below_has(tmp_path: Path, guard: str, codes: set[str]) -> None:
    (tmp_path / "runner.py").write_text(RUNNER.format(guard=guard))
    (tmp_path / "scaled.py").write_text(SCALED)
    assert {item.code for item in memlint.lint([tmp_path]).findings} == codes


def test_a_file_named_torch_is_not_the_library(tmp_path: Path) -> None:
    (tmp_path / "pack").mkdir()
    (tmp_path / "pack" / "torch.py").write_text("import torch\n\n\ndef pad(x):\n    return torch.cat([x, x])\n")
    (tmp_path / "pack" / "infer.py").write_text(
        "import torch\n\n\ndef infer(model, loader):\n    model.eval()\n    kept = []\n    with torch.no_grad():\n"
        "        for x in loader:\n            kept.append(model(x).argmax(1).tolist())\n    return kept\n"
    )
    assert [item.code for item in memlint.lint([tmp_path]).findings] == []


LOOKS_UP = """
import torch


class Words:
    def __init__(self, model):
        self.model = model

    def score(self, lines):
        self.model.eval()
        total = 0.0
        for line in lines:
            first = self.model.{method}(line)
            total += first.float().mean().item()
        return total
"""
MODELS = """
import torch
from torch import nn


class Plain(nn.Module):
    def __init__(self, ids):
        super().__init__()
        self.ids = ids
        self.layer = nn.Linear(8, 8)

    def start(self, word):
        return torch.zeros(1).fill_(self.ids.find(word)).long()

    def encode_line(self, line):
        return self.layer(line)

    def extend_embedding(self, words):
        self.ids = self.ids + words


class Wrapped(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner

    def extend_embedding(self, *args):
        return self.inner.extend_embedding(*args)
"""


@pytest.mark.parametrize(("method", "codes"), [("start", set()), ("encode_line", {"MEM201"})])
def test_a_method_that_only_looks_something_up(tmp_path: Path, method: str, codes: set[str]) -> None:
    (tmp_path / "words.py").write_text(LOOKS_UP.format(method=method))
    (tmp_path / "models.py").write_text(MODELS)
    assert {item.code for item in memlint.lint([tmp_path]).findings} == codes


def test_a_method_that_changes_the_model_and_its_wrapper(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text(MODELS)
    (tmp_path / "evaluate.py").write_text(
        "def evaluate(model, more):\n    model.eval()\n    for words in more:\n"
        "        done = model.extend_embedding(words)\n        print(done)\n"
    )
    assert [item.code for item in memlint.lint([tmp_path]).findings] == []


ONE_OF_MANY = """
import torch
from torch import nn


class Net{number}({base}):
    def __init__(self):
        super().__init__()
        self.lift = nn.Linear(4, 4)

    def predict(self, batch):
        {body}
"""
OF_ONE = """
import torch


class Runner:
    def predict(self, model, batches):
        model.eval()
        rows = []
        for batch in batches:
            rows.append(model.predict(batch)["out"].detach().cpu().numpy())
        return rows
"""
COMPUTED = 'return {"out": self.lift(batch["x"].cuda())}'
GUARDED = f"with torch.no_grad():\n            {COMPUTED}"


@pytest.mark.parametrize(
    ("base", "body", "last", "found"),
    [
        ("nn.Module", COMPUTED, COMPUTED, ["MEM201"]),
        ("nn.Module", GUARDED, GUARDED, []),
        ("nn.Module", COMPUTED, GUARDED, []),
        ("nn.Module", "return {}", "return {}", []),
        ("object", COMPUTED, COMPUTED, []),
    ],
)
def test_one_of_a_zoo_of_models(tmp_path: Path, base: str, body: str, last: str, found: list[str]) -> None:
    (tmp_path / "src" / "models").mkdir(parents=True)
    (tmp_path / "src" / "runners").mkdir()
    (tmp_path / "other").mkdir()
    for number in range(9):
        text = ONE_OF_MANY.format(number=number, base=base, body=body if number else last)
        (tmp_path / "src" / "models" / f"net{number}.py").write_text(text)
    # (what lies further off says nothing)
    (tmp_path / "other" / "net.py").write_text(ONE_OF_MANY.format(number=9, base="nn.Module", body=GUARDED))
    (tmp_path / "src" / "runners" / "runner.py").write_text(OF_ONE)
    (tmp_path / "pyproject.toml").touch()
    result = memlint.lint([tmp_path / "src" / "runners"], isolated=True)
    assert [item.code for item in result.findings] == found


BESIDE = """
import torch
from torch import nn


class Other({base}):
    def {method}(self, {params}):
        {body}

    def {more}(self):
        return self
"""


@pytest.mark.parametrize(
    ("base", "method", "params", "body", "more", "found"),
    [
        # what is no module, or takes other arguments, is not what the call means
        ("object", "predict", "batch", "return self.fit(batch)", "fit", ["MEM201"]),
        ("object", "predict", "batch", "return self.fit(batch)", "train", ["MEM201"]),
        ("nn.Module", "predict", "left, right, relation", "return left", "fit", ["MEM201"]),
        # this may be meant
        ("object", "predict", "batch", "return self.fit(batch)", "eval", []),
        ("object", "predict", "batch", "return self.fit(batch)", "parameters", []),
        ("Unknown", "predict", "batch", "return self.fit(batch)", "state_dict", []),
        ("Unknown", "predict", "batch", "return self.fit(batch)", "fit", []),
        ("object", "predict", "batch", "return self.fit(batch)", "__getattr__", []),
        ("object", "predict", "batch", "self.eval = self.net.eval", "fit", []),
        ("nn.Module", "predict", "batch", "return {}", "fit", []),
        ("nn.Module", "predict", "*args", "return {}", "fit", []),
        (
            "nn.Module",
            "predict",
            "batch, more=None",
            "with torch.no_grad():\n            return self(batch)",
            "fit",
            [],
        ),
    ],
)
def test_another_class_beside_the_call(
    tmp_path: Path, base: str, method: str, params: str, body: str, more: str, found: list[str]
) -> None:
    (tmp_path / "src" / "models").mkdir(parents=True)
    (tmp_path / "src" / "runners").mkdir()
    for number in range(9):
        text = ONE_OF_MANY.format(number=number, base="nn.Module", body=COMPUTED)
        (tmp_path / "src" / "models" / f"net{number}.py").write_text(text)
    beside = BESIDE.format(base=base, method=method, params=params, body=body, more=more)
    (tmp_path / "src" / "runners" / "other.py").write_text(beside)
    (tmp_path / "src" / "runners" / "runner.py").write_text(OF_ONE)
    (tmp_path / "pyproject.toml").touch()
    result = memlint.lint([tmp_path / "src" / "runners" / "runner.py"], isolated=True)
    assert [item.code for item in result.findings] == found


@pytest.mark.parametrize(
    ("call", "beside", "found"),
    [
        ("batch", "class Other:\n    def predict(self, batch):\n        return batch", ["MEM201"]),
        # a class below serves as a module
        (
            "batch",
            "class Other:\n    def predict(self, batch):\n        return batch\n\n\nclass Agent(Other):\n"
            "    def eval(self):\n        return self",
            [],
        ),
        # without the object among the parameters
        (
            "batch",
            "class Other(nn.Module):\n    @staticmethod\n    def predict(batch):\n        return batch",
            [],
        ),
        # any number of arguments
        ("*batch", "class Other(nn.Module):\n    def predict(self, left, right, relation):\n        return left", []),
        ("**batch", "class Other(nn.Module):\n    def predict(self, left, right, relation):\n        return left", []),
    ],
)
def test_classes_that_the_call_may_mean(tmp_path: Path, call: str, beside: str, found: list[str]) -> None:
    (tmp_path / "src" / "models").mkdir(parents=True)
    (tmp_path / "src" / "runners").mkdir()
    for number in range(9):
        text = ONE_OF_MANY.format(number=number, base="nn.Module", body=COMPUTED)
        (tmp_path / "src" / "models" / f"net{number}.py").write_text(text)
    (tmp_path / "src" / "runners" / "other.py").write_text(f"from torch import nn\n\n\n{beside}\n")
    runner = OF_ONE.replace("model.predict(batch)", f"model.predict({call})")
    (tmp_path / "src" / "runners" / "runner.py").write_text(runner)
    (tmp_path / "pyproject.toml").touch()
    result = memlint.lint([tmp_path / "src" / "runners" / "runner.py"], isolated=True)
    assert [item.code for item in result.findings] == found


GENERATES = """
import torch
from torch import nn


class Net{number}(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.head = nn.LSTM(512, 512), nn.Linear(512, 30000)

    def generate(self, state, length):
        found = []
        for _ in range(length):
            out, state = self.cell(state)
            found.append(self.head(out).argmax(-1))
        return torch.cat(found)
"""
GENERATED = """
import torch
from models import make


def main(name, loader):
    model = make(name).cuda()
    model.eval()
    {guard}
        for x in loader:
            print(model.generate(x.cuda(), 30))
"""


@pytest.mark.parametrize(("guard", "found"), [("with torch.no_grad():", False), ("if loader:", True)])
def test_many_models_that_generate(tmp_path: Path, guard: str, found: bool) -> None:
    for number in range(12):
        (tmp_path / f"net{number}.py").write_text(GENERATES.format(number=number))
    (tmp_path / "main.py").write_text(GENERATED.format(guard=guard))
    codes = {one.code for one in memlint.lint([tmp_path], isolated=True, min_confidence="low").findings}
    assert ("MEM201" in codes) is found
