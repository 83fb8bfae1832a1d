"""Code that raises whenever it runs: what is found in it is a note, with the reason; other code keeps its severity."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint import Finding

HELPERS = """
import torch
from torch import nn


def score(x, device, *, scale=1.0):
    return x.to(device) * scale


class Net(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layer = nn.Linear(width, 4096)

    def forward(self, x):
        return self.layer(x)


class Rows(torch.utils.data.Dataset):
    def __init__(self, train, device):
        self.rows = torch.zeros(2, 2).to(device)
"""
EVALUATE = """
import torch
import helpers
from helpers import Net, score


def evaluate(loader, net=None):
    {before}
    model = Net(4).cuda()
    model.eval()
    total = 0
    for x in loader:
        {inside}
        total += model(x).argmax().item()
    return total
"""


TWICE = """
class Stopper:
    def __init__(self, tolerance):
        self.tolerance = tolerance


class Stopper:
    def __init__(self, patience, threshold):
        self.patience = patience
"""


def finding(tmp_path: Path, text: str) -> Finding:
    (tmp_path / "helpers.py").write_text(HELPERS)
    (tmp_path / "run.py").write_text(text)
    result = memlint.lint([tmp_path], min_confidence="low")
    assert not result.failures
    (found,) = [item for item in result.findings if item.code == "MEM201"]
    return found


def assert_raising(found: Finding, reason: str) -> None:
    assert (found.severity, found.reach) == ("note", "cannot-run")
    assert found.confidence != "low"  # (it is shown: a part of a program may stand where its names are known)
    assert reason in found.reach_reason


def of(before: str = "pass", inside: str = "pass") -> str:
    return EVALUATE.format(before=before, inside=inside)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (of(inside="score(x)"), "`score()` is not given `device`"),
        (of(inside="y = [score(x, 'cpu', 2.0)]"), "`score()` takes 2 positional arguments and is given 3"),
        (of(inside="helpers.score(x, 'cpu', factor=2.0)"), "`helpers.score()` has no parameter `factor`"),
        (of(inside="score(x, x=x, device='cpu')"), "`score()` is given `x` twice"),
        (of("Net()"), "`Net()` is not given `width`"),
        (of("loader = helpers.Rows(True, cuda=True)"), "`helpers.Rows()` has no parameter `cuda`"),
        (of("with open('log') as log:\n        score(1)"), "`score()` is not given `device`"),
        (of("for part in parts: print(part)"), "`parts` is not defined"),
        (of("x = helpers.Network(4)"), "`helpers` has no `Network`"),
        (of(inside="x = x.to(DEVICE)"), "`DEVICE` is not defined"),
        (of("for seed in [1, 2]: score(seed)"), "`score()` is not given `device`"),
        (of("for seed in range(3): score(seed)"), "`score()` is not given `device`"),
        (TWICE + of("Stopper(tolerance=3)"), "`Stopper()` has no parameter `tolerance`"),
    ],
)
def test_it_is_said_why(tmp_path: Path, text: str, reason: str) -> None:
    assert_raising(finding(tmp_path, text), reason)


OBJECT = """
import torch
from helpers import Net


class Evaluator:
    def __init__(self, model):
        {init}
        self.model = Net(4)

    def load(self, path):
        return torch.load(path)

    def evaluate(self, loader):
        self.model.eval()
        {inside}
        return [self.model(x).argmax().item() for x in loader]
"""


@pytest.mark.parametrize(
    ("init", "inside", "reason"),
    [
        ("self.other = Net(width=4, depth=2)", "pass", "`Net()` has no parameter `depth`"),
    ],
)
def test_an_object_that_cannot_be_made_or_used(tmp_path: Path, init: str, inside: str, reason: str) -> None:
    found = finding(tmp_path, OBJECT.format(init=init, inside=inside))
    assert (found.severity, found.reach) == ("note", "cannot-run")
    assert reason in found.reach_reason


@pytest.mark.parametrize(
    ("before", "inside"),
    [
        pytest.param("pass", "score(x, 'cpu')", id="it fits"),
        pytest.param("pass", "score(*[x, 'cpu'])", id="starred"),
        pytest.param("given = {}\n    score(1, **given)", "pass", id="spread"),
        pytest.param("if net: score(1)", "pass", id="on one way only"),
        pytest.param("for seed in []: score(seed)", "pass", id="in a loop over nothing"),
        pytest.param("for seed in range(net): score(seed)", "pass", id="in a loop of who knows how many rounds"),
        pytest.param(
            "class Net:\n        def __init__(self, width): ...\n    Net(4)", "pass", id="one of the function"
        ),
        pytest.param("net and score(1)", "pass", id="on one side of and"),
        pytest.param("late = lambda: score(1)", "pass", id="in a lambda"),
        pytest.param("try:\n        score(1)\n    except TypeError:\n        pass", "pass", id="tried"),
        pytest.param("import contextlib\n    with contextlib.suppress(TypeError): score(1)", "pass", id="suppressed"),
        pytest.param("score = print\n    score(1)", "pass", id="another of that name"),
        pytest.param("del net", "pass", id="deleted"),
        pytest.param("print(__file__, __name__)", "pass", id="names of every module"),
        pytest.param("exec('late = 1')\n    print(late)", "pass", id="made by exec"),
        pytest.param("print([late for late in 'abc'], late)", "pass", id="bound in another scope"),
        pytest.param("helpers.Network = Net\n    helpers.Network(4)", "pass", id="put into the module"),
        pytest.param("import pytest\n    with pytest.raises(TypeError): score(1)", "pass", id="awaited"),
        pytest.param("def late(z): undefined(z)", "pass", id="in a function that nobody calls"),
        pytest.param("match net:\n        case {'a': a, **rest}: print(rest)", "pass", id="captured"),
    ],
)
def test_what_may_well_run(tmp_path: Path, before: str, inside: str) -> None:
    found = finding(tmp_path, of(before, inside))
    assert found.severity == "warning"
    assert "raises" not in found.reach_reason


@pytest.mark.parametrize(
    "change",
    [
        pytest.param("from elsewhere import *", id="from outside"),
        pytest.param("def put(other):\n    global score\n    score = other", id="put in its place"),
        pytest.param("def score(x): ...\n\n\ndef score(x, device): ...", id="defined twice"),
        pytest.param("import functools\n\nscore = functools.partial(score, device='cpu')", id="bound again"),
        pytest.param("from elsewhere import wrap\n\n\n@wrap\ndef score(x, device): ...", id="decorated"),
    ],
)
def test_a_signature_that_is_not_known(tmp_path: Path, change: str) -> None:
    text = of(inside="score(x)").replace("\n\n\ndef evaluate", f"\n{change}\n\n\ndef evaluate")
    assert finding(tmp_path, text).severity == "warning"


@pytest.mark.parametrize("name", ["run.py", "other.py"])
def test_a_module_that_is_given_names_by_others(tmp_path: Path, name: str) -> None:
    text = of("print(helpers.device())")
    if name == "run.py":
        text += "\n\nhelpers.device=lambda: 'cuda'\n"
    else:
        (tmp_path / name).write_text("import helpers\n\nhelpers.device = lambda: 'cuda'\n")
    assert finding(tmp_path, text).severity == "warning"


@pytest.mark.parametrize(
    "init", ["if model is None: return\n        undefined()", "for part in model:\n            undefined(part)"]
)
def test_an_object_that_may_well_be_made(tmp_path: Path, init: str) -> None:
    assert finding(tmp_path, OBJECT.format(init=init, inside="pass")).reach != "cannot-run"


HELD = """
import torch
from helpers import Net


class Evaluator:
    def __init__(self):
        self.model = Net(4)
        {other}

    def evaluate(self, loader):
        self.model.eval()
        total = 0
        for x in loader:
            self.model.forward(x, x)
            total += self.model(x).argmax().item()
        return total
{below}
"""


@pytest.mark.parametrize(
    ("other", "below", "severity"),
    [
        pytest.param("pass", "", "note", id="put once"),
        pytest.param("self.shown = Net(4)", "", "note", id="another beside it"),
        pytest.param("self.model = None", "", "warning", id="put twice"),
        pytest.param("del self.model", "", "warning", id="deleted"),
        pytest.param("self.model, self.count = Net(4), 0", "", "warning", id="unpacked as well"),
        pytest.param("setattr(self, 'model', None)", "", "warning", id="by its name"),
        pytest.param("pass", "def put(other):\n    other.model = None\n", "warning", id="on any object"),
        pytest.param("pass", "def put(other):\n    other.forward = print\n", "warning", id="a method on any object"),
    ],
)
def test_an_object_that_one_statement_alone_makes(tmp_path: Path, other: str, below: str, severity: str) -> None:
    found = finding(tmp_path, HELD.format(other=other, below=below))
    assert found.severity == severity
    assert ("`self.model.forward()` takes 1 positional argument" in found.reach_reason) == (severity == "note")


CALLED = """
import sys

import torch
from helpers import Net, score


class Runner:
    def __init__(self, net, loader):
        self.net = net
        self.loader = loader
        {made}

    def evaluate(self, detailed=False):
        self.net.eval()
        if detailed:
            {inside}
        else:
            pass
        scores = [self.net(x).argmax().item() for x in self.loader]
        {after}
        return scores


def main(runner, prior=None, first=True):
    if prior and first:
        print(prior)
    else:
        {unless}
    runner.evaluate({detailed})


if __name__ == "__main__":
    {start}
    main(Runner({net}, [torch.ones(4)]){prior})
"""


OWN_TRAIN = """class Own(Net):
    def train(self, mode=True):
        return print


class Runner"""


def called(
    made: str = "pass",
    inside: str = "pass",
    after: str = "pass",
    unless: str = "pass",
    detailed: str = "",
    start: str = "pass",
    net: str = "Net(4)",
    prior: str = "",
) -> str:
    return CALLED.format(
        made=made, inside=inside, after=after, unless=unless, detailed=detailed, start=start, net=net, prior=prior
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (called(unless="score(1)"), "`score()` is not given `device`"),
        (called(start="score(1)"), "`score()` is not given `device`"),
        (called(net="Net(4, depth=2)"), "`Net()` has no parameter `depth`"),
        (called(detailed="True", inside="score(1)"), "`score()` is not given `device`"),
        (called(made="self.evaluate(1, 2)"), "`self.evaluate()` takes 1 positional argument and is given 2"),
        (called(made="self.own = Net(4)\n        self.own(1, params=2)"), "`self.own()` has no parameter `params`"),
        (called(start="own = Net(4)\n    own(1, 2)"), "`own()` takes 1 positional argument and is given 2"),
        (called(start="own = Net(4)\n    own.forward()"), "`own.forward()` is not given `x`"),
        (called(start="own = Net(4).cuda().eval()\n    own.forward()"), "`own.forward()` is not given `x`"),
        (
            called(made="self.own = Net(4).to('cuda')\n        self.own(1, params=2)"),
            "`self.own()` has no parameter `params`",
        ),
        *(
            (
                called(start=f"own = {made}\n    own(1, 2)").replace("class Runner", OWN_TRAIN),
                "`own()` takes 1 positional argument and is given 2",
            )
            for made in ("Own(4)", "Own(4).cuda()")
        ),
        (
            called(made="self.own = Own(4)\n        self.own(1, params=2)").replace("class Runner", OWN_TRAIN),
            "`self.own()` has no parameter `params`",
        ),
        (called(start="broken()") + "\n\ndef broken():\n    raise ValueError(1)\n", "`broken` raises ValueError(1)"),
        (called(start="broken()") + "\n\ndef broken():\n    score(1)\n", "`score()` is not given `device`"),
    ],
)
def test_its_only_callers_raise(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / ".git").mkdir()
    assert_raising(finding(tmp_path, text), reason)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(called(), id="all runs"),
        pytest.param(called(unless="score(1)", prior=", 1"), id="the other side runs"),
        pytest.param(called(unless="score(1)") + "    main(None, prior=sys)\n", id="one call runs"),
        pytest.param(called(unless="score(1)") + "    ways = [main]\n", id="handed on"),
        pytest.param(called(unless="score(1)").replace("main(Runner", "main(*sys.argv, Runner"), id="spread"),
        pytest.param(called(inside="score(1)"), id="a side that no call takes"),
        pytest.param(called(inside="score(1)", detailed="len(sys.argv) > 2"), id="a side that a call may take"),
        pytest.param(
            called(made="self.own = Net(4)\n        self.own(1, params=2)") + "    x.own = print\n", id="put elsewhere"
        ),
        pytest.param(called(start="own = Net(4).build()\n    own(1, 2)"), id="what another method gives"),
        pytest.param(
            called(start="own = Own(4).cuda()\n    own(1, 2)").replace(
                "class Runner", "class Own(Net):\n    def cuda(self):\n        return print\n\n\nclass Runner"
            ),
            id="what a method of its own gives",
        ),
        pytest.param(
            called(start="own = Own(4).train().cuda()\n    own(1, 2)").replace("class Runner", OWN_TRAIN),
            id="what the first of two methods gives",
        ),
        pytest.param(
            called(made="self.own = Own(4).train()\n        self.own(1, params=2)").replace("class Runner", OWN_TRAIN),
            id="what is put there is given by a method of its own",
        ),
        pytest.param(
            called(start="own = Net(4)\n    own(1, 2)") + "\ndef use(own):\n    own(1, 2)\n", id="another of that name"
        ),
        pytest.param(
            called(made="self.evaluate(1, 2)")
            + "\nclass More(Runner):\n    def evaluate(self, a, b):\n        pass\n\nMore(1, 2)\n",
            id="a class below has another",
        ),
        pytest.param(
            called(start="broken()") + "\n\ndef broken():\n    if sys.argv:\n        raise ValueError\n", id="maybe"
        ),
        pytest.param(called(start="broken()") + "\n\ndef broken():\n    yield 1\n    raise ValueError\n", id="late"),
    ],
)
def test_a_caller_may_well_run(tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").mkdir()
    assert "raises" not in finding(tmp_path, text).reach_reason


OPTIMIZED = """
import torch
from torch import nn, optim


def train(net: nn.Module, loader):
    params = {params}
    {between}
    optimizer = {optimizer}
    scores = []
    net.eval()
    for x in loader:
        scores.append(net(x).argmax().item())
    return scores
"""


@pytest.mark.parametrize(
    ("params", "between", "optimizer", "raises"),
    [
        ("net.parameters()", "print(f'{sum(p.numel() for p in params)}')", "optim.Adam(params, lr=1.0)", True),
        ("filter(lambda p: p.requires_grad, net.parameters())", "print(len(list(params)))", "optim.Adam(params)", True),
        ("(p for p in net.parameters())", "counts = [p.numel() for p in params]", "torch.optim.SGD(params, 1)", True),
        ("list(net.parameters())", "print(sum(p.numel() for p in params))", "optim.Adam(params)", False),
        ("net.parameters()", "if loader: print(sum(p.numel() for p in params))", "optim.Adam(params)", False),
        ("net.parameters()", "print(any(p.requires_grad for p in params))", "optim.Adam(params)", False),
        ("net.parameters()", "pass", "optim.Adam(params); print(list(params))", False),
        ("net.parameters()", "list(params); params = net.parameters()", "optim.Adam(params)", False),
        ("net.parameters()", "print(list(params))", "print(params)", False),
    ],
)
def test_an_optimizer_of_what_is_used_up(
    tmp_path: Path, params: str, between: str, optimizer: str, raises: bool
) -> None:
    found = finding(tmp_path, OPTIMIZED.format(params=params, between=between, optimizer=optimizer))
    assert ("`params` is used up by" in found.reach_reason) is raises


@pytest.mark.parametrize(
    ("head", "severity"), [("from __future__ import print_function", "warning"), ("import sys", "note")]
)
def test_a_file_for_python_2_as_well(tmp_path: Path, head: str, severity: str) -> None:
    found = finding(tmp_path, f"{head}\n{of('for n in xrange(3): print(n)')}")
    assert found.severity == severity


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(TWICE + of("Stopper(3, threshold=1)"), id="the last one takes it"),
        pytest.param(
            TWICE.replace("\n\nclass Stopper", "\n\nif later:\n  class Stopper") + of("Stopper(1, 2, 3)"), id="if"
        ),
    ],
)
def test_a_class_that_is_defined_again(tmp_path: Path, text: str) -> None:
    assert finding(tmp_path, text).severity == "warning"


BEHIND = """
import torch
from helpers import Net


def evaluate(loader, model, count):
    model.eval()
    {begin}
    total = 0
    for x in loader:
        total += model(x.cuda()).argmax().item()
        {behind}
    return total


def rank(loaders):
    model = Net(4).cuda()
    for loader in loaders:
        first = evaluate(loader, model, 3)
        {called}
    {last}


rank([torch.utils.data.DataLoader([1])])
"""


def behind(begin: str = "pass", behind: str = "pass", called: str = "pass", last: str = "pass") -> str:
    return BEHIND.format(begin=begin, behind=behind, called=called, last=last)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (behind(behind="seen = seen + len(x)"), "`seen` is read before it has a value"),
        (behind(behind="seen += len(x)"), "`seen` is read before it has a value"),
        (behind(behind="with torch.no_grad():\n            print(parts)"), "`parts` is not defined"),
        (behind(called="print(first > second)"), "`second` is not defined"),
    ],
)
def test_what_is_done_behind_it_raises(tmp_path: Path, text: str, reason: str) -> None:
    """The first round of the loop ends there, or what calls it does: nothing grows, and nothing comes of it."""
    assert_raising(finding(tmp_path, text), reason)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(behind(begin="seen = 0", behind="seen = seen + len(x)"), id="begun"),
        pytest.param(behind(begin="if count: seen = 0", behind="seen += len(x)"), id="begun on one way"),
        pytest.param(behind(begin="for seen in range(3): pass", behind="seen += len(x)"), id="begun by a loop"),
        pytest.param(behind(behind="count += len(x)"), id="an argument"),
        pytest.param(behind(begin="global seen", behind="seen = seen + len(x)"), id="a global"),
        pytest.param(
            behind(begin="def begin():\n        nonlocal seen\n        seen = 0", behind="seen = seen + 1"),
            id="begun by a function in it",
        ),
        pytest.param(behind(behind="if count: continue\n        print(parts)"), id="not always reached"),
        pytest.param(behind(behind="try:\n            print(parts)\n        except NameError: pass"), id="tried"),
        pytest.param(behind(called="if first: return\n        print(second)"), id="left before"),
        pytest.param(behind(last="print(second)"), id="when all rounds are over"),
        pytest.param(behind(behind="raise SystemExit(0)"), id="meant to end there"),
        pytest.param(behind(behind="exit()\n        print(parts)"), id="behind an exit"),
        pytest.param(behind(behind="while True: pass\n        print(parts)"), id="behind a loop without an end"),
        pytest.param(
            behind(behind="print(parts)").replace(
                "first = evaluate(loader, model, 3)",
                "try: evaluate(loader, model, 3)\n        except NameError: pass",
            ),
            id="the caller goes on",
        ),
        pytest.param(behind(called="[seen := 1]\n        seen += 1"), id="begun in an expression"),
    ],
)
def test_what_is_done_behind_it_may_well_run(tmp_path: Path, text: str) -> None:
    assert finding(tmp_path, text).severity == "warning"
