"""How wide a network's output is, by what its constructor is given: narrow outputs that are kept are no warning."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
from networks import IMPORTS, severities

#: keeps the output of each step until the end of the epoch
KEEPS = """
import pytorch_lightning as pl

class Task(pl.LightningModule):
    def __init__(self):
        super().__init__()
        self.model = {made}
        self.kept = []

    def training_step(self, batch, batch_idx):
        x, y = batch
        result = self.model(x)
        loss = F.cross_entropy(result, y)
        self.kept.append(result)
        return loss

    def on_train_epoch_end(self):
        self.log("accuracy", torch.cat(self.kept).argmax(1).float().mean())
        self.kept.clear()
"""
NET = """
class Net(nn.Module):
    def __init__(self, inputs, outputs=3, hidden=64):
        super().__init__()
        self.first = nn.Linear(inputs, hidden)
        self.last = nn.Linear(hidden, outputs)

    def forward(self, x):
        return self.last(torch.relu(self.first(x)))
"""
CONFIGURED = """
from dataclasses import dataclass

@dataclass
class NetConfig:
    inputs: int = 10
    outputs: int = 6

class Net(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.head = nn.Linear(config.inputs, config.outputs)

    def forward(self, x):
        return self.head(x)
"""
CHAIN = """
class Chain(nn.Module):
    def __init__(self, inputs, outputs, sizes=(256, 128), act="relu", drop=0.0, spectral=False):
        super().__init__()
        layers = []
        for i, size in enumerate(sizes):
            layers.append(nn.Linear(inputs if i == 0 else sizes[i - 1], size))
            if act == "relu":
                layers.append(nn.ReLU())
            elif act == "tanh":
                layers.append(nn.Tanh())
            else:
                raise ValueError(act)
            if drop > 0:
                layers.append(nn.Dropout(drop))
        {end}
        self.net = nn.Sequential(*layers)

    def forward(self, x):
        return self.net(x)
"""
NARROW = {
    "a keyword": (NET, "Net(inputs=10, outputs=2)"),
    "a position": (NET, "Net(10, 2)"),
    "a default": (NET, "Net(library.INPUTS)"),
    "a default beside a check of the class": (NET + "\nassert not isinstance(library.model, Net)\n", "Net(10)"),
    "a constant": ("CLASSES = 7\n" + NET, "Net(10, CLASSES)"),
    "a computed number": (NET, "Net(10, 2 * 4 + 1)"),
    "the default of an option": (NET, "Net(10, outputs=args.hidden)"),
    "the largest of several calls": (NET + "\nbaseline = Net(5, outputs=9)\n", "Net(10, 2)"),
    "a factory": (
        NET
        + """
def build(inputs, outputs):
    return Net(inputs, outputs)
""",
        "build(10, 4)",
    ),
    "an attribute": (
        """
class Net(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.inputs, self.outputs = inputs, outputs
        self.build()

    def build(self):
        self.head = nn.Linear(self.inputs, self.outputs)

    def forward(self, x):
        return torch.softmax(self.head(x), dim=-1)
""",
        "Net(10, 2)",
    ),
    "an attribute of the class": (
        """
class Net(nn.Module):
    outputs = 5

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(10, self.outputs)

    def forward(self, x):
        return self.head(x)
""",
        "Net()",
    ),
    "a data class": (
        CONFIGURED,
        "Net(NetConfig(outputs=12))",
    ),
    "what a subclass passes": (
        NET
        + """
class Small(Net):
    def __init__(self, inputs):
        super().__init__(inputs, outputs=3)
""",
        "Small(10)",
    ),
    "what a subclass passes, in the old way": (
        NET
        + """
class Small(Net):
    def __init__(self, inputs, many=4):
        Net.__init__(self, inputs, many)
""",
        "Small(10)",
    ),
    "a subclass without a constructor": (NET + "\nclass Small(Net):\n    pass\n", "Small(10, 8)"),
    "a network in a network": (
        NET
        + """
class Outer(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.inputs = inputs
        self.inner = Net(self.inputs, 2)

    def forward(self, x):
        return self.inner((x - x.mean(0)) / 2)
""",
        "Outer(library.INPUTS)",
    ),
    "a list of layers": (CHAIN.format(end="layers.append(nn.Linear(sizes[-1], outputs))"), "Chain(10, 2)"),
    "a list of layers, behind an activation": (
        CHAIN.format(end="layers += [nn.Linear(sizes[-1], outputs), nn.Sigmoid()]"),
        "Chain(10, 2)",
    ),
    "a last layer with a name": (
        CHAIN.format(
            end="""last = nn.Linear(sizes[-1], outputs)
        if spectral:
            last = nn.utils.spectral_norm(last)
        layers.append(last)"""
        ),
        "Chain(10, 2)",
    ),
    "one of two last layers": (
        CHAIN.format(
            end="""if spectral:
            layers.append(nn.utils.spectral_norm(nn.Linear(sizes[-1], outputs)))
        else:
            layers.extend([nn.Linear(sizes[-1], 2 * outputs)])"""
        ),
        "Chain(10, 2)",
    ),
    "a last layer behind a list": (
        """
class Net(nn.Module):
    def __init__(self, sizes, outputs):
        super().__init__()
        body = [nn.Linear(one, one) for one in sizes]
        self.net = nn.Sequential(*body, nn.Linear(sizes[-1], outputs), nn.Tanh())

    def forward(self, x):
        return self.net(x)
""",
        "Net([8, 8], outputs=2)",
    ),
    "the last step of a sequence": (
        """
class Net(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.rnn = nn.LSTM(12, 64, batch_first=True)
        self.head = nn.Linear(64, outputs)

    def forward(self, x):
        states, _ = self.rnn(x)
        return self.head(states[:, -1])
""",
        "Net(4)",
    ),
}
OTHER = {
    "a wide one": (NET, "Net(10, 5000)"),
    "one of several calls is wide": (NET + "\nbaseline = Net(5, outputs=9000)\n", "Net(10, 2)"),
    "a number from elsewhere": (NET, "Net(10, library.OUTPUTS)"),
    "a number that nobody knows beside one": (NET + "\nbaseline = Net(5, library.OUTPUTS)\n", "Net(10, 2)"),
    "keywords from elsewhere": (NET, "Net(10, **library.options())"),
    "arguments from elsewhere": (NET, "Net(*library.sizes())"),
    "a required option": (NET, "Net(10, args.required)"),
    "a data class that is made wide": (
        CONFIGURED,
        "Net(NetConfig(outputs=12000))",
    ),
    "a subclass passes many": (
        NET
        + """
class Wide(Net):
    def __init__(self, inputs):
        super().__init__(inputs, outputs=30000)
""",
        "Wide(10)",
    ),
    "a subclass passes what it is given": (
        NET
        + """
class Any(Net):
    def __init__(self, inputs, *more, **options):
        super().__init__(inputs, *more, **options)
""",
        "Any(10, library.OUTPUTS)",
    ),
    "words": (
        """
class Net(nn.Module):
    def __init__(self, vocab_size):
        super().__init__()
        self.words = nn.Embedding(vocab_size, 64)
        self.head = nn.Linear(64, vocab_size)

    def forward(self, x):
        return self.head(self.words(x))
""",
        "Net(vocab_size=65)",
    ),
    "a number for each step of a sequence": (
        """
class Net(nn.Module):
    def __init__(self, outputs):
        super().__init__()
        self.rnn = nn.GRU(12, 64, batch_first=True)
        self.head = nn.Linear(64, outputs)

    def forward(self, x):
        states, last = self.rnn(x)
        return self.head(states)
""",
        "Net(4)",
    ),
    "a number for each token, through layers of the project": (
        """
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.mix = library.Mixer(width)

    def forward(self, x):
        return x + self.mix(x)

class Net(nn.Module):
    def __init__(self, outputs, width=64):
        super().__init__()
        self.words = nn.Embedding(1000, width)
        self.blocks = nn.Sequential(*[Block(width) for _ in range(4)])
        self.head = nn.Linear(width, outputs)

    def forward(self, x):
        return self.head(self.blocks(self.words(x)))
""",
        "Net(9)",
    ),
    "a list whose last layer is unknown": (
        CHAIN.format(end="layers.append(library.head(sizes[-1], outputs))"),
        "Chain(10, 2)",
    ),
    "a list that goes elsewhere": (
        CHAIN.format(end="layers.append(nn.Linear(sizes[-1], outputs))\n        layers.extend(library.more())"),
        "Chain(10, 2)",
    ),
    "a list whose last layer may be wide": (
        CHAIN.format(
            end="""layers.append(nn.Linear(sizes[-1], outputs))
        if spectral:
            layers.append(nn.Linear(outputs, 9000))"""
        ),
        "Chain(10, 2)",
    ),
}


@pytest.mark.parametrize(("defined", "made"), NARROW.values(), ids=NARROW)
def test_what_a_narrow_network_gives_is_a_note(defined: str, made: str, tmp_path: Path) -> None:
    text = IMPORTS + textwrap.dedent(defined) + KEEPS.format(made=made)
    assert severities(tmp_path, text, "MEM102") == ["note"]


@pytest.mark.parametrize(("defined", "made"), OTHER.values(), ids=OTHER)
def test_what_is_wide_or_unknown_stays_a_warning(defined: str, made: str, tmp_path: Path) -> None:
    text = IMPORTS + textwrap.dedent(defined) + KEEPS.format(made=made)
    assert severities(tmp_path, text, "MEM102") == ["warning"]


#: a network by the default of its constructor, and what else a program does with its class
BY_DEFAULT = KEEPS.replace("def __init__(self):", "def __init__(self, outputs=2):").format(
    made="nn.Linear(10, outputs)"
)
MADE_BY_DEFAULT = {
    "never": "",
    "once": "task = Task()",
    "beside a check": "task = Task()\nassert isinstance(library.task, Task)",
    "in a table, and by name": "TASKS = {'a': Task}\ntask = Task(outputs=4)",
}
MADE_BY_OTHERS = {
    "by a table": "TASKS = {'a': Task}\ntask = TASKS[library.NAME](library.OUTPUTS)",
    "by a function": "task = library.build(Task, library.OUTPUTS)",
    "by a method of the class": "task = Task.load_from_checkpoint(library.PATH)",
    "by another name": "Model = Task\ntask = Model(library.OUTPUTS)",
}


@pytest.mark.parametrize("made", MADE_BY_DEFAULT.values(), ids=MADE_BY_DEFAULT)
def test_a_default_holds_where_nobody_else_makes_the_network(made: str, tmp_path: Path) -> None:
    assert severities(tmp_path, IMPORTS + BY_DEFAULT + made, "MEM102") == ["note"]


@pytest.mark.parametrize("made", MADE_BY_OTHERS.values(), ids=MADE_BY_OTHERS)
def test_a_default_tells_nothing_where_others_make_the_network(made: str, tmp_path: Path) -> None:
    assert severities(tmp_path, IMPORTS + BY_DEFAULT + made, "MEM102") == ["warning"]
