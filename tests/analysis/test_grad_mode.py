"""Grad mode that lasts: guards entered by hand, switches in helpers and in constructors."""

from __future__ import annotations

import functools
from pathlib import Path

import pytest
from linting import codes_in

import memlint

found = functools.partial(codes_in, name="evaluate.py")

LOOP = """
    for x in loader:
        print(model(x).argmax())
"""

EVALUATE = """
import contextlib
import torch


{before}


def evaluate(model, loader):
    model.eval()
    {statement}
""" + LOOP.lstrip("\n").replace("{", "{{")


@pytest.mark.parametrize(
    ("before", "statement", "codes"),
    [
        ("", "torch.no_grad().__enter__()", []),
        ("", "torch.inference_mode().__enter__()", []),
        ("", "torch.set_grad_enabled(False).__enter__()", []),
        ("", "guard = torch.no_grad(); guard.__enter__()", []),
        ("", "guard = torch.no_grad(); guard.__enter__(); guard.__exit__(None, None, None)", ["MEM201"]),
        ("def quiet():\n    torch.set_grad_enabled(False)", "quiet()", []),
        ("def quiet():\n    with torch.no_grad():\n        torch.rand(3)", "quiet()", ["MEM201"]),
        ("@torch.no_grad()\ndef quiet():\n    return torch.rand(3)", "quiet()", ["MEM201"]),
        ('def to(mode):\n    torch.set_grad_enabled(mode == "train")', 'to("eval")', []),
        ('def to(mode):\n    torch.set_grad_enabled(mode == "train")', 'to("train")', ["MEM201"]),
        ("def back(before):\n    torch.set_grad_enabled(before)", "back(torch.is_grad_enabled())", ["MEM201"]),
    ],
)
def test_what_a_statement_leaves_behind(tmp_path: Path, before: str, statement: str, codes: list[str]) -> None:
    assert found(tmp_path, EVALUATE.format(before=before, statement=statement)) == codes


MADE = """
import torch


class Predictor:
    def __init__(self, model):
        self.model = model.eval()
        {statement}

    def predict(self, loader):
        for x in loader:
            print(self.model(x).argmax())
"""


@pytest.mark.parametrize(
    ("statement", "codes"),
    [
        ("torch.set_grad_enabled(False)", []),
        ("torch.autograd.set_grad_enabled(False)", []),
        ("torch.no_grad().__enter__()", []),
        ("torch.set_grad_enabled(False); torch.set_grad_enabled(True)", ["MEM201"]),
        ("pass", ["MEM201"]),
    ],
)
def test_an_object_that_turns_grad_mode_off_when_it_is_made(tmp_path: Path, statement: str, codes: list[str]) -> None:
    assert found(tmp_path, MADE.format(statement=statement)) == codes


CALLER = """
import torch
from model import Net


def prepare():
    torch.set_grad_enabled(False)


def predict(net, loader):
    for x in loader:
        print(net(x).argmax())


def main(loader):
    net = Net().eval()
    {statement}
    predict(net, loader)
"""


def test_a_caller_that_switches_by_a_helper(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("from torch import nn\n\n\nclass Net(nn.Linear):\n    pass\n")
    assert found(tmp_path, CALLER.format(statement="pass")) == ["MEM201"]
    assert found(tmp_path, CALLER.format(statement="prepare()")) == []


BOOKKEEPING = """
import torch
from torch import nn


class Masked(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        self.masks = []

    def {name}(self, number):
        like = next(self.parameters()).detach()
        for mask in self.masks:
            mask.set_(like.new([number]))

    def on_gpu(self):
        return next(self.parameters()).is_cuda

    def forward(self, x):
        return self.layer(x)


def evaluate(model, loader):
    model.eval()
    model.{name}(3)
    pinned = model.on_gpu()
    with torch.no_grad():
        for x in loader:
            print(model(x.cuda(non_blocking=pinned)).argmax())
"""


@pytest.mark.parametrize("name", ["apply_gates", "fill", "narrow_to"])
def test_a_method_that_only_reads_parameters_runs_no_model(tmp_path: Path, name: str) -> None:
    assert found(tmp_path, BOOKKEEPING.format(name=name)) == []


SCORED = """
import torch


def fit(model, loader, optimizer, criterion):
    total, shown = 0, 0
    for x, y in loader:
        loss, scores = criterion(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {statement}
    return total, shown
"""


@pytest.mark.parametrize(("statement", "codes"), [("shown += scores[0]", []), ("total += loss", ["MEM101"])])
def test_what_a_loss_gives_beside_itself_is_not_known(tmp_path: Path, statement: str, codes: list[str]) -> None:
    assert found(tmp_path, SCORED.format(statement=statement)) == codes


LIBRARY = """
import torch


class Scorer:
    def __init__(self, net: torch.nn.Module):
        self.net = net

    def score(self, x, y):
        return torch.nn.functional.mse_loss(self.net(x), y)
"""

USE = """
import torch
from library import Scorer


def {name}(scorer: Scorer, loader):
    for x, y in loader:
        assert scorer.score(x, y).item() > 0
"""


def test_what_tests_do_with_an_output_says_nothing_of_those_that_it_is_for(tmp_path: Path) -> None:
    test = tmp_path / "test_use.py"
    test.write_text(USE.format(name="test_scores"))
    (tmp_path / "library.py").write_text(LIBRARY)
    assert [item.path for item in memlint.lint([tmp_path]).findings if item.path.endswith("library.py")] == []
    test.unlink()
    (tmp_path / "use.py").write_text(USE.format(name="show_scores"))
    assert [item.code for item in memlint.lint([tmp_path]).findings] == ["MEM201"]


CALLED = """
import torch
from torch.autograd import Variable


def scores(model, x):
    return model(Variable(x, volatile=True)).cpu().data.numpy()


def main(model, loader):
    model.eval()
    with {guard}:
        return [scores(model, x) for x in loader]
"""


@pytest.mark.parametrize(("guard", "codes"), [("torch.no_grad()", []), ("torch.enable_grad()", ["MEM203"])])
def test_a_guard_without_effect_where_all_callers_guard(tmp_path: Path, guard: str, codes: list[str]) -> None:
    assert found(tmp_path, CALLED.format(guard=guard)) == codes


ALGORITHM = """
import torch


class Contrast:
    def __init__(self, encoder, replay):
        self.encoder = encoder
        self.replay = replay

    def check(self, rounds):
        shown = []
        for _ in range(rounds):
            batch = self.replay.draw(32)
            {guard}:
                shown.append(self.encoder(batch).sum().item())
        return shown
"""

RUNNER = """
import torch


def run(algorithm: torch.nn.Module, epochs):
    for epoch in range(epochs):
        algorithm.eval()
        print(algorithm.check(3))
"""


@pytest.mark.parametrize(("guard", "codes"), [("with torch.no_grad()", []), ("if True", ["MEM201"])])
def test_a_method_of_an_unknown_module_that_guards_itself(tmp_path: Path, guard: str, codes: list[str]) -> None:
    (tmp_path / "algorithm.py").write_text(ALGORITHM.format(guard=guard))
    assert found(tmp_path, RUNNER) == codes


INNER = """
import torch
from torch import nn


class Pairs(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 8)
        self.head = nn.Linear(8, 1)

    def forward(self, a):
        with torch.set_grad_enabled({inside}):
            x = self.inner(a)
        {then}
        return x

    def predict(self, a):
        return torch.sigmoid(self.forward(a))


{guard}
def collect(model: Pairs, loader):
    kept = []
    for x in loader:
        kept.append(model.predict(x.cuda()).cpu())
    return torch.cat(kept).argmax().item()
"""


@pytest.mark.parametrize(
    ("inside", "then", "guard", "codes"),
    [
        ("True", "x = self.head(x)", "@torch.no_grad()", []),  # on inside, and cut by what comes after it
        ("True", "pass", "@torch.no_grad()", []),
        ("False", "pass", "", []),
        ("False", "x = self.head(x)", "", ["MEM102"]),
    ],
)
def test_a_graph_made_under_a_guard_ends_with_the_next_operation(
    tmp_path: Path, inside: str, then: str, guard: str, codes: list[str]
) -> None:
    text = INNER.format(inside=inside, then=then, guard=guard)
    assert [code for code in found(tmp_path, text) if code == "MEM102"] == codes


@pytest.mark.parametrize(
    ("decorator", "body", "codes"),
    [
        ("@torch.no_grad()", "import torch", []),
        ("@torch.no_grad()", "import torch.nn.functional as torch_f", []),
        ("@guard()", "guard = 3", []),
        ("@torch.enable_grad()", "import torch", ["MEM201"]),
    ],
)
def test_a_decorator_is_what_the_file_calls_so(tmp_path: Path, decorator: str, body: str, codes: list[str]) -> None:
    head = f"import torch\nfrom torch import no_grad as guard\n\n\n{decorator}\ndef evaluate(model, loader):\n"
    assert found(tmp_path, head + f"    {body}\n    model.eval()\n" + LOOP.lstrip("\n")) == codes


SAMPLED = """
import torch


def sample(generator, count):
    kept = []
    for _ in range(count):
        kept.append(generator.decoder(torch.randn(8, 4)))
    return torch.cat(kept)
"""
USED = """
import torch
from evaluate import sample


def main(generator: torch.nn.Module):
    generator.eval()
    {guard}:
        torch.save(sample(generator, 100).cpu(), "samples.pt")
"""
TESTED = """
import torch
from evaluate import sample


def test_sample():
    generator = torch.nn.ModuleDict({"decoder": torch.nn.Linear(4, 4)})
    assert sample(generator, 3).shape == (24, 4)
"""


@pytest.mark.parametrize(
    ("guard", "codes"),
    [("with torch.no_grad()", []), ("if True", ["MEM102", "MEM201"])],
    ids=["guarded", "not guarded"],
)
def test_who_tests_a_function_says_nothing_of_its_guard(tmp_path: Path, guard: str, codes: list[str]) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_sample.py").write_text(TESTED)
    (tmp_path / "use.py").write_text(USED.format(guard=guard))
    assert sorted(found(tmp_path, SAMPLED)) == codes


ROLLOUT = """
import torch


class Rollout:
    def __init__(self, generator):
        self.generator = generator

    def search(self, x, steps):
        hidden = self.generator.init_hidden(x.size(0))
        for _ in range(steps):
            out, hidden = self.generator.forward(x, hidden)
        return out

    def reward(self, x):
        {guard}:
            return self.search(x, 20).mean().item()


def train(generators, loader):
    for i in range(3):
        rollout = Rollout(generators[i])
        for x in loader:
            print(rollout.reward(x))
"""


@pytest.mark.parametrize(("guard", "expected"), [("with torch.no_grad()", False), ("if True", True)])
def test_the_state_of_a_model_of_no_known_class_under_the_guard_of_all_callers(
    tmp_path: Path, guard: str, expected: bool
) -> None:
    assert ("MEM103" in found(tmp_path, ROLLOUT.format(guard=guard))) is expected


def test_a_program_in_a_folder_of_tests_calls_as_any_other(tmp_path: Path) -> None:
    (tmp_path / "test").mkdir()
    program = USED.format(guard="if True") + "\n\nif __name__ == '__main__':\n    main(torch.load('net.pt'))\n"
    (tmp_path / "test" / "sample_all.py").write_text(program)
    (tmp_path / "use.py").write_text(USED.format(guard="with torch.no_grad()"))
    assert "MEM102" in found(tmp_path, SAMPLED)


CIRCLE = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Walker:
    def __init__(self, net: nn.Module, loader: DataLoader):
        self.net = net
        self.loader = loader
        self.kept = []

    def keep(self):
        for x in self.loader:
            self.kept.append(self.net(x).mean())
        print(sum(one.item() for one in self.kept))

    def walk(self, depth):
        self.keep()
        self.below(depth)

    def below(self, depth):
        if depth:
            self.walk(depth - 1)

    @torch.no_grad()
    def look(self):
        self.keep()


{guard}
def main(walker: Walker):
    {call}
"""


@pytest.mark.parametrize(
    ("guard", "call", "codes"),
    [
        ("", "walker.look()", ["MEM102"]),
        ("", "walker.walk(2)", ["MEM102"]),
        ("@torch.no_grad()", "walker.walk(2)", []),
    ],
)
def test_methods_that_only_call_each_other_have_an_unknown_caller(
    tmp_path: Path, guard: str, call: str, codes: list[str]
) -> None:
    (tmp_path / "train.py").write_text(CIRCLE.format(guard=guard, call=call))
    assert [item.code for item in memlint.lint([tmp_path], min_confidence="low").findings] == codes
