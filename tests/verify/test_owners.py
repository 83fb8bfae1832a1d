"""Who keeps a tensor is said in the program's own names; where it is not known, nothing is said."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import pytest
from commands import verify
from measured import measured

#: a function for each way to keep tensors, which asks who keeps some of them
LEAKS = """
import collections, contextvars, functools, itertools, threading, types

from memlint.measure.retention.owners import Owners, Target

result = {}
LIST, CACHE = [], {}
VARIABLE = contextvars.ContextVar("seen", default=None)
LOCAL = threading.local()


def new(*shape):
    return torch.randn(*(shape or (8,)))


def ask(name, tensors, frames=True):
    targets = [Target(one.untyped_storage()._cdata, one.untyped_storage().nbytes(), one.untyped_storage())
               for one in tensors]
    del tensors[:]
    result[name] = Owners(torch).of({0: targets}, frames=frames).get(0, [])


class Meter:
    seen = {}

    def __init__(self):
        self.values = collections.defaultdict(list)

    def hook(self, module, inputs, output):
        self.values["out"].append(output.detach())

    @functools.lru_cache(maxsize=64)
    def table(self, size):
        return new(size)


class Slots:
    __slots__ = ("out",)


class Odd:
    __module__ = property(lambda self: "odd")


ODD = Odd()
Pair = collections.namedtuple("Pair", "number out")


@functools.lru_cache(maxsize=None)
def encode(key):
    return new()


def remember(one, kept=[]):
    kept.append(one)
    return kept


def recorder():
    kept = []

    def record(one):
        kept.append(one)
        return kept[:]

    return record


RECORD = recorder()


def local_list():
    losses = [new() for _ in range(5)]
    ask("local list", losses[1:4])


def local_in_library_frame():
    model = nn.Linear(8, 8)
    model.eval()
    kept = [model(new(2, 8)) for _ in range(5)]
    ask("a function that calls eval()", kept[1:3])


def global_dict():
    for number in range(5):
        CACHE[str(number)] = new()
    ask("global dict", [CACHE["3"]])


def attributes():
    class Trainer:
        pass

    trainer = Trainer()
    trainer.meter = Meter()
    trainer.meter.values["loss"] += [new() for _ in range(4)]
    ask("attributes", trainer.meter.values["loss"][1:3])


def odd_class():
    ODD.outputs = [new(), new()]
    ask("a class whose module is a property", ODD.outputs[1:])


def class_attribute():
    Meter.seen[7] = new()
    ask("class attribute", [Meter.seen[7]])


def slots_and_tuples():
    rows = collections.deque()
    for number in range(4):
        row = Slots()
        row.out = new()
        rows.append(Pair(number, row))
    ask("slots and tuples", [rows[2].out.out])


def hook():
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU())
    model[0].register_forward_hook(Meter().hook)
    for _ in range(4):
        model(new(2, 8))
    kept = next(iter(model[0]._forward_hooks.values())).__self__.values["out"][1:3]
    ask("bound method as hook", kept)


def closure():
    for _ in range(4):
        kept = RECORD(new())
    few = kept[1:3]
    del kept
    ask("closure", few)


def default():
    for _ in range(4):
        kept = remember(new())
    few = kept[1:3]
    del kept
    ask("default", few)


def cache():
    ask("lru_cache", [encode(1), encode(2)])


METER = Meter()


def cache_of_method():
    ask("lru_cache of a method", [METER.table(3)])


def context():
    VARIABLE.set({"a": new()})
    ask("context variable", [VARIABLE.get()["a"]])


def thread_local():
    LOCAL.outputs = [new()]
    ask("thread-local", LOCAL.outputs[:])


ERRORS = []


def fails():
    activation = new()
    raise ValueError


def exception():
    try:
        fails()
    except ValueError as error:
        ERRORS.append(error)
    ask("exception", [ERRORS[0].__traceback__.tb_next.tb_frame.f_locals["activation"]])
    ERRORS[0].__traceback__.tb_next.tb_frame.f_locals.clear()


def smoothed():
    history = []
    while True:
        history.append(new())
        yield history[-1:]


def generator():
    waiting = smoothed()
    one = next(waiting)
    ask("generator", one)


def generator_that_only_a_loop_holds():
    for one in smoothed():
        ask("generator of a loop", one)
        break


def gradient():
    model = nn.Linear(4, 4)
    model(new(2, 4)).sum().backward()
    ask("gradient", [model.weight.grad])


def graph():
    model = nn.Linear(8, 8)
    losses = []
    saved = []
    for _ in range(4):
        hidden = torch.tanh(model(new(2, 8)))
        saved.append(hidden)
        losses.append((hidden * 2).pow(2).mean())
    few = saved[1:2]
    del saved, hidden
    ask("graph", few)


def recurrent():
    cell = nn.LSTMCell(8, 8)
    state = cell(new(2, 8))
    first = [state[0]]
    for _ in range(12):
        state = cell(new(2, 8), state)
    ask("recurrent state", first)


def worker():
    begun, done = threading.Event(), threading.Event()
    given = []

    def work():
        backlog = [new() for _ in range(3)]
        given.extend(backlog[1:2])
        begun.set()
        done.wait(60)

    thread = threading.Thread(target=work, name="saver")
    thread.start()
    begun.wait(60)
    ask("thread", given)
    done.set()
    thread.join()


def parts_of_modules():
    model = nn.Sequential(nn.Linear(4, 4))
    model[0].register_buffer("kept", new())
    ask("buffer", [model[0].kept])


def in_a_set():
    seen = {new()}
    ask("set", list(seen))


def tensor_key():
    by = {new(): 1}
    ask("key", list(by))


def only_the_stack():
    for one in iter([new()]):
        few = [one]
        del one
        ask("unnamed", few)


def dead_ends():
    cycle = [new()]
    few = cycle[:]
    cycle.append(cycle)
    del cycle
    ask("cycle", few)


for leak in [value for value in list(globals().values()) if type(value) is types.FunctionType and not value.__code__.
             co_argcount and value.__name__ not in ("recorder", "fails", "smoothed")]:
    leak()

# nothing is kept by having asked: variables are gone when they are deleted
def freed():
    import weakref
    one = new()
    gone = weakref.ref(one.untyped_storage())
    ask("before", [one])
    del one
    return gone() is None


result["freed"] = freed()
"""

#: path, kind and place of the root
NAMED = {
    "local list": ("losses[1]", "local", "local_list"),
    "a function that calls eval()": ("kept[1]", "local", "local_in_library_frame"),
    "global dict": ("CACHE['3']", "global", "__main__"),
    "attributes": ("trainer.meter.values['loss'][1]", "local", "attributes"),
    "a class whose module is a property": ("ODD.outputs[1]", "global", "__main__"),
    "class attribute": ("Meter.seen[7]", "class", "__main__"),
    "slots and tuples": ("rows[2].out.out", "local", "slots_and_tuples"),
    "bound method as hook": ("model[0]._forward_hooks[0].__self__.values['out'][1]", "local", "hook"),
    "closure": ("RECORD.<closure>.kept[1]", "global", "__main__"),
    "default": ("remember.<default kept>[1]", "global", "__main__"),
    "lru_cache": ("encode.<lru_cache>[1]", "global", "__main__"),
    "lru_cache of a method": ("Meter.table.<lru_cache>", "class", "__main__"),
    "context variable": ("ContextVar('seen')['a']", "context", ""),
    "thread-local": ("LOCAL.outputs[0]", "global", "__main__"),
    "exception": ("ERRORS[0].__traceback__.<frame of fails>.activation", "global", "__main__"),
    "generator": ("waiting.<frame of smoothed>.history[0]", "local", "generator"),
    "generator of a loop": ("history[0]", "suspended", "smoothed"),
    "gradient": ("model.weight", "local", "gradient"),
    "graph": ("losses[1]", "local", "graph"),
    "recurrent state": ("state[1]", "local", "recurrent"),
    "thread": ("backlog[1]", "local", "worker.<locals>.work in thread 'saver'"),
    "buffer": ("model[0].kept", "local", "parts_of_modules"),
    "set": ("seen<element>", "local", "in_a_set"),
    "key": ("by<key>", "local", "tensor_key"),
}


@functools.cache
def found() -> dict[str, Any]:
    told: dict[str, Any] = measured(LEAKS)
    return told


@pytest.mark.parametrize("name", NAMED)
def test_the_path_is_in_the_names_of_the_program(name: str) -> None:
    rows = found()[name]
    assert [(row["path"], row["kind"], row["where"]) for row in rows] == [NAMED[name]]


@pytest.mark.parametrize("name", ["unnamed", "cycle"])
def test_nothing_is_said_where_it_is_not_known(name: str) -> None:
    assert found()[name] == []


def test_what_only_a_graph_holds_is_said_to_be_held_so() -> None:
    assert found()["graph"][0]["through"].endswith("Backward0")
    assert found()["gradient"][0]["through"] == "its gradient"
    assert found()["local list"][0]["through"] == ""


def test_several_elements_of_one_list_are_one_holder() -> None:
    row = found()["local list"][0]
    assert (row["survivors"], row["container"], row["elements"]) == (3, "list", 5)


def test_the_variables_of_a_module_are_no_container() -> None:
    row = found()["a class whose module is a property"][0]
    assert (row["container"], row["elements"]) == ("list", 2)


def test_asking_keeps_nothing() -> None:
    assert found()["freed"] is True


REGISTRY = """\
_CACHE = {}


def put(key, value):
    _CACHE[key] = value
"""
PROGRAM = """\
import torch
from torch import nn

import registry


class Trainer:
    def __init__(self):
        self.model = nn.Linear(256, 64, device="{device}")
        self.outputs = []

    def fit(self):
        for step in range(80):
            loss = self.model(torch.randn(16, 256, device="{device}")).pow(2).mean()
            loss.backward()
            self.outputs.append(loss)
            registry.put(str(step), torch.zeros(1000, device="{device}"))


Trainer().fit()
"""


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)])
def test_holders_are_in_the_report(tmp_path: Path, device: str) -> None:
    (tmp_path / "registry.py").write_text(REGISTRY)
    (tmp_path / "train.py").write_text(PROGRAM.format(device=device))
    options = ("train.py", "--isolated", "--device", device)
    done = verify(*options, "--output-format", "json", cwd=tmp_path, forked=device == "cpu")
    report = json.loads(done.stdout)
    stored = next(one for one in report["findings"] if one["line"] == 16)
    assert [row["path"].split("[")[0] for row in stored["verdict"]["holders"]] == ["self.outputs"]
    (stack,) = [row for row in report["unattributed"]["stacks"] if row["bytes_per_iteration"] == 4000]
    (holder,) = stack["holders"]
    assert (holder["path"].split("[")[0], holder["kind"], holder["file"]) == (
        "registry._CACHE", "global", "registry.py",
    )  # fmt: skip
    text = verify(*options, cwd=tmp_path, forked=device == "cpu").stdout
    assert "held by `self.outputs[" in text and "a local variable of `Trainer.fit` (train.py:" in text
    assert "held by `registry._CACHE['" in text and "a global variable (registry.py), in a dict of" in text
