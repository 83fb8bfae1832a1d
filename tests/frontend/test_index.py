from __future__ import annotations

import msgspec
import pytest

from memlint.frontend.index import index
from memlint.frontend.index_records import Definition, Imported, ModuleIndex

TEXT = """\
import torch.nn as nn, os
from ..meters import AverageMeter as Meter, other

@torch.no_grad()
def evaluate(model):
    from .late import helper
    self.loss += model(x).item()
    helper(key=1)

if True:
    class Net(nn.Module, Base[int], make()):
        import inner
        def forward(self): self.a, [b.c] = d
        async def go(self): global state

total.sum = []
"""


def test_imports_tell_where_they_are():
    assert index(TEXT).imports == (
        Imported("torch.nn", 0, None, "nn", True, 0),
        Imported("os", 0, None, None, True, 0),
        Imported("meters", 2, "AverageMeter", "Meter", True, 0),
        Imported("meters", 2, "other", None, True, 0),
        Imported("inner", 0, None, None, False, 0),
        Imported("late", 1, "helper", None, False, 1),
    )


def test_definitions():
    assert index(TEXT).definitions == (
        Definition("evaluate", "function", 1, 4, 8, (), ()),
        Definition("Net", "class", 0, 11, 14, ("nn.Module", "Base", ""), ("forward", "go")),
    )


def test_names_of_each_unit():
    own, evaluate = index(TEXT).units
    assert evaluate.name == "evaluate"
    assert evaluate.calls == {"no_grad", "model", "item", "helper"}
    assert evaluate.stores == {"loss"}
    assert evaluate.names >= {"evaluate", "model", "late", "helper", "self", "loss", "x", "item", "key", "torch"}
    assert own.calls == {"make"}
    assert own.stores == {"a", "c", "sum"}
    assert own.names >= {"torch", "nn", "os", "meters", "Meter", "Net", "Module", "forward", "state", "total", "d"}
    assert "item" not in own.names


def test_what_may_be_put_into_a_container():
    put = """\
TABLE = {"a": first, "b": module.second}
TABLE["c"] = third
(fourth, [fifth]), other = sixth, {seventh}
def register(self):
    self.hooks.append(self.eighth)
    dict(nine=ninth, ten=called(argument))
    self.kept = value
"""
    assert index(put).tabled == {
        "first", "second", "third", "sixth", "seventh", "eighth", "ninth",
    }  # fmt: skip


def test_an_index_survives_serialisation():
    found = index(TEXT)
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(found), type=ModuleIndex) == found


def test_a_newer_grammar_is_indexed_by_libcst_and_marked():
    found = index("lazy import a.b as c\ndef f(x):\n  import d\n  x.y = g()\nclass A(B.C): \n  def m(self): pass\n")
    assert not found.complete
    assert found.imports == (Imported("a.b", 0, None, "c", True, 0), Imported("d", 0, None, None, False, 1))
    assert found.definitions == (
        Definition("f", "function", 1, 2, 4, (), ()),
        Definition("A", "class", 2, 5, 6, ("B.C",), ("m",)),
    )
    assert found.units[1].names == found.units[1].calls == found.units[1].stores
    assert found.units[1].names >= {"f", "x", "y", "g", "d"}


def test_what_nobody_can_parse_still_has_names():
    found = index("x.cuda(async=True)\n")
    assert (found.complete, found.imports, found.definitions) == (False, (), ())
    assert found.units[0].calls >= {"x", "cuda"}


@pytest.mark.parametrize(
    ("code", "changed"),
    [
        ("model.net = other", {"net"}),
        ("holder.model.net = other", {"net"}),
        ("models[0].net = other", {"net"}),
        ("del model.net", {"net"}),
        ("model.count += 1", {"count"}),
        ("for model.net in nets: pass", {"net"}),
        ("unfreeze(model.net)", {"net"}),
        ("unfreeze(module=model.net)", {"net"}),
        ("model.net.parameters()", {"net"}),
        ("model.net.requires_grad_()", {"net"}),
        ("def f(): return [unfreeze(m.net) for m in models]", {"net"}),
        ("self.net = other", set()),
        ("self.part.net = other", set()),
        ("unfreeze(self.net)", set()),
        ("model.net.eval()", set()),
        ("y = model.net", set()),
        ("unfreeze(*model.net)", set()),
    ],
)
def test_attributes_that_other_objects_change(code: str, changed: set[str]):
    assert index(code).changed == changed
