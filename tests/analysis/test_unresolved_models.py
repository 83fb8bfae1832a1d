"""Models that only their use, their base class or a flag tells of: what nobody defines in sight runs all the same."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint


def said(folder: Path, text: str) -> list[tuple[str, str]]:
    """(code, severity) of what is found, notes apart."""
    (folder / "engine.py").write_text(text, encoding="utf-8")
    found = memlint.lint([folder], isolated=True).findings
    return [(one.code, one.severity) for one in found if one.severity != "note"]


HELD = """
import torch
from parts import build, load


class Task:
    def __init__(self, path):
        self.model = build(path)
        self.limit = 8


def score(path, loader):
    task = {made}
    {switched}
    {guard}
        for batch in loader:
            print(task.model(batch.cuda()).argmax().item())
"""


@pytest.mark.parametrize("made", ["load(path)", "load(path)[0]", "Task(path)"])
@pytest.mark.parametrize(
    ("switched", "guard", "found"),
    [
        ("task.model.eval()", "if True:", [("MEM201", "warning")]),
        ("task.model.to('cuda').eval()", "if True:", [("MEM201", "warning")]),
        ("task.model.eval()", "with torch.no_grad():", []),
        ("task.prepare()", "if True:", []),  # nothing tells that it is a module
    ],
)
def test_a_module_that_an_object_holds(
    tmp_path: Path, made: str, switched: str, guard: str, found: list[tuple[str, str]]
) -> None:
    assert said(tmp_path, HELD.format(made=made, switched=switched, guard=guard)) == found


ABSTRACT = """
import abc
import torch
from torch import nn


class Base(nn.Module, abc.ABC):
    {declared}
        {body}


def predict(model: Base, frames):
    model.eval()
    for number in range(len(frames)):
        print(model(frames[number].cuda()).argmax().item())
"""
CONCRETE = """

class Net{number}(Base):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)

    def forward(self, x):
        {guard}
            return self.layer(x)
"""
DECLARED = "@abc.abstractmethod\n    def forward(self, x) -> torch.Tensor:"


@pytest.mark.parametrize(
    ("declared", "body"),
    [
        (DECLARED, "pass"),
        (DECLARED, '"""What it sees."""'),
        ("def forward(self, x):", "raise NotImplementedError"),
    ],
)
@pytest.mark.parametrize("classes", [0, 2, 6])
def test_a_forward_that_classes_below_define(tmp_path: Path, declared: str, body: str, classes: int) -> None:
    text = ABSTRACT.format(declared=declared, body=body)
    text += "".join(CONCRETE.format(number=number, guard="if True:") for number in range(classes))
    assert said(tmp_path, text) == [("MEM201", "warning")]


def test_forwards_that_guard_themselves(tmp_path: Path) -> None:
    text = ABSTRACT.format(declared=DECLARED, body="pass")
    text += "".join(CONCRETE.format(number=number, guard="with torch.no_grad():") for number in range(2))
    assert said(tmp_path, text) == []


def test_a_hook_that_nobody_uses_gives_nothing(tmp_path: Path) -> None:
    text = """
import torch
from torch import nn


class Trainer:
    def after(self, loss):
        pass

    def fit(self, model, loader, optimizer):
        for x in loader:
            optimizer.zero_grad()
            loss = model(x.cuda()).mean()
            loss.backward()
            optimizer.step()
            self.after(loss)
"""
    assert said(tmp_path, text) == []


MODES = """
import torch


def run_epoch(net, loader, criterion, optimizer, training):
    {mode}
    total = 0.0
    for x, y in loader:
        {guard}
            loss = criterion(net(x.cuda()), y.cuda())
        total += loss.item()
        if training:
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return total
"""


@pytest.mark.parametrize(
    "mode", ["net.train(training)", "net.train(mode=training)", "net.train() if training else net.eval()"]
)
@pytest.mark.parametrize(
    ("guard", "found"), [("if True:", [("MEM201", "warning")]), ("with torch.set_grad_enabled(training):", [])]
)
def test_a_mode_that_a_parameter_gives(tmp_path: Path, mode: str, guard: str, found: list[tuple[str, str]]) -> None:
    assert said(tmp_path, MODES.format(mode=mode, guard=guard)) == found


LIBRARY = """
import torch
from torch import nn
from diffusers import AutoencoderKL, UNet2DConditionModel


def train(loader, device):
    vae = AutoencoderKL.from_pretrained("vae").to(device)
    {before}
    net = UNet2DConditionModel.from_pretrained("net").to(device)
    optimizer = torch.optim.AdamW(net.parameters())
    for step, x in enumerate(loader):
        with torch.no_grad():
            latent = vae.encode(x.to(device)).latent_dist.sample()
        noise = torch.randn_like(latent)
        loss = nn.functional.mse_loss(net(latent + noise, step).sample, noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 1000 == 0:
            {guard}
                images = vae.decode(noise).sample
            print(images.detach().cpu())
"""


@pytest.mark.parametrize(
    ("before", "guard", "codes"),
    [
        ("vae.eval()", "if True:", {"MEM202"}),
        ("pass", "if True:", {"MEM202"}),
        ("vae.requires_grad_(False)", "if True:", set()),
        ("vae.eval()", "with torch.no_grad():", set()),
    ],
)
def test_an_autoencoder_of_a_library(tmp_path: Path, before: str, guard: str, codes: set[str]) -> None:
    (tmp_path / "train.py").write_text(LIBRARY.format(before=before, guard=guard), encoding="utf-8")
    assert {one.code for one in memlint.lint([tmp_path], isolated=True).findings} == codes


CONTAINERS = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 4096)

    def forward(self, x):
        return self.layer(x)


class Runner:
    def __init__(self, loader):
        self.models = {{}}
        self.models["encoder"] = Net().cuda()
        self.models["decoder"] = Net().cuda()
        self.loader = loader

    def switch(self):
        for net in self.models.values():
            net.{switch}()

    def process(self, x):
        return {{"loss": self.models["decoder"](self.models["encoder"](x.cuda())).mean()}}

    def step(self, x, optimizer):
        optimizer.zero_grad()
        self.process(x)["loss"].backward()
        optimizer.step()

    def validate(self):
        self.switch()
        for x in self.loader:
            {guard}
                out = self.process(x)
            print(out["loss"].item())


def validate(nets, loader):
    for net in nets.values():
        net.{switch}()
    for x in loader:
        {guard}
            print(nets["decoder"](nets["encoder"](x.cuda())).mean().item())
"""


@pytest.mark.parametrize(
    ("switch", "guard", "found"),
    [
        ("eval", "if True:", [("MEM201", "warning"), ("MEM201", "warning")]),
        ("eval", "with torch.no_grad():", []),
        ("to_host", "with torch.no_grad():", []),
    ],
)
def test_modules_of_a_dictionary(tmp_path: Path, switch: str, guard: str, found: list[tuple[str, str]]) -> None:
    assert said(tmp_path, CONTAINERS.format(switch=switch, guard=guard)) == found


PHASES = """
import torch


def run(net, loaders, criterion, optimizer):
    for phase in ("train", "val"):
        {named}
        {switch}
        for x, y in loaders[phase]:
            {guard}
                loss = criterion(net(x.cuda()), y.cuda())
            if training:
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
            print(loss.item())
"""


@pytest.mark.parametrize("switch", ["net.train(training)", "net.train() if training else net.eval()"])
@pytest.mark.parametrize(
    ("named", "guard", "found"),
    [
        ("training = phase == 'train'", "if True:", [("MEM201", "warning")]),
        ("training = phase in ('train',)", "if True:", [("MEM201", "warning")]),
        ("training = phase == 'train'", "with torch.set_grad_enabled(training):", []),
        ("training = phase != 'train' or always()", "if True:", []),  # a phase of evaluation may train
        ("training = wanted(phase)", "if True:", []),
    ],
)
def test_what_a_phase_is_known_by(
    tmp_path: Path, named: str, switch: str, guard: str, found: list[tuple[str, str]]
) -> None:
    assert said(tmp_path, PHASES.format(named=named, switch=switch, guard=guard)) == found


PASSED = """
import torch
from torch import nn


class Features(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
        for param in self.parameters():
            param.requires_grad = False

    def forward(self, x):
        return self.layer(x)


def extract(loader, net: nn.Module = None):
    {made}
        net = Features()
    net.cuda().eval()
    rows = []
    for x in loader:
        rows.append(net(x.cuda()))
    return torch.cat(rows)
"""


@pytest.mark.parametrize(("made", "codes"), [("if net is None:", ["MEM201"]), ("if True:", [])])
def test_a_network_that_is_made_where_none_is_passed(tmp_path: Path, made: str, codes: list[str]) -> None:
    """That the one that is made here is frozen says nothing of one that is passed in."""
    assert [code for code, _ in said(tmp_path, PASSED.format(made=made)) if code.startswith("MEM2")] == codes


MEMBERS = """
import torch


def fit(nets, noise, optimizer, search, steps):
    count = len(nets)
    for i in range(count):
        nets[i].eval()
    for step in range(steps):
        optimizer.zero_grad()
        total = 0
        for i in range({rounds}):
            loss = nets[{index}](noise).square().mean()
            total += loss
            if not search:
                loss.backward()
        optimizer.step()
        print(float(total))
"""


@pytest.mark.parametrize(("rounds", "index", "codes"), [("count", "i", set()), ("steps", "0", {"MEM101"})])
def test_rounds_over_the_members_that_they_call(tmp_path: Path, rounds: str, index: str, codes: set[str]) -> None:
    """A sum over a handful of networks ends with them."""
    text = MEMBERS.format(rounds=rounds, index=index)
    assert {code for code, _ in said(tmp_path, text)} == codes


WRAPPED = """
import torch
from parts import build
from torch import nn


class Wrapped(nn.Module):
    def __init__(self, autoencoder):
        super().__init__()
        self.autoencoder = autoencoder

    def encode(self, x):
        return self.autoencoder.encode(x)

    def compare(self, x):
        return self.autoencoder.compare(x)


def codes(model, loader):
    {moved}
    model.eval()
    found = []
    for x, _ in loader:
        found.append(model.{method}(x.float()).detach().cpu())
    return torch.cat(found).detach().cpu().numpy()


if __name__ == "__main__":
    print(codes(Wrapped(build()){frozen}, torch.utils.data.DataLoader([])))
"""


@pytest.mark.parametrize("moved", ["pass", "model.to('cuda')"])
@pytest.mark.parametrize(
    ("method", "frozen", "found"),
    [
        ("encode", "", ["MEM201"]),
        ("compare", "", []),  # (the part may be any function, and so may what has such a name)
        ("encode", ".requires_grad_(False)", []),
    ],
)
def test_a_method_that_hands_all_to_a_part_out_of_sight(
    tmp_path: Path, moved: str, method: str, frozen: str, found: list[str]
) -> None:
    """It is known no better than that of a model of which nothing is in sight."""
    text = WRAPPED.format(moved=moved, method=method, frozen=frozen)
    assert [code for code, _ in said(tmp_path, text)] == found
