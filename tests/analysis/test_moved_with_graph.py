"""Tensors that are moved to the host with their graph: what the graph has saved stays where the model runs."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

SOURCE = """
import torch
import torchvision
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 512, 3), nn.ReLU(), nn.Conv2d(512, 16, 3))

    def forward(self, x):
        return self.body(x)


def on_host(model, x):
    return model(x).cpu()


def run(loader, device):
    net = Net(){place}
    resnet = torchvision.models.resnet50(){place}
    kept, total, state, seen = [], 0, torch.zeros(16), {{}}
    for i, x in enumerate(loader):
        x = x{place}
        {body}
    print(len(kept), len(seen), total, state)
"""


def told(folder: Path, code: str, body: str, place: str) -> list[tuple[str, bool, bool]]:
    """Of each finding of a code: the memory, and whether device and host memory are said to grow."""
    (folder / "train.py").write_text(SOURCE.format(body=body, place=place))
    found = memlint.lint([folder], select=[code], min_confidence="low").findings
    return [
        (one.growth.memory, "device memory" in one.message, "host memory" in one.message)
        for one in found
        if one.code == code
    ]


KEPT = ("device-graph", True, True)
SUMMED = ("device-graph", True, False)


@pytest.mark.parametrize("place", [".cuda()", ".to(device)", '.to("cuda:1")'])
@pytest.mark.parametrize(
    ("code", "body", "expected"),
    [
        pytest.param("MEM102", "kept.append(net(x).cpu())", KEPT, id="cpu"),
        pytest.param("MEM102", "out = net(x)\n        kept.append(out.to('cpu'))", KEPT, id="to"),
        pytest.param("MEM102", "kept.append(net(x).to(device='cpu', non_blocking=True))", KEPT, id="by keyword"),
        pytest.param("MEM102", "seen[i] = resnet(x).mean().to(torch.device('cpu'))", KEPT, id="a number"),
        pytest.param("MEM102", "out = resnet(x).softmax(-1).cpu()\n        kept.append(out[:8] * 2)", KEPT, id="used"),
        pytest.param("MEM102", "kept.append(on_host(net, x))", KEPT, id="in a function"),
        pytest.param("MEM101", "total += net(x).mean().cpu()", SUMMED, id="a sum"),
        pytest.param("MEM103", "state = 0.9 * state + 0.1 * net(x).mean((0, 2, 3)).cpu()", SUMMED, id="a state"),
    ],
)
def test_activations_stay_on_the_device(
    tmp_path: Path, code: str, body: str, expected: tuple[str, bool, bool], place: str
) -> None:
    assert told(tmp_path, code, body, place) == [expected]


@pytest.mark.parametrize(
    ("code", "body"),
    [
        ("MEM102", "kept.append(net(x))"),
        ("MEM102", "kept.append(resnet(x).cpu())"),
        ("MEM101", "total += net(x).mean()"),
        ("MEM201", "net.eval()\n        kept.append(net(x).cpu())"),
        ("MEM201", "net.eval()\n        kept.append(net(x))"),
    ],
)
@pytest.mark.parametrize("place", [".cpu()", '.to("cpu")'])
def test_a_model_on_the_host_keeps_all_there(tmp_path: Path, code: str, body: str, place: str) -> None:
    assert told(tmp_path, code, body, place) == [("host", False, True)]


def test_what_a_backward_has_freed_is_on_no_device(tmp_path: Path) -> None:
    body = "out = net(x)\n        out.square().mean().backward()\n        kept.append(out.cpu())"
    assert told(tmp_path, "MEM102", body, ".cuda()") == [("host", False, True)]
