"""Where a graph is cut, and who might notice: each way is unsafe, and what nobody notices is safe."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixed_programs import findings, safety

import memlint

LOOP = """
import torch
from torch import nn
{pre}

def train(model, loader, optimizer):
    losses = []
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss)
    {post}

{rest}
"""

#: name, safety, what is put into the program
LISTS = [
    ("printed", "safe", {"post": "print(losses)"}),
    ("fstring", "safe", {"post": "print(f'{losses[-1]:.3f}')"}),
    ("fstring2", "safe", {"post": "print(f'{losses[-1]}')"}),
    (
        "logger",
        "safe",
        {"pre": "import logging\nlog = logging.getLogger(__name__)", "post": "log.info('%s', losses[-1].item())"},
    ),
    ("logged", "safe", {"pre": "import wandb", "post": "wandb.log({'l': losses})"}),
    ("unresolved", "unsafe", {"pre": "import lib", "post": "lib.log({'l': losses})"}),
    ("returned unknown", "unsafe", {"post": "return losses"}),
    (
        "caller known",
        "safe",
        {
            "post": "return losses",
            "rest": "def main(m, l, o):\n    got = train(m, l, o)\n    print(sum(float(v) for v in got))\n",
        },
    ),
    (
        "caller known, and in a class's table",
        "unsafe",
        {
            "post": "return losses",
            "rest": "def main(m, l, o):\n    print(sum(float(v) for v in train(m, l, o)))\n\n"
            "class Steps:\n    run = staticmethod(train)\n",
        },
    ),
    (
        "caller known, and another's default",
        "unsafe",
        {
            "post": "return losses",
            "rest": "def main(m, l, o):\n    print(sum(float(v) for v in train(m, l, o)))\n\n"
            "def fit(m, l, o, step=train):\n    return step(m, l, o)\n",
        },
    ),
    (
        "caller known, and a lambda's default",
        "unsafe",
        {
            "post": "return losses",
            "rest": "def main(m, l, o):\n    print(sum(float(v) for v in train(m, l, o)))\n\n"
            "fit = lambda m, l, o, step=train: step(m, l, o)\n",
        },
    ),
    (
        "tried out",
        "unsafe",
        {
            "post": "return losses",
            "rest": "if __name__ == '__main__':\n    print(len(train(nn.Linear(1, 1), [], None)))\n",
        },
    ),
    (
        "caller backward",
        "unsafe",
        {
            "post": "return losses",
            "rest": "def main(m, l, o):\n    got = train(m, l, o)\n    torch.stack(got).sum().backward()\n",
        },
    ),
    (
        "caller reads grad_fn",
        "unsafe",
        {"post": "return losses", "rest": "def main(m, l, o):\n    got = train(m, l, o)\n    print(got[0].grad_fn)\n"},
    ),
    ("caller reads requires_grad", "unsafe", {"post": "print(losses[0].requires_grad)"}),
    ("detach numpy", "safe", {"post": "print([v.detach().numpy() for v in losses])"}),
    ("inplace alias", "unsafe", {"post": "losses[0].mul_(2)"}),
    ("inplace alias2", "unsafe", {"post": "first = losses[0]\n    first += 1"}),
    ("inplace view", "unsafe", {"post": "first = losses[0].view(1)\n    first[0] = 1"}),
    ("is", "unsafe", {"post": "print(losses[0] is loss)"}),
    ("in list", "unsafe", {"post": "print(loss in losses)"}),
    ("id()", "unsafe", {"post": "print(id(losses[0]) == id(loss))"}),
    ("yielded", "unsafe", {"post": "yield losses"}),
    ("closure harmless", "safe", {"post": "def show():\n        return len(losses)\n    print(show())"}),
    ("closure backward", "unsafe", {"post": "def go():\n        losses[0].backward()\n    go()"}),
    ("lambda", "unsafe", {"post": "f = lambda: losses[0].backward()\n    f()"}),
    ("star args", "unsafe", {"pre": "def h(*a):\n    a[0][0].backward()\n", "post": "h(losses)"}),
    ("kwargs", "unsafe", {"pre": "def h(**a):\n    a['q'][0].backward()\n", "post": "h(q=losses)"}),
    ("star call", "unsafe", {"pre": "def h(a, b):\n    a.backward()\n", "post": "h(*losses)"}),
    (
        "stored self",
        "unsafe",
        {
            "pre": "class T:\n    pass\nt = T()\n",
            "post": "t.kept = losses",
            "rest": "def later():\n    t.kept[0].backward()\n",
        },
    ),
    (
        "global",
        "unsafe",
        {"pre": "KEPT = []\n", "post": "KEPT.extend(losses)", "rest": "def later():\n    KEPT[0].backward()\n"},
    ),
    (
        "global harmless",
        "safe",
        {"pre": "KEPT = []\n", "post": "KEPT.extend(losses)", "rest": "def later():\n    print(len(KEPT))\n"},
    ),
    ("torch.save", "unsafe", {"post": "torch.save(losses, 'x.pt')"}),
    ("pickle", "unsafe", {"pre": "import pickle", "post": "pickle.dumps(losses)"}),
    ("deepcopy", "unsafe", {"pre": "import copy", "post": "q = copy.deepcopy(losses)"}),
    ("setattr", "unsafe", {"pre": "class T: pass\nt=T()", "post": "setattr(t, 'x', losses)"}),
    ("getattr", "unsafe", {"post": "print(getattr(losses[0], 'requires_grad'))"}),
    ("autograd.grad", "unsafe", {"pre": "from torch.autograd import grad", "post": "print(grad(losses[0], [x]))"}),
    ("np.mean", "unsafe", {"pre": "import numpy as np", "post": "print(np.mean(losses))"}),
    ("torch.tensor", "safe", {"post": "print(float(torch.tensor(losses).mean()))"}),
    ("stack mean item", "safe", {"post": "print(torch.stack(losses).mean().item())"}),
    ("requires_grad_ ", "unsafe", {"post": "losses[0].requires_grad_()"}),
    ("is_leaf", "unsafe", {"post": "print(losses[0].is_leaf)"}),
    ("retain_grad", "unsafe", {"post": "losses[0].retain_grad()"}),
    ("locals()", "unsafe", {"post": "print(locals())"}),
    ("vars", "unsafe", {"post": "print(vars()['losses'])"}),
    ("str", "safe", {"post": "s = str(losses)\n    print(s)"}),
    ("repr", "safe", {"post": "s = repr(losses[0])\n    print(s)"}),
    ("percent", "safe", {"post": "print('%s' % losses[0])"}),
    ("percent2", "safe", {"post": "print('%.3f' % losses[0])"}),
    ("format", "safe", {"post": "print('{}'.format(losses[0]))"}),
    ("match", "unsafe", {"post": "match losses:\n        case [first, *_]:\n            first.backward()"}),
    ("exec", "unsafe", {"post": "exec('losses[0].backward()')"}),
    ("eval", "unsafe", {"post": "eval('losses')[0].backward()"}),
    ("dict item", "unsafe", {"post": "d = {'a': losses}\n    d['a'][0].backward()"}),
    ("walrus", "unsafe", {"post": "if (q := losses):\n        q[0].backward()"}),
    ("for", "unsafe", {"post": "for q in losses:\n        q.backward()"}),
    (
        "with",
        "unsafe",
        {"post": "import contextlib\n    with contextlib.nullcontext(losses) as q:\n        q[0].backward()"},
    ),
    ("map", "unsafe", {"post": "list(map(torch.Tensor.backward, losses))"}),
    ("methodcaller", "unsafe", {"post": "import operator\n    operator.methodcaller('backward')(losses[0])"}),
    ("except", "unsafe", {"post": "raise RuntimeError(losses)"}),
    ("assert", "safe", {"post": "assert losses"}),
    (
        "global stmt",
        "unsafe",
        {"post": "global KEPT\n    KEPT = losses", "rest": "def later():\n    KEPT[0].backward()\n"},
    ),
    ("sorted key", "unsafe", {"post": "print(sorted(losses, key=lambda v: v.backward()))"}),
    ("torch.no_grad inplace", "unsafe", {"post": "with torch.no_grad():\n        losses[0].add_(1)\n    print(loss)"}),
    ("loss inplace later", "safe", {"post": "loss.add_(1)\n    print(losses)"}),
]

TRAINER = """
import torch
from torch import nn
{pre}

class T:
    def __init__(self, model, optimizer):
        self.model = model
        self.optimizer = optimizer
        self.total = 0.0
        self.history = []

    def train(self, loader):
        for x, y in loader:
            loss = nn.functional.mse_loss(self.model(x), y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            {store}
        {post}

{rest}

def main(model, optimizer, loader):
    T(model, optimizer).train(loader)
"""

ATTRIBUTES = [
    ("sum", "safe", {"post": "print(self.total.item())"}),
    ("sum attr nobody", "safe", {}),
    ("sum attr other file style", "unsafe", {"rest": "def other(t):\n    t.total.backward()\n"}),
    ("sum attr getattr", "unsafe", {"rest": "def other(t):\n    getattr(t, 'total').backward()\n"}),
    ("sum attr getattr dyn", "unsafe", {"rest": "def other(t, name):\n    getattr(t, name).backward()\n"}),
    ("hist", "safe", {"store": "self.history.append(loss)"}),
    (
        "hist other",
        "unsafe",
        {"store": "self.history.append(loss)", "rest": "def other(t):\n    torch.stack(t.history).mean().backward()\n"},
    ),
    (
        "hist __dict__",
        "unsafe",
        {"store": "self.history.append(loss)", "rest": "def other(t):\n    t.__dict__['history'][0].backward()\n"},
    ),
    (
        "hist vars",
        "unsafe",
        {"store": "self.history.append(loss)", "rest": "def other(t):\n    vars(t)['history'][0].backward()\n"},
    ),
    (
        "hist property",
        "unsafe",
        {
            "store": "self.history.append(loss)",
            "post": "pass\n\n    @property\n    def last(self):\n        return self.history[-1]",
            "rest": "def other(t):\n    t.last.backward()\n",
        },
    ),
    (
        "hist getter",
        "unsafe",
        {
            "store": "self.history.append(loss)",
            "post": "pass\n\n    def last(self):\n        return self.history[-1]",
            "rest": "def other(t):\n    t.last().backward()\n",
        },
    ),
    (
        "hist getter ok",
        "safe",
        {
            "store": "self.history.append(loss)",
            "post": "pass\n\n    def last(self):\n        return self.history[-1]",
            "rest": "def other(t):\n    print(t.last().item())\n",
        },
    ),
    (
        "hist getter unknown",
        "unsafe",
        {"store": "self.history.append(loss)", "post": "pass\n\n    def last(self):\n        return self.history[-1]"},
    ),
    (
        "subclass lib",
        "unsafe",
        {"store": "self.history.append(loss)", "pre": "from lib import Base", "rest": "class U(T, Base):\n    pass\n"},
    ),
    (
        "record helper",
        "safe",
        {"pre": "def keep(store, v):\n    store.append(v)\n", "store": "keep(self.history, loss)"},
    ),
    (
        "record helper bw",
        "unsafe",
        {
            "pre": "def keep(store, v):\n    store.append(v)\n    store[0].backward()\n",
            "store": "keep(self.history, loss)",
        },
    ),
    (
        "tuple",
        "unsafe",
        {
            "store": "self.history.append((loss, x))",
            "rest": "def other(t):\n    for l, x in t.history:\n        l.backward()\n",
        },
    ),
    (
        "dict",
        "safe",
        {
            "store": "self.history.append({'loss': loss, 'n': len(x)})",
            "rest": "def other(t):\n    for d in t.history:\n        print(d['loss'].item())\n",
        },
    ),
    (
        "kw to unresolved via star",
        "unsafe",
        {"store": "self.history.append(loss)", "pre": "from lib import show", "post": "show(*self.history)"},
    ),
    (
        "kw **",
        "unsafe",
        {
            "store": "self.stats = dict(loss=loss); self.history.append(loss)",
            "pre": "from lib import show",
            "post": "show(**{'a': self.history})",
        },
    ),
    ("format attr", "safe", {"store": "self.history.append(loss)", "post": "print(f'{self.history[-1]:.4f}')"}),
    (
        "callback list",
        "unsafe",
        {"store": "self.history.append(loss)", "post": "[cb(self.history) for cb in self.callbacks]"},
    ),
    (
        "async caller",
        "unsafe",
        {"store": "self.history.append(loss)", "rest": "async def other(t):\n    t.history[0].backward()\n"},
    ),
]


@pytest.mark.parametrize(("name", "expected", "parts"), LISTS, ids=[row[0] for row in LISTS])
def test_a_list_of_losses(name: str, expected: str, parts: dict[str, str], tmp_path: Path) -> None:
    filled = {"pre": "", "post": "print(len(losses))", "rest": ""} | parts
    assert safety(tmp_path, LOOP.format(**filled), "MEM102") == expected


@pytest.mark.parametrize(("name", "expected", "parts"), ATTRIBUTES, ids=[row[0] for row in ATTRIBUTES])
def test_an_attribute(name: str, expected: str, parts: dict[str, str], tmp_path: Path) -> None:
    filled = {"pre": "", "post": "pass", "rest": "", "store": "self.total += loss"} | parts
    code = "MEM102" if "history" in filled["store"] else "MEM101"
    assert safety(tmp_path, TRAINER.format(**filled), code) == expected


def test_a_class_that_nobody_uses_may_be_used_by_anybody(tmp_path: Path) -> None:
    filled = {"pre": "", "post": "pass", "rest": "", "store": "self.history.append(loss)"}
    text = TRAINER.format(**filled).split("def main")[0]
    assert safety(tmp_path, text, "MEM102") == "unsafe"


def test_an_object_of_the_callers_is_seen_by_them(tmp_path: Path) -> None:
    text = LOOP.format(pre="", post="pass", rest="").replace("optimizer):", "optimizer, state):")
    assert safety(tmp_path, text.replace("losses.append", "state.losses.append"), "MEM102") == "unsafe"


def test_a_caller_in_another_file(tmp_path: Path) -> None:
    text = LOOP.format(pre="", post="return losses", rest="")
    reads = "from train import train\n\ndef main(m, l, o):\n    print(sum(v.item() for v in train(m, l, o)))\n"
    wants = reads.replace("v.item()", "v.backward()")
    assert safety(tmp_path, {"train.py": text, "main.py": reads}, "MEM102") == "safe"
    assert safety(tmp_path, {"train.py": text, "main.py": wants}, "MEM102") == "unsafe"


def test_a_global_that_another_file_reads(tmp_path: Path) -> None:
    text = LOOP.format(pre="KEPT = []", post="KEPT.extend(losses)", rest="")
    assert safety(tmp_path, text, "MEM102") == "safe"
    other = "import train\n\ndef last():\n    train.KEPT[-1].backward()\n"
    assert safety(tmp_path, {"train.py": text, "other.py": other}, "MEM102") == "unsafe"


@pytest.mark.parametrize("code", ["MEM101", "MEM102"])
def test_item_is_unsafe(code: str, tmp_path: Path) -> None:
    store = "self.total += loss" if code == "MEM101" else "self.history.append(loss)"
    text = TRAINER.format(pre="", post="pass", rest="", store=store)
    (tmp_path / "train.py").write_text(text)
    (tmp_path / "pyproject.toml").write_text('[tool.memlint]\nscalar-fix = "item"\n')
    import memlint

    (found,) = (one for one in memlint.lint([tmp_path]).findings if one.code == code)
    assert found.fix is not None and found.fix.safety == "unsafe"
    assert [edit.content for edit in found.fix.edits] == [".item()"]
    assert ".item()" in found.help


STEPS = """
import torch
from torch import nn


class Trainer:
    def __init__(self):
        self.model = nn.Linear(4, 4)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.1)
        self.predicting = False
        self.outputs = []

    def step(self, x, y):
        loss = None if self.predicting else (self.model(x) - y).pow(2).mean()
        return {"loss": loss, "rows": x.size(0)}, x

    def train(self, loader):
        for x, y in loader:
            log, _ = self.step(x, y)
            self.outputs.append(log)
            log["loss"].backward()
            self.optimizer.step()
            self.optimizer.zero_grad()
"""


def test_what_may_be_no_tensor_is_not_detached(tmp_path: Path) -> None:
    """A dictionary of a loss and a number has no `detach`."""
    assert safety(tmp_path, STEPS, "MEM102") == "none"


HELD = """
import torch
from transformers import AutoModel

def train(loader):
    model = AutoModel.from_pretrained("base")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total = 0.0
    for batch in loader:
        outputs = model(**batch)
        loss = outputs.get("loss")
        {use}
        optimizer.step()
        optimizer.zero_grad()
        total += loss
    print(float(total))
"""


@pytest.mark.parametrize(
    ("use", "expected"),
    [("loss.backward()", "unsafe"), ("sum([loss, 0]).backward()", "none")],
    ids=["itself", "made of it"],
)
def test_a_part_of_an_output_is_a_tensor_where_it_is_used_as_one(use: str, expected: str, tmp_path: Path) -> None:
    assert safety(tmp_path, HELD.format(use=use), "MEM101") == expected


CALLEE = """
import torch
from torch import nn

class Stats:
    def __init__(self):
        self.named = {}

    def stat(self, name):
        if name not in self.named:
            self.named[name] = torch.zeros(())
        return self.named[name]

def step(model, x, y, stats):
    loss = nn.functional.cross_entropy(model(x), y)
    stats.stat("loss").add_(loss)
    loss.backward()

def train(model: nn.Module, loader, optimizer):
    stats = Stats()
    for x, y in loader:
        step(model, x, y, stats)
        optimizer.step()
        optimizer.zero_grad()
"""


def test_a_store_in_a_function_that_the_loop_calls(tmp_path: Path) -> None:
    assert safety(tmp_path, CALLEE, "MEM101") == "unsafe"


KEPT = """
import torch
from torch import nn

def evaluate(loader, targets, metric, device):
    model = nn.Linear(4, 4).to(device).eval()
    wanted = torch.as_tensor(targets).to(device)
    wanted = wanted.transpose(0, 1)
    outputs = []
    for x, _ in loader:
        with torch.no_grad():
            out = model(x.to(device))
        outputs.append(out.squeeze())
    given = torch.cat(outputs)
    {use}
"""


@pytest.mark.parametrize(
    ("use", "expected"),
    [
        ("given = given[: wanted.size(0)]\n    return metric(given, wanted[:, 0])", "none"),
        ("return (given - wanted).abs().mean().item()", "none"),
        ("return metric(given.to(device), wanted)", "unsafe"),
        ("return metric(given.tolist(), wanted.tolist())", "unsafe"),
        ("print(wanted.shape, given[: len(wanted)].mean())", "unsafe"),
    ],
    ids=["a call", "an operation", "moved back", "numbers", "its shape"],
)
def test_what_meets_the_device_stays_there(use: str, expected: str, tmp_path: Path) -> None:
    """Moved to the host, it would raise where both are used together."""
    assert safety(tmp_path, KEPT.format(use=use), "MEM104") == expected


PACKED = """
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence

def train(model: nn.Module, loader, optimizer):
    total = 0
    for x, lengths, y in loader:
        packed = pack_padded_sequence(model(x), lengths, batch_first=True)
        loss = (packed.data - y).pow(2).mean()
        loss.backward()
        optimizer.step()
        total += loss
    print(total)
"""


def test_the_data_of_a_packed_sequence_has_its_graph(tmp_path: Path) -> None:
    """It is no tensor's `data`: a guard around the model would end the graph of the backward."""
    assert safety(tmp_path, PACKED, "MEM101") == "safe"
    assert not findings(tmp_path, PACKED, "MEM201")


GATHERED = """
import torch
from torch import nn


def losses(model, loader, optimizer):
    for x, y in loader:
        loss = nn.functional.mse_loss(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        yield loss


def train(loader):
    model = nn.Linear(10, 1).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    mean = {mean}
    print(mean)
"""


@pytest.mark.parametrize(
    ("mean", "fixed"),
    [
        pytest.param(
            "torch.stack([one for one in losses(model, loader, optimizer)]).mean()",
            "torch.stack([one.detach() for one in losses(model, loader, optimizer)]).mean()",
            id="a list inside the value",
        ),
        pytest.param(
            "sum(one for one in losses(model, loader, optimizer))",
            "sum(one.detach() for one in losses(model, loader, optimizer))",
            id="a generator inside the value",
        ),
        pytest.param("sum(losses(model, loader, optimizer))", None, id="no expression for one item"),
    ],
)
def test_what_a_container_without_a_name_keeps_is_cut_where_it_enters(
    mean: str, fixed: str | None, tmp_path: Path
) -> None:
    """Detaching the result would keep the graphs until it is there."""
    [found] = findings(tmp_path, GATHERED.format(mean=mean), "MEM102")
    assert "sum(" not in (found.help or "") and "stack" not in (found.help or "")
    if fixed is None:
        assert found.fix is None
        return
    memlint.apply_fixes([tmp_path], isolated=True, unsafe=True, select="MEM102")
    assert fixed in (tmp_path / "train.py").read_text()
