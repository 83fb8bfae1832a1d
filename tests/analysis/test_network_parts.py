"""A network is small only if all that it runs is in sight: what it is given, or calls by other names, may be large."""

from __future__ import annotations

from pathlib import Path

import pytest
from networks import evaluating, severities

#: what a network is defined by, and how it is made
SMALL = {
    "layers that a list collects": (
        """
        class Net(nn.Module):
            def __init__(self, depth=4, width=32):
                super().__init__()
                layers = []
                for i in range(depth):
                    layers.append(nn.Linear(width, width))
                    layers += [nn.ReLU()]
                self.body = nn.Sequential(*layers)
                self.head = nn.Linear(width, 10)
                self.register_buffer("mask", torch.ones(3))
                self.apply(self._init)
                self.reset()
            def _init(self, m):
                if isinstance(m, nn.Linear):
                    nn.init.xavier_uniform_(m.weight)
            def reset(self):
                for m in self.modules():
                    if isinstance(m, nn.Linear):
                        m.weight.data.normal_(0, 1 / math.sqrt(m.weight.size(1)))
                for p in self.parameters():
                    nn.init.zeros_(p)
            def forward(self, x):
                mask = self.mask.to(x.device)
                return F.log_softmax(self.head(self.body(x) * mask), dim=1)
        """,
        "Net()",
    ),
    "layers by their numbers": (
        """
        class Net(nn.Module):
            def __init__(self, width=32):
                super().__init__()
                self.layers = nn.ModuleList()
                self.layers.append(nn.Linear(width, width))
                self.layers.append(nn.Linear(width, width))
            def forward(self, x):
                for i in range(len(self.layers)):
                    x = self.layers[i](x).relu()
                return x
        """,
        "Net()",
    ),
    "layers side by side": (
        """
        class Net(nn.Module):
            def __init__(self, width=32):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(3)])
                self.norms = nn.ModuleList([nn.Dropout(0.1) for _ in range(3)])
            def forward(self, x):
                for i, (layer, norm) in enumerate(zip(self.layers, self.norms)):
                    x = norm(layer(x))
                return self.layers[-1](x)
        """,
        "Net()",
    ),
    "parameters that a method initialises": (
        """
        import math
        class GC(nn.Module):
            def __init__(self, i, o, bias=True):
                super(GC, self).__init__()
                self.weight = nn.Parameter(torch.FloatTensor(i, o))
                if bias:
                    self.bias = nn.Parameter(torch.FloatTensor(o))
                else:
                    self.register_parameter("bias", None)
                self.reset_parameters()
            def reset_parameters(self):
                stdv = 1. / math.sqrt(self.weight.size(1))
                self.weight.data.uniform_(-stdv, stdv)
                if self.bias is not None:
                    self.bias.data.uniform_(-stdv, stdv)
            def forward(self, x, adj=None):
                out = torch.mm(x, self.weight)
                return out + self.bias
            def __repr__(self):
                return self.__class__.__name__ + str(self.weight.shape)
        class Net(nn.Module):
            def __init__(self, nfeat, nhid=16, nclass=7, dropout=0.5):
                super().__init__()
                self.gc1 = GC(nfeat, nhid)
                self.gc2 = GC(nhid, nclass)
                self.dropout = dropout
            def forward(self, x):
                x = F.relu(self.gc1(x))
                x = F.dropout(x, self.dropout, training=self.training)
                return F.log_softmax(self.gc2(x), dim=1)
        """,
        "Net(library.X)",
    ),
    "layers that are added, and activations between them": (
        """
        class Net(nn.Module):
            def __init__(self, width=32, act="relu"):
                super().__init__()
                self.layers = nn.ModuleList()
                for i in range(3):
                    self.layers.append(nn.Linear(width, width))
                self.act = nn.ReLU() if act == "relu" else nn.Tanh()
                self.acts = {"relu": F.relu, "tanh": torch.tanh}
                self.apply(init)
            def forward(self, x):
                for layer in self.layers[:-1]:
                    x = self.act(layer(x))
                return self.layers[-1](x)
        def init(m):
            pass
        """,
        "Net()",
    ),
}
NOT_IN_SIGHT = {
    "layers that are given": (
        """
        class Net(nn.Module):
            def __init__(self, layers):
                super().__init__()
                self.layers = nn.ModuleList(layers)
                self.head = nn.Linear(64, 10)
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return self.head(x)
        """,
        "Net(library.layers())",
    ),
    "a method of a network that is given": (
        """
        class Net(nn.Module):
            def __init__(self, backbone):
                super().__init__()
                self.backbone = backbone
                self.head = nn.Linear(64, 10)
            def forward(self, x):
                return self.head(self.backbone.forward_features(x))
        """,
        "Net(library.layers())",
    ),
    "a network that is given, in a list": (
        """
        class Net(nn.Module):
            def __init__(self, backbone):
                super().__init__()
                self.nets = [backbone]
                self.head = nn.Linear(64, 10)
            def forward(self, x):
                return self.head(self.nets[0](x))
        """,
        "Net(library.layers())",
    ),
    "a network that is given, by another name": (
        """
        class Net(nn.Module):
            def __init__(self, backbone):
                super().__init__()
                self.backbone = backbone
                self.head = nn.Linear(64, 10)
            def forward(self, x):
                net = self.backbone
                return self.head(net(x))
        """,
        "Net(library.layers())",
    ),
    "a network of the file": (
        """
        backbone = torchvision.models.resnet50()
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(64, 10)
            def forward(self, x):
                return self.head(backbone(x))
        """,
        "Net()",
    ),
    "a backbone in a chain": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                backbone = torchvision.models.resnet50()
                self.all = nn.Sequential(backbone, nn.Linear(64, 10))
            def forward(self, x):
                return self.all(x)
        """,
        "Net()",
    ),
    "the layers of a backbone": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.all = nn.Sequential(*list(torchvision.models.resnet50().children())[:-1])
                self.head = nn.Linear(64, 10)
            def forward(self, x):
                return self.head(self.all(x).flatten(1))
        """,
        "Net()",
    ),
    "as many copies as someone says": (
        """
        import copy
        class Net(nn.Module):
            def __init__(self, n):
                super().__init__()
                layer = nn.Linear(2048, 2048)
                self.all = nn.ModuleList([copy.deepcopy(layer) for _ in range(n)])
            def forward(self, x):
                for l in self.all:
                    x = l(x)
                return x
        """,
        "Net(args.required)",
    ),
    "copies that a function makes": (
        """
        import copy
        def clones(m, n):
            return nn.ModuleList([copy.deepcopy(m) for _ in range(n)])
        class Net(nn.Module):
            def __init__(self, layer, n):
                super().__init__()
                self.layers = clones(layer, n)
                self.head = nn.Linear(64, 10)
            def forward(self, x):
                for layer in self.layers:
                    x = layer(x)
                return self.head(x)
        """,
        "Net(library.layer(), args.required)",
    ),
    "layers that a function makes, in a chain": (
        """
        def block(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3), nn.ReLU())
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.a = nn.Sequential(block(3, 16), nn.Flatten())
                self.head = nn.Linear(64, 10)
            def forward(self, x):
                return self.head(self.a(x))
        """,
        "Net()",
    ),
    "a cell that runs in a comprehension": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = nn.GRUCell(10, 64)
            def forward(self, x):
                h = None
                outs = [self.cell(step) for step in x.unbind(1)]
                return torch.stack(outs)
        """,
        "Net()",
    ),
    "a cell that runs step by step, by a method": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = nn.Linear(64, 64)
            def step(self, h, x):
                return torch.tanh(self.cell(h + x))
            def forward(self, x):
                h = x[:, 0]
                for t in range(x.size(1)):
                    h = self.step(h, x[:, t])
                return h
        """,
        "Net()",
    ),
    "a width that grows from layer to layer": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                width = 64
                layers = []
                for i in range(6):
                    layers.append(nn.Linear(width, width * 4))
                    width *= 4
                self.all = nn.Sequential(*layers)
            def forward(self, x):
                return self.all(x)
        """,
        "Net()",
    ),
    "layers by computed names": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                for i in range(4):
                    setattr(self, "l%d" % i, library.Block())
                self.head = nn.Linear(64, 10)
            def forward(self, x):
                for i in range(4):
                    x = getattr(self, "l%d" % i)(x)
                return self.head(x)
        """,
        "Net()",
    ),
    "a network that may be given": (
        """
        class Enc(nn.Module):
            def __init__(self):
                super().__init__()
                self.c = nn.Linear(8, 8)
            def forward(self, x): return self.c(x)
        class Net(nn.Module):
            def __init__(self, enc=None):
                super().__init__()
                self.enc = enc or Enc()
                self.head = nn.Linear(64, 10)
            def forward(self, x):
                return self.head(self.enc(x))
        """,
        "Net(library.backbone())",
    ),
    "layers that are given, one by one": (
        """
        class Net(nn.Module):
            def __init__(self, blocks):
                super().__init__()
                self.layers = nn.ModuleList()
                for b in blocks:
                    self.layers.append(b)
                self.head = nn.Linear(3, 4)
            def forward(self, x):
                for layer in self.layers[:-1]:
                    x = layer(x)
                return self.head(x)
        """,
        "Net(library.x)",
    ),
    "a layer that is added to a list": (
        """
        class Net(nn.Module):
            def __init__(self, block):
                super().__init__()
                layers = [nn.Linear(3, 4)]
                layers += [block]
                self.body = nn.Sequential(*layers)
            def forward(self, x):
                return self.body(x)
        """,
        "Net(library.x)",
    ),
    "a layer that is given a name": (
        """
        class Net(nn.Module):
            def __init__(self, block):
                super().__init__()
                self.layers = nn.ModuleDict()
                self.layers["a"] = block
                self.head = nn.Linear(3, 4)
            def forward(self, x):
                return self.head(self.layers["a"](x))
        """,
        "Net(library.x)",
    ),
    "a layer that is added to a chain": (
        """
        class Net(nn.Module):
            def __init__(self, block):
                super().__init__()
                self.body = nn.Sequential()
                self.body.add_module("x", block)
                self.head = nn.Linear(3, 4)
            def forward(self, x):
                return self.head(self.body(x))
        """,
        "Net(library.x)",
    ),
}


@pytest.mark.parametrize(("defined", "made"), SMALL.values(), ids=SMALL)
def test_what_is_in_sight_is_counted(tmp_path: Path, defined: str, made: str) -> None:
    assert severities(tmp_path, evaluating(defined, made)) == ["note"]


@pytest.mark.parametrize(("defined", "made"), NOT_IN_SIGHT.values(), ids=NOT_IN_SIGHT)
def test_what_is_not_in_sight_may_be_large(tmp_path: Path, defined: str, made: str) -> None:
    assert severities(tmp_path, evaluating(defined, made)) == ["warning"]
