"""What bounds a place outside the loop that fills it: its owner's methods, the few rounds of a loop, other hooks."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

OWNER = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Store:
    def __init__(self, options):
        self.options = options
        self.codes = []

    def always(self):
        self.codes = []

    def where_on(self):
        if self.options.codes:
            self.codes.clear()

    def now_and_then(self):
        if len(self.codes) > 1000:
            self.codes = []

    def begin(self):
        self.count = 0


class Trainer:
    def __init__(self, options, data):
        self.net = nn.Linear(64, 64).cuda()
        self.loader = DataLoader(data, batch_size=64)
        self.store = Store(options)

    def collect(self):
        for batch in self.loader:
            with torch.no_grad():
                self.store.codes.append(self.net(batch.cuda()))
            {inside}
        {behind}
"""


@pytest.mark.parametrize(
    ("inside", "behind", "found"),
    [
        ("self.store.always()", "pass", []),
        ("self.store.where_on()", "pass", []),
        ("self.store.now_and_then()", "pass", []),  # it grows until then, which is most often meant
        ("self.store.begin()", "pass", ["MEM104"]),
        ("pass", "self.store.always()", ["MEM104"]),
    ],
)
def test_methods_of_the_owner_empty_a_place(tmp_path: Path, inside: str, behind: str, found: list[str]) -> None:
    (tmp_path / "train.py").write_text(OWNER.format(inside=inside, behind=behind))
    assert [item.code for item in memlint.lint([tmp_path]).findings] == found


HOOKS = """
import lightning as L


class Writer(L.Callback):
    def __init__(self):
        self.seen = []

    def on_predict_batch_end(self, trainer, pl_module, outputs, batch, batch_idx, dataloader_idx=0):
        self.seen.append(batch[1])

    def start(self):
        self.seen = []

    def {hook}(self, trainer, pl_module, *rest):
        self.start()
"""


@pytest.mark.parametrize(
    ("hook", "found"),
    [("on_predict_batch_start", 0), ("on_predict_epoch_end", 1), ("write_on_batch_end", 1)],
)
def test_a_hook_that_is_called_as_often_empties_a_place(tmp_path: Path, hook: str, found: int) -> None:
    (tmp_path / "writer.py").write_text(HOOKS.format(hook=hook))
    assert len(memlint.lint([tmp_path], select=["MEM104"]).findings) == found


VIEWS = """
import torch
from torch import nn


def train(views, scaler, optimizer):
    model = nn.Conv2d(3, 64, 3).cuda()
    for number, view in enumerate(views):
        output = model(view)
        scaler.scale(output.logsumexp(dim=1).mean()).backward()
        {step}
        if number == 0:
            kept = output.detach()
        else:
            kept = torch.cat([kept, output.detach()], dim=0)
    return kept
"""


@pytest.mark.parametrize(("step", "severity"), [("scaler.step(optimizer)", "warning"), ("pass", "note")])
def test_rounds_of_one_optimizer_step_are_few(tmp_path: Path, step: str, severity: str) -> None:
    (tmp_path / "train.py").write_text(VIEWS.format(step=step))
    assert [item.severity for item in memlint.lint([tmp_path], select=["MEM302"]).findings] == [severity]


LAYERS = """
from torch import nn


def layers(sizes, norm: nn.Module = nn.LayerNorm):
    made = []
    for inside, outside in zip(sizes[:-1], sizes[1:]):
        made.append(nn.Linear(inside, outside))
        made.append(norm(outside))
    return nn.Sequential(*made)
"""


def test_layers_of_a_module_are_no_outputs(tmp_path: Path) -> None:
    (tmp_path / "layers.py").write_text(LAYERS)
    assert not memlint.lint([tmp_path]).findings


EMPTIED_THROUGH = """
import torch
from torch import nn


class Tree(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell = nn.LSTMCell(64, 64)
        self.states = []

    def forward(self, words, h, c):
        for word in words:
            h, c = self.cell(word, (h, c))
            self.states.append(h)
        return h


class Sentence(nn.Module):
    def __init__(self):
        super().__init__()
        self.tree = Tree()

    def forward(self, words, h, c):
        self.tree(words, h, c)
        output = torch.cat(self.tree.states, 0)
        {after}
        return output


def train(loader, optimizer):
    model = Sentence().cuda()
    for words, h, c, y in loader:
        loss = (model(words.cuda(), h.cuda(), c.cuda()) - y.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("after", "found"), [("del self.tree.states[:]", []), ("pass", ["MEM102"])])
def test_a_list_that_the_owners_owner_empties(tmp_path: Path, after: str, found: list[str]) -> None:
    (tmp_path / "train.py").write_text(EMPTIED_THROUGH.format(after=after), encoding="utf-8")
    said = memlint.lint([tmp_path], isolated=True).findings
    assert [one.code for one in said if one.severity != "note"] == found


DETACHED_UNLESS_NONE = """
import torch
from torch import nn


class Cell(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.GRUCell(64, 64)
        self.memory = None

    def forward(self, x):
        self.memory = self.layer(x, {memory})
        return self.memory


def train(loader, optimizer):
    model = Cell().cuda()
    for x, y in loader:
        loss = (model(x.cuda()) - y.cuda()).square().mean()
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("memory", "found"),
    [
        ("self.memory if self.memory is None else self.memory.detach()", []),
        ("self.memory.detach() if self.memory is not None else self.memory", []),
        ("self.memory", ["MEM103"]),
    ],
)
def test_a_state_that_is_detached_where_there_is_one(tmp_path: Path, memory: str, found: list[str]) -> None:
    (tmp_path / "train.py").write_text(DETACHED_UNLESS_NONE.format(memory=memory), encoding="utf-8")
    said = memlint.lint([tmp_path], isolated=True).findings
    assert [one.code for one in said if one.growth.memory == "device-graph"] == found


ONE_STEP = """
import torch
from torch import nn


class Trainer:
    def __init__(self, params, loader):
        self.params = params
        self.loader = loader
        self.encoder = nn.Linear(64, 64).cuda()
        self.judge = nn.Linear(64, 2).cuda()
        self.optimizer = torch.optim.Adam(self.judge.parameters())

    def step(self):
        self.judge.train()
        encoded = []
        for number, {member} in enumerate({members}):
            with torch.no_grad():
                encoded.append(self.encoder({member}.cuda()))
        print(torch.cat(encoded).cpu())
        loss = self.judge(torch.cat(encoded)).square().mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
"""


@pytest.mark.parametrize(
    ("member", "members", "found"),
    [
        ("batch", "self.params.languages", []),
        ("batch", "torch.utils.data.DataLoader(self.params.data, batch_size=64)", ["MEM104"]),
    ],
)
def test_the_parts_of_one_step(tmp_path: Path, member: str, members: str, found: list[str]) -> None:
    (tmp_path / "train.py").write_text(ONE_STEP.format(member=member, members=members), encoding="utf-8")
    said = memlint.lint([tmp_path], isolated=True).findings
    assert [one.code for one in said if one.code == "MEM104"] == found


PUT_TOGETHER = """
import torch


def train(model, tail, loader, optimizer, criterion, fill):
    for data in loader:
        {unpack}
        out = model(views[0].cuda())
        for i in range(1, len(views)):
            out = torch.cat((out, model(views[i].cuda())), dim=1)
        loss = criterion(tail(out), labels.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(
    ("unpack", "found"),
    [
        ("first, second, labels = data; views = [first, second]", False),
        ("first, second, labels = data; views = [first]; fill(views, second)", True),
        ("views, labels = data", True),
    ],
)
def test_a_loop_over_what_was_put_together_from_a_few(tmp_path: Path, unpack: str, found: bool) -> None:
    (tmp_path / "train.py").write_text(PUT_TOGETHER.format(unpack=unpack), encoding="utf-8")
    assert any(one.code == "MEM302" for one in memlint.lint([tmp_path], isolated=True).findings) is found


FRAMES = """
import torch
from torch import nn
from torch.utils.data import DataLoader


def rollout(model: nn.Module, loader: DataLoader):
    frames = torch.zeros(0).cuda()
    for x in loader:
        for t in range(0, 10, 2):
            frame = model(x.cuda())
            {grow}
"""


@pytest.mark.parametrize(
    ("grow", "codes"),
    [
        ("frames = frame if t == 0 else torch.cat([frames, frame])", []),
        ("frames = frame if len(x) == 3 else torch.cat([frames, frame])", ["MEM302"]),
        ("frames = frames if t == 0 else torch.cat([frames, frame])", ["MEM302"]),
        ("frames = torch.cat([frames, frame])", ["MEM302"]),
    ],
)
def test_a_tensor_that_each_inner_loop_begins_anew(tmp_path: Path, grow: str, codes: list[str]) -> None:
    (tmp_path / "run.py").write_text(FRAMES.replace("{grow}", grow))
    assert [one.code for one in memlint.lint([tmp_path]).findings if one.code == "MEM302"] == codes


PARTS = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Mixture(nn.Module):
    def __init__(self, parts):
        super().__init__()
        self.parts = nn.ModuleList(parts)

    def join(self, inputs, names, loader: DataLoader):
        maps = torch.zeros(0).cuda()
        for name in {over}:
            maps = torch.cat([maps, self.parts[0](inputs[name]).detach()])
        return maps
"""


@pytest.mark.parametrize(("over", "severity"), [("names", "note"), ("loader", "warning")])
def test_a_module_joins_its_parts(tmp_path: Path, over: str, severity: str) -> None:
    (tmp_path / "run.py").write_text(PARTS.replace("{over}", over))
    assert [one.severity for one in memlint.lint([tmp_path]).findings if one.code == "MEM302"] == [severity]


KEYS = """
import torch


def both(batch):
    rows = {{"both": torch.zeros(3).cuda(), **batch}}
    for key in batch:
        name = {name}
        rows[name] = torch.cat((rows[name], batch[key].cuda()))
    return rows
"""


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("key", 0),
        ("key.replace('rejected', 'both')", 0),
        ("'both_' + key", 0),
        ("f'{key}_both'", 0),
        ("'both_' + key\n        name = name.replace('both_', '')", 0),
        ("'both_' + key\n        if key not in rows:\n            name = 'both'", 1),
        ("key[:4]", 1),
        ("'both'", 1),
    ],
)
def test_each_round_grows_another_member(tmp_path: Path, name: str, found: int) -> None:
    (tmp_path / "train.py").write_text(KEYS.format(name=name))
    assert len(memlint.lint([tmp_path], select=["MEM302"], min_confidence="low").findings) == found


GIVEN = """
import torch
from torch import nn


class Extend(nn.Module):
    def __init__(self, more):
        super().__init__()
        self.more = more
        self.kept = {{"rows": torch.zeros(0, 4)}}

    def {method}(self, data):
        {place} = torch.cat([{place}, self.more(data)], dim=1)
        return data


def run(extend: Extend, loader: torch.utils.data.DataLoader):
    for data in loader:
        extend.{method}(data)
"""


@pytest.mark.parametrize(
    ("method", "place", "found"),
    [
        pytest.param("forward", 'data["rows"]', 0, id="of the batch of this call"),
        pytest.param("forward", "data.rows", 0, id="an attribute of it"),
        pytest.param("forward", 'self.kept["rows"]', 1, id="of the module"),
    ],
)
def test_what_a_module_is_given_is_another_with_each_call(tmp_path: Path, method: str, place: str, found: int) -> None:
    (tmp_path / "net.py").write_text(GIVEN.format(method=method, place=place))
    assert len(memlint.lint([tmp_path], select=["MEM302"]).findings) == found
