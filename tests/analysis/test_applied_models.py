"""Programs that apply a model: scripts that run it once, classes that make it on one of several ways, globals."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Linear(8, 8)

    def forward(self, x):
        return self.layers(x)


def build():
    return Net()
"""


def found(folder: Path, text: str, **others: str) -> tuple[list[int], list[int], list[str]]:
    """Where MEM201 stands, where it should, and the severities."""
    for name, other in {"net": NET, "main": text, **others}.items():
        (folder / f"{name}.py").write_text(other, encoding="utf-8")
    result = memlint.lint([folder], isolated=True)
    assert not result.failures
    told = [one for one in result.findings if one.code == "MEM201"]
    here = [number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# here")]
    return [one.line for one in told], here, [one.severity for one in told]


SCRIPT = """
import cv2
import torch
from net import Net

model = Net().cuda()
{load}
model.{mode}()
x = {input}
y = model(x)  {place}
print(y[0].detach().cpu().numpy())
"""
READ = "torch.from_numpy(cv2.imread('a.png')).cuda()"
LOADS = "model.load_state_dict(torch.load('net.pt', map_location='cpu'))"


@pytest.mark.parametrize(
    ("load", "mode", "given", "place"),
    [
        (LOADS, "eval", READ, "# here"),
        ("", "eval", READ, "# here"),
        (LOADS, "eval", "torch.randn(1, 8).cuda()", "# here"),
        ("", "eval", "torch.randn(1, 8).cuda()", ""),
        (LOADS, "eval", "torch.zeros(1, 8).cuda()", ""),
        (LOADS, "train", READ, ""),
    ],
    ids=["trained, on a file", "on a file", "trained, on noise", "try-out", "asks for a shape", "no evaluation"],
)
def test_a_script_that_runs_its_model_once_has_a_note(
    tmp_path: Path, load: str, mode: str, given: str, place: str
) -> None:
    lines, here, severities = found(tmp_path, SCRIPT.format(load=load, mode=mode, input=given, place=place))
    assert lines == here
    assert set(severities) <= {"note"}


def test_the_try_out_of_a_file_s_own_network_is_none(tmp_path: Path) -> None:
    text = NET + f"\n\nmodel = Net()\nmodel.eval()\nx = {READ}\nprint(model(x))\n"
    assert found(tmp_path, "import cv2\n" + text)[0] == []


CHOSEN = """
import torch
from net import Net


class Detector:
    def __init__(self, backend):
        if backend == "torch":
            self._make()
        elif backend == "engine":
            self.engine = object()
        else:
            raise ValueError(backend)

    def _make(self):
        self.model = Net()
        self.model.{mode}()

    def __call__(self, images):
        found = []
        for image in images:
            out = self.model(torch.from_numpy(image).cuda())  {place}
            found.append(out)
        return found


print(Detector("torch")([]))
"""


@pytest.mark.parametrize(("mode", "place"), [("eval", "# here"), ("train", "")])
def test_a_mode_holds_where_the_other_way_makes_no_such_module(tmp_path: Path, mode: str, place: str) -> None:
    lines, here, _ = found(tmp_path, CHOSEN.format(mode=mode, place=place))
    assert lines == here


EITHER = """
import torch
from net import Net


def main(flag, files):
    if flag:
        model = Net()
        model.eval()
    else:
        model = Net()
        {other}
    for file in files:
        out = model(torch.load(file).cuda())  {place}
        flag.use(out)


main(1, [])
"""


@pytest.mark.parametrize(("other", "place"), [("model.eval()", "# here"), ("model.train()", ""), ("pass", "")])
def test_one_of_two_modules_has_no_mode_that_the_other_lacks(tmp_path: Path, other: str, place: str) -> None:
    lines, here, _ = found(tmp_path, EITHER.format(other=other, place=place))
    assert lines == here


SERVED = """
import torch
from net import Net, build
{top}


def answer(image):
    x = torch.from_numpy(image).cuda()
    out = model(x)  {place}
    return out.detach().cpu().numpy()


def main():
    global model
    model = {made}
    {then}
    print(answer(None))


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("top", "made", "then", "place"),
    [
        ("model = None", "torch.jit.load('net.pt')", "model = model.cuda()", "# here"),
        ("", "torch.jit.load('net.pt')", "model = model.cuda()", "# here"),
        ("model = None", "build()", "model.eval()", "# here"),
        ("model = Net()", "Net()", "model.eval()", "# here"),
        ("model = None", "build()", "model.train()", ""),
        ("model = None", "build()", "", ""),
    ],
)
def test_a_global_model_has_the_mode_that_its_maker_gives_it(
    tmp_path: Path, top: str, made: str, then: str, place: str
) -> None:
    lines, here, _ = found(tmp_path, SERVED.format(top=top, made=made, then=then, place=place))
    assert lines == here


PHASES = """
import torch


def run(model, optimizer, loader, training, tracker, criterion):
    model.train(training)
    for x, y in loader:
        out = model(x.cuda())  {place}
        if training:
            loss = criterion(out, y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        else:
            with torch.no_grad():
                loss = criterion(out, y.cuda())
        {use}


def main(model, optimizer, loader, phases, tracker, criterion):
    for training in phases:
        run(model, optimizer, loader, training, tracker, criterion)


main(*[])
"""


@pytest.mark.parametrize(
    ("use", "place"),
    [
        ("tracker.log_metrics(out)", "# here"),
        ("tracker.log_scalars({'loss': loss, 'out': out})", "# here"),
        ("tracker.consume(out)", ""),
    ],
)
def test_a_logger_runs_no_backward(tmp_path: Path, use: str, place: str) -> None:
    lines, here, _ = found(tmp_path, PHASES.format(use=use, place=place))
    assert lines == here


WHOLE = """
import glob
import numpy as np
import torch
{top}

model = torch.load("model.pth", map_location="cpu")["model"]
model = model.cuda()
for name in glob.glob("*.npy"):
    x = torch.from_numpy(np.load(name)).cuda()
    {loop}
x = torch.from_numpy(np.load("last.npy")).cuda()
{last}
"""


@pytest.mark.parametrize(
    ("top", "loop", "last", "count"),
    [
        ("", "print(model(x).cpu().data.numpy())  # here", "pass", 1),
        ("", "pass", "print(model(x).cpu().data.numpy())  # here", 1),
        ("", "model(x).sum().backward()", "pass", 0),
        ("", "pass", "model(x).sum().backward()", 0),
        ("", "pass", "out = model(x)", 0),
        ("", "with torch.no_grad():\n        print(model(x).cpu().data.numpy())", "pass", 0),
    ],
    ids=["in a loop", "once", "trained in a loop", "trained once", "for importers", "guarded"],
)
def test_a_script_that_loads_the_model_whole(tmp_path: Path, top: str, loop: str, last: str, count: int) -> None:
    lines, here, severities = found(tmp_path, WHOLE.format(top=top, loop=loop, last=last))
    assert lines == here
    assert severities == ["note"] * count


ENDLESS = """
import time
import torch
from net import Net


def test(rank, shared, env):
    torch.manual_seed(rank)
    model = Net()
    state = env.reset()
    while True:
        model.load_state_dict(shared.state_dict())
        out = model(state)  {place}
        state, done = env.step({use})
        {after}
        time.sleep(1)
"""


@pytest.mark.parametrize(
    ("use", "after", "place"),
    [
        ("out.data.numpy()", "pass", "# here"),
        ("out.data.numpy()", "env.outputs.append(out)", ""),
        ("out.data.numpy()", "out.sum().backward()", ""),
        ("out", "pass", ""),
    ],
)
def test_a_process_that_never_ends(tmp_path: Path, use: str, after: str, place: str) -> None:
    lines, here, _ = found(tmp_path, ENDLESS.format(use=use, after=after, place=place))
    assert lines == here


POLICY = """
import torch
from torch import nn


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.actor = nn.Linear(8, 4)
        self.critic = nn.Linear(8, 1)

    def forward(self, x):
        logits = self.actor(x)
        return logits, self.critic(x), torch.softmax(logits, -1).multinomial(1)


class Agent:
    def __init__(self, env):
        self.env = env
        self.policy = Policy().cuda()

    def {name}(self):
        state, done, total = self.env.reset(), False, 0
        while not done:
            {call}  {place}
            state, reward, done = self.env.step(action.cpu())
            {use}
            total += reward
        return total


print(Agent(None).{name}())
"""


@pytest.mark.parametrize(
    ("call", "use", "place"),
    [
        ("_, _, action = self.policy(state)", "pass", "# here"),
        ("logits, _, action = self.policy(state)", "self.env.note(logits)", ""),
        ("logits, value, action = self.policy(state)", "value.sum().backward()", ""),
    ],
)
def test_outputs_with_a_graph_that_are_let_go_of(tmp_path: Path, call: str, use: str, place: str) -> None:
    lines, here, _ = found(tmp_path, POLICY.format(name="_test_env", call=call, use=use, place=place))
    assert lines == here


WAYS = """
import sys
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.there = nn.Linear(8, 8)
        self.back = nn.Linear(8, 8)

    def encode(self, x):
        return self.there(x)

    def decode(self, x):
        return self.back(x)

    def forward(self, x):
        return self.decode(self.encode(x))


def main(task, loader):
    net = Net().cuda()
    net.load_state_dict(torch.load("net.pt", map_location="cpu"))
    net.eval()
    for x in loader:
        x = x.cuda()
        if task == "there":
            print(net.{first}(x).detach().cpu().numpy())  # here
        {other}
            print(net.{second}(x).detach().cpu().numpy())  {place}


main(sys.argv[1], torch.utils.data.DataLoader([]))
"""


@pytest.mark.parametrize(
    ("other", "first", "second", "place"),
    [
        ("else:", "encode", "decode", "# here"),
        ('elif task == "back":', "encode", "decode", "# here"),
        ("else:", "encode", "encode", ""),
        ("if x.sum() > 0:", "encode", "decode", ""),
    ],
    ids=["the other branch", "elif", "the same call", "one after the other"],
)
def test_one_finding_for_each_branch_that_needs_a_guard(
    tmp_path: Path, other: str, first: str, second: str, place: str
) -> None:
    lines, here, _ = found(tmp_path, WAYS.format(other=other, first=first, second=second, place=place))
    assert lines == here


GUARDED_WAY = """
import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self, trainable=False):
        super().__init__()
        self.trainable = trainable
        self.layers = nn.Linear(8, 8)

    {guard}
    def infer(self, x):
        return self.layers(x).argmax(1)

    def forward(self, x):
        if not self.trainable:
            return self.infer(x)
        return self.layers(x)


def build(name, trainable):
    return Detector(trainable=trainable)


def detect(net, files):
    for file in files:
        x = torch.load(file).cuda()
        print(net(x).detach().cpu().numpy())  {place}


net = build("a", trainable=False).cuda().eval()
detect(net, [])
"""


@pytest.mark.parametrize(("guard", "place"), [("@torch.no_grad()", ""), ("", "# here")])
def test_a_forward_that_guards_one_of_its_ways(tmp_path: Path, guard: str, place: str) -> None:
    lines, here, _ = found(tmp_path, GUARDED_WAY.format(guard=guard, place=place))
    assert lines == here


GUARDED_BRANCH = """
import torch
from torch import nn


class Features(nn.Module):
    def __init__(self, frozen=True):
        super().__init__()
        self.frozen = frozen
        self.body = nn.Linear(8, 8)

    def compute(self, x):
        return {{"patch": self.body(x)}}

    def forward(self, x, shape=False):
        {forward}


def main(loader):
    net = Features().cuda().eval()
    for x in loader:
        print(net(x.cuda())["patch"].detach().cpu().numpy())  {place}


main(torch.utils.data.DataLoader([]))
"""


@pytest.mark.parametrize(
    ("forward", "place"),
    [
        pytest.param(
            """if self.frozen:
            with torch.inference_mode():
                return self.compute(x)
        else:
            return self.compute(x)""",
            "",
            id="it returns",
        ),
        pytest.param(
            """if not self.frozen:
            out = self.compute(x)
        else:
            with torch.no_grad():
                out = self.compute(x)
        return out""",
            "",
            id="what is returned is assigned",
        ),
        pytest.param(
            """if self.frozen:
            with torch.no_grad():
                mean = x.mean()
                self.seen = mean
        return self.compute(x)""",
            "# here",
            id="something else is computed",
        ),
        pytest.param(
            """if self.frozen:
            with torch.no_grad():
                x = (x - x.mean()) / x.std()
        else:
            x = x / 255
        return self.compute(x)""",
            "# here",
            id="what goes into it is computed",
        ),
        pytest.param(
            """if shape:
            with torch.no_grad():
                return self.compute(x).shape
        return self.compute(x)""",
            "# here",
            id="who calls it decides, and does not ask for that",
        ),
    ],
)
def test_a_forward_that_guards_one_of_its_branches(tmp_path: Path, forward: str, place: str) -> None:
    lines, here, _ = found(tmp_path, GUARDED_BRANCH.format(forward=forward, place=place))
    assert lines == here


PARTS = """
import torch
from torch import nn


class Energy(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Linear(3, 1)

    def forward(self, x):
        energy = self.layers(x).sum()
        {forces}
        return energy


class Wrapper(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = nn.ModuleDict()
        self.model["main"] = model

    def forward(self, x, key="main"):
        return self.model[key](x)


def test_all(config, loader):
    wrapper = Wrapper(config.build()).cuda().eval()
    for x in loader:
        print(wrapper(x.cuda()).item())  {place}


def try_out(x):
    return Energy()(x)


test_all(None, torch.utils.data.DataLoader([]))
"""


@pytest.mark.parametrize(
    ("forces", "place"), [("return torch.autograd.grad(energy, x, create_graph=True)[0]", ""), ("", "# here")]
)
def test_a_part_that_may_need_its_graph(tmp_path: Path, forces: str, place: str) -> None:
    lines, here, _ = found(tmp_path, PARTS.format(forces=forces, place=place))
    assert lines == here


DRAWN = """
import torch
from net import Net


def draw(loader):
    model = Net().eval()
    for x in loader:
        out = model(x.cuda())  {place}
        print({shown})


draw(torch.utils.data.DataLoader([]))
"""


@pytest.mark.parametrize(("shown", "place"), [("out.grad_fn", ""), ("out.shape", "# here")])
def test_a_graph_that_is_looked_at(tmp_path: Path, shown: str, place: str) -> None:
    lines, here, _ = found(tmp_path, DRAWN.format(shown=shown, place=place))
    assert lines == here
