"""What the models of libraries return: ``BaseModelOutput(last_hidden_state=h)`` holds the tensors that it is given."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

ENCODER = """
import torch
from torch import nn
from transformers.modeling_outputs import BaseModelOutput, BaseModelOutputWithPooling
from transformers.modeling_utils import PreTrainedModel


class Encoder(PreTrainedModel):
    def __init__(self):
        super().__init__()
        self.layers = nn.Linear(512, 512)

    def forward(self, ids, return_dict=True):
        hidden = self.layers(ids)
        if not return_dict:
            return (hidden, hidden.mean(1))
        return {made}


class TextEncoder(Encoder):
    def encode_text(self, ids):
        return super().forward(ids, return_dict=True)


def encode(loader):
    encoder = TextEncoder().cuda()
    encoder.eval()
    states = []
    with torch.no_grad():
        for ids in loader:
            output = encoder.encode_text(ids.cuda())
            states.append({kept})
    return torch.cat([state.cpu() for state in states]).numpy()
"""


@pytest.mark.parametrize(
    ("made", "kept", "codes"),
    [
        ("BaseModelOutput(last_hidden_state=hidden)", "output.last_hidden_state", ["MEM104"]),
        ("BaseModelOutput(last_hidden_state=hidden)", 'output["last_hidden_state"]', ["MEM104"]),
        ("BaseModelOutput(last_hidden_state=hidden)", "output[0]", ["MEM104"]),
        ("BaseModelOutput(last_hidden_state=hidden, attentions=None)", "output[0]", ["MEM104"]),
        (
            "BaseModelOutputWithPooling(last_hidden_state=hidden, pooler_output=hidden.mean(1))",
            "output.last_hidden_state",
            ["MEM104"],
        ),
        ("BaseModelOutput(last_hidden_state=hidden)", "output.last_hidden_state.cpu()", []),
        ("BaseModelOutput(last_hidden_state=hidden.cpu())", "output.last_hidden_state", []),
        # what is not given is None, or what the class adds
        ("BaseModelOutput(last_hidden_state=hidden)", "torch.tensor(len(output))", []),
    ],
)
def test_outputs_hold_what_they_are_given(tmp_path: Path, made: str, kept: str, codes: list[str]) -> None:
    assert codes_in(tmp_path, ENCODER.format(made=made, kept=kept)) == codes


EITHER = """
import torch
from torch import nn


class Early(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(8, 8) for _ in range(4)])

    def forward(self, x):
        used = 0.0
        for layer in self.layers:
            x = layer(x)
            used += x.shape[0] * 1e-12
        return x, len(self.layers), {used}


class Whole(nn.Module):
    def __init__(self, early):
        super().__init__()
        self.early = early
        self.network = Early() if early else nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8))
        self.total = 0.0

    def forward(self, x):
        if self.early:
            out, count, used = self.network(x)
            self.total += used
            return out
        return self.network(x)


def main(loader):
    net = Whole(True)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in loader:
        loss = net(x).sum()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("used", "expected"), [("used", []), ("x.mean()", ["MEM101"])])
def test_only_the_model_that_gives_several_is_unpacked(tmp_path: Path, used: str, expected: list[str]) -> None:
    assert codes_in(tmp_path, EITHER.format(used=used)) == expected


CHOSEN = """
import torch
from torch import nn


class {first}(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 1)

    def forward(self, x):
        return self.layer(x).detach()


class {second}(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 1)

    def forward(self, x):
        return self.layer(x)


def main(loader, fast, optimizer):
    net = {first}() if fast else {second}()
    total = 0
    for x in loader:
        loss = net(x).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
"""


@pytest.mark.parametrize(("first", "second"), [("Able", "Zed"), ("Zed", "Able")])
def test_any_class_of_a_model_may_record(tmp_path: Path, first: str, second: str) -> None:
    assert codes_in(tmp_path, CHOSEN.format(first=first, second=second)) == ["MEM101"]
