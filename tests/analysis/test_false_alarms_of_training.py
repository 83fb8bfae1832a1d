"""Training code that is right, beside the same code with the mistake: only the second is told."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint


def said(folder: Path, **files: str) -> set[tuple[str, str]]:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text, encoding="utf-8")
    found = memlint.lint([folder], isolated=True).findings
    return {(one.code, one.severity) for one in found}


COUNTS = """
import torch


def train(task, model, loader, optimizer):
    seen = 0
    for batch in loader:
        loss, size = task(model, batch), task.{method}(batch)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        seen += size * 2
    return float(seen)
"""


def test_a_method_that_counts_gives_a_number(tmp_path: Path) -> None:
    assert said(tmp_path, train=COUNTS.format(method="batch_size")) == set()


NORMS = """
import torch


class Meter:
    def __init__(self):
        self.avg = 0

    def update(self, value):
        self.avg = 0.9 * self.avg + 0.1 * value


def train(model, loader, optimizer):
    meter = Meter()
    for x, y in loader:
        loss = (model(x.cuda()) - y.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        norm = torch.nn.utils.clip_grad.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        meter.update({value})
"""


@pytest.mark.parametrize(("value", "codes"), [("norm", set()), ("loss", {"MEM103"})])
def test_the_norm_of_gradients_has_no_graph(tmp_path: Path, value: str, codes: set[str]) -> None:
    assert {code for code, _ in said(tmp_path, train=NORMS.format(value=value))} == codes


VIEWS = """
import torch


class Views:
    def outputs(self, model, loader):
        model.{mode}()
        kept = []
        for view in loader:
            kept.append(model(view.to("cuda")))
        {after}
        return len(kept)

    def loss(self):
        return self.all.square().mean()
"""


@pytest.mark.parametrize(
    ("mode", "after", "codes"),
    [
        ("train", "self.all = torch.stack(kept)[:2]", set()),
        ("train", "self.all = kept", set()),
        ("eval", "self.count = len(kept)", {"MEM102"}),
    ],
)
def test_parts_that_become_an_attribute_through_a_stack(tmp_path: Path, mode: str, after: str, codes: set[str]) -> None:
    found = said(tmp_path, views=VIEWS.format(mode=mode, after=after))
    assert {code for code, _ in found} & {"MEM102"} == codes


BANK = """
import torch


def nearest(features, rows):
    return (features @ rows).argmax(1)


def described(features, rows):
    print(rows.shape)
    return features.argmax(1)


def probe(model, loader, queries):
    model.cuda().eval()
    bank = []
    with torch.no_grad():
        for x, _ in loader:
            bank.append(model(x.cuda()))
        rows = torch.cat(bank).t()
        hits = 0
        for x, y in queries:
            hits += {use}
    return hits
"""


@pytest.mark.parametrize(
    ("use", "codes"),
    [
        ("(model(x.cuda()) @ rows).argmax(1).eq(y.cuda()).sum().item()", set()),
        ("torch.mm(model(x.cuda()), rows).argmax(1).eq(y.cuda()).sum().item()", set()),
        ("nearest(model(x.cuda()), rows).eq(y.cuda()).sum().item()", set()),
        ("nearest(model(x.cuda()), rows=rows).eq(y.cuda()).sum().item()", set()),
        ("described(model(x.cuda()), rows).eq(y.cuda()).sum().item()", {"MEM104"}),
        ("rows.size(1) + model(x.cuda()).argmax(1).eq(y.cuda()).sum().item()", {"MEM104"}),
    ],
)
def test_a_bank_that_everything_is_compared_with(tmp_path: Path, use: str, codes: set[str]) -> None:
    assert {code for code, _ in said(tmp_path, probe=BANK.format(use=use))} == codes


CACHE = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.project = nn.Linear(64, 64)
        self.keys = None

    def clear(self):
        self.keys = None

    def forward(self, x):
        key = self.project(x)
        if self.keys is not None:
            self.keys = torch.cat([self.keys, key], dim=1)
            key = self.keys
        return key.mean(1)


def decode(model: Attention, loader):
    for x in loader:
        {reset}
        for step in range(20):
            print(model(x).argmax(-1).tolist())
"""


@pytest.mark.parametrize("reset", ["model.clear()"])
def test_a_cache_that_is_begun_anew_for_each_sequence(tmp_path: Path, reset: str) -> None:
    assert ("MEM302", "error") not in said(tmp_path, decode=CACHE.format(reset=reset))


OF_UNKNOWN = """
import torch
import torch.nn.functional as F


def distance(scores, targets):
    return F.l1_loss(scores, targets)


def train(model, loader, optimizer):
    total = 0
    for graphs, targets in loader:
        scores = model.forward(graphs)
        loss = model.loss(scores, targets)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += distance(scores, targets)
    return float(total)
"""
NETS = "\n".join(
    f"""
class Net{number}:
    def loss(self, scores, targets):
        return ((scores - targets) ** {number}).mean()
"""
    for number in range(12)
)


def test_a_measure_of_what_a_backward_has_freed(tmp_path: Path) -> None:
    """More classes have a method ``loss`` than are looked at, so that the model's kind is not known."""
    assert said(tmp_path, train=OF_UNKNOWN, nets="import torch\n" + NETS) == {("MEM101", "warning")}


LEARNER = """
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(64, 64)

    def forward(self, x, state):
        new = self.layer(x + (0 if state is None else state[0]))
        return new, [new]


def learn(cell: Cell, batches_loader):
    states = [None]
    for x in batches_loader:
        weights, state = cell(x.cuda(), states[-1])
        states.append(state)
    return weights


def main(cell: Cell, tasks, optimizer, other):
    for batches_loader, x in tasks:
        weights = learn(cell, batches_loader)
        {use}
"""


@pytest.mark.parametrize(
    ("use", "codes"), [("(other(x) * weights).sum().backward()", set()), ("print(weights.argmax())", {"MEM102"})]
)
def test_states_of_what_is_returned_and_differentiated(tmp_path: Path, use: str, codes: set[str]) -> None:
    found = said(tmp_path, learn=LEARNER.format(use=use))
    assert {code for code, _ in found} & {"MEM102"} == codes


FROZEN = """
import torch
from torch import nn


class Generator(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.GRUCell(64, 64)

    def freeze(self):
        for parameter in self.parameters():
            parameter.requires_grad = False

    def sample(self, x):
        hidden = torch.zeros(8, 64).cuda()
        for _ in range(500):
            hidden = self.cell(x, hidden)
            x = hidden.argmax(1, keepdim=True).float().expand(8, 64)
        return x


def train(judge, loader):
    generator = Generator().cuda()
    {freeze}
    for x in loader:
        print(judge(generator.sample(x.cuda())).mean().item())
"""


@pytest.mark.parametrize(("freeze", "found"), [("generator.freeze()", False), ("generator.train()", True)])
def test_a_model_that_its_callers_freeze_records_nothing(tmp_path: Path, freeze: str, found: bool) -> None:
    assert ("MEM103" in {code for code, _ in said(tmp_path, train=FROZEN.format(freeze=freeze))}) is found


METERS = """
import torch


class Mean:
    def __init__(self):
        self.values = []

    {method}
        self.values.append(value.detach().cpu())
        return self


class Tracker:
    def __init__(self):
        self.tracks = {{}}

    def add(self, name):
        self.tracks[name] = Mean()

    def update(self, losses):
        for name, loss in losses.items():
            if name not in self.tracks:
                self.add(name)
            self.tracks[name] += loss
"""
TRAIN = """
import torch
from meters import Tracker


def train(model, loader, optimizer):
    tracker = Tracker()
    for x, y in loader:
        loss = (model(x.cuda()) - y.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        tracker.update(dict(loss=loss))
"""


def test_a_meter_whose_class_says_what_adding_does(tmp_path: Path) -> None:
    assert said(tmp_path, meters=METERS.format(method="def __iadd__(self, value):"), train=TRAIN) == set()


OLD = """
import torch
from torch.autograd import Variable

DEVICE = torch.device("cuda")


def measure(model, rows, criterion):
    total = 0.0
    for x, y in rows:
        loss = criterion(model(Variable(x, volatile=True)), Variable(y, volatile=True))
        total += {number}
    return total
"""


@pytest.mark.parametrize(
    ("number", "codes"),
    [("loss.data.cpu().numpy()[0]", set()), ("loss.data[0]", {"MEM203"}), ("loss.item()", {"MEM203"})],
)
def test_code_that_runs_only_where_volatile_works(tmp_path: Path, number: str, codes: set[str]) -> None:
    assert {code for code, _ in said(tmp_path, measure=OLD.format(number=number))} == codes


MEANS = """
import torch
import torch.nn.functional as F


def mean_of(value, ranks):
    total = value.clone()
    torch.distributed.all_reduce(total)
    total /= ranks
    return total


class Engine:
    def __init__(self, model, optimizer, ranks):
        self.model, self.optimizer, self.ranks = model.cuda(), optimizer, ranks

    def step(self, x, y):
        loss = F.cross_entropy(self.model(x), y)
        shown = mean_of(loss, self.ranks)
        self.optimizer.zero_grad()
        {backward}
        self.optimizer.step()
        return shown

    def epoch(self, loader):
        total = 0
        for x, y in loader:
            total += self.step(x.cuda(), y.cuda())
        print(float(total))
"""


@pytest.mark.parametrize(("backward", "severity"), [("loss.backward()", "warning"), ("shown.backward()", "warning")])
def test_what_a_helper_makes_of_a_loss_is_freed_with_it(tmp_path: Path, backward: str, severity: str) -> None:
    assert said(tmp_path, engine=MEANS.format(backward=backward)) == {("MEM101", severity)}


ENOUGH = """
import torch


def pairs(model, loader, wanted):
    model.cuda().eval()
    kept, seen = [], 0
    with torch.no_grad():
        for x, _ in loader:
            kept.append(model(x.cuda()))
            seen += len(x)
            if {test}:
                {then}
    return torch.cat(kept).cpu()
"""


@pytest.mark.parametrize(
    ("test", "then", "codes"),
    [
        ("sum(one.size(0) for one in kept) >= wanted", "break", set()),
        ("seen >= wanted", "break", set()),
        ("seen >= wanted", "print(seen)", {"MEM104"}),
        ("x.isnan().any()", "break", {"MEM104"}),
    ],
)
def test_a_loop_that_ends_when_enough_is_collected(tmp_path: Path, test: str, then: str, codes: set[str]) -> None:
    assert {code for code, _ in said(tmp_path, pairs=ENOUGH.format(test=test, then=then))} == codes


PIPES = """
import torch


class Pipes:
    def __init__(self, readers):
        self.readers = readers

    def {name}(self):
        images = []
        for data in self.readers:
            images.append(data["images"].to("cuda"))
        return torch.cat(images)
"""


@pytest.mark.parametrize("name", ["__next__", "collate_fn"])
def test_the_parts_of_one_batch(tmp_path: Path, name: str) -> None:
    assert said(tmp_path, pipes=PIPES.format(name=name)) == set()


WHERE = """
import torch


def step(model, x, y, optimizer, use):
    if use:
        loss = (model(x.cuda()) - y.cuda()).square().mean()
    else:
        loss = 0
    optimizer.zero_grad()
    if {test}:
        loss.backward()
    optimizer.step()
    return loss


def train(model, loader, optimizer, use):
    total = 0
    for x, y in loader:
        total += step(model, x, y, optimizer, use)
    print(float(total))
"""


@pytest.mark.parametrize(
    ("test", "freed"),
    [("loss != 0", True), ("loss", True), ("loss > 0", True), ("use > 2", False)],
)
def test_a_backward_wherever_there_is_a_loss(tmp_path: Path, test: str, freed: bool) -> None:
    (tmp_path / "train.py").write_text(WHERE.format(test=test), encoding="utf-8")
    (found,) = memlint.lint([tmp_path], isolated=True, select=["MEM101"]).findings
    assert ("where no backward() runs" not in found.message) is freed


ONCE = """
import torch


def decode(model, loader):
    model.cuda().eval()
    kept = []
    for i, x in enumerate(loader):
        if {test}:
            kept.append(model(x.cuda()))
    print(len(kept))
"""


@pytest.mark.parametrize(("test", "kept"), [("i == 1", False), ("i > 1", True)])
def test_what_one_round_alone_keeps(tmp_path: Path, test: str, kept: bool) -> None:
    assert ("MEM102" in {code for code, _ in said(tmp_path, decode=ONCE.format(test=test))}) is kept


ARRAYS = """
import torch


def collect(model, loader):
    model.cuda().eval()
    kept = []
    for x, _ in loader:
        kept.append(model(x.cuda()).cpu())
    return {use}
"""


@pytest.mark.parametrize(
    ("use", "codes"),
    [
        ("torch.nn.functional.normalize(torch.cat(kept)).numpy()", set()),
        ("torch.cat(kept).detach().numpy()", {"MEM102", "MEM201"}),
        ("torch.cat(kept).log_probs_of(1).numpy()", {"MEM102", "MEM201"}),
    ],
)
def test_numpy_takes_only_what_has_no_graph(tmp_path: Path, use: str, codes: set[str]) -> None:
    assert {code for code, _ in said(tmp_path, collect=ARRAYS.format(use=use))} == codes


SMOOTHED = """
import torch


def smooth(model, signals):
    model.cuda().eval()
    for signal in signals:
        {test}:
            {use}
"""
ITSELF, DETACHED = "yield model(signal.cuda()).cpu().numpy()", "yield model(signal.cuda()).cpu().detach().numpy()"
INDICES = "best, scores = model(signal.cuda()); yield best.cpu().numpy()"


@pytest.mark.parametrize(
    ("test", "use", "kept"),
    [
        ("if signal.ndim == 3", ITSELF, False),
        ("for _ in range(2)", ITSELF, False),
        ("if signal.ndim == 3", DETACHED, True),
        ("if signal.ndim == 3", INDICES, True),
    ],
)
def test_numpy_where_the_model_runs(tmp_path: Path, test: str, use: str, kept: bool) -> None:
    """Wherever the model runs, numpy() takes what it gives: it has no graph, whatever its parameters ask for. The
    indices beside the scores never have one."""
    assert ("MEM201" in {code for code, _ in said(tmp_path, smooth=SMOOTHED.format(test=test, use=use))}) is kept


REPLACED = """
import torch


class Meter:
    def __init__(self):
        self.sum = 0

    def update(self, value):
        self.sum += value


def reduced(values):
    for i in range(len(values)):
        torch.distributed.all_reduce(values[i])
        {number}
    return values


def train(model, loader, optimizer):
    meter = Meter()
    for x, y in loader:
        loss = (model(x.cuda()) - y.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        [loss] = reduced([loss])
        meter.update(loss)
"""


@pytest.mark.parametrize(
    ("number", "codes"),
    [("values[i] = values[i].item()", set()), ("if i > 0: values[i] = values[i].item()", {"MEM101"})],
)
def test_a_list_whose_members_are_all_replaced(tmp_path: Path, number: str, codes: set[str]) -> None:
    assert {code for code, _ in said(tmp_path, train=REPLACED.format(number=number))} == codes


DRAWN = """
import torch


def act(policy, states_loader):
    policy.cuda().eval()
    for states in states_loader:
        spread = policy(states.cuda())
        print(spread.sample().cpu().numpy())
"""


def test_what_is_drawn_from_a_distribution_tells_nothing_of_its_graph(tmp_path: Path) -> None:
    assert {code for code, _ in said(tmp_path, act=DRAWN)} == {"MEM201"}


CONVERTED = """
import numpy as np
import torch


def plain(value):
    if isinstance(value, ({types})):
        return value.item()
    return value


def validate(model, loader):
    model.eval()
    losses = []
    with open("log.txt", "w") as log:
        for x in loader:
            loss, parts = model(x.cuda())
            losses.append(plain(loss) * len(x))
            log.write(str(len(parts)))
    return losses
"""


@pytest.mark.parametrize(
    ("types", "told"),
    [
        ("torch.Tensor, np.generic", {("MEM201", "warning")}),
        ("np.generic, float", {("MEM201", "error"), ("MEM102", "note")}),
    ],
)
def test_what_is_no_tensor_of_several_types_goes_on_as_it_is(
    tmp_path: Path, types: str, told: set[tuple[str, str]]
) -> None:
    assert said(tmp_path, validate=CONVERTED.format(types=types)) == told


SPREAD = """
import torch
from torch import nn


class Loss(nn.Module):
    def forward(self, images, texts, scale, weight=1.0):
        logits = scale * images @ texts.T
        return {{"loss": weight * nn.functional.cross_entropy(logits, torch.arange(len(logits), device=logits.device))}}


def train(model, loader, loss, optimizer, steps):
    model.train()
    for images, texts in loader:
        images, texts = images.cuda(), texts.cuda()
        optimizer.zero_grad()
        if steps == 1:
            out = model(images, texts)
            scale = out["scale"]
            losses = loss(**{given})
        else:
            out = model(images, texts)
            scale = out["scale"]
            losses = loss({again})
        total = sum(losses.values())
        total.backward()
        optimizer.step()
        print(scale.item())


def main(data, args):
    model = nn.Linear(4096, 4096).cuda()
    loader = torch.utils.data.DataLoader(data)
    train(model, loader, Loss(), torch.optim.Adam(model.parameters()), args.steps)
"""


@pytest.mark.parametrize(
    ("given", "again", "told"),
    [
        ("out", "**out", set()),
        ("out", "out['images'], out['texts'], scale", set()),
        ("out, weight=2.0", "**out", set()),
        ("texts", "out['images'], out['texts'], scale", {("MEM201", "warning")}),
    ],
)
def test_outputs_that_a_loss_is_given_by_two_stars(
    tmp_path: Path, given: str, again: str, told: set[tuple[str, str]]
) -> None:
    assert said(tmp_path, train=SPREAD.format(given=given, again=again)) == told


WEIGHTS = """
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, graph):
        return graph.replace(self.layer(graph.x))


class Meter:
    def __init__(self):
        self.sum = 0

    def update(self, value, count):
        self.sum += value * count


def train(net: Net, loader, criterion, optimizer):
    losses = Meter()
    for graph, target in loader:
        graph = net(graph.to("cuda"))
        loss = criterion(graph, target.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.update(loss.item(), graph.{weight})
    return losses.sum
"""


@pytest.mark.parametrize(
    ("weight", "told"), [("batch_size", set()), ("num_nodes", set()), ("score", {("MEM101", "warning")})]
)
def test_what_an_output_counts_is_a_number(tmp_path: Path, weight: str, told: set[tuple[str, str]]) -> None:
    assert said(tmp_path, train=WEIGHTS.format(weight=weight)) == told


POLICIES = """
import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(4, 2)
        self.data = []

    def forward(self, x):
        return self.net(x).softmax(0)

    def put(self, item):
        self.data.append(item)

    def learn(self, optimizer):
        optimizer.zero_grad()
        for reward, probability in self.data:
            (-torch.log(probability) * reward).backward()
        optimizer.step()
        self.data = []


def train(env, episodes):
    policy = Policy()
    optimizer = torch.optim.Adam(policy.parameters())
    for episode in range(episodes):
        state, done = env.reset(), False
        while not done:
            probabilities = policy(torch.from_numpy(state).float())
            action = torch.distributions.Categorical(probabilities).sample()
            state, reward, done, _ = env.step(action.item())
            {put}
        {learn}
"""


@pytest.mark.parametrize(
    ("put", "learn", "told"),
    [
        ("policy.put((reward, probabilities[action]))", "policy.learn(optimizer)", set()),
        ("policy.data.append((reward, probabilities[action]))", "policy.learn(optimizer)", set()),
        ("print(reward)", "print(done)", {("MEM201", "note")}),
    ],
)
def test_a_policy_that_collects_what_it_learns_from(
    tmp_path: Path, put: str, learn: str, told: set[tuple[str, str]]
) -> None:
    assert said(tmp_path, train=POLICIES.format(put=put, learn=learn)) == told


LOADED = """
import torch
from torch import nn


class Sampler(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Linear(8, 8)

    def sample_shape(self, x):
        for _ in range(10):
            x = (x + self.net(x)).argmax(-1, keepdim=True).float()
        return x


class Other(nn.Module):
    def forward(self, x):
        return x


def load(what, path):
    what.load_state_dict(torch.load(path, map_location="cpu"))
    return what


def pick(name):
    if name == "sampler":
        return Sampler()
    return Other()


def restore(path, model):
    return load(torch.optim.Adam(model.parameters()), path)


def generate(path, name):
    model = load(pick(name), path).cuda()
    model = model.eval()
    {guard}
        return model.sample_shape(torch.randn(64, 8, device="cuda"))
"""


@pytest.mark.parametrize(("guard", "told"), [("with torch.no_grad():", set()), ("if path:", {"MEM201"})])
def test_a_helper_that_loads_models_and_optimizers(tmp_path: Path, guard: str, told: set[str]) -> None:
    """What a model that it gave back is asked for under a guard is guarded."""
    assert {code for code, _ in said(tmp_path, train=LOADED.format(guard=guard))} == told


PART = """
import torch
from torch import nn


class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = nn.Linear(8, 4096)
        self.sigma = nn.Linear(4096, 4096)

    def loss(self, x):
        with torch.no_grad():
            code = self.encoder(x)
        return self.sigma(code).square().mean()


def train(loader):
    coder, other = Coder().cuda(), Coder().cuda()
    optimizer = torch.optim.Adam([*{owned}.parameters(), *other.sigma.parameters()])
    for x in loader:
        loss = coder.loss(x.cuda()) + other.loss(x.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("owned", "told"), [("coder.sigma", set()), ("other.sigma", {("MEM202", "warning")})])
def test_an_optimizer_of_a_part(tmp_path: Path, owned: str, told: set[tuple[str, str]]) -> None:
    assert said(tmp_path, train=PART.format(owned=owned)) == told


DECORATED = """
import torch
from torch import nn


def trainer(function):
    def run(net, optimizer, batch):
        optimizer.zero_grad()
        loss = function(net, batch)
        {step}
        optimizer.step()
        return loss.item()

    return run


@trainer
def step(net: nn.Module, batch):
    {mode}
    x, y = batch
    return nn.functional.cross_entropy(net(x.cuda()), y.cuda())


def train(net: nn.Module, loader):
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in loader:
        print(step(net, optimizer, batch))
"""


@pytest.mark.parametrize("mode", ["net.eval()", "print(batch)"])
def test_a_decorator_that_runs_the_backward(tmp_path: Path, mode: str) -> None:
    assert said(tmp_path, train=DECORATED.format(step="loss.backward()", mode=mode)) == set()


def test_a_decorator_that_trains_nothing(tmp_path: Path) -> None:
    assert {code for code, _ in said(tmp_path, train=DECORATED.format(step="print(loss)", mode="net.eval()"))} == {
        "MEM201"
    }


HOOKED = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.part = nn.Linear(32, 10)

    def forward(self, x):
        return self.part(x)


def train(loader):
    net = Net().cuda()
    kept = []
    net.part.register_forward_hook(lambda module, args, out: kept.append(out))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net.eval()
    for x, y in loader:
        kept.clear()
        optimizer.zero_grad()
        net(x)
        nn.functional.cross_entropy(kept[0], y).backward()
        optimizer.step()
"""


def test_what_runs_for_its_hooks(tmp_path: Path) -> None:
    assert said(tmp_path, train=HOOKED) == set()


NAMED = """
import torch
from torch import nn


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(4))

    def decode(self, z):
        for layer in self.layers:
            z = layer(z)
        return z


class Inferer:
    def __init__(self, flow):
        self.flow = flow.eval()

    def decode(self, z):
        {guard}
            return self.flow.decode(z.cuda())


def reconstruct(context, codes):
    inferer = context.obj["inferer"]
    images = []
    for z in codes:
        images.append(inferer.decode(z).detach().cpu().numpy())
    return images
"""


@pytest.mark.parametrize(("guard", "told"), [("with torch.no_grad():", set()), ("if self.flow:", {"MEM201"})])
def test_one_of_the_methods_of_a_name_is_guarded(tmp_path: Path, guard: str, told: set[str]) -> None:
    assert {code for code, _ in said(tmp_path, train=NAMED.format(guard=guard))} == told


def test_a_matrix_of_another_library_that_each_call_makes_anew(tmp_path: Path) -> None:
    source = """
import numpy as np
import scipy.sparse as sp
import torch


def nearest(adj, idx, weights):
    m = sp.coo_matrix((weights, (idx, idx))).tocsr()
    deg = adj.sum(1).A1
    row, col = m.nonzero()
    m.data = deg[idx[row]] * m.data * deg[col]
    return m


def run(loader, adj):
    for x in loader:
        print(nearest(adj, x, x), torch.rand(2))
"""
    assert said(tmp_path, main=source) == set()


def test_what_a_round_over_a_loader_draws_from_its_batch(tmp_path: Path) -> None:
    source = """
import torch
from attacks import attack


def train(model: torch.nn.Module, loader, optimizer, criterion):
    for x, y in loader:
        x_mix = x.clone()
        drawn = torch.randperm(len(x))[:8]
        x_mix[drawn] = attack(model, x, y)[drawn]
        loss = criterion(model(x_mix), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def step(model: torch.nn.Module, batch, optimizer, criterion, writer):
    images = batch["image"]
    loss = criterion(model(images), batch["mask"])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    shown = torch.randperm(len(images))[:2]
    writer.add_images("shown", images[shown])
"""
    assert said(tmp_path, main=source) == set()


SIGMAS = """
import torch
from torch import nn


class Sigma({base}):
    def update(self, rmse):
        {update}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(3, 3)
        self.sigma = Sigma(torch.zeros(1))

    def forward(self, x):
        y = self.layer(x)
        self.sigma.update(y.pow(2).mean())
        return y


def train(loader):
    net = Net().cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in loader:
        loss = net(x.cuda()).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


def test_data_of_a_parameter_of_a_class_of_its_own(tmp_path: Path) -> None:
    """``self.data`` of a tensor never has a graph; that of any other object keeps what it is given."""
    moved = "self.data += 0.1 * (rmse - self.data)"
    assert said(tmp_path, train=SIGMAS.format(base="nn.Parameter", update=moved)) == set()
    assert said(tmp_path, train=SIGMAS.format(base="nn.Parameter", update="self.data = self.data + rmse")) == set()
    init = "def __init__(self, data):\n        self.data = data\n\n    def update(self, rmse):\n        "
    other = SIGMAS.replace("def update(self, rmse):\n        ", init).format(base="object", update=moved)
    assert {code for code, _ in said(tmp_path, train=other)} & {"MEM101", "MEM103"}


NUMBERS_IN_METERS = """
import torch
from torch import nn


class Meter:
    def __init__(self):
        self.sum = 0

    def update(self, value):
        self.sum += value


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.steps = 1
        self.metrics = {{"train": {{}}, "valid": {{}}}}

    def configure(self, steps):
        self.steps = steps

    def forward(self, *args):
        return super().forward(*args)

    def step(self, batch):
        _, loss, scores = self(batch)
        loss = loss / self.steps
        loss.backward()
        return loss, scores

    def note(self, phase, scores):
        self.metrics[phase].update(scores)
        self.metrics[phase]["loss"] = 0.0

    def fit(self, loader):
        total = Meter()
        for batch in loader:
            loss, scores = self.step(batch)
            {kept}
        return total.sum
"""


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        pytest.param("total.update(loss.item() * self.steps)", set(), id="what the loss is divided by has no graph"),
        pytest.param('self.note("train", scores)', set(), id="what has members by name is a dictionary"),
        pytest.param("total.update(loss * self.steps)", {"MEM101"}, id="the loss itself"),
    ],
)
def test_numbers_in_meters(tmp_path: Path, kept: str, told: set[str]) -> None:
    assert {code for code, _ in said(tmp_path, train=NUMBERS_IN_METERS.format(kept=kept))} == told


CRITICS = """
import torch
from torch import nn


class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 1024), nn.ReLU(), nn.Linear(1024, 1))

    def forward(self, states):
        return self.body(states)


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.critic = Critic()
        self.rate = torch.optim.Adam(self.critic.parameters())

    def judge(self, critic, rate, states, wanted):
        loss = (critic(states) - wanted).square().mean()
        {learn}
        return loss

    def learn(self, writer, states, wanted):
        loss = self.judge(self.critic, self.rate, states, wanted)
        writer.add_scalar("loss", loss.item())
        self.rate.zero_grad()
        {after}
        self.rate.step()
"""


@pytest.mark.parametrize(
    ("learn", "after", "codes"),
    [
        ("loss.backward(); rate.step()", "pass", set()),
        ("pass", "self.critic(states).mean().backward()", {"MEM202"}),
    ],
)
def test_a_method_that_trains_a_network_it_is_given(tmp_path: Path, learn: str, after: str, codes: set[str]) -> None:
    assert {code for code, _ in said(tmp_path, agent=CRITICS.format(learn=learn, after=after))} == codes


ADVERSARIAL = """
import torch
from torch import nn
from pytorch_lightning import LightningModule


class Gan(LightningModule):
    def __init__(self):
        super().__init__()
        self.gen = nn.Sequential(nn.Linear(64, 4096), nn.ReLU(), nn.Linear(4096, 4096))
        self.dis = nn.Sequential(nn.Linear(4096, 1024), nn.ReLU(), nn.Linear(1024, 1))

    def configure_optimizers(self):
        return [torch.optim.Adam(self.gen.parameters()), torch.optim.Adam(self.dis.parameters())]

    def training_step(self, batch, {given}):
        real, noise = batch
        if {first}:
            return -self.dis(self.gen(noise)).mean()
        {before}
        fake = self.gen(noise).detach()
        return self.dis(fake).mean() - self.dis(real).mean()
"""


@pytest.mark.parametrize(
    ("given", "first", "before", "codes"),
    [
        ("batch_idx, optimizer_idx", "optimizer_idx == 0", "pass", set()),
        ("batch_idx", "batch_idx % 2", "self.toggle_optimizer(self.optimizers()[1])", set()),
        ("batch_idx", "batch_idx % 2", "pass", {"MEM202"}),
        ("batch_idx", "batch_idx % 2", "self.untoggle_optimizer(self.optimizers()[1])", {"MEM202"}),
    ],
)
def test_a_framework_that_freezes_the_other_network(
    tmp_path: Path, given: str, first: str, before: str, codes: set[str]
) -> None:
    text = ADVERSARIAL.format(given=given, first=first, before=before)
    assert {code for code, _ in said(tmp_path, gan=text)} == codes


STATES = """
import torch
from torch import nn


def train(loader, optimizer, criterion):
    net = nn.LSTM(256, 256).cuda()
    first = torch.zeros(1, 8, 256).cuda()
    h, c, state = first, first, (first, first)
    for x, y in loader:
        {run}
        {cut}
        loss = criterion(out, y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
PAIR, WHOLE = "out, (h, c) = net(x.cuda(), (h, c))", "out, state = net(x.cuda(), state)"


@pytest.mark.parametrize(
    ("run", "cut", "codes"),
    [
        (PAIR, "h.detach_(); c.detach_()", set()),
        (PAIR, "h, c = h.detach(), c.detach()", set()),
        (PAIR, "h.detach_()", {"MEM103"}),
        (WHOLE, "state[0].detach_(); state[1].detach_()", set()),
        (WHOLE, "[s.detach_() for s in state]", set()),
        (WHOLE, "for s in state: s.detach_()", set()),
        (f"{WHOLE}; out.detach_()", "state = (state[0].detach(), state[1].detach())", {"MEM202"}),
        ("h = net(x.cuda(), (h, c))[0]; out = h", "h.detach_()", {"MEM202"}),
    ],
)
def test_a_state_that_is_cut_in_place_beside_the_output(tmp_path: Path, run: str, cut: str, codes: set[str]) -> None:
    assert {code for code, _ in said(tmp_path, train=STATES.format(run=run, cut=cut))} == codes


TASKS = """
import torch
from torch import nn
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader
from maml import adapt


def loss_of(task, encoder, learner):
    total = 0.0
    for x, y in DataLoader(task, batch_size=16):
        encoded = torch.from_numpy(encoder(x.cuda()).detach().cpu().numpy()).cuda()
        total += cross_entropy(learner(encoded), y.cuda())
    return total / len(task)


def main(learner: nn.Module, encoder: nn.Module, tasks, optimizer):
    encoder.eval()
    for task in tasks:
        error = loss_of(task, encoder, learner)
        optimizer.zero_grad()
        {then}
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("then", "code"), [("error.backward()", None), ("adapt(learner, error)", None), ("print(error.item())", "MEM101")]
)
def test_a_loss_beside_an_encoder_in_eval_mode(tmp_path: Path, then: str, code: str | None) -> None:
    found = {one for one, _ in said(tmp_path, train=TASKS.format(then=then))} & {"MEM101"}
    assert found == ({code} if code else set())


CHOICE = """
import sys
import torch
from torch import nn


class First(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.LSTM(1000, 1000)

    def forward(self, x, hidden):
        out, hidden = self.layer(x, hidden)
        return out, hidden


class Second(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(1000, 1000)

    def forward(self, x, mask=True):
        return self.layer(x)


kind = sys.argv[1]

if kind == "plain":
    model = Second().cuda()
else:
    model = First().cuda()
criterion = nn.NLLLoss()
optimizer = torch.optim.Adam(model.parameters())


def cut(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(cut(v) for v in h)


def train(loader):
    model.train()
    hidden = None
    for data, targets in loader:
        optimizer.zero_grad()
        if kind == "plain":
            output = model(data)
        else:
            hidden = cut(hidden)
            output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        optimizer.step()


for epoch in range(10):
    train(torch.load("x.pt"))
"""


def test_a_network_that_gives_no_tuple_is_not_the_one_that_is_unpacked(tmp_path: Path) -> None:
    assert said(tmp_path, train=CHOICE) == set()


PLAYED = """
import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4096, 4096)

    def forward(self, state):
        chances = self.layer(state)
        return chances, chances.argmax(-1)


def play(env, steps):
    policy, state, rewards = Policy().cuda(), env.reset(), []
    for {step} in range(steps):
        {part}, action = policy(torch.as_tensor(state).cuda())
        state, reward, {rest} = env.step(action.item())
        rewards.append(reward)
    return rewards
"""


@pytest.mark.parametrize(
    ("step", "part", "rest"), [("_", "_", "_"), ("_", "chances", "_"), ("i", "_", "_"), ("_", "_", "done")]
)
def test_a_part_that_is_bound_anew_may_have_the_graph(tmp_path: Path, step: str, part: str, rest: str) -> None:
    assert {one for one, _ in said(tmp_path, train=PLAYED.format(step=step, part=part, rest=rest))} == {"MEM201"}


ACTOR = """
import torch
from torch import nn
from torch.distributions import Categorical


class Agent:
    def __init__(self):
        self.policy = nn.Linear(4, 2)
        self.optimizer = torch.optim.Adam(self.policy.parameters())
        self.saved = []
        self.running = 0

    @staticmethod
    def act(remote, state):
        agent = remote.local_value()
        chances = Categorical(agent.policy(state.cuda()))
        action = chances.sample()
        agent.saved.append(chances.log_prob(action))
        return action.item()

    def learn(self, results):
        score = sum([result[1] for result in results]) / len(results)
        rewards = torch.stack([result[0] for result in results]).cuda()
        loss = {loss}
        loss.sum().backward()
        self.optimizer.step()
        self.optimizer.zero_grad()
        self.saved = []
        self.running = 0.5 * score + 0.5 * self.running


def main(rounds):
    agent = Agent()
    for results in rounds:
        agent.learn(torch.futures.wait_all(results))
"""


@pytest.mark.parametrize(("loss", "code"), [("-torch.stack(self.saved) * rewards", None), ("-rewards", "MEM103")])
def test_a_backward_through_a_list_that_unresolved_code_fills_proves_no_other_graph(
    tmp_path: Path, loss: str, code: str | None
) -> None:
    assert {one for one, _ in said(tmp_path, train=ACTOR.format(loss=loss))} == ({code} if code else set())


ORDERS = """
import torch
from torch import nn

model = nn.Sequential(nn.Linear(1000, 1000), nn.ReLU(), nn.Linear(1000, 10)).cuda()
optimizer = torch.optim.Adam(model.parameters())
total = 0
for x in torch.load("data.pt", map_location="cpu"):
    optimizer.zero_grad()
    loss = (model(x.cuda()) - x.median()){norm} / 10
    loss.sum().backward()
    optimizer.step()
    total += loss
print(total)
"""


@pytest.mark.parametrize(
    ("norm", "code"), [(".norm(2)", "MEM101"), (".norm(p=2)", "MEM101"), (".norm(2, 1)", "MEM103")]
)
def test_the_order_of_a_norm_is_no_dimension(tmp_path: Path, norm: str, code: str) -> None:
    assert {one for one, _ in said(tmp_path, train=ORDERS.format(norm=norm))} == {code}
