"""``backward(retain_graph=True)``: where no other backward goes through the graph, and where one may."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from tests.linting import severities_in

HEAD = """
import torch
from torch import nn
from somewhere import build, consume


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(torch.relu(self.body(x)))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(8, 8)
        self.state = None

    def forward(self, x):
        self.state = self.cell(x, self.state)
        return self.state


class Wrapper(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = Recurrent()
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        return self.head(self.inner(x))

"""

TRAIN = (
    HEAD
    + """
def train(loader, epochs, device):
    model = {model}
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    {before}
    for x, y in loader:
        out = model(x.to(device))
        loss = nn.functional.cross_entropy(out, y.to(device))
        {backward}
        {after}
        optimizer.step()
        optimizer.zero_grad()
    {behind}
"""
)


def found(tmp_path: Path, text: str, confidence: str = "medium") -> list[str]:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "code.py").write_text(text)
    findings = memlint.lint([tmp_path], isolated=True, min_confidence=confidence).findings
    return [one.severity for one in findings if one.code == "MEM112"]


def train(tmp_path: Path, confidence: str = "medium", **parts: str) -> list[str]:
    fields = {
        "model": "Net().to(device)",
        "before": "pass",
        "backward": "loss.backward(retain_graph=True)",
        "after": "pass",
        "behind": "pass",
        **parts,
    }
    return found(tmp_path, TRAIN.format(**fields), confidence)


@pytest.mark.parametrize(
    ("backward", "expected"),
    [
        ("loss.backward(retain_graph=True)", ["warning"]),
        ("loss.mean().backward(retain_graph=True)", ["warning"]),
        ("scaler.scale(loss).backward(retain_graph=True)", ["warning"]),
        ("loss.backward()", []),
        ("loss.backward(retain_graph=False)", []),
        ("loss.backward(retain_graph=epochs > 1)", []),
        ("loss.backward(retain_graph=True, inputs=[model.head.weight])", []),
    ],
)
def test_which_backward(tmp_path: Path, backward: str, expected: list[str]) -> None:
    assert train(tmp_path, backward=backward, before="scaler = torch.amp.GradScaler()") == expected


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        ("pass", ["warning"]),
        ("print(loss.item(), out.shape)", ["warning"]),
        ("other = nn.functional.mse_loss(model(x.to(device)), y); other.backward()", ["warning"]),
        ("loss, out = loss.item(), out.argmax(1)", ["note"]),
        ("out.square().mean().backward()", []),
        ("(0.5 * loss).backward()", []),
        ("torch.autograd.grad(out.sum(), model.head.weight)", []),
        ("consume(out)", []),
        ("consume(loss=loss)", []),
    ],
)
def test_what_follows_it(tmp_path: Path, after: str, expected: list[str]) -> None:
    assert train(tmp_path, after=after) == expected


@pytest.mark.parametrize(
    ("before", "after", "behind", "expected"),
    [
        ("kept = []", "kept.append(loss)", "sum(kept).backward()", []),
        ("kept = []", "kept.append(loss)", "return kept", []),
        ("kept = 0", "kept = kept + loss", "kept.backward()", []),
        ("kept = 0", "kept = kept + loss.item()", "return kept", ["warning"]),
        ("kept = 0", "later = lambda: loss.backward()", "return later", []),
        ("kept = 0", "pass", "return out", []),
        ("kept = 0", "pass", "return loss.item()", ["warning"]),
    ],
)
def test_what_is_kept(tmp_path: Path, before: str, after: str, behind: str, expected: list[str]) -> None:
    assert train(tmp_path, before=before, after=after, behind=behind) == expected


@pytest.mark.parametrize(
    ("model", "shown", "hidden"),
    [
        ("Net()", ["warning"], ["warning"]),
        ("nn.Sequential(nn.Linear(8, 8), Net())", ["warning"], ["warning"]),
        ("Recurrent()", [], []),
        ("Wrapper()", [], []),
        ("build()", ["note"], ["note"]),
    ],
)
def test_what_the_model_keeps(tmp_path: Path, model: str, shown: list[str], hidden: list[str]) -> None:
    assert train(tmp_path, model=model) == shown
    assert train(tmp_path, model=model, confidence="low") == hidden


@pytest.mark.parametrize("use", ["model.hidden = None", "model.detach_state()", "model.reset_memory()"])
def test_a_state_that_is_looked_after(tmp_path: Path, use: str) -> None:
    assert train(tmp_path, after=use, confidence="low") == []


def test_a_backward_that_keeps_the_graph_on_some_rounds(tmp_path: Path) -> None:
    text = "if epochs > 1: loss.backward(retain_graph=True)\n        else: loss.backward()"
    assert train(tmp_path, backward=text) == []


def test_branches_with_losses_of_their_own(tmp_path: Path) -> None:
    text = "if epochs > 1: loss.backward(retain_graph=True)\n        else: (2 * loss).square().backward()"
    assert train(tmp_path, backward=text) == ["warning"]


TARGETS = (
    HEAD
    + """
class Training:
    def __init__(self, loader):
        self.loader = loader
        self.net = Net().cuda()

    def train(self):
        self.real = {made}
        self.real = self.real.cuda()
        for epoch in range(10):
            for x, _ in self.loader:
                out = self.net(x.cuda())
                loss = nn.functional.mse_loss(out, self.real)
                loss.backward(retain_graph=True)
                {after}
            self.show(epoch)

    def show(self, epoch):
        self.net.eval()
"""
)


@pytest.mark.parametrize(
    ("made", "after", "expected"),
    [
        ("torch.ones(64, 2)", "pass", ["warning"]),
        ("torch.ones(64, 2)", "self.real = out.detach()", ["warning"]),
        ("torch.ones(64, 2)", "self.real = out", []),
        ("self.net(torch.ones(64, 8).cuda())", "pass", []),
        ("unresolved()", "pass", []),
    ],
)
def test_what_an_attribute_holds_from_round_to_round(
    tmp_path: Path, made: str, after: str, expected: list[str]
) -> None:
    assert found(tmp_path, TARGETS.format(made=made, after=after)) == expected


def test_what_was_made_before_the_loop(tmp_path: Path) -> None:
    text = """
def fit(x, steps):
    encoder, decoder = Net(), Net()
    code = encoder(x)
    for _ in range(steps):
        loss = decoder(code).mean()
        loss.backward(retain_graph=True)
"""
    assert found(tmp_path, HEAD + text, "low") == []


def test_a_state_that_is_carried_through_the_rounds(tmp_path: Path) -> None:
    text = """
def fit(xs):
    cell = nn.GRUCell(8, 8)
    h = torch.zeros(1, 8)
    for x in xs:
        h = cell(x, h)
        loss = h.mean()
        loss.backward(retain_graph=True)
"""
    assert found(tmp_path, HEAD + text, "low") == []


METHODS = (
    HEAD
    + """
class Trainer:
    def __init__(self, loader):
        self.loader = loader
        self.net, self.critic = Net(), Net()

    def run(self):
        for x in self.loader:
            self.forward(x)
            self.step_critic()
            self.step_net()

    def forward(self, x):
        self.out = self.net(x)

    def step_critic(self):
        self.loss = self.critic(self.out{cut}).mean()
        self.loss.backward(retain_graph=True)

    def step_net(self):
        loss = self.critic(self.out).mean()
        loss.backward()
"""
)


@pytest.mark.parametrize(("cut", "expected"), [("", []), (".detach()", ["note"])])
def test_methods_that_share_a_graph(tmp_path: Path, cut: str, expected: list[str]) -> None:
    assert found(tmp_path, METHODS.format(cut=cut)) == expected


STEP = (
    HEAD
    + """
def step(model: Net, x, y):
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward(retain_graph=True)
    return loss


def train(loader, model: Net):
    for x, y in loader:
        loss = step(model, x, y)
        {use}
"""
)


@pytest.mark.parametrize(
    ("use", "expected"), [("print(loss.item())", ["note"]), ("loss.backward()", []), ("consume(loss)", [])]
)
def test_what_callers_do_with_the_loss(tmp_path: Path, use: str, expected: list[str]) -> None:
    assert found(tmp_path, STEP.format(use=use)) == expected


def test_tests_are_left_alone(tmp_path: Path) -> None:
    text = "\ndef test_it():\n    model = Net()\n    model(torch.ones(1, 8)).sum().backward(retain_graph=True)\n"
    assert found(tmp_path, HEAD + text, "low") == []


PENALTY = (
    HEAD
    + """
def penalty(net, x):
    x.requires_grad_(True)
    return torch.autograd.grad(net(x).sum(), x, create_graph=True)[0].square().mean()


def train(loader, device):
    model = Net().to(device)
    for x, y in loader:
        x = x.to(device)
        {before}
        loss = nn.functional.cross_entropy(model(x), y.to(device)) {plus}
        loss.backward(retain_graph=True)
        {after}
"""
)


@pytest.mark.parametrize(
    ("before", "plus", "after", "expected"),
    [
        ("extra = penalty(model, x.detach())", "+ extra", "pass", ["warning"]),
        ("pass", "", "extra = penalty(model, x.detach())", []),
    ],
)
def test_what_a_helper_differentiates(tmp_path: Path, before: str, plus: str, after: str, expected: list[str]) -> None:
    assert found(tmp_path, PENALTY.format(before=before, plus=plus, after=after)) == expected


PARTS = (
    HEAD
    + """
def train({given}, device, criterion):
    model = Net().to(device)
    for i in range(100):
        loss = criterion(model({x}), {y})
        loss.backward(retain_graph=True)
        {after}
"""
)


@pytest.mark.parametrize(
    ("given", "x", "y", "after", "expected"),
    [
        ("dataset", "torch.randn(8, 8)", "dataset[i]", "pass", ["warning"]),
        ("outputs", "torch.randn(8, 8)", "outputs[i]", "pass", []),
        ("outputs", "outputs", "torch.ones(8, 2)", "pass", []),
        ("dataset", "torch.randn(8, 8)", "dataset[i]", "consume(i).backward()", []),
        ("dataset", "torch.randn(8, 8)", "dataset[i]", "model(dataset[i]).sum().backward()", ["warning"]),
    ],
)
def test_what_each_round_goes_through(
    tmp_path: Path, given: str, x: str, y: str, after: str, expected: list[str]
) -> None:
    assert found(tmp_path, PARTS.format(given=given, x=x, y=y, after=after), "low") == expected


MADE_BEFORE = [
    """
class Cached(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8, 8))
        self.inverse = None

    def forward(self, x):
        if self.inverse is None:
            self.inverse = torch.linalg.inv(self.weight)
        return x @ self.inverse


def train(loader):
    net = Cached()
    for x, y in loader:
        loss = nn.functional.mse_loss(net(x), y)
        loss.backward(retain_graph=True)
""",
    """
class Weighted:
    def __init__(self):
        self.net = Net()
        self.raw = nn.Parameter(torch.ones(2))
        self.weights = torch.softmax(self.raw, 0)

    def step(self, x):
        loss = (self.net(x).mean(0) * self.weights).sum()
        loss.backward(retain_graph=True)
""",
    """
class Anchored:
    def __init__(self):
        self.net = Net()
        self.anchor = self.net(torch.ones(1, 8))

    def fit(self, loader):
        for x in loader:
            loss = (self.net(x) - self.anchor).square().mean()
            loss.backward(retain_graph=True)
""",
    """
def fit(optimizer, x):
    net = Net()
    raw = torch.ones(2, requires_grad=True)
    weights = torch.softmax(raw, 0)

    def closure():
        loss = (net(x).mean(0) * weights).sum()
        loss.backward(retain_graph=True)
        return loss.item()

    optimizer.step(closure)
""",
    """
def balance(loader, raw):
    net = Net()
    for x in loader:
        out = net(x)
        losses = torch.stack([out.mean(), out.square().mean()])
        (raw * losses).sum().backward(retain_graph=True)
        norms = [torch.autograd.grad(one, net.head.weight, retain_graph=True)[0].norm() for one in losses]
        print(norms)
""",
    """
def per_sample(loader):
    net = Net()
    for x in loader:
        out = net(x)
        for i in range(len(out)):
            out[i].sum().backward(retain_graph=True)
""",
    """
def several_epochs(loader, epochs):
    net = Net()
    for x, y in loader:
        value = net(x)
        for _ in range(epochs):
            loss = (value - y).square().mean()
            loss.backward(retain_graph=True)
""",
]


@pytest.mark.parametrize("text", MADE_BEFORE)
def test_graphs_that_several_rounds_go_through(tmp_path: Path, text: str) -> None:
    assert found(tmp_path, HEAD + text, "low") == []


ROUNDS = (
    HEAD
    + """
def fit(loader, writer, given, other, config):
    model, second = Net(), Net()
    held, state = [], 0
    for x, y in loader:
        {body}
"""
)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # a list that each round makes anew, and a sum that an inner loop makes
        ("parts = [model(x), second(x)]; loss = torch.stack(parts).mean(); {keep}", ["warning"]),
        (
            "total = 0\n        for _ in range(9): total = total + model(x).mean()\n        loss = total; {keep}",
            ["warning"],
        ),
        ("loss = model(x).mean() / config.steps; {keep}", ["warning"]),
        ("loss = model(x).mean(); {keep}; writer.add_scalar('loss', loss, 1)", ["warning"]),
        # one that all rounds share
        ("held.append(model(x)); loss = torch.stack(held).mean(); {keep}", []),
        ("state = state + model(x).mean(); loss = state; {keep}", []),
        ("loss = model(x).mean() + given; {keep}", []),
        ("loss = model(x).mean(); {keep}; writer.add_scalar('loss', loss, 1); other(loss)", []),
        ("loss = model(x).mean(); {keep}; kept = writer.add_scalar('loss', loss, 1)", []),
    ],
)
def test_what_a_round_makes_anew(tmp_path: Path, body: str, expected: list[str]) -> None:
    body = body.format(keep="loss.backward(retain_graph=True)")
    assert found(tmp_path, ROUNDS.format(body=body)) == expected


def test_what_is_given_may_bring_the_callers_graph(tmp_path: Path) -> None:
    text = """
class Critic:
    def __init__(self):
        self.net, self.alpha = Net(), 1.0

    def update(self, features, weight=2.0):
        loss = self.net(features).mean() * weight
        loss.backward(retain_graph=True)

    def step(self, batch, weight=2.0):
        loss = self.net(batch).mean() * weight
        loss.backward(retain_graph=True)

    def tuned(self, batch):
        self.alpha = batch.log_alpha.exp()

    def step_with(self, batch):
        loss = self.net(batch).mean() * self.alpha
        loss.backward(retain_graph=True)
"""
    assert found(tmp_path, HEAD + text) == ["note"]


def test_two_results_of_one_call_share_its_trunk(tmp_path: Path) -> None:
    text = """
class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)
        self.first, self.second = nn.Linear(8, 2), nn.Linear(8, 2)

    def forward(self, x):
        trunk = torch.relu(self.body(x))
        outs = []
        for head in (self.first, self.second):
            outs.append(head(trunk))
        return outs[0], self.second(trunk), outs

def fit(loader):
    model = Pair()
    for x, y in loader:
        a, b, _ = model(x)
        a.mean().backward(retain_graph=True)
        b.mean().backward()
"""
    assert found(tmp_path, HEAD + text) == []


FED_BACK = """
class Writer(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def forward(self, x, before, ratio):
        return self.body(x if before is None else x + before) * ratio

def step(x, y, model, optimizer, ratio):
    before = None
    for _ in range(3):
        out = model(x, before, ratio)
        loss = nn.functional.cross_entropy(out, y)
        loss.backward(retain_graph=True)
        optimizer.step()
        optimizer.zero_grad()
        before = {before}
    {behind}

def epochs(loader, count, ratio):
    model = Writer()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(count):
        for x, y in loader:
            step(x, y, model, optimizer, ratio)

def main(loader):
    epochs(loader, 3, ratio={ratio})
"""


@pytest.mark.parametrize(
    ("before", "ratio", "behind", "told"),
    [
        ("out.topk(1, dim=1)[1].squeeze()", "0.5", "pass", 1),
        ("out.data", "0.5", "pass", 1),
        ("out", "0.5", "pass", 0),
        ("torch.relu(out)", "0.5", "pass", 0),
        ("out", "0.5", "before = None", 0),
        ("out.data", "nn.Parameter(torch.ones(1)).exp()", "pass", 0),
    ],
)
def test_what_a_round_hands_to_the_next_brings_its_graph(
    tmp_path: Path, before: str, ratio: str, behind: str, told: int
) -> None:
    assert len(found(tmp_path, HEAD + FED_BACK.format(before=before, ratio=ratio, behind=behind))) == told


@pytest.mark.parametrize(("start", "told"), [("y.requires_grad = True", 1), ("y.requires_grad_(True)", 0), ("pass", 0)])
def test_a_graph_that_begins_at_an_input(tmp_path: Path, start: str, told: int) -> None:
    text = """
class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def backward_pass(self, y, dy):
        with torch.enable_grad():
            {start}
            out = self.body(y)
            out.backward(dy, retain_graph=True)
        with torch.no_grad():
            x = y - out
            del out
            dx = dy + y.grad
            y.grad = None
        return x, dx
"""
    assert len(found(tmp_path, HEAD + text.format(start=start))) == told


LEAVES = (
    HEAD
    + """
def points(count):
    t = torch.linspace(0, 8, count).view(-1, 1)
    {leaf}
    return t, 2.0 * torch.sin(3.0 * t)


def main(epochs):
    net = Net()
    optimizer = torch.optim.Adam(net.parameters())
    t, y = points(100)
    for _ in range(epochs):
        loss = (net(t) - y).square().mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()


main(10)
"""
)


@pytest.mark.parametrize(
    ("leaf", "expected"), [("t.requires_grad = True", []), ("t.requires_grad_()", []), ("t = t + 1", ["warning"])]
)
def test_what_is_computed_once_of_a_leaf_has_a_graph_that_all_rounds_go_through(
    tmp_path: Path, leaf: str, expected: list[str]
) -> None:
    assert found(tmp_path, LEAVES.format(leaf=leaf)) == expected


CONSTANT = (
    HEAD
    + """
SMALL = {constant}


class Scaled(Net):
    def forward(self, x):
        return super().forward(x) / (x.sum() + SMALL)


def train(loader, device):
    model = Scaled().to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in loader:
        loss = nn.functional.cross_entropy(model(x.to(device)), y.to(device))
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()


train(torch.utils.data.DataLoader([]), "cuda")
"""
)


@pytest.mark.parametrize(("constant", "found"), [("1e-10", ["MEM112"]), ("build()", []), ("Net()(torch.ones(8))", [])])
def test_a_constant_of_the_module_brings_no_graph_in(tmp_path: Path, constant: str, found: list[str]) -> None:
    (tmp_path / "train.py").write_text(CONSTANT.format(constant=constant), encoding="utf-8")
    codes = [one.code for one in memlint.lint([tmp_path], isolated=True).findings]
    assert [code for code in codes if code == "MEM112"] == found


ROWS = """
import torch


def jacobian(model, x, kept):
    outputs = {made}
    {before}
    rows = torch.zeros(outputs.numel(), x.numel(), device="cuda")
    for i in range(outputs.numel()):
        x.grad = None
        outputs[i].backward(retain_graph=True)
        rows[i] = x.grad.flatten()
    {behind}
"""


@pytest.mark.parametrize(
    ("made", "before", "behind", "expected"),
    [
        pytest.param("model(x).sum(0)", "pass", "return rows", [], id="freed as the function ends"),
        pytest.param("model(x).sum(0)", "pass", "model.last = rows", ["note"], id="a statement follows"),
        pytest.param("model(x).sum(0)", "pass", "model.last = outputs", ["note"], id="stored in an attribute"),
        pytest.param("model(x).sum(0)", "kept.append(outputs)", "return rows", ["note"], id="stored in a list"),
        pytest.param("model(x).sum(0)", "kept.append(outputs.detach())", "return rows", [], id="its values in a list"),
        pytest.param("model.outputs = model(x).sum(0)", "pass", "return rows", ["note"], id="another name"),
        pytest.param("model(x).sum(0)", "pass", "return {'out': outputs, 'rows': rows}", ["note"], id="in the result"),
        pytest.param("model(x).sum(0)", "pass", "return {'rows': rows}", [], id="not in the result"),
        pytest.param("model(x).sum(0)", "pass", "yield rows", ["note"], id="a generator"),
        pytest.param(
            "model(x).sum(0)", "pass", "while rows is not None: rows = rows @ rows", ["note"], id="work without a call"
        ),
    ],
)
def test_a_graph_after_its_last_round(tmp_path: Path, made: str, before: str, behind: str, expected: list[str]) -> None:
    assert found(tmp_path, ROWS.format(made=made, before=before, behind=behind)) == expected


TASKS = (
    HEAD
    + """
def adapt(batch, model):
    loss = nn.functional.cross_entropy(model(batch), batch.labels)
    loss.backward({flags})
    loss += nn.functional.cross_entropy(model(batch), batch.labels)
    return loss


def over(tasks, model):
    total = 0
    for one in tasks:
        total += adapt(one, model)
    return total


class Tasks(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tasks):
        return over(tasks, self.model)
"""
)


@pytest.mark.parametrize(
    ("flags", "found"),
    [
        ("", True),
        ("retain_graph=False, create_graph=True", True),
        ("create_graph=True", False),
        ("retain_graph=None, create_graph=True", False),
        ("retain_graph=build.keep", True),
        ("create_graph=build.keep, retain_graph=build.keep", False),
    ],
)
def test_a_graph_that_a_flag_may_keep_is_for_the_caller(tmp_path: Path, flags: str, found: bool) -> None:
    (tmp_path / "tasks.py").write_text(TASKS.format(flags=flags))
    codes = [one.code for one in memlint.lint([tmp_path], isolated=True).findings]
    assert ("MEM101" in codes) is found


CLOSURE = """
import torch
from torch import nn


def main(iterator, losses, device):
    data = [nn.Linear(8, 8)(x) for x in losses]
    net = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 1)).to(device)
    optimizer = torch.optim.Adam(net.parameters())

    def epoch():
        for step in {over}:
            optimizer.zero_grad()
            loss = {loss}
            loss.backward(retain_graph=True)
            optimizer.step()

    for _ in range(10):
        epoch()
"""


@pytest.mark.parametrize(
    ("over", "loss", "expected"),
    [
        ("iterator", "net(step.to(device)).mean()", ["note"]),
        # what the enclosing function computed has one graph for all epochs, whatever its name
        ("data", "net(step).mean()", []),
        # what the enclosing function's tensors are made of enters with them, in each round
        ("range(10)", "net(losses[step]).mean()", []),
        ("losses", "net(step).mean()", []),
    ],
)
def test_batches_of_an_enclosing_function(tmp_path: Path, over: str, loss: str, expected: list[str]) -> None:
    assert severities_in(tmp_path, CLOSURE.format(over=over, loss=loss), "MEM112") == expected
