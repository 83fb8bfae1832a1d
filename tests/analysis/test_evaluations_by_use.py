"""Evaluations that only the use of the output tells: whose graphs are kept for no backward, whose model is trained by
another run, which a script's own body makes; and those where a backward may come after all."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader
from data import build, make, test_set
"""


def codes(folder: Path, text: str) -> set[str]:
    (folder / "main.py").write_text(HEAD + text, encoding="utf-8")
    result = memlint.lint([folder], isolated=True)
    assert not result.failures
    return {one.code for one in result.findings}


KEPT = """
def run(model, loader):
    total = 0.0
    for x, y in loader:
        out = model(x)
        total += {added}
    return total / len(loader)


if __name__ == "__main__":
    print(run(nn.Linear(3, 4).cuda(), DataLoader(test_set)))
"""


@pytest.mark.parametrize(
    ("added", "found"),
    [
        pytest.param("nn.functional.cross_entropy(out, y)", {"MEM101", "MEM201"}, id="kept"),
        pytest.param("out.argmax(1).eq(y).sum()", {"MEM201"}, id="spent"),
    ],
)
def test_what_keeps_graphs_for_no_backward_lacks_a_guard(tmp_path: Path, added: str, found: set[str]) -> None:
    assert codes(tmp_path, KEPT.format(added=added)) == found


TRAINED = """
def train(net, train_loader, valid_loader, optimizer, kind, criterion, epochs):
    net.train()
    for epoch in range(epochs):
        for x, y in train_loader:
            pred = net(x)
            if kind == "a":
                loss = criterion(pred, y)
            if kind == "b":
                loss = criterion(pred[0], y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        for x, y in valid_loader:
            pred = net(x)
            if kind == "a":
                loss = criterion(pred, y)
            if {second}:
                loss = criterion(pred[0], y)
            {used}
"""


@pytest.mark.parametrize(
    ("second", "used", "found"),
    [
        # in each round of either loop the loss is a new one: the last validation's never comes to the backward
        pytest.param('kind == "b"', "print(loss.item())", {"MEM201"}, id="validates"),
        pytest.param('kind == "b"', "loss.backward()", set(), id="trains"),
    ],
)
def test_a_validation_beside_its_training(tmp_path: Path, second: str, used: str, found: set[str]) -> None:
    assert codes(tmp_path, TRAINED.format(second=second, used=used)) == found


FIRST_ONLY = """
def train(net, loader, valid_loader, optimizer, criterion, epochs):
    net.train()
    for epoch in range(epochs):
        for i, (x, y) in enumerate(loader):
            if epoch == 0:
                loss = criterion(net(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        for x, y in valid_loader:
            loss = criterion(net(x), y)
"""


def test_a_value_of_an_earlier_loop_comes_where_a_test_tells_rounds_apart(tmp_path: Path) -> None:
    assert codes(tmp_path, FIRST_ONLY) == set()


SCRIPT = """
{net}
net.load_state_dict(torch.load("net.pt", map_location="cpu"))
correct = 0
for x, y in DataLoader(test_set):
    correct += (net(x.cuda()).argmax(1) == y).sum().item()
print(correct)
"""
OWN = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 3)

    def forward(self, x):
        return self.body(x)


net = Net()
"""
TRAINS = """
optimizer = torch.optim.SGD(net.parameters(), 0.1)
for x, y in DataLoader(test_set):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x.cuda()), y).backward()
    optimizer.step()
"""


@pytest.mark.parametrize(
    ("net", "found"),
    [
        pytest.param("net = nn.Linear(3, 3)", {"MEM201"}, id="a script"),
        pytest.param(OWN, set(), id="a demonstration of the model that the file defines"),
        pytest.param(OWN + TRAINS, {"MEM201"}, id="a program that trains the model that it defines"),
    ],
)
def test_the_body_of_a_script(tmp_path: Path, net: str, found: set[str]) -> None:
    assert codes(tmp_path, SCRIPT.format(net=net)) == found


ESTIMATOR = """
class Estimator:
    def __init__(self, model: nn.Module, criterion, optimizer):
        self.model, self.criterion, self.optimizer = model, criterion, optimizer

    def fit(self, x, y):
        self.optimizer.zero_grad()
        loss = self.criterion(self.model(x), y)
        loss.backward()
        self.optimizer.step()

    def scores(self, loader: DataLoader):
        self.model.eval()
        return torch.cat([self.one(x) for x in loader])

    def one(self, x):
        out = self.model(x.cuda()).softmax(1)
        {kept}
        return out


def test_scores(loader, criterion, optimizer):
    estimator = Estimator(nn.Linear(3, 3), criterion, optimizer)
    estimator.fit(*next(iter(loader)))
    print(estimator.scores(loader).argmax(1))
"""


@pytest.mark.parametrize(
    ("kept", "found"),
    [
        pytest.param("", True, id="never handed over"),
        pytest.param("self.criterion.last = out", False, id="left where the backward may find it"),
    ],
)
def test_a_backward_of_unknown_origin_reaches_what_it_is_given(tmp_path: Path, kept: str, found: bool) -> None:
    assert ("MEM201" in codes(tmp_path, ESTIMATOR.format(kept=kept))) == found


ROLES = """
def run_epoch(model, loader, criterion, {flag}):
    {named}
    if {test}:
        model.train()
    else:
        model.eval()
    total = 0.0
    for x, y in loader:
        {guard}
            loss = criterion(model(x), y)
        if {test}:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        total += loss.item()
    return total
"""


@pytest.mark.parametrize(
    ("flag", "named", "test"),
    [
        ("optimizer=None", "", "optimizer is not None"),
        ("optimizer=None", "training = optimizer is not None", "training"),
        ("optimizer=None", "training = True if optimizer else False", "training"),
        ("optimizer, training", "", "training"),
        ("optimizer, mode", "", "mode == 'train'"),
    ],
)
@pytest.mark.parametrize(
    ("guard", "found"), [("if True:", {"MEM201"}), ("with torch.set_grad_enabled({test}):", set())]
)
def test_a_parameter_that_tells_evaluation_from_training(
    tmp_path: Path, flag: str, named: str, test: str, guard: str, found: set[str]
) -> None:
    text = ROLES.format(flag=flag, named=named or "pass", test=test, guard=guard.format(test=test))
    assert codes(tmp_path, text) == found


def test_a_caller_that_guards_the_evaluation(tmp_path: Path) -> None:
    text = ROLES.format(flag="optimizer=None", named="pass", test="optimizer is not None", guard="if True:")
    text += """

def main(train_loader, valid_loader, optimizer):
    model = nn.Linear(3, 3).cuda()
    run_epoch(model, train_loader, nn.MSELoss(), optimizer)
    with torch.no_grad():
        run_epoch(model, valid_loader, nn.MSELoss())
"""
    assert codes(tmp_path, text) == set()


PER_BATCH = """
import contextlib

import torch


def run_epoch(model, loader, criterion, optimizer=None):
    {begin}
    model.train(optimizer is not None)
    for x, y in loader:
        {chosen}
        {guard}
            loss = {loss}
        if optimizer is not None:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
"""
CHOSEN = "cm = torch.no_grad if optimizer is None else torch.enable_grad"


@pytest.mark.parametrize(
    ("begin", "chosen", "guard", "loss", "found"),
    [
        pytest.param("", "", "", "", {"MEM201"}, id="nothing"),
        pytest.param(
            "if model is None:\n        raise ValueError", "", "", "", {"MEM201"}, id="something else refused"
        ),
        pytest.param("assert model is not None", "", "", "", {"MEM201"}, id="something else asserted"),
        pytest.param("", "", "with torch.autocast('cuda'):", "", {"MEM201"}, id="a with that asks nothing"),
        pytest.param("if optimizer is None:\n        raise ValueError", "", "", "", set(), id="refused"),
        pytest.param("assert optimizer is not None", "", "", "", set(), id="asserted"),
        pytest.param("assert optimizer", "", "", "", set(), id="asserted by truth"),
        pytest.param("optimizer = optimizer or torch.optim.SGD([])", "", "", "", set(), id="a default by or"),
        pytest.param("if not optimizer:\n        optimizer = torch.optim.SGD([])", "", "", "", set(), id="a default"),
        pytest.param("", CHOSEN, "with cm():", "", set(), id="a chosen guard"),
        pytest.param(CHOSEN, "", "with cm():", "", set(), id="a guard chosen before"),
        pytest.param(
            "table = {True: torch.enable_grad, False: torch.no_grad}\n    mode = table[optimizer is not None]",
            "",
            "with mode():",
            "",
            set(),
            id="a guard of a table",
        ),
        pytest.param(
            "guard = contextlib.nullcontext()\n    if optimizer is None:\n        guard = torch.no_grad()",
            "",
            "with guard:",
            "",
            set(),
            id="nullcontext",
        ),
        pytest.param(
            "", "", "", "model(x) if optimizer is not None else model.score(x)", set(), id="a side of an expression"
        ),
    ],
)
def test_a_parameter_that_guards_the_run_or_is_never_off(
    tmp_path: Path, begin: str, chosen: str, guard: str, loss: str, found: set[str]
) -> None:
    text = PER_BATCH.format(
        begin=begin or "pass",
        chosen=chosen or "pass",
        guard=guard or "if True:",
        loss=loss or "criterion(model(x), y)",
    )
    assert codes(tmp_path, text) == found


@pytest.mark.parametrize(("given", "found"), [("optimizer", set()), ("None", {"MEM201"})])
def test_a_parameter_that_every_caller_turns_on(tmp_path: Path, given: str, found: set[str]) -> None:
    text = PER_BATCH.format(begin="pass", chosen="pass", guard="if True:", loss="criterion(model(x), y)")
    text += f"""

def main(model, loader, other):
    optimizer = torch.optim.Adam(model.parameters())
    run_epoch(model, loader, torch.nn.MSELoss(), optimizer)
    run_epoch(model, other, torch.nn.MSELoss(), {given})
"""
    assert codes(tmp_path, text) == found


STACK = """
import contextlib


def validate(model, loader):
    model.eval()
    correct = 0
    with contextlib.ExitStack() as stack:
        stack.enter_context({entered})
        for x, y in loader:
            correct += (model(x).argmax(1) == y).sum().item()
    return correct
"""


@pytest.mark.parametrize(("entered", "found"), [("torch.no_grad()", set()), ("torch.autocast('cuda')", {"MEM201"})])
def test_a_guard_that_a_stack_enters(tmp_path: Path, entered: str, found: set[str]) -> None:
    assert codes(tmp_path, STACK.format(entered=entered)) == found


FROZEN = """
class Inception(nn.Module):
    def __init__(self, blocks, requires_grad={default}):
        super().__init__()
        self.body = nn.Linear(3, 3)
        {freezes}

    def forward(self, x):
        return self.body(x)


def activations(loader):
    model = Inception([3]).cuda()
    model.eval()
    kept = []
    for x in loader:
        kept.append(model(x.cuda()).cpu().data.numpy())
    return kept
"""
EACH = """for parameter in self.parameters():
            parameter.requires_grad = requires_grad"""
TESTED = """if not requires_grad:
            for parameter in self.parameters():
                parameter.requires_grad = False"""


@pytest.mark.parametrize("freezes", [EACH, TESTED], ids=["as the flag says", "where the flag says so"])
@pytest.mark.parametrize(("default", "found"), [("False", set()), ("True", {"MEM201"})])
def test_a_network_that_freezes_itself_by_a_flag(tmp_path: Path, freezes: str, default: str, found: set[str]) -> None:
    assert codes(tmp_path, FROZEN.format(freezes=freezes, default=default)) == found


TAGGER = """
class Head(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 3)

    def forward(self, x):
        return self.body(x)


class Tagger(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder
        self.starts = Head()
        self.ends = Head()

    def forward(self, ids, labels=None):
        outputs = self.encoder(ids)
        starts = self.starts(outputs[0])
        guess = starts.argmax(-1, keepdim=True).float()
        ends = self.ends(outputs[0] + guess)
        outputs = (starts, ends) + outputs[2:]
        if labels is not None:
            outputs = (nn.functional.cross_entropy(ends, labels),) + outputs
        return outputs
"""


def test_what_a_tuple_of_outputs_holds_is_returned(tmp_path: Path) -> None:
    assert codes(tmp_path, TAGGER) == set()


SWITCHED = """
def toggle(net, on):
    for parameter in net.parameters():
        parameter.requires_grad = on


class Own(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 3)

    def forward(self, x):
        with torch.set_grad_enabled(self.training):
            return self.body(x)


def evaluate(model: {model}, loader):
    model.eval()
    {before}
    total = 0.0
    for x, y in loader:
        total += nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    return total.item()
"""


@pytest.mark.parametrize(
    ("model", "before", "found"),
    [
        ("nn.Linear", "toggle(model, False)", set()),
        ("nn.Linear", "toggle(model, True)", {"MEM101", "MEM201"}),
        ("nn.Linear", "for i, (n, p) in enumerate(model.named_parameters()): p.requires_grad = False", set()),
        ("Own", "pass", set()),
    ],
)
def test_a_model_that_records_nothing(tmp_path: Path, model: str, before: str, found: set[str]) -> None:
    assert codes(tmp_path, SWITCHED.format(model=model, before=before)) == found


TAUGHT = """
import itertools


def train(student, teacher, loader):
    optimizer = torch.optim.Adam({owned})
    teacher.eval()
    student.train()
    {before}
    for x, y in loader:
        x, y = x.cuda(), y.cuda()
        soft = teacher(x)
        loss = nn.functional.mse_loss(student(x), soft) + nn.functional.cross_entropy(soft, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("owned", "before", "found"),
    [
        ("student.parameters()", "pass", {"MEM202"}),
        ("itertools.chain(student.parameters(), teacher.parameters())", "pass", set()),
        ("student.parameters()", "make.freeze(teacher)", set()),
    ],
)
def test_a_teacher_that_learns_or_is_frozen(tmp_path: Path, owned: str, before: str, found: set[str]) -> None:
    assert codes(tmp_path, TAUGHT.format(owned=owned, before=before)) == found


STEPPED = """
from transformers import Trainer


class Distilling(Trainer):
    def __init__(self, teacher, *args, **options):
        super().__init__(*args, **options)
        self.teacher = teacher.to(self.args.device)
        {before}

    def compute_loss(self, model, inputs, return_outputs=False):
        ours = model(**inputs)
        {soft}
        return nn.functional.mse_loss(ours.logits, theirs.logits)
"""


@pytest.mark.parametrize(
    ("before", "soft", "found"),
    [
        ("self.teacher.eval()", "theirs = self.teacher(**inputs)", {"MEM202"}),
        ("self.teacher.eval().requires_grad_(False)", "theirs = self.teacher(**inputs)", set()),
        ("pass", "theirs = self.teacher(**inputs)", set()),
        ("self.teacher.eval()", "theirs = model(**inputs)", set()),
    ],
)
def test_a_teacher_in_a_step_of_a_framework(tmp_path: Path, before: str, soft: str, found: set[str]) -> None:
    assert codes(tmp_path, STEPPED.format(before=before, soft=soft)) == found


MIXED = """
from transformers import Trainer


class InChunks:
    def compute_loss(self, model, inputs, return_outputs=False):
        total = torch.tensor(0.0)
        for chunk in inputs["input_ids"].split(8, dim=1):
            total = total + model(input_ids=chunk, labels=chunk).loss
        return total


class Training({bases}):
    pass
"""

CHECKED = """
from main import InChunks, nn, torch


class Stub(InChunks):
    pass


def test_finite():
    model = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 8)).cuda().eval()
    loss = Stub().compute_loss(model, {"input_ids": torch.randn(2, 16).cuda()})
    assert torch.isfinite(loss)
"""


@pytest.mark.parametrize(
    ("bases", "found"), [("InChunks, Trainer", set()), ("InChunks, list", {"MEM201"}), ("Trainer", {"MEM201"})]
)
def test_a_step_of_a_framework_in_a_mixin(tmp_path: Path, bases: str, found: set[str]) -> None:
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_main.py").write_text(CHECKED, encoding="utf-8")
    assert codes(tmp_path, MIXED.format(bases=bases)) == found


SHARED = """
import lightning


class Steps:
    def validation_step(self, batch, number):
        self.net.eval()
        return self.net(batch)


class Model(Steps, lightning.LightningModule):
    def __init__(self, net):
        super().__init__()
        self.net = net


class Further({base}):
    def __init__(self, net):
        super().__init__()
        self.net = net


def run(net, loader):
    further = Further(net)
    for number, x in enumerate(loader):
        further.validation_step(x, number)
"""


@pytest.mark.parametrize(
    ("base", "found"),
    [
        pytest.param("Steps", {"MEM201"}, id="a class of the project's own"),
        pytest.param("Steps, nn.Module", {"MEM201"}, id="a module"),
        pytest.param("Model", set(), id="below the framework's base"),
        pytest.param("Steps, lightning.LightningModule", set(), id="beside the framework's base"),
    ],
)
def test_a_mixin_of_other_classes_as_well(tmp_path: Path, base: str, found: set[str]) -> None:
    assert codes(tmp_path, SHARED.format(base=base)) == found


SELF = """
def search(model, loader, criterion, optimizer, random):
    random = random or not random
    if random:
        model.train()
    else:
        model.eval()
    for x, y in loader:
        loss = criterion(model(x), y)
        if random:
            loss.backward()
"""


def test_a_name_for_a_test_of_itself(tmp_path: Path) -> None:
    assert "MEM101" not in codes(tmp_path, SELF)


READ = """
def train(net, loader, optimizer):
    for i, x in enumerate(loader):
        out = net(x.cuda())
        loss = out.mean()
        if i > 0:
            loss = loss + (out - last).pow(2).mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
        last = out
"""


def test_what_later_rounds_alone_read_of_the_last_one(tmp_path: Path) -> None:
    assert "MEM112" not in codes(tmp_path, READ)


RETURNED = """
def grads(model, loader, criterion, optimizer=None):
    if optimizer is None:
        model.eval()
    total = 0
    for x, y in loader:
        loss = criterion(model(x), y)
        if optimizer is not None:
            loss.backward()
            optimizer.step()
        total = total + loss
    return total


def main(model, loader):
    grads(model, loader, nn.MSELoss(), None).backward()
"""


def test_a_caller_that_runs_the_backward(tmp_path: Path) -> None:
    assert "MEM201" not in codes(tmp_path, RETURNED)


def test_a_stack_lets_go_of_its_guard(tmp_path: Path) -> None:
    text = STACK.format(entered="torch.no_grad()").replace("    return correct\n", "")
    text += """    for x, y in loader:
        correct += (model(x).argmax(1) == y).sum().item()
    return correct
"""
    assert codes(tmp_path, text) == {"MEM201"}


CALLS = """
import functools
from torch.utils import _pytree as pytree
from torch.utils.checkpoint import checkpoint


def run(f, x, tree):
    functools.partial(checkpoint, f, x)()
    list(map(checkpoint, [f]))
    pytree.tree_map(func=f, tree=x)
    pytree.tree_map_only(torch.Tensor, fn=f, tree=tree)
    return checkpoint(f, x, m=x, use_reentrant=False)
"""


def test_calls_without_arguments_of_their_own(tmp_path: Path) -> None:
    assert codes(tmp_path, CALLS) == set()


SAMPLES = """
class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 2)
        self.decoder = nn.Linear(2, 8)

    def forward(self, x):
        z = self.encoder(x)
        return self.decoder(z), z

    def sample(self, z):
        return self.decoder(z)


def train(epochs):
    def score(x, y):
        return ((x - y) ** 2).mean()

    vae = Vae().cuda()
    optimizer = torch.optim.Adam(vae.parameters())
    for epoch in range(epochs):
        for step, (x, y) in enumerate(DataLoader(test_set)):
            out, z = vae(x.cuda())
            loss = score(out, x.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            if step % 50 == 0:
                x = vae.sample(torch.randn(9, 2).cuda())
                {shown}
"""


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        pytest.param("print(x.data.cpu().numpy())", {"MEM201"}, id="shown"),
        pytest.param("score(x, y).backward()", set(), id="trained by"),
        pytest.param("build(x)", set(), id="given to who knows whom"),
    ],
)
def test_samples_of_what_trains_by_its_forward(tmp_path: Path, shown: str, found: set[str]) -> None:
    assert codes(tmp_path, SAMPLES.format(shown=shown)) == found


TIMED = """
net = nn.Linear(3, 4).cuda()
net.eval()
for x, y in DataLoader(test_set):
    {taken}
"""


@pytest.mark.parametrize(
    ("name", "taken", "found"),
    [
        pytest.param("benchmark_steps.py", "out = net(x)\n\nnet(x).sum().backward()", set(), id="one of training too"),
        pytest.param("benchmark_steps.py", "out = net(x)", {"MEM201"}, id="one of inference"),
        pytest.param("benchmark_steps.py", "print(net(x).argmax().item())", {"MEM201"}, id="one that scores"),
        pytest.param("speedy.py", "out = net(x)", {"MEM201"}, id="none"),
    ],
)
def test_what_a_benchmark_times(tmp_path: Path, name: str, taken: str, found: set[str]) -> None:
    (tmp_path / name).write_text(HEAD + TIMED.format(taken=taken), encoding="utf-8")
    assert {one.code for one in memlint.lint([tmp_path], isolated=True).findings} == found


STANDS_IN = """
def measure(pred, y):
    error = (pred - y).abs().mean()
    return torch.tensor([error, error * error])


def plain(pred, y):
    return torch.stack([(pred - y).abs().mean()])


def validate(net, loader):
    net.eval()
    kept = []
    for x, y in loader:
        pred = net(x)
        try:
            score = measure(pred, y)
        except {caught}:
            score = plain(pred, y)
        kept.append(score)
    return kept


if __name__ == "__main__":
    print(validate(nn.Linear(4096, 4096).cuda(), DataLoader(test_set)))
"""


@pytest.mark.parametrize(("caught", "severity"), [("Exception", "warning"), ("KeyError", "error")])
def test_what_a_handler_of_anything_gives_instead_keeps_no_graph(tmp_path: Path, caught: str, severity: str) -> None:
    (tmp_path / "main.py").write_text(HEAD + STANDS_IN.format(caught=caught), encoding="utf-8")
    (one,) = [each for each in memlint.lint([tmp_path], isolated=True).findings if each.code == "MEM201"]
    assert one.severity == severity


STEPS = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(3, 4)
        self.scaler = torch.cuda.amp.GradScaler()

    def step_of(self, x, optimizer):
        loss = self.body(x).mean()
        {inside}
        return loss

    def fit(self, loader, optimizer):
        for x in loader:
            print(self.step_of(x.cuda(), optimizer).item())


if __name__ == "__main__":
    Net().cuda().fit(DataLoader(test_set), make())
"""


@pytest.mark.parametrize(
    ("inside", "found"),
    [
        pytest.param("self.scaler.scale(loss).backward(); self.scaler.step(optimizer)", set(), id="trains"),
        pytest.param("loss.backward(); optimizer.step()", set(), id="trains plainly"),
        pytest.param("print(loss.item())", {"MEM201"}, id="shows"),
    ],
)
def test_a_step_that_runs_its_own_backward(tmp_path: Path, inside: str, found: set[str]) -> None:
    assert codes(tmp_path, STEPS.format(inside=inside)) == found


HELD = """
class Tester:
    def __init__(self, net):
        self.net = net

    def evaluate(self, loader):
        self.net.eval()
        for x, y in loader:
            out = self.net(x.cuda())
            print(out.argmax().item())
            {kept}


Tester(nn.Linear(3, 4).cuda()).evaluate(DataLoader(test_set))
"""


@pytest.mark.parametrize(
    ("kept", "said"),
    [
        ("self.last = out", "`self.last` keeps the graph until it is replaced"),
        ("self.last = out.detach()", "nothing keeps the graph"),
        ("self.last = out.argmax().item()", "nothing keeps the graph"),
    ],
)
def test_what_an_attribute_holds(tmp_path: Path, kept: str, said: str) -> None:
    (tmp_path / "main.py").write_text(HEAD + HELD.format(kept=kept), encoding="utf-8")
    (one,) = [each for each in memlint.lint([tmp_path], isolated=True).findings if each.code == "MEM201"]
    assert said in one.message
