"""A module that is frozen where it is made records nothing, whichever of its methods runs, and wherever it is held."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

import memlint

HEAD = """
import torch
from torch import nn


class Vae(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Conv2d(3, 8, 3), nn.ConvTranspose2d(8, 3, 3)
        self.parts = nn.ModuleList([nn.Conv2d(8, 8, 3)])

    def forward(self, x):
        return self.enc(x)

    def encode(self, x):
        return self.enc(x)

    def refine(self, x):
        for part in self.parts:
            x = part(self.enc(x))
        return x

    @classmethod
    def load(cls, path):
        vae = cls()
        vae.load_state_dict(torch.load(path, map_location="cpu"))
        return vae
"""
LOCAL = """
{factory}


def main(loader):
    vae = {made}
    kept = []
    for images in loader:
        kept.append({call})
    return kept


if __name__ == "__main__":
    main(torch.utils.data.DataLoader([]))
"""
HELD = """
{factory}


class Latents:
    def __init__(self):
        self.vae = {made}
        self.kept = []

    def add(self, images):
        self.kept.append(self.{call})


if __name__ == "__main__":
    latents = Latents()
    for images in torch.utils.data.DataLoader([]):
        latents.add(images)
"""
#: ways to freeze it in a function
FACTORIES = {
    "returned": "def make(path):\n    return Vae.load(path).eval().requires_grad_(False)",
    "or unpickled": "import pickle\n\n\nclass Reader(pickle.Unpickler):\n    pass\n\n\n"
    "def make(path):\n    data = Reader(open(path, 'rb')).load()\n"
    "    if isinstance(data, tuple):\n        data = dict(vae=Vae().requires_grad_(False))\n    return data['vae']",
    "statement": "def make(path):\n    vae = Vae()\n    vae.requires_grad_(False)\n    return vae.cuda()",
    "loop": "def make(path):\n    vae = Vae()\n    for p in vae.parameters():\n        p.requires_grad = False\n"
    "    return vae",
    "named loop": "def make(path):\n    vae = Vae.load(path)\n    for _, p in vae.named_parameters():\n"
    "        p.requires_grad_(False)\n    return vae.eval()",
    "helper": "def freeze(net):\n    for p in net.parameters():\n        p.requires_grad = False\n    return net\n\n\n"
    "def make(path):\n    return freeze(Vae())",
    "flag": "def set_grad(net, flag):\n    for p in net.parameters():\n        p.requires_grad = flag\n\n\n"
    "def make(path):\n    vae = Vae()\n    set_grad(vae, False)\n    return vae",
}
CALLS = ("vae(images.cuda())", "vae.forward(images.cuda())", "vae.encode(images.cuda())", "vae.refine(images.cuda())")
OF_GRAPHS = {"MEM101", "MEM102", "MEM103", "MEM201", "MEM202"}


@pytest.mark.parametrize("program", [LOCAL, HELD], ids=["local", "held"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("factory", FACTORIES)
def test_frozen_by_a_factory(tmp_path: Path, factory: str, call: str, program: str) -> None:
    text = HEAD + program.format(factory=FACTORIES[factory], made="make('vae.pt').cuda()", call=call)
    assert not OF_GRAPHS & set(codes_in(tmp_path, text))


@pytest.mark.parametrize("program", [LOCAL, HELD], ids=["local", "held"])
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(
    "factory",
    [
        "def make(path):\n    return Vae.load(path).eval()",
        "def make(path):\n    return Vae().eval()",
        "def make(path):\n    vae = Vae.load(path)\n    if path.endswith('.pt'):\n"
        "        vae = Vae().requires_grad_(False)\n    return vae",
    ],
)
def test_a_graph_is_claimed_of_one_that_trains(tmp_path: Path, factory: str, call: str, program: str) -> None:
    text = HEAD + program.format(factory=factory, made="make('vae.pt').cuda()", call=call)
    assert OF_GRAPHS & set(codes_in(tmp_path, text))


def test_frozen_in_another_file(tmp_path: Path) -> None:
    (tmp_path / "models.py").write_text(f"{HEAD}\n\n{FACTORIES['flag']}\n")
    text = "import torch\n\nfrom models import make\n" + HELD.format(
        factory="", made="make('vae.pt').cuda()", call="vae.encode(images.cuda())"
    )
    assert not OF_GRAPHS & set(codes_in(tmp_path, text))


@pytest.mark.parametrize(
    "frozen",
    ["net.requires_grad_(False)", "for p in net.parameters():\n        p.requires_grad = False", "freeze(net)"],
)
def test_a_pretrained_model(tmp_path: Path, frozen: str) -> None:
    text = f"""
import torch
from transformers import CLIPTextModel


def freeze(module):
    module.requires_grad_(False)


def load(name):
    net = CLIPTextModel.from_pretrained(name)
    {frozen}
    return net.eval().cuda()


def embed(loader):
    net = load("openai/clip")
    rows = []
    for ids in loader:
        rows.append(net(ids.cuda()).last_hidden_state)
    return torch.cat(rows)


if __name__ == "__main__":
    embed(torch.utils.data.DataLoader([]))
"""
    assert not OF_GRAPHS & set(codes_in(tmp_path, text))


def test_a_part_that_one_of_two_names_holds(tmp_path: Path) -> None:
    """What one of two modules runs is frozen only where both are."""
    text = (
        HEAD
        + """

def main(loader, first):
    one, other = Vae().cuda(), Vae().cuda()
    one.requires_grad_(False)
    one.eval()
    other.eval()
    encode = one.encode if first else other.encode
    kept = []
    for images in loader:
        kept.append(encode(images.cuda()))
    return kept


if __name__ == "__main__":
    main(torch.utils.data.DataLoader([]), bool(input()))
"""
    )
    assert "MEM201" in codes_in(tmp_path, text)


FROZEN_BY_MODE = """
import torch
from torch import nn


class Judge(nn.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    def train(self, mode=True):
        super().train(mode)
        {switches}
        return self

    def requires(self, mode):
        for weight in self.net.parameters():
            weight.requires_grad = mode

    def forward(self, x):
        return self.net(x)


def evaluate(loader):
    judge = Judge(nn.Sequential(nn.Conv2d(3, 64, 3), nn.Flatten())).cuda()
    judge.eval()
    for x, _ in loader:
        print(judge(x.cuda()).argmax(1).tolist())
"""


@pytest.mark.parametrize(
    ("switches", "confidence"),
    [("self.requires(mode)", "low"), ("self.net.requires_grad_(mode)", "low"), ("self.mode = mode", "high")],
)
def test_modes_that_freeze(tmp_path: Path, switches: str, confidence: str) -> None:
    (tmp_path / "judge.py").write_text(FROZEN_BY_MODE.format(switches=switches))
    found = memlint.lint([tmp_path], min_confidence="low").findings
    assert [one.confidence for one in found if one.code == "MEM201"] == [confidence]


LISTED = """

def thaw(nets):
    for net in nets:
        net.requires_grad_(True)


def make(other):
    kept = []
    for number in range(4):
        net = nn.Sequential(nn.Conv2d(3, 512, 3), nn.ReLU(), nn.Conv2d(512, 512, 3)).cuda()
        net.eval()
        for weight in net.parameters():
            weight.requires_grad = {first}
        kept.append(net)
    {more}
    return kept


def evaluate(nets, loader):
    for x in loader:
        print(nets[{which}](x.cuda()).sum().item())


evaluate(make(Vae().enc.cuda()), torch.utils.data.DataLoader([]))
"""


@pytest.mark.parametrize(
    ("first", "more", "which", "found"),
    [
        ("False", "pass", "0", False),
        ("False", "pass", "number", False),
        ("True", "pass", "0", True),
        ("False", "kept.append(nn.Conv2d(3, 512, 3).cuda().eval())", "-1", True),
        ("False", "kept[0].requires_grad_(True)", "0", True),
        ("False", "thaw(kept)", "0", True),
        ("False", "kept.append(other)", "-1", True),
    ],
)
def test_networks_that_a_caller_puts_into_a_list(
    tmp_path: Path, first: str, more: str, which: str, found: bool
) -> None:
    text = HEAD + LISTED.format(first=first, more=more, which=which)
    assert ("MEM201" in codes_in(tmp_path, text)) is found
