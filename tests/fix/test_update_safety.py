"""Updates in place, tensors made on the device, and states: when their fixes are safe, and when there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixed_programs import findings, safety

UPDATE = """
import torch

def relax(x, steps):
    field = torch.{made}
    for _ in range(steps):
        {update}
    return field
"""


@pytest.mark.parametrize(
    ("made", "update", "expected"),
    [
        ("rand(512, 512)", "field = field * 0.5", "safe"),
        ("rand(512, 512).half()", "field = field * 0.5", "safe"),
        ("rand(512, 512)", "field = field + 1", "safe"),
        ("rand(512, 512)", "field = field.clamp(0, 1)", "safe"),
        ("rand(512, 512)", "field = torch.tanh(field)", "safe"),
        ("rand(512, 512)", "field = field * steps", "unsafe"),
        ("rand(512, 512)", "field = field + field.t()", "unsafe"),
        ("rand(512, 512)", "field = field * field[0]", "unsafe"),
        ("ones_like(x)", "field = field * 0.5", "unsafe"),
        ("rand(512, 512)", "field = (field  # the old one\n                 * 0.5)", "unsafe"),
    ],
)
def test_an_update_in_place(made: str, update: str, expected: str, tmp_path: Path) -> None:
    assert safety(tmp_path, UPDATE.format(made=made, update=update), "MEM301") == expected


def test_a_leaf_of_a_graph_is_not_to_be_updated_in_place(tmp_path: Path) -> None:
    text = UPDATE.format(made="rand(512, 512).requires_grad_()", update="field = field * 0.5")
    assert findings(tmp_path, text, "MEM301") == []


@pytest.mark.parametrize(
    "made", ["rand(512, 512, requires_grad=True)", "randint(0, 9, (512, 512))", "rand(512, 1).expand(512, 512)"]
)
def test_no_update_in_place_is_proposed(made: str, tmp_path: Path) -> None:
    assert not findings(tmp_path, UPDATE.format(made=made, update="field = field * 0.5"), "MEM301")


SHARED = """
import torch
import torch.nn.functional as F
import torchaudio.functional as AF
import torchvision.transforms.functional as TF
from einops import rearrange, repeat
from torchvision.transforms.v2.functional import center_crop
from torchvision.utils import make_grid

@torch.no_grad()
def pictures(videos, array, steps):
    for frames in rearrange(videos, "b c t h w -> t b c h w"):
        grid = {made}
        for _ in range(steps):
            grid = grid * 0.5
        yield grid.sum().item()
"""


@pytest.mark.parametrize(
    ("made", "proposed"),
    [
        ("torch.stack([frames, frames])", True),
        ("make_grid(frames, nrow=6)", False),
        ("make_grid(frames).transpose(0, 1).squeeze(-1)", False),
        ("rearrange(frames, 'b c h w -> c (b h) w')", False),
        ("F.dropout(frames, 0.5, training=False)", False),
        ("F.interpolate(frames, scale_factor=2)", True),
        ("repeat(frames, 'b c h w -> r b c h w', r=steps)", False),
        ("AF.gain(frames, steps)", False),
        ("AF.resample(frames, 16000, array)", False),
        ("TF.crop(frames, 0, 0, 8, 8)", False),
        ("TF.resize(frames, steps)", False),
        ("center_crop(frames, [64, 64]).squeeze(-1)", False),
        ("torch.from_numpy(array)", False),
        ("torch.as_tensor(array).float()", False),
    ],
)
def test_no_update_in_place_of_what_may_be_the_callers(made: str, proposed: bool, tmp_path: Path) -> None:
    """The caller's own video would change with the grid, which of one picture is a view."""
    assert bool(findings(tmp_path, SHARED.format(made=made), "MEM301")) == proposed


KEPT = """
import torch

def relax(steps, queue):
    field = torch.zeros(512, 512)
    frames, last = [], None
    for t in range(steps):
        field = field * 0.5
        {use}
    return field, frames, last
"""


@pytest.mark.parametrize(
    "use",
    [
        "frames.append(field)",
        "frames.append((t, field))",
        "frames.append(field[0])",
        "frames.append(field.view(-1))",
        "frames += [field]",
        "last = field",
        "last = field if t % 2 else last",
        "yield field",
    ],
)
def test_no_update_in_place_of_what_is_kept(use: str, tmp_path: Path) -> None:
    """Every frame would be the last one."""
    assert not findings(tmp_path, KEPT.format(use=use), "MEM301")


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("frames.append(field.clone())", "safe"),
        ("frames.append(field.mean().item())", "safe"),
        ("print(field.shape, field[0] + 1)", "safe"),
        ("frames.append(field.numpy())", "unsafe"),
        ("frames.append(torch.as_tensor(field))", "unsafe"),
        ("queue.put(field)", "unsafe"),
        ("frames.append(lambda: field)", "unsafe"),
    ],
)
def test_an_update_in_place_of_what_may_be_kept(use: str, expected: str, tmp_path: Path) -> None:
    assert safety(tmp_path, KEPT.format(use=use), "MEM301") == expected


SUMMED = """
import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(1, 1, 3, padding=1)
        self.query = nn.Linear(8, 8)
        self.total = None

    def forward(self, x, t):
        if t == 0:
            self.total = torch.zeros(x.size(0), 8, device=x.device)
        scores = torch.softmax(self.query(x){read}, dim=1)
        self.total = self.total + scores
        return scores


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = Attention()

    def generate(self, x, steps):
        self.eval()
        outputs = []
        for t in range(steps):
            outputs.append((self.attention(x, t) * x).argmax(1).tolist())
        return outputs
"""


@pytest.mark.parametrize(
    ("read", "expected"),
    [("", "safe"), (" + self.conv(self.total.unsqueeze(1)).squeeze(1)", "none")],
    ids=["only summed", "used by the step"],
)
def test_a_state_that_its_own_step_reads_is_not_cut(read: str, expected: str, tmp_path: Path) -> None:
    """A training step has its gradients through it."""
    assert safety(tmp_path, SUMMED.format(read=read), "MEM103") == expected


STATE = """
import torch
from torch import nn

def train(loader, begun=None):
    rnn = nn.{layer}(8, 8)
    optimizer = torch.optim.SGD(rnn.parameters(), lr=0.1)
    state = {begun}
    for x, y in loader:
        out, state = rnn(x, state)
        loss = nn.functional.mse_loss(out, y)
        optimizer.zero_grad()
        loss.backward(retain_graph=True)
        optimizer.step()
"""
PAIR = "(torch.zeros(1, 4, 8), torch.zeros(1, 4, 8))"


@pytest.mark.parametrize(
    ("layer", "begun", "written"),
    [
        ("GRU", "torch.zeros(1, 4, 8)", "state = state.detach()"),
        ("GRU", "torch.zeros(1, 4, 8).cuda()", "state = state.detach()"),
        ("LSTM", PAIR, "state = tuple(part.detach() for part in state)"),
        ("GRU", "None", None),
        ("LSTM", "None", None),
        ("LSTM", "begun", None),
    ],
)
def test_a_state_is_detached_only_where_its_form_is_known(
    layer: str, begun: str, written: str | None, tmp_path: Path
) -> None:
    (found,) = findings(tmp_path, STATE.format(layer=layer, begun=begun), "MEM103")
    if written is None:
        assert found.fix is None
    else:
        assert found.fix is not None and found.fix.safety == "unsafe"
        assert [edit.content.strip() for edit in found.fix.edits] == [written]


BEGUN = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.width = width
        self.body = nn.Linear(8, 8)

    def begin(self, rows):
        {begin}

    def forward(self, x, state):
        state = self.body(x) if state is None else self.body(x + state)
        return state.sum(), state

def main(loader):
    net = Net()
    state = net.begin(4)
    total = 0.0
    for x in loader:
        out, state = net(x, {passed})
        {later}
        total += out.item()
    return total

main([])
"""
TENSORS, NOTHING = "return torch.zeros(rows, self.width)", "return torch.zeros(rows, 8) if self.width else None"


@pytest.mark.parametrize(
    ("begin", "passed", "later", "written"),
    [
        (TENSORS, "state", "pass", "state = state.detach()"),
        (NOTHING, "state", "pass", "state = None if state is None else state.detach()"),
        ("return torch.zeros(rows, 8), rows", "state[0]", "state = (state, 4)", None),
        (TENSORS, "state[0]", "state = [state]", None),
    ],
)
def test_a_state_that_a_function_begins(
    begin: str, passed: str, later: str, written: str | None, tmp_path: Path
) -> None:
    found = findings(tmp_path, BEGUN.format(begin=begin, passed=passed, later=later), "MEM103")
    edits = [edit.content.strip() for one in found if one.fix is not None for edit in one.fix.edits]
    assert edits == ([] if written is None else [written])


LOADED = """
import torch

def restore(model):
    model.cuda()
    model.load_state_dict(torch.load('last.pt'))
"""


def test_the_quotes_of_the_file_stay(tmp_path: Path) -> None:
    (found,) = findings(tmp_path, LOADED, "MEM404")
    assert found.fix is not None
    assert [edit.content for edit in found.fix.edits if edit.content] == [", map_location='cpu'"]


SAVED = """
import torch
from torch import nn

def train(loader):
    model = nn.Linear(512, 512)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    weights = torch.ones(512, 512)
    for x in loader:
        loss = {loss}
        {before}
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        {after}
"""
DECAY = "weights = weights * 0.9 + 1.0"


@pytest.mark.parametrize(
    ("loss", "expected"),
    [
        ("(model(x) * weights).sum()", "safe"),
        ("weights[:8].unsqueeze(0).mul(model(x)).sum()", "unsafe"),
        ("nn.functional.mse_loss(model(x), weights)", "unsafe"),
        ("model(weights).sum()", "unsafe"),
    ],
)
def test_what_a_graph_has_saved_is_not_updated_in_place(loss: str, expected: str, tmp_path: Path) -> None:
    """The backward would raise, where it comes after the update."""
    assert not findings(tmp_path, SAVED.format(loss=loss, before=DECAY, after="pass"), "MEM301")
    assert safety(tmp_path, SAVED.format(loss=loss, before="pass", after=DECAY), "MEM301") == expected


def test_what_is_only_added_is_not_saved(tmp_path: Path) -> None:
    text = SAVED.format(loss="(model(x) + weights).pow(2).sum()", before=DECAY, after="pass")
    assert safety(tmp_path, text, "MEM301") == "safe"


METRIC = """
import torch

class Metric:
    def __init__(self):
        self.{name}, self.count = 0, 0

    def add(self, error):
        self.{name} += error
        self.count += 1

    def show(self):
        self.{name} = self.{name} / self.count
        print(self.{name})

@torch.no_grad()
def evaluate(model, loader):
    for x, y in loader:
        metric = Metric()
        metric.add(float((model(x) - y).abs().sum()))
        metric.show()
"""


@pytest.mark.parametrize("name", ["grad", "data", "error"])
def test_an_attribute_of_its_own_is_no_tensor_for_its_name(name: str, tmp_path: Path) -> None:
    assert not findings(tmp_path, METRIC.format(name=name), "MEM301")
