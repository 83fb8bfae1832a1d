"""A program sees itself as if Python had been given it, and computes what it would have computed."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from commands import environment, verify
from torch_python import torch_python

_LOOKS = '''\
"""Says how it sees itself."""
import inspect, json, os, pickle, sys, traceback, warnings
import helper

warnings.simplefilter("always")
facts = {}


def kept(value):
    return value


class Meter:
    __slots__ = ("value",)

    def update(self, value):
        self.value = value


def facts_of(module):
    keys = ("__name__", "__file__", "__package__", "__doc__", "__cached__")
    loader, spec = module.__loader__, module.__spec__
    return {
        **{key: getattr(module, key, "absent") for key in keys},
        "loader": [loader.name, loader.path],
        "spec": None if spec is None else [spec.name, spec.origin, spec.parent],
        "names": sorted(name for name in vars(module) if name.startswith("__")),
    }


if __name__ == "__main__":
    main = sys.modules["__main__"]
    facts["main"] = facts_of(main)
    facts["argv"] = sys.argv
    facts["path"] = sys.path[0]
    facts["cwd"] = os.getcwd()
    facts["builtins"] = type(__builtins__).__name__
    facts["same"] = main.__dict__ is globals()
    facts["source"] = inspect.getsource(kept) + inspect.getsource(Meter) + inspect.getsource(helper.work)
    facts["file"] = [inspect.getsourcefile(kept), inspect.getfile(Meter), kept.__code__.co_filename]
    facts["pickled"] = pickle.loads(pickle.dumps(kept)) is kept
    facts["frames"] = [frame.function for frame in inspect.stack() if "launch.py" not in frame.filename]
    facts["threads"] = __import__("threading").current_thread().name
    facts["modules"] = [name for name in ("torch", "numpy", "libcst", "memlint") if name in sys.modules]
    facts["flags"] = [sys.flags.optimize, sys.dont_write_bytecode, sys.flags.utf8_mode]
    facts["hooks"] = [sys.excepthook is sys.__excepthook__, sys.gettrace() is None, sys.getprofile() is None]
    facts["helper"] = {key: value for key, value in facts_of(helper).items() if key != "loader"}
    facts["lines"] = helper.lines()
    with warnings.catch_warnings(record=True) as caught:
        warnings.warn("here")
        helper.warn()
    facts["warned"] = [[warning.filename, warning.lineno] for warning in caught]
    try:
        helper.work([], 0)
    except ZeroDivisionError:
        facts["told"] = traceback.format_exc()
    with open(os.environ["FACTS"], "w") as file:
        json.dump(facts, file)
    print("out 1")
    print("err 1", file=sys.stderr)
    print("out 2")
'''
_HELPER = '''\
"""Has flagged places, so that it is loaded with probes."""
import sys
import warnings

losses = []


def work(losses, x):
    total = 0.0
    for step in range(3):
        loss = model(1 / x)
        loss.backward()
        total += loss
        losses.append(loss)


def model(x):
    return x


def lines():
    return [sys._getframe().f_lineno, sys._getframe(1).f_code.co_name, work.__code__.co_firstlineno]


def warn():
    warnings.warn("there")
    warnings.warn("above", stacklevel=2)
'''


@pytest.fixture
def both(tmp_path: Path) -> Callable[..., tuple[Any, Any]]:
    """Runs a program alone and verified, and returns the facts that each wrote and what each printed."""

    def run(arguments: list[str], given: list[str], *options: str) -> tuple[Any, Any]:
        facts = tmp_path.parent / f"{tmp_path.name}-facts.json"
        seen = []
        for verified in (False, True):
            if verified:
                done = verify(*arguments, *options, "-q", "--", *given, cwd=tmp_path, more={"FACTS": str(facts)})
            else:
                done = subprocess.run(
                    [torch_python(), *arguments, *given],
                    cwd=tmp_path,
                    env=environment(FACTS=str(facts)),
                    capture_output=True,
                    text=True,
                    check=False,
                )
            assert facts.exists(), done.stderr
            printed = [line for line in (done.stdout + done.stderr).split("\n") if line.startswith(("out", "err"))]
            seen.append((json.loads(facts.read_text()), printed))
            facts.unlink()
        return seen[0], seen[1]

    return run


def test_a_script_sees_itself_as_without_memlint(tmp_path: Path, both: Callable[..., tuple[Any, Any]]) -> None:
    folder = tmp_path / "scripts"
    folder.mkdir()
    (folder / "looks.py").write_text(_LOOKS)
    (folder / "helper.py").write_text(_HELPER)
    alone, verified = both(["scripts/looks.py"], ["--epochs", "1", "--", "x"])
    assert verified == alone


def test_a_module_sees_itself_as_without_memlint(tmp_path: Path, both: Callable[..., tuple[Any, Any]]) -> None:
    package = tmp_path / "pack"
    package.mkdir()
    (package / "__init__.py").write_text("")
    text = _LOOKS.replace("import helper\n", "from . import helper\n")
    # how Python itself runs a module is on its stack
    text = text.replace('if "launch.py" not in', 'if "runpy" not in frame.filename and "launch.py" not in')
    (package / "looks.py").write_text(text)
    (package / "helper.py").write_text(_HELPER)
    alone, verified = both(["-m", "pack.looks"], ["more"])
    assert verified == alone


_RANDOM = """\
import hashlib, json, os, random
import torch
from torch import nn

torch.manual_seed(0)
random.seed(0)
model = nn.Sequential(nn.Linear(16, 32), nn.Dropout(0.5), nn.Linear(32, 1))
optimizer = torch.optim.Adam(model.parameters())
kept = []
for step in range(30):
    loss = model(torch.randn(8, 16) * random.random()).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    kept.append(loss)
numbers = [loss.item() for loss in kept] + [value for each in model.parameters() for value in each.flatten().tolist()]
with open(os.environ["FACTS"], "w") as file:
    json.dump([hashlib.sha256(repr(numbers).encode()).hexdigest(), random.random(), torch.rand(1).item()], file)
"""


def test_results_are_the_same_bit_for_bit(tmp_path: Path, both: Callable[..., tuple[Any, Any]]) -> None:
    (tmp_path / "numbers_.py").write_text(_RANDOM)
    alone, verified = both(["numbers_.py"], [], "--full")
    assert verified == alone


_SPAWN = """\
import json, multiprocessing, os, sys

kept = []


def work(number):
    script = os.path.basename(sys.argv[0])
    return [number, __name__, sys.modules["__main__"].__name__, script, hasattr(__builtins__, "__memlint_next__")]


if __name__ == "__main__":
    facts = []
    for method in ("spawn", "fork", "forkserver"):
        with multiprocessing.get_context(method).Pool(2) as pool:
            facts.append(pool.map(work, range(3))[:1])
    with open(os.environ["FACTS"], "w") as file:
        json.dump([facts[0], facts[2], [row[:3] for row in facts[1]]], file)
"""


def test_processes_are_started_as_without_memlint(tmp_path: Path, both: Callable[..., tuple[Any, Any]]) -> None:
    (tmp_path / "starts.py").write_text(_SPAWN)
    alone, verified = both(["starts.py"], ["argument"])
    assert verified == alone
