"""What takes the place of a module's ``forward`` runs under the grad mode of whoever runs the module."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

PROGRAM = """
import functools
import types

import torch
from torch import nn


def in_chunks(model, batch, size=8):
    results = []
    for chunk in batch.split(size):
        results.append(model.head(model.stem(chunk)).softmax(1).detach().cpu())
    return torch.cat(results)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Conv2d(3, 64, 3), nn.Conv2d(64, 8, 3)

    def forward(self, x):
        return self.head(self.stem(x))


{helper}


class Serving:
    def __init__(self):
        self.net = Net().cuda().eval()
        {replaced}

    def answer(self, image):
        {guard}
            return self.net(image.cuda()).numpy()


if __name__ == "__main__":
    serving = Serving()
    for image in torch.rand(100, 1, 3, 64, 64):
        print(serving.answer(image))
"""


MAKES = """
def make_forward(net):
    def forward(batch):
        return in_chunks(net, batch)

    return forward
"""


@pytest.mark.parametrize(
    "replaced",
    [
        "self.net.forward = functools.partial(in_chunks, self.net)",
        "self.net.forward = functools.partial(in_chunks, self.net, size=2)",
        "self.net.forward = types.MethodType(in_chunks, self.net)",
        "self.net.forward = in_chunks.__get__(self.net)",
        "self.net.forward = make_forward(self.net)",
        "setattr(self.net, 'forward', functools.partial(in_chunks, self.net))",
        "Net.forward = in_chunks",
    ],
)
def test_callers_of_the_module_guard_it(tmp_path: Path, replaced: str) -> None:
    helper = MAKES if "make_forward" in replaced else ""
    text = PROGRAM.format(replaced=replaced, helper=helper, guard="with torch.no_grad():")
    assert codes_in(tmp_path, text) == []


METHOD = """
import torch
from torch import nn


class Matcher(nn.Module):
    def __init__(self, deploy=False):
        super().__init__()
        self.backbone, self.head = nn.Conv2d(3, 64, 7), nn.Conv2d(64, 9, 1)
        if deploy:
            self.forward = self.forward_deploy

    def export(self):
        self._forward_of_training = self.forward
        self.forward = self.forward_deploy

    def forward(self, x):
        return self.head(self.backbone(x))

    def forward_deploy(self, images):
        return self.head(self.backbone(images)).softmax(1)


def run(loader):
    model = Matcher().cuda().eval()
    model.export()
    found = []
    for images in loader:
        {guard}
            found.append(model(images.cuda()).argmax(1).cpu())
    return found


if __name__ == "__main__":
    run(torch.utils.data.DataLoader([]))
"""


@pytest.mark.parametrize(("guard", "expected"), [("with torch.inference_mode():", []), ("if len(images):", ["MEM201"])])
def test_a_method_of_the_module_is_judged_where_the_module_runs(
    tmp_path: Path, guard: str, expected: list[str]
) -> None:
    assert codes_in(tmp_path, METHOD.format(guard=guard)) == expected
