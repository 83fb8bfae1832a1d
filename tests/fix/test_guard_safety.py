# ruff: noqa: E501 (rows of programs)
"""Where a guard against autograd is put, and whether it may change anything."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixed_programs import findings, safety

EVALUATION = """
import torch
from torch import nn
{pre}

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
        {init}
        self.head = nn.Linear(8, 2)

    def forward(self, x):
        {fwd}
        return self.head(self.body(x))

{deco}
{asy}def evaluate(model: Net, loader{args}):
    model.eval()
    right = 0
    {before}
    for x, y in loader:
        out = model(x)
        right += (out.argmax(1) == y).sum().item()
        {inloop}
    {after}
    return right{ret}

def main(loader):
    model = {model}
    {main}
    print(evaluate(model, loader))

{rest}
main([])
"""
PLAIN = dict.fromkeys(("pre", "ret", "rest", "args", "deco", "asy"), "")
PLAIN |= dict.fromkeys(("init", "fwd", "before", "inloop", "after", "main"), "pass")
PLAIN |= {"model": "Net()"}

METER = """class Meter:
    def __init__(self):
        self.sum = 0

    def update(self, value):
        self.sum += value
"""

#: name, safety, what is put into the program
GUARDS = [
    ("plain", "safe", {}),
    ("mha", "unsafe", {"init": "self.att = nn.MultiheadAttention(8, 2)", "fwd": "x = self.att(x, x, x)[0]"}),
    ("tel", "unsafe", {"init": "self.att = nn.TransformerEncoderLayer(8, 2)", "fwd": "x = self.att(x)"}),
    (
        "tel in list",
        "unsafe",
        {
            "init": "self.att = nn.ModuleList([nn.TransformerEncoderLayer(8, 2) for _ in range(2)])",
            "fwd": "x = self.att[0](x)",
        },
    ),
    (
        "tel in seq",
        "unsafe",
        {"init": "self.att = nn.Sequential(nn.TransformerEncoderLayer(8, 2))", "fwd": "x = self.att(x)"},
    ),
    ("seq of arg", "unsafe", {"model": "nn.Sequential(nn.TransformerEncoderLayer(8, 2), Net())"}),
    ("seq of var", "unsafe", {"main": "layer = nn.TransformerEncoderLayer(8, 2); model = nn.Sequential(layer, Net())"}),
    ("seq plain", "safe", {"model": "nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 2))"}),
    (
        "dataset made inside",
        "safe",
        {
            "pre": "class Rows(torch.utils.data.Dataset):\n    def __len__(self):\n        return 3\n",
            "inloop": "Rows()",
        },
    ),
    (
        "made inside with an unresolved base",
        "unsafe",
        {
            "pre": "from elsewhere import Base\nclass Rows(Base):\n    def __len__(self):\n        return 3\n",
            "inloop": "Rows()",
        },
    ),
    (
        "property that is called",
        "safe",
        {
            "init": "self._part = nn.Linear(8, 8)",
            "fwd": "x = self.part(x)",
            "deco": "    @property\n    def part(self):\n        return self._part\n",
        },
    ),
    (
        "unresolved property that is called",
        "unsafe",
        {
            "init": "from elsewhere import build; self._part = build(8)",
            "fwd": "x = self.part(x)",
            "deco": "    @property\n    def part(self):\n        return self._part\n",
        },
    ),
    ("seq attr later", "unsafe", {"main": "model.body = nn.TransformerEncoderLayer(8, 2)"}),
    ("add_module", "unsafe", {"main": "model.body.append(nn.TransformerEncoderLayer(8, 2))"}),
    ("add_module2", "unsafe", {"main": "model.add_module('body', nn.TransformerEncoderLayer(8, 2))"}),
    ("setattr", "unsafe", {"main": "setattr(model, 'body', nn.TransformerEncoderLayer(8, 2))"}),
    ("hub", "unsafe", {"model": "torch.hub.load('a', 'b')"}),
    ("load", "unsafe", {"model": "torch.load('a')"}),
    ("hub inside", "unsafe", {"init": "self.x = torch.hub.load('a', 'b')", "fwd": "x = self.x(x)"}),
    ("load inside", "unsafe", {"init": "self.x = torch.load('a')", "fwd": "x = self.x(x)"}),
    ("compile", "unsafe", {"model": "torch.compile(Net())"}),
    ("compiled caller", "unsafe", {"rest": "fast = torch.compile(main)"}),
    ("compiled elsewhere", "unsafe", {"pre": "from torch import compile as fast", "rest": "other = fast(print)"}),
    ("scripted", "unsafe", {"rest": "class Other:\n    @torch.jit.script_method\n    def run(self):\n        pass"}),
    ("a pattern compiled", "safe", {"pre": "import re", "rest": "PATTERN = re.compile('a')"}),
    ("sdpa", "unsafe", {"fwd": "x = nn.functional.scaled_dot_product_attention(x, x, x)"}),
    ("mha functional", "unsafe", {"fwd": "x = nn.functional.multi_head_attention_forward(x)"}),
    ("is_grad_enabled", "unsafe", {"fwd": "x = x * 2 if torch.is_grad_enabled() else x"}),
    (
        "is_grad_enabled2",
        "unsafe",
        {"pre": "from torch import is_grad_enabled", "fwd": "x = x * 2 if is_grad_enabled() else x"},
    ),
    ("requires_grad in fwd", "unsafe", {"fwd": "x = x * 2 if self.head(x).requires_grad else x"}),
    ("hook", "unsafe", {"main": "model.body.register_forward_hook(lambda m, i, o: print(o.requires_grad))"}),
    ("backward hook", "unsafe", {"main": "model.body.register_full_backward_hook(print)"}),
    ("extra metric in loop", "unsafe", {"pre": "from lib import metric", "inloop": "metric.update(out)"}),
    ("extra fn in loop", "unsafe", {"pre": "from lib import metric", "inloop": "metric(out)"}),
    (
        "penalty wanted",
        "unsafe",
        {
            "args": ", w",
            "before": "reg = 0.0",
            "inloop": "reg = reg + (w ** 2).sum()",
            "ret": ", reg",
            "rest": "def other(model, loader, w):\n    r, reg = evaluate(model, loader, w)\n    reg.backward()\n",
        },
    ),
    (
        "penalty self-kept",
        "unsafe",
        {
            "args": ", w",
            "inloop": "model.reg = (w ** 2).sum()",
            "rest": "def other(model):\n    model.reg.backward()\n",
        },
    ),
    (
        "penalty list",
        "unsafe",
        {
            "args": ", w",
            "before": "regs = []",
            "inloop": "regs.append((w ** 2).sum())",
            "ret": ", regs",
            "rest": "def other(model, loader, w):\n    r, regs = evaluate(model, loader, w)\n    sum(regs).backward()\n",
        },
    ),
    (
        "penalty global",
        "unsafe",
        {
            "pre": "REGS = []",
            "args": ", w",
            "inloop": "REGS.append((w ** 2).sum())",
            "rest": "def other():\n    sum(REGS).backward()\n",
        },
    ),
    (
        "penalty in arg list",
        "unsafe",
        {
            "args": ", w, regs",
            "inloop": "regs.append((w ** 2).sum())",
            "rest": "def other(model, loader, w):\n    regs = []\n    evaluate(model, loader, w, regs)\n    sum(regs).backward()\n",
        },
    ),
    (
        "penalty in callee",
        "unsafe",
        {
            "pre": "REGS = []\ndef reg(w):\n    REGS.append((w ** 2).sum())\n",
            "args": ", w",
            "inloop": "reg(w)",
            "rest": "def other():\n    sum(REGS).backward()\n",
        },
    ),
    (
        "new param in loop",
        "safe",
        {"args": ", w", "before": "ps = []", "inloop": "ps.append(nn.Parameter(torch.zeros(2)))", "ret": ", ps"},
    ),
    ("generator", "unsafe", {"inloop": "yield out.argmax(1)"}),
    ("async", "safe", {"asy": "async "}),
    (
        "trains too",
        "safe",
        {
            "args": ", opt",
            "before": "for x, y in loader:\n        opt.zero_grad()\n        model(x).sum().backward()\n        opt.step()",
        },
    ),
    ("decorated cache", "unsafe", {"pre": "import functools", "deco": "@functools.lru_cache"}),
    ("decorated unknown", "unsafe", {"pre": "from lib import timed", "deco": "@timed"}),
    (
        "decorated contextmanager",
        "unsafe",
        {"pre": "from contextlib import contextmanager", "deco": "@contextmanager", "inloop": "yield right"},
    ),
    ("out printed", "safe", {"inloop": "print(out)"}),
    (
        "out lambda",
        "unsafe",
        {"before": "keep = []", "inloop": "keep.append(lambda: out.requires_grad)", "ret": ", keep"},
    ),
    ("out inplace on leaf", "unsafe", {"args": ", w", "inloop": "w += out.sum()"}),
    ("inplace on param", "unsafe", {"inloop": "model.head.weight.mul_(0.9)"}),
    ("inplace on param2", "unsafe", {"inloop": "model.head.weight += 1"}),
    (
        "try except",
        "unsafe",
        {
            "inloop": "try:\n            model.head.weight.mul_(0.9)\n        except RuntimeError:\n            right += 1"
        },
    ),
    (
        "numpy in try",
        "unsafe",
        {"inloop": "try:\n            out.numpy()\n        except RuntimeError:\n            right += 1"},
    ),
    ("spectral_norm", "unsafe", {"init": "self.c = nn.utils.spectral_norm(nn.Linear(8, 8))", "fwd": "x = self.c(x)"}),
    (
        "parametrize",
        "unsafe",
        {
            "pre": "from torch.nn.utils import parametrize",
            "main": "parametrize.register_parametrization(model.head, 'weight', lambda w: w)",
        },
    ),
    ("LSTM", "unsafe", {"init": "self.c = nn.LSTM(8, 8)", "fwd": "x = self.c(x)[0]"}),
    (
        "checkpoint",
        "unsafe",
        {"pre": "from torch.utils.checkpoint import checkpoint", "fwd": "x = checkpoint(self.body, x)"},
    ),
    (
        "out returned, and numbers made of it",
        "safe",
        {"ret": ", out", "main": "print(evaluate(model, loader)[1].argmax(1))"},
    ),
    (
        "out returned, and passed on",
        "unsafe",
        {"ret": ", out", "pre": "from lib import keep", "main": "keep(evaluate(model, loader)[1])"},
    ),
    ("out returned, and asked", "unsafe", {"ret": ", out", "main": "print(evaluate(model, loader)[1].requires_grad)"}),
    (
        "out returned, and kept",
        "unsafe",
        {
            "ret": ", out",
            "main": "model.last = evaluate(model, loader)[1]",
            "rest": "def last(model):\n    return model.last",
        },
    ),
    (
        "out returned, and by another",
        "unsafe",
        {
            "ret": ", out",
            "main": "evaluate(model, loader)[1].argmax(1)",
            "rest": "def last(model):\n    return evaluate(model, [])",
        },
    ),
    ("parallel", "safe", {"model": "nn.DataParallel(Net(), device_ids=[0])"}),
    ("parallel by a name", "safe", {"model": "nn.parallel.DataParallel(module=Net(), device_ids=loader)"}),
    (
        "parallel, and another network put into it",
        "unsafe",
        {"main": "model = nn.DataParallel(model); model.module = nn.TransformerEncoderLayer(8, 2)"},
    ),
    ("parallel of unknown", "unsafe", {"pre": "from lib import make", "model": "nn.DataParallel(make())"}),
    (
        "meter of numbers",
        "safe",
        {"pre": METER, "before": "meter = Meter()", "inloop": "meter.update(out.sum().item())"},
    ),
    (
        "meter of numbers and, elsewhere, of losses",
        "unsafe",
        {
            "pre": METER,
            "before": "meter = Meter()",
            "inloop": "meter.update(out.sum().item())",
            "rest": "def other(loss):\n    Meter().update(loss)",
        },
    ),
    (
        "meter of outputs",
        "unsafe",
        {"pre": METER, "before": "meter = Meter()", "inloop": "meter.update(out)", "ret": ", meter"},
    ),
    (
        "meter whose argument is bound again",
        "unsafe",
        {
            "pre": METER.replace("self.sum += value", "value = self.net(value)\n        self.sum += value"),
            "before": "meter = Meter()",
            "inloop": "meter.update(2)",
        },
    ),
    (
        "meter of a list that is filled",
        "unsafe",
        {
            "pre": METER.replace("self.sum += value", "value.append(self.last)\n        self.sum += value"),
            "before": "meter = Meter()",
            "inloop": "meter.update([])",
        },
    ),
    (
        "logger",
        "safe",
        {"pre": "import logging\nlogger = logging.getLogger(__name__)", "inloop": "logger.info('%d', right)"},
    ),
    (
        "progress",
        "safe",
        {
            "pre": "from tqdm import tqdm",
            "before": "bar = tqdm(loader)",
            "inloop": "bar.set_postfix(right=right)\n        bar.update(1)",
        },
    ),
    ("file", "safe", {"after": "with open('a.txt', 'w') as file:\n        file.write('x'.ljust(8))"}),
    ("table", "safe", {"pre": "import pandas as pd", "after": "pd.DataFrame({'right': [right]}).to_csv('a.csv')"}),
    (
        "loader",
        "safe",
        {"pre": "from torch.utils.data import DataLoader", "before": "loader = DataLoader(loader, batch_size=2)"},
    ),
    ("saved outputs", "unsafe", {"inloop": "torch.save(out, 'a.pt')"}),
    (
        "table that runs a method",
        "unsafe",
        {
            "pre": "import pandas as pd\n\nclass Scorer:\n    def score(self, x):\n        return torch.is_grad_enabled()",
            "before": "scorer = Scorer()",
            "after": "pd.Series([1]).apply(scorer.score)",
        },
    ),
    (
        "loader that runs a function",
        "unsafe",
        {
            "pre": "from torch.utils.data import DataLoader\n\ndef pack(rows):\n    return torch.is_grad_enabled()",
            "before": "loader = DataLoader(loader, collate_fn=pack)",
        },
    ),
    (
        "own method of a name that strings have",
        "unsafe",
        {
            "pre": "class Text:\n    def upper(self):\n        return torch.is_grad_enabled()",
            "before": "line = Text()",
            "inloop": "print(line.upper())",
        },
    ),
    (
        "image grid",
        "safe",
        {"pre": "from torchvision import utils", "inloop": "utils.save_image(utils.make_grid(out), 'a.png')"},
    ),
    ("plot", "safe", {"pre": "import matplotlib.pyplot as plt", "inloop": "plt.plot([1, 2]); plt.savefig('a.png')"}),
    (
        "transforms",
        "safe",
        {
            "pre": "from torchvision import transforms as T\n\nclass Half:\n    def __call__(self, x):\n        return x / 2",
            "before": "change = T.Compose([T.ToTensor(), Half()])",
            "inloop": "model(change(x)).argmax()",
        },
    ),
    (
        "step added to a transform",
        "unsafe",
        {
            "pre": "from torchvision import transforms as T\nfrom lib import Half",
            "before": "change = T.Compose([T.ToTensor()]); change.transforms.insert(0, Half())",
            "inloop": "model(change(x)).argmax()",
        },
    ),
    (
        "step of a transform replaced",
        "unsafe",
        {
            "pre": "from torchvision import transforms as T\nfrom lib import Half",
            "before": "change = T.Compose([T.ToTensor()]); steps = change.transforms; steps[0] = Half()",
            "inloop": "model(change(x)).argmax()",
        },
    ),
    (
        "known step added to a transform",
        "safe",
        {
            "pre": "from torchvision import transforms as T",
            "before": "change = T.Compose([T.ToTensor()]); change.transforms.append(T.Resize(8))",
            "inloop": "model(change(x)).argmax()",
        },
    ),
    (
        "own transform that asks",
        "unsafe",
        {
            "pre": "from torchvision import transforms as T\n\nclass Half:\n    def __call__(self, x):\n        return x / (2 if torch.is_grad_enabled() else 3)",
            "before": "change = T.Compose([T.ToTensor(), Half()])",
            "inloop": "model(change(x)).argmax()",
        },
    ),
    (
        "unknown transform",
        "unsafe",
        {
            "pre": "from torchvision import transforms as T\nfrom lib import Half",
            "before": "change = T.Compose([Half()])",
            "inloop": "change(x)",
        },
    ),
    (
        "lambda transform",
        "unsafe",
        {
            "pre": "from torchvision import transforms as T",
            "before": "change = T.Lambda(lambda x: x)",
            "inloop": "change(x)",
        },
    ),
    (
        "writer",
        "safe",
        {
            "pre": "from torch.utils.tensorboard import SummaryWriter",
            "before": "writer = SummaryWriter('a')",
            "inloop": "writer.add_scalar('right', right, 1)",
        },
    ),
    (
        "writer that traces",
        "unsafe",
        {
            "pre": "from torch.utils.tensorboard import SummaryWriter",
            "before": "writer = SummaryWriter('a')",
            "inloop": "writer.add_graph(model, x)",
        },
    ),
    (
        "tokenizer",
        "safe",
        {
            "pre": "from transformers import AutoTokenizer",
            "before": "tok = AutoTokenizer.from_pretrained('a')",
            "inloop": "print(tok.batch_decode(out.argmax(1)), tok(['a'], return_tensors='pt').to('cuda'))",
        },
    ),
    (
        "function given to a library",
        "unsafe",
        {
            "pre": "import numpy as np\n\ndef ask(x):\n    return torch.is_grad_enabled()",
            "inloop": "np.apply_along_axis(ask, 0, np.ones(3))",
        },
    ),
    (
        "parameter given to a library",
        "unsafe",
        {
            "pre": "import numpy as np\n\ndef ask(x):\n    return torch.is_grad_enabled()",
            "args": ", rate=ask",
            "inloop": "np.apply_along_axis(rate, 0, np.ones(3))",
        },
    ),
    (
        "method given to a library",
        "unsafe",
        {
            "pre": "import json\n\nclass Own:\n    def ask(self, x):\n        return torch.is_grad_enabled()",
            "before": "own = Own()",
            "inloop": "json.dumps([own], default=own.ask)",
        },
    ),
    ("class changed", "unsafe", {"rest": "class Twin(Net):\n    pass", "main": "model.__class__ = Twin"}),
    (
        "function of a library replaced",
        "unsafe",
        {
            "pre": "from torch.nn import functional as F\n\ndef relu(x):\n    return x if torch.is_grad_enabled() else -x",
            "fwd": "x = F.relu(x)",
            "main": "F.relu = relu",
        },
    ),
    ("layer of a function's name", "safe", {"init": "self.relu = nn.ReLU()", "fwd": "x = torch.relu(x)"}),
    (
        "dataset with gradients",
        "unsafe",
        {
            "pre": "class Rows(torch.utils.data.Dataset):\n    def __getitem__(self, i):\n        x = torch.ones(8).requires_grad_()\n        (x ** 2).sum().backward()\n        return x.grad, i",
            "main": "loader = torch.utils.data.DataLoader(Rows())",
        },
    ),
    (
        "batches made with gradients",
        "unsafe",
        {
            "pre": "def put(rows):\n    x = torch.stack(rows).requires_grad_()\n    return torch.autograd.grad(x.sum(), x), rows",
            "main": "loader = torch.utils.data.DataLoader(loader, collate_fn=put)",
        },
    ),
    (
        "batches made",
        "safe",
        {
            "pre": "def put(rows):\n    return torch.stack(rows), rows",
            "main": "loader = torch.utils.data.DataLoader(loader, collate_fn=put)",
        },
    ),
    (
        "out returned, and by its name",
        "unsafe",
        {
            "ret": ", out",
            "main": "evaluate(model, loader)[1].argmax(1); globals()['evaluate'](model, loader)[1].sum().backward()",
        },
    ),
    ("other model arg", "unsafe", {"model": "make()", "rest": "", "pre": "from lib import make"}),
    ("union", "unsafe", {"main": "model = Net() if loader else __import__('lib').make()"}),
]


@pytest.mark.parametrize(("name", "expected", "parts"), GUARDS, ids=[row[0] for row in GUARDS])
def test_a_guard(name: str, expected: str, parts: dict[str, str], tmp_path: Path) -> None:
    assert safety(tmp_path, EVALUATION.format(**PLAIN | parts), "MEM201") == expected


@pytest.mark.parametrize(
    ("parts", "decorated"),
    [
        ({}, True),
        ({"asy": "async "}, False),
        ({"inloop": "yield right"}, True),
        ({"deco": "@timed", "pre": "from lib import timed"}, False),
        ({"args": ", opt", "before": "opt.zero_grad(); model.head.weight.sum().backward()"}, False),
    ],
    ids=["plain", "coroutine", "generator", "decorated", "trains"],
)
def test_a_decorator_only_where_nothing_else_is_meant(parts: dict[str, str], decorated: bool, tmp_path: Path) -> None:
    found = findings(tmp_path, EVALUATION.format(**PLAIN | parts), "MEM201")
    edits = [edit for one in found if one.fix is not None for edit in one.fix.edits]
    assert found and any(edit.content.lstrip().startswith("@") for edit in edits) == decorated


def test_nobody_is_seen_to_call_it(tmp_path: Path) -> None:
    text = EVALUATION.format(**PLAIN).split("def main")[0]
    assert safety(tmp_path, text, "MEM201") == "unsafe"


FROZEN = Path(__file__).parents[2] / "fixtures" / "fixes" / "mem202_target_network.py"


@pytest.mark.parametrize(("tail", "expected"), [(".detach().clone()", "safe"), ("", "unsafe")])
def test_gradients_of_a_frozen_network_would_be_missed(tail: str, expected: str, tmp_path: Path) -> None:
    assert safety(tmp_path, FROZEN.read_text().replace(".detach().clone()", tail), "MEM202") == expected


EPISODES = """
import torch
from torch import nn

def batches(env, net, size):
    batch = []
    obs = env.reset()
    while True:
        probs = net(torch.tensor([obs]))
        obs, reward = env.step(probs.argmax(1).item())
        batch.append(reward)
        yield batch
        batch = []

def main(env):
    net = nn.Sequential(nn.Linear(4, 4), nn.Softmax(dim=1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for batch in batches(env, net, 16):
        loss = net(torch.rand(4, 4)).sum()
        loss.backward()
        optimizer.step()
"""

TASK = """
import torch

async def serve(net, queue):
    net.eval()
    while True:
        x = await queue.get()
        out = net(x)
        await queue.put(out.argmax(1).tolist())
"""


@pytest.mark.parametrize("text", [EPISODES, TASK], ids=["a yield", "an await"])
def test_a_guard_does_not_hold_in_other_code(text: str, tmp_path: Path) -> None:
    """Around the loop, it would be on in the training step that takes the batches, or in another task."""
    (found,) = findings(tmp_path, text, "MEM201")
    assert found.fix is not None
    assert [edit.content for edit in found.fix.edits] == ["        with torch.no_grad():\n    "]


INEFFECTIVE = """
import torch
from torch import nn
from torch.autograd import Variable

def run(loader, optimizer):
    model = nn.Linear(4, 4)
    scores = []
    for x, y in loader:
        {guard}
        out = model(x)
        {use}
    return scores
"""
TRAINS = "nn.functional.mse_loss(out, y).backward(); optimizer.step()"


@pytest.mark.parametrize(
    ("guard", "use", "expected"),
    [
        ("torch.no_grad()", "scores.append(out.argmax(1).tolist())", "unsafe"),
        ("x = Variable(x, volatile=True)", "scores.append(out.argmax(1).tolist())", "unsafe"),
        ("torch.no_grad()", TRAINS, "none"),
    ],
    ids=["bare", "volatile", "trains"],
)
def test_a_guard_that_has_no_effect(guard: str, use: str, expected: str, tmp_path: Path) -> None:
    """Where the step trains, a guard that worked would make its backward raise."""
    assert safety(tmp_path, INEFFECTIVE.format(guard=guard, use=use), "MEM203") == expected


PARTS = """
import torch
from torch import nn

class Pair(nn.Module):
    def __init__(self, encoder, decoder):
        super().__init__()
        self.encoder = encoder
        self.decoder = decoder

    def loss(self, x):
        return (self.decoder(self.encoder(x)) - x).pow(2), x

def main(loader):
    encoder, decoder = nn.Linear(8, 8), nn.Linear(8, 8)
    pair = Pair(encoder, decoder).to("cuda")
    first = torch.optim.SGD(pair.encoder.parameters(), lr=0.1)
    second = torch.optim.SGD(pair.decoder.parameters(), lr=0.1)
    for x in loader:
        first.zero_grad()
        second.zero_grad()
        loss, _ = pair.loss(x)
        loss = loss.mean(dim=-1)
        loss.backward()
        first.step()
        second.step()
"""


def test_a_model_that_is_trained_by_its_parts_is_not_guarded(tmp_path: Path) -> None:
    """Two optimizers own a half each: the whole looks frozen, but the backward reaches nothing else."""
    assert all(one.fix is None for code in ("MEM201", "MEM202") for one in findings(tmp_path, PARTS, code))


OTHERS = """
import torch
from torch import nn
from torch.nn import functional

class Trainer:
    def __init__(self, images):
        self.teacher = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 8)).cuda()
        self.student = nn.Linear(8, 8).cuda()
        self.optimizer = torch.optim.SGD(self.student.parameters(), 0.1)
        self.loader = torch.utils.data.DataLoader(images, 16)

    def one(self, x, guess):
        target = self.teacher(x).detach()
        own = functional.mse_loss(guess, x)
        again = self.teacher(guess).detach()
        return own + functional.mse_loss(target, again)

    def each(self):
        total = 0
        for x in self.loader:
            target = self.teacher(x).detach()
            total = total + functional.mse_loss(self.student(x), target)
        return total

    def train(self):
        for x in self.loader:
            self.optimizer.zero_grad()
            {loss}.backward()
            self.optimizer.step()
"""


def test_what_leaves_beside_the_guarded_call_is_not_cut(tmp_path: Path) -> None:
    """The function returns the loss of another network, which its caller trains: a guard around that would cut it. The
    same in a loop."""
    found = findings(tmp_path, OTHERS.format(loss="self.one(x, self.student(x))"), "MEM201")
    starts = [edit.span.line for one in found if one.fix is not None for edit in one.fix.edits]
    lines = OTHERS.splitlines()
    assert len(starts) == 2 and all("detach()" in lines[line - 1] for line in starts)


def test_what_is_cut_in_a_loop_that_the_caller_trains_by_is_no_evaluation(tmp_path: Path) -> None:
    """It is said of the network, and no guard is offered in what records a loss."""
    text = OTHERS.format(loss="self.each()")
    evaluated = [one.statement.function for one in findings(tmp_path, text, "MEM201") if one.statement is not None]
    assert "Trainer.each" not in evaluated
    (found,) = findings(tmp_path, text, "MEM202")
    assert (found.severity, found.fix) == ("note", None)
