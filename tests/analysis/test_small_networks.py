"""An evaluation whose graph takes little memory is a note: its network is small by its layers, or it has one sample."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from networks import IMPORTS, LOOP, evaluating, severities

#: what a network is defined by, and how it is made
SMALL = {
    "literal widths": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.body = nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Dropout(0.5))
                self.head = nn.Linear(256, 10)

            def forward(self, x):
                return self.head(self.body(x))
        """,
        "Net()",
    ),
    "a default, the name of a count of classes": (
        """
        class Net(nn.Module):
            def __init__(self, inputs, num_classes, hidden=64):
                super().__init__()
                self.first = nn.Linear(inputs, hidden)
                self.last = nn.Linear(hidden, num_classes)
                self.act = torch.tanh

            def forward(self, x):
                return self.last(self.act(self.first(x)))
        """,
        "Net(library.INPUTS, library.count())",
    ),
    "the default of an option, through classes in classes": (
        """
        class Layer(nn.Module):
            def __init__(self, inputs, outputs):
                super().__init__()
                self.weight = nn.Parameter(torch.FloatTensor(inputs, outputs))
                self.bias = nn.Parameter(torch.FloatTensor(outputs))

            def forward(self, x, edges=None):
                return torch.mm(x, self.weight) + self.bias


        class Net(nn.Module):
            def __init__(self, inputs, hidden, nclass):
                super().__init__()
                self.one, self.two = None, None
                self.one = Layer(inputs, hidden)
                self.rest = Layer(hidden, nclass)

            def forward(self, x):
                return F.log_softmax(self.rest(F.relu(self.one(x))), dim=1)
        """,
        "Net(library.INPUTS, args.hidden, library.labels().max() + 1)",
    ),
    "layers that a method makes of the options": (
        """
        class Net(nn.Module):
            def __init__(self, args):
                super().__init__()
                self.args = args
                self.setup()

            def setup(self):
                self.width = self.args.hidden * 2
                self.graph = GCNConv(9, self.args.hidden)
                self.head = nn.Linear(self.width, 1)

            def forward(self, x):
                return torch.sigmoid(self.head(F.relu(self.graph(x))))
        """,
        "Net(args)",
    ),
    "embeddings alone": (
        """
        class Net(nn.Module):
            def __init__(self, entities, dim=100):
                super().__init__()
                self.entities = nn.Embedding(entities, dim)
                self.relations = nn.Embedding(entities, dim)

            def forward(self, x):
                return -(self.entities(x) * self.relations(x)).sum(-1)
        """,
        "Net(library.count(), dim=200)",
    ),
    "a policy of unknown widths": (
        """
        class Policy(nn.Module):
            def __init__(self, state_size, action_size, seed, first_units, second_units):
                super().__init__()
                self.first = nn.Linear(state_size, first_units)
                self.norm = nn.BatchNorm1d(first_units)
                self.second = nn.Linear(first_units, second_units)
                self.last = nn.Linear(second_units, action_size)

            def forward(self, state):
                x = F.relu(self.second(self.norm(F.relu(self.first(state)))))
                return torch.tanh(self.last(x))
        """,
        "Policy(library.states(), library.actions(), 0, *library.units())",
    ),
    "actions that are counted with": (
        """
        class Value(nn.Module):
            def __init__(self, obs_dim, action_dim):
                super().__init__()
                self.first = nn.Linear(obs_dim, 128)
                self.last = nn.Linear(128, action_dim)

            def forward(self, x):
                return self.last(torch.relu(self.first(x)))


        def make(env):
            action_dim = env.action_space.shape[0] * 11
            return Value(env.observation_space.shape[0], action_dim)
        """,
        "make(library.env())",
    ),
    "linear layers that are wide for tokens, not for samples": (
        """
        class Net(nn.Module):
            def __init__(self, hidden=1024):
                super().__init__()
                self.body = nn.Sequential()
                for number in range(2):
                    self.body.add_module(f"layer_{number}", nn.Linear(hidden, hidden))
                self.head = nn.Linear(hidden, 10)

            def forward(self, x):
                return self.head(self.body(x))
        """,
        "Net()",
    ),
    "a few layers by a comprehension": (
        """
        class Net(nn.Module):
            def __init__(self, width=32, depth=4):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])

            def forward(self, x):
                for layer in self.layers:
                    x = F.relu(layer(x))
                return x
        """,
        "Net()",
    ),
    "a narrow recurrent layer": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.rnn = nn.LSTM(1, 50, num_layers=2, batch_first=True)
                self.head = nn.Linear(50, 1)

            def forward(self, x):
                out, _ = self.rnn(x)
                return self.head(out[:, -1])
        """,
        "Net()",
    ),
    "a list of widths, by its neighbours": (
        """
        class Net(nn.Module):
            def __init__(self, inputs, sizes=(64, 64), outputs=4):
                super().__init__()
                widths = [inputs, *sizes, outputs]
                self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in zip(widths[:-1], widths[1:])])

            def forward(self, x):
                for layer in self.layers:
                    x = F.relu(layer(x))
                return x
        """,
        "Net(library.INPUTS, sizes=[128, 64])",
    ),
    "a list of widths, by numbers": (
        """
        class Net(nn.Module):
            def __init__(self, inputs, outputs):
                super().__init__()
                sizes = [inputs] + [32] * 3 + [outputs]
                self.layers = nn.ModuleList()
                for i in range(len(sizes) - 1):
                    self.layers.append(nn.Linear(sizes[i], sizes[i + 1]))

            def forward(self, x):
                for i, _ in enumerate(self.layers):
                    x = F.relu(self.layers[i](x))
                return x
        """,
        "Net(library.INPUTS, 10)",
    ),
    "the defaults that a parser is given": (
        """
        parser.set_defaults(layers=[16, 16])

        class Net(nn.Module):
            def __init__(self, args):
                super().__init__()
                self.first = GCNConv(9, args.layers[0])
                self.second = GCNConv(args.layers[0], args.layers[1])

            def forward(self, x, edges=None):
                return self.second(F.relu(self.first(x, edges)), edges)
        """,
        "Net(args)",
    ),
    "a constant": (
        """
        HIDDEN = 64

        class Net(nn.Module):
            def __init__(self, hidden):
                super().__init__()
                self.first, self.last = nn.Linear(library.INPUTS, hidden), nn.Linear(hidden, 3)

            def forward(self, x):
                return self.last(F.relu(self.first(x)))
        """,
        "Net(HIDDEN)",
    ),
    "the field of a data class": (
        """
        from dataclasses import dataclass, field

        @dataclass
        class ModelConfig:
            width: int = 48
            depth: int = field(default=2)

        class Net(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.layers = nn.ModuleList(nn.Linear(config.width, config.width) for _ in range(config.depth))

            def forward(self, x):
                for layer in self.layers:
                    x = F.relu(layer(x))
                return x
        """,
        "Net(ModelConfig())",
    ),
    "a member of a configuration": (
        """
        config = {"model": {"width": 48}, "epochs": 10}

        class Net(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.layer = nn.Linear(9, width)

            def forward(self, x):
                return F.relu(self.layer(x))
        """,
        'Net(config["width"])',
    ),
    "an attribute of a namespace": (
        """
        from types import SimpleNamespace

        options = SimpleNamespace(lr=0.1, width=96)

        class Net(nn.Module):
            def __init__(self, options):
                super().__init__()
                self.layer = nn.Linear(9, options.width)

            def forward(self, x):
                return F.relu(self.layer(x))
        """,
        "Net(options)",
    ),
    "a last layer as wide as the data": (
        """
        class Net(nn.Module):
            def __init__(self, inputs, outputs, hidden=64):
                super().__init__()
                self.first, self.last = nn.Linear(inputs, hidden), nn.Linear(hidden, outputs)

            def forward(self, x):
                return self.last(torch.tanh(self.first(x)))
        """,
        "Net(library.INPUTS, library.OUTPUTS)",
    ),
    "a default that no call passes": (
        """
        class Net(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.layer = nn.Linear(9, width)

            def forward(self, x):
                return F.relu(self.layer(x))


        def make(width=16, depth=1):
            return Net(width)
        """,
        "make(depth=2)",
    ),
    "what the call of a call passes": (
        """
        class Net(nn.Module):
            def __init__(self, width):
                super().__init__()
                self.layer = nn.Linear(9, width)

            def forward(self, x):
                return F.relu(self.layer(x))


        def make(width=65536):
            return Net(width)


        def made(size):
            return make(size)
        """,
        "made(32)",
    ),
    "a range that counts up in steps": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(w, w) for w in range(8, 33, 8)])

            def forward(self, x):
                for layer in self.layers:
                    x = F.relu(layer(x))
                return x
        """,
        "Net()",
    ),
    "a chain": ("", "nn.Sequential(nn.Flatten(), nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 10))"),
}
#: what is not small, or not known to be
OTHER = {
    "convolutions": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.conv = nn.Conv2d(3, 16, 3, padding=1)
                self.head = nn.Linear(16, 10)

            def forward(self, x):
                return self.head(self.conv(x).mean((2, 3)))
        """,
        "Net()",
    ),
    "a wide layer": (
        """
        class Net(nn.Module):
            def __init__(self, hidden):
                super().__init__()
                self.first = nn.Linear(784, hidden)
                self.head = nn.Linear(hidden, 10)

            def forward(self, x):
                return self.head(F.relu(self.first(x)))
        """,
        "Net(args.wide)",
    ),
    "a width that nobody knows": (
        """
        class Net(nn.Module):
            def __init__(self, hidden):
                super().__init__()
                self.first = nn.Linear(784, hidden)
                self.head = nn.Linear(hidden, 10)

            def forward(self, x):
                return self.head(F.relu(self.first(x)))
        """,
        "Net(args.required)",
    ),
    "two callers, one of which makes it wide": (
        """
        class Net(nn.Module):
            def __init__(self, hidden=16):
                super().__init__()
                self.first = nn.Linear(784, hidden)

            def forward(self, x):
                return F.relu(self.first(x))


        wide = Net(hidden=8192)
        """,
        "Net()",
    ),
    "logits over a vocabulary": (
        """
        class Net(nn.Module):
            def __init__(self, vocab_size, dim=64):
                super().__init__()
                self.embed = nn.Embedding(vocab_size, dim)
                self.head = nn.Linear(dim, vocab_size)

            def forward(self, x):
                return self.head(self.embed(x))
        """,
        "Net(library.count())",
    ),
    "attention over rows": (
        """
        class Net(nn.Module):
            def __init__(self, dim=64):
                super().__init__()
                self.q, self.k, self.v = nn.Linear(dim, dim), nn.Linear(dim, dim), nn.Linear(dim, dim)
                self.query = nn.Linear(dim, dim)
                self.key = nn.Linear(dim, dim)

            def forward(self, x):
                weights = (self.query(x) @ self.key(x).transpose(1, 2)).softmax(-1)
                return weights @ x
        """,
        "Net()",
    ),
    "a transformer": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.block = nn.TransformerEncoderLayer(64, 4)
                self.head = nn.Linear(64, 10)

            def forward(self, x):
                return self.head(self.block(x)[:, 0])
        """,
        "Net()",
    ),
    "a backbone of a library": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.backbone = torchvision.models.resnet50()
                self.head = nn.Linear(1000, 10)

            def forward(self, x):
                return self.head(self.backbone(x))
        """,
        "Net()",
    ),
    "a network that is given": (
        """
        class Net(nn.Module):
            def __init__(self, backbone):
                super().__init__()
                self.backbone = backbone
                self.head = nn.Linear(64, 10)

            def forward(self, x):
                return self.head(self.backbone(x))
        """,
        "Net(library.backbone())",
    ),
    "as many layers as someone says": (
        """
        class Net(nn.Module):
            def __init__(self, depth, width=64):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(width, width) for _ in range(depth)])

            def forward(self, x):
                for layer in self.layers:
                    x = F.relu(layer(x))
                return x
        """,
        "Net(args.required)",
    ),
    "a cell that runs step by step": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.cell = nn.Linear(64, 64)

            def forward(self, x):
                h = x[:, 0]
                for step in range(x.size(1)):
                    h = torch.tanh(self.cell(h + x[:, step]))
                return h
        """,
        "Net()",
    ),
    "two layers of unknown width": (
        """
        class Net(nn.Module):
            def __init__(self, inputs, outputs):
                super().__init__()
                self.mean, self.rest = nn.Linear(64, outputs), nn.Linear(64, inputs)

            def forward(self, x):
                return self.rest(x), self.mean(x)
        """,
        "Net(library.INPUTS, library.OUTPUTS)",
    ),
    "a list of widths, one of which is wide": (
        """
        class Net(nn.Module):
            def __init__(self, sizes):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])])

            def forward(self, x):
                for layer in self.layers:
                    x = F.relu(layer(x))
                return x
        """,
        "Net([9, 64, 4096, 64])",
    ),
    "a configuration that is wide in one place": (
        """
        class Config:
            width = 64

        class LargeConfig:
            width = 8192

        class Net(nn.Module):
            def __init__(self, config):
                super().__init__()
                self.layer = nn.Linear(9, config.width)

            def forward(self, x):
                return F.relu(self.layer(x))
        """,
        "Net(Config())",
    ),
    "a range that counts down": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(w, w) for w in range(65536, 0, -512)])
                self.head = nn.Linear(64, 10)

            def forward(self, x):
                for layer in self.layers:
                    x = F.relu(layer(x))
                return self.head(x)
        """,
        "Net()",
    ),
    "a range whose step is unknown": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(w, w) for w in range(65536, 0, library.step())])
                self.head = nn.Linear(64, 10)

            def forward(self, x):
                for layer in self.layers:
                    x = F.relu(layer(x))
                return self.head(x)
        """,
        "Net()",
    ),
    "layers by a range that counts down": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(64, 64) for _ in range(5000, 0, -1)])
                self.head = nn.Linear(64, 10)

            def forward(self, x):
                for layer in self.layers:
                    x = F.relu(layer(x))
                return self.head(x)
        """,
        "Net()",
    ),
    "a list that is repeated without end": (
        """
        class Net(nn.Module):
            def __init__(self):
                super().__init__()
                sizes = [64] * 64 * 64 * 64 * 64 * 64
                self.layers = nn.ModuleList([nn.Linear(a, b) for a, b in zip(sizes, sizes[1:])])

            def forward(self, x):
                for layer in self.layers:
                    x = F.relu(layer(x))
                return x
        """,
        "Net()",
    ),
    "a default of a caller that a call passes": (
        """
        class Net(nn.Module):
            def __init__(self, width=16):
                super().__init__()
                self.layer = nn.Linear(9, width)

            def forward(self, x):
                return F.relu(self.layer(x))


        def make(width=16):
            return Net(width)
        """,
        "make(65536)",
    ),
    "a default that a call by keyword passes": (
        """
        class Net(nn.Module):
            def __init__(self, width=16):
                super().__init__()
                self.layer = nn.Linear(9, width)

            def forward(self, x):
                return F.relu(self.layer(x))


        def make(width=16):
            return Net(width)
        """,
        "make(width=args.wide)",
    ),
    "a default that unknown arguments may pass": (
        """
        class Net(nn.Module):
            def __init__(self, width=16):
                super().__init__()
                self.layer = nn.Linear(9, width)

            def forward(self, x):
                return F.relu(self.layer(x))


        def make(depth=1, width=16):
            return Net(width)
        """,
        "make(*library.sizes())",
    ),
    "a default that unknown keywords may pass": (
        """
        class Net(nn.Module):
            def __init__(self, width=16):
                super().__init__()
                self.layer = nn.Linear(9, width)

            def forward(self, x):
                return F.relu(self.layer(x))


        def make(*, width=16):
            return Net(width)
        """,
        "make(**library.options())",
    ),
    "a default that a recursion passes": (
        """
        class Net(nn.Module):
            def __init__(self, width=16):
                super().__init__()
                self.layer = nn.Linear(9, width)

            def forward(self, x):
                return F.relu(self.layer(x))


        def make(width=16):
            return Net(width) if width < 99 else make(width * 2)
        """,
        "make()",
    ),
    "as wide layers of tokens": (
        """
        class Net(nn.Module):
            def __init__(self, words, hidden=1024):
                super().__init__()
                self.words = nn.Embedding(words, hidden)
                self.body = nn.Linear(hidden, hidden)
                self.head = nn.Linear(hidden, 10)

            def forward(self, x):
                return self.head(F.relu(self.body(self.words(x))))
        """,
        "Net(library.count())",
    ),
    "a policy that sees pictures": (
        """
        class Policy(nn.Module):
            def __init__(self, obs_shape, action_size):
                super().__init__()
                self.sees = nn.Sequential(nn.Conv2d(4, 32, 8, stride=4), nn.ReLU(), nn.Flatten())
                self.last = nn.Linear(3136, action_size)

            def forward(self, x):
                return self.last(self.sees(x))
        """,
        "Policy(library.shape(), 4)",
    ),
    "a policy of as many layers as someone says": (
        """
        class Policy(nn.Module):
            def __init__(self, obs_dim, units, depth):
                super().__init__()
                self.layers = nn.ModuleList([nn.Linear(units, units) for _ in range(depth)])

            def forward(self, x):
                for layer in self.layers:
                    x = F.relu(layer(x))
                return x
        """,
        "Policy(library.states(), library.units(), args.required)",
    ),
    "no class in sight": ("", "library.Net()"),
}


@pytest.mark.parametrize(("defined", "made"), SMALL.values(), ids=SMALL)
def test_small_networks_are_notes(tmp_path: Path, defined: str, made: str) -> None:
    assert severities(tmp_path, evaluating(defined, made)) == ["note"]


@pytest.mark.parametrize(("defined", "made"), OTHER.values(), ids=OTHER)
def test_other_networks_are_warnings(tmp_path: Path, defined: str, made: str) -> None:
    assert severities(tmp_path, evaluating(defined, made)) == ["warning"]


WRITTEN = """
def test(world, goal, starts):
    policy = {made}
    policy.eval()
    hits = 0
    for start in starts:
        state = {first}
        while state != goal:
            shown = torch.tensor(state, dtype=torch.float32).cuda()
            state = world.move(state, policy(shown).argmax(-1).cpu().numpy())
            hits += 1
    return hits
"""
WALK = "for state in world.walk(start):\n            hits += policy(torch.tensor(state)).max()"


@pytest.mark.parametrize(
    ("first", "severity"),
    [
        ("(0, 0)", "note"),
        ("[0.5, -1.0]", "note"),
        ("start", "warning"),
        ("()", "warning"),
        ("(0, 0) if start is None else start", "warning"),
        ("(0, 0)\n        if start:\n            state = start", "note"),
        # placeholders: none of them is what the network gets
        ("(0, 0)\n        state = start", "warning"),
        (f"(0, 0)\n        {WALK}\n        state = start", "warning warning"),
        # it is what the network gets where the walk has no member
        (f"(0, 0)\n        {WALK}", "warning note"),
    ],
)
def test_a_vector_that_is_written_down(tmp_path: Path, first: str, severity: str) -> None:
    defined, made = OTHER["a policy of as many layers as someone says"]
    program = evaluating(defined, made, WRITTEN.replace("{first}", first))
    assert severities(tmp_path, program) == severity.split()


def test_a_small_network_whose_graphs_are_kept(tmp_path: Path) -> None:
    defined, made = SMALL["literal widths"]
    loop = LOOP.replace("hits += (model(x.cuda()).argmax(1).cpu() == y).sum().item()", "hits += model(x.cuda()).sum()")
    assert severities(tmp_path, evaluating(defined, made, loop)) == ["error"]


def test_a_loop_that_runs_a_large_network_beside_a_small_one(tmp_path: Path) -> None:
    loop = LOOP.replace("model(x.cuda())", "model(encoder(x.cuda()))").replace(
        "    hits = 0\n", "    encoder = torchvision.models.resnet50().eval()\n    hits = 0\n"
    )
    assert severities(tmp_path, IMPORTS + loop.format(made="nn.Sequential(nn.Linear(1000, 10))")) == ["warning"]


STEPS = """
class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 16, 3, padding=1)

    def forward(self, x):
        return self.conv(x).mean((2, 3))


class Wide(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.line = nn.Linear(width, width)

    def forward(self, x):
        return self.line(x)


def as_row(array):
    return torch.from_numpy(array)


def scaled(state):
    return torch.as_tensor(state).float() / 255.0


def play(env, samples, loader, batch):
    model = {made}
    model.eval()
    obs = env.reset()
    found = []
    for sample in loader:
        {before}
        scores = model({given})
        found.append(scores.argmax(1).item())
        obs, reward, done, info = env.step(found[-1])
    return found
"""


@pytest.mark.parametrize(
    ("made", "before", "given", "expected"),
    [
        ("Wide(args.required)", "", "torch.tensor([sample])", "note"),
        ("Wide(args.required)", "x = torch.from_numpy(sample).float()", "x.unsqueeze(0).cuda()", "note"),
        ("Wide(args.required)", "x = torch.as_tensor(sample)[None]", "x", "note"),
        ("Wide(args.required)", "x = library.scaled(sample).reshape(1, -1)", "torch.FloatTensor(x).cuda()", "note"),
        ("Conv()", "", "torch.Tensor(obs).cuda()", "note"),
        ("Conv()", "state = obs", "torch.from_numpy(state).float() / 255.0", "note"),
        ("Wide(args.required)", "", "as_row(sample[None])", "note"),
        ("Wide(args.required)", "sample = torch.tensor(sample).float().view(1, -1)", "sample", "note"),
        ("Conv()", "", "scaled(torch.Tensor(obs))", "note"),
        ("Conv()", "", "scaled([obs, obs])", "note"),
        ("Conv()", "", 'torch.Tensor([obs["image"]])', "note"),
        ("Conv()", 'frame = np.float32(obs["image"])', "torch.from_numpy(frame).cuda()", "note"),
        ("Wide(args.required)", "", "scaled(sample)", "warning"),
        ("Wide(args.required)", "if batch: sample = sample[None]", "sample", "warning"),
        ("Wide(args.required)", "", "sample.cuda()", "warning"),
        ("Wide(args.required)", "", "batch.unsqueeze(1)", "warning"),
        ("Wide(args.required)", "x = torch.stack([sample, sample])", "x", "warning"),
        ("Wide(args.required)", "x = sample[None] if batch is None else batch", "x", "warning"),
        ("Wide(args.required)", "image = sample.cuda()", "image.unsqueeze(0)", "warning"),
        ("Conv()", "", "sample.unsqueeze(0)", "warning"),
        ("Conv()", "", 'torch.Tensor([sample["image"]])', "warning"),
        ("Wide(args.required)", "x = torch.from_numpy(library.imread(sample))", "x.unsqueeze(0)", "warning"),
    ],
)
def test_single_samples(tmp_path: Path, made: str, before: str, given: str, expected: str) -> None:
    text = IMPORTS + STEPS.format(made=made, before=before or "pass", given=given)
    assert severities(tmp_path, text) == [expected]


@pytest.mark.parametrize(
    ("loop", "run", "expected"),
    [
        ("for x, y in loader: x = x.cuda()", "model(x.view(1, -1, 512))", "warning"),
        ("for x, y in loader: z = x.float()", "model(z.cuda().reshape(1, -1))", "warning"),
        ("for i, (x, y) in enumerate(loader): z = x.view(1, -1)", "model(z.cuda())", "warning"),
        ("for batch in loader: pass", 'model(batch["x"].cuda().view(1, -1))', "warning"),
        ("for batch in loader: x, y = batch", "model(x.cuda().view(1, -1))", "warning"),
        ("for x, y in loader: pass", "scored(model, x.cuda())", "warning"),
        ("for x, y in loader: pass", "model(torch.tensor(x).view(1, -1))", "note"),
        ("for i in range(len(samples)): x = library.read(samples[i])", "model(x.view(1, -1))", "note"),
        ("for i in range(len(samples)): x = library.read(samples[i])", "scored(model, x)", "note"),
    ],
)
def test_a_batch_in_one_row_is_not_a_single_sample(tmp_path: Path, loop: str, run: str, expected: str) -> None:
    header, _, before = loop.partition(": ")
    text = STEPS.replace("for sample in loader", header).replace("model({given})", run)
    scored = "\n\ndef scored(model, given):\n    return model(given.view(1, -1))\n\n"
    text = text.format(made="Wide(args.required)", before=before)
    assert severities(tmp_path, IMPORTS + scored + text) == [expected]


@pytest.mark.parametrize("made", ["torchvision.models.resnet50(pretrained=True)", "library.Net()"])
@pytest.mark.parametrize("given", ["x.unsqueeze(0)", "library.resize(x)[None]", "torch.tensor([x])"])
def test_single_samples_of_a_library_s_network(tmp_path: Path, made: str, given: str) -> None:
    loop = LOOP.replace("model(x.cuda())", f"model({given})")
    assert severities(tmp_path, IMPORTS + loop.format(made=made)) == ["warning"]


ACTS = """
def act(policy, state):
    policy.eval()
    state = torch.from_numpy(state).float().cuda()
    return policy(state).argmax(1).cpu().numpy()


def play(envs, loader):
    policy = Conv()
    state = envs.reset()
    while True:
        action = act(policy, {given})
        state, reward, done, _ = envs.step(action)
"""


@pytest.mark.parametrize(
    ("given", "expected"), [("state", "note"), ("scaled([state, state])", "note"), ("loader.load()", "warning")]
)
def test_states_that_callers_give(tmp_path: Path, given: str, expected: str) -> None:
    shown = STEPS[: STEPS.index("def play")].replace("{made}", "")
    assert severities(tmp_path, IMPORTS + shown + ACTS.format(given=given))[0] == expected


METHODS = """
class Actor(nn.Module):
    def __init__(self, inputs, outputs, hidden={hidden}):
        super().__init__()
        self.body = nn.Linear(inputs, hidden)
        self.head = nn.Linear(hidden, outputs)

    def act(self, x):
        return self.head(F.relu(self.body(x)))


def play(loader):
    actor = Actor(library.INPUTS, library.OUTPUTS)
    actor.eval()
    return [actor.act(x.cuda()).argmax(1).tolist() for x in loader]
"""


@pytest.mark.parametrize(("hidden", "expected"), [("64", "note"), ("8192", "warning")])
def test_methods_of_networks(tmp_path: Path, hidden: str, expected: str) -> None:
    assert severities(tmp_path, IMPORTS + METHODS.format(hidden=hidden)) == [expected]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("if i > 0: break\n        print(model(x.cuda()).argmax(1).tolist())", "note"),
        ("print(model(x.cuda()).argmax(1).tolist())\n        break", "note"),
        ("print(model(x.cuda()).argmax(1).tolist())\n        if i >= 100: break", "warning"),
        ("if i > 10: break\n        print(model(x.cuda()).argmax(1).tolist())", "warning"),
    ],
)
def test_loops_that_end_in_their_first_round(tmp_path: Path, body: str, expected: str) -> None:
    loop = """
def test(loader):
    model = Conv()
    model.eval()
    for i, (x, y) in enumerate(loader):
        {body}
"""
    shown = STEPS[: STEPS.index("def as_row")]
    assert severities(tmp_path, IMPORTS + shown + loop.format(body=body)) == [expected]


VOLATILE = """
    import torch
    from torch import nn
    from torch.autograd import Variable


    class Small(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(64, 10)

        def forward(self, x):
            return self.layer(x)


    class Solver:
        def fit(self, x):
            scale = Variable(torch.eye(64), volatile=True)
            self.weight = torch.mm(scale, x)


    def predict(loader, model):
        hits = 0
        for x, y in loader:
            x = Variable(x.cuda(), volatile=True)
            hits += (model(x).argmax(1).cpu() == y).sum().item()
        return hits


    print(predict(library.loader(), {model}), torch.device("cpu"))
"""


@pytest.mark.parametrize(("model", "expected"), [("Small()", "note"), ("library.Net()", "warning")])
def test_guards_without_effect(tmp_path: Path, model: str, expected: str) -> None:
    """By the networks that they were meant for: in `fit` none runs."""
    source = textwrap.dedent(VOLATILE).replace("{model}", model)
    assert severities(tmp_path, IMPORTS + source, "MEM203") == ["note", expected]
