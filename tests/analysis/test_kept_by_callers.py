"""Functions that evaluate a model once and store, return or yield its output, which their callers' loops collect: the
finding at the model's call says so."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

_HEAD = """\
import torch
from torchvision.models import resnet50

"""
_OBJECT = """\
class Predictor:
    def __init__(self):
        self.model = resnet50().cuda()
        self.model.eval()
        self.history = []

    def predict(self, x):
        out = self.model(x.cuda())  # here
        self.history.append(out)
        return out.argmax(1)

"""
_GLOBAL = """\
model = resnet50().cuda()
model.eval()
outputs = []


def predict(x):
    out = model(x.cuda())  # here
    outputs.append(out)
    return out.argmax(1)


"""
_GIVEN = """\
def evaluate(model, x, kept):
    model.eval()
    kept.append(model(x.cuda()))  # here


"""

_RETURNED = """\
def predict(model, x):
    model.eval()
    return model(x.cuda())  # here


"""
_YIELDED = """\
def predictions(model, loader):
    model.eval()
    for x, y in loader:
        yield model(x.cuda())  # here


"""
_DECORATED = """\
import functools


def timed(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@timed
"""
_COLLECT = (
    "def main(loader, model):\n    kept = []\n    for x, y in loader:\n"
    "        kept.append(predict(model, x))\n    print(len(kept))\n"
)

_GROWS = {
    "what it returns, in a list of its caller": _RETURNED + _COLLECT,
    "the same, behind a decorator": _DECORATED + _RETURNED + _COLLECT,
    "a member of what it returns": _RETURNED.replace("return model(x.cuda())", 'return {"logits": model(x.cuda())}')
    + _COLLECT.replace("predict(model, x)", 'predict(model, x)["logits"]'),
    "a loss of what it returns": _RETURNED + "def main(loader, model):\n    total = 0\n    for x, y in loader:\n"
    "        total += predict(model, x).mean()\n    print(total)\n",
    "a member of what it yields, in a loop": _YIELDED.replace("yield model(x.cuda())", "yield model(x.cuda()), y")
    + "def main(loader, model):\n    kept = []\n    for out, y in predictions(model, loader):\n"
    "        kept.append(out)\n    print(len(kept))\n",
    "what it yields, in a list": _YIELDED
    + "def main(loader, model):\n    kept = list(predictions(model, loader))\n    print(len(kept))\n",
    "a list of its object": _OBJECT
    + "def main(loader):\n    one = Predictor()\n    for x, y in loader:\n        print(one.predict(x))\n",
    "a list of the module": _GLOBAL + "def main(loader):\n    for x, y in loader:\n        print(predict(x))\n",
    "a list that is given": _GIVEN
    + "def main(loader, model):\n    kept = []\n    for x, y in loader:\n        evaluate(model, x, kept)\n",
    "few rounds of its own, many of its caller": _GIVEN.replace(
        "    kept.append(model(x.cuda()))  # here\n",
        "    for view in range(4):\n        kept.append(model(x[view].cuda()))  # here\n",
    )
    + "def main(loader, model):\n    kept = []\n    for x, y in loader:\n        evaluate(model, x, kept)\n",
}
_DEFAULT = """\
def predict(model, x, seen=[]):
    model.eval()
    out = model(x.cuda())  # here
    seen.append(out)
    return out.argmax(1)


"""
_SHOW = "def main(loader, model):\n    for x, y in loader:\n        print(predict(model, x))\n"
_GROWS["a list that is a parameter's default"] = _DEFAULT + _SHOW
_GROWS["a list of its caller's object"] = _RETURNED + (
    "class Runner:\n    def __init__(self):\n        self.kept = []\n\n    def run(self, loader, model):\n"
    "        for x, y in loader:\n            self.kept.append(predict(model, x))\n"
)
_GROWS["a default of a constructor"] = (
    _OBJECT.replace("__init__(self)", "__init__(self, history=[])").replace("history = []", "history = history")
    + "def main(loader):\n    one = Predictor()\n    for x, y in loader:\n        print(one.predict(x))\n"
)
_GROWS["a method between"] = _OBJECT + (
    "    def run(self, batch):\n        x, y = batch\n        return self.predict(x)\n\n\n"
    "def main(loader):\n    one = Predictor()\n    for batch in loader:\n        print(one.run(batch))\n"
)
_GROWS["two functions between"] = _GLOBAL + (
    "def first(batch):\n    return predict(batch[0])\n\n\ndef second(batch):\n    return first(batch).cpu()\n\n\n"
    "def main(loader):\n    for batch in loader:\n        print(second(batch))\n"
)
_CAT = """\
class Bank:
    def __init__(self):
        self.model = resnet50().cuda()
        self.model.eval()
        self.all = torch.zeros(0, 1000).cuda()

    def feed(self, x):
        self.all = torch.cat([self.all, self.model(x.cuda())])


def main(loader):
    bank = Bank()
    for x, y in loader:
        bank.feed(x)  # here
    print(bank.all.shape)
"""
_GROWS["a tensor of its object, by cat"] = _CAT
_GROWS["a tensor of its caller, by cat"] = _RETURNED + (
    "def main(loader, model):\n    kept = torch.zeros(0, 1000).cuda()\n    for x, y in loader:\n"
    "        kept = torch.cat([kept, predict(model, x)])\n    print(kept.shape)\n"
)
_STAYS = {
    "its caller keeps a copy without the graph": _RETURNED
    + _COLLECT.replace("predict(model, x)", "predict(model, x).detach().cpu()"),
    "its caller keeps the last one": _RETURNED
    + "def main(loader, model):\n    for x, y in loader:\n        last = predict(model, x)\n    print(last.shape)\n",
    "its caller keeps another output": _RETURNED
    + _COLLECT.replace("predict(model, x)", "y.sum()").replace("    for", "    print(predict(model, kept))\n    for"),
    "its caller takes one of what it yields after the other": _YIELDED
    + "def main(loader, model):\n    for out in predictions(model, loader):\n        print(out.argmax(1).tolist())\n",
    "its caller empties the list": _GIVEN
    + "def main(loader, model):\n    kept = []\n    for x, y in loader:\n        evaluate(model, x, kept)\n"
    + "        print(torch.cat(kept).shape)\n        kept.clear()\n",
    "each round has a list of its own": _GIVEN
    + "def main(loader, model):\n    for x, y in loader:\n        kept = []\n        evaluate(model, x, kept)\n",
    "its caller gives another list each time": _DEFAULT + _SHOW.replace("(model, x)", "(model, x, [])"),
    "a default that the function clears": _DEFAULT.replace("append(out)", "append(out)\n    seen.clear()") + _SHOW,
    "a default that keeps numbers": _DEFAULT.replace("append(out)", "append(out.argmax(1).tolist())") + _SHOW,
    "it keeps numbers": _GLOBAL.replace("append(out)", "append(out.argmax(1).tolist())")
    + "def main(loader):\n    for x, y in loader:\n        print(predict(x))\n",
}


def _told(folder: Path, text: str) -> list[memlint.Finding]:
    (folder / "main.py").write_text(_HEAD + text, encoding="utf-8")
    here = [number for number, line in enumerate((_HEAD + text).splitlines(), 1) if line.endswith("# here")]
    result = memlint.lint([folder], isolated=True)
    assert not result.failures
    found = [one for one in result.findings if one.code == "MEM201"]
    assert [one.line for one in found] == here
    return found


@pytest.mark.parametrize("name", _GROWS)
def test_what_callers_make_grow_is_an_error_at_the_model_s_call(tmp_path: Path, name: str) -> None:
    (one,) = _told(tmp_path, _GROWS[name])
    assert "device memory grows by the graph of every batch" in one.message
    assert one.severity == "error"


@pytest.mark.parametrize("name", _STAYS)
def test_what_callers_give_back_does_not_grow(tmp_path: Path, name: str) -> None:
    for one in _told(tmp_path, _STAYS[name]):
        assert "grows" not in one.message
        assert one.severity != "error"


def test_callers_under_a_guard_are_right(tmp_path: Path) -> None:
    text = _GLOBAL.replace("  # here", "") + (
        "@torch.no_grad()\ndef main(loader):\n    for x, y in loader:\n        print(predict(x))\n"
    )
    assert _told(tmp_path, text) == []


def test_a_caller_that_trains_by_what_it_collects_is_right(tmp_path: Path) -> None:
    text = _RETURNED.replace("    model.eval()\n", "").replace("  # here", "") + (
        "def main(loader, model, optimizer):\n    kept = []\n    for x, y in loader:\n"
        "        kept.append(predict(model, x))\n    torch.cat(kept).sum().backward()\n    optimizer.step()\n"
    )
    assert _told(tmp_path, text) == []


def test_a_list_of_unseen_callers_is_not_said_to_be_replaced(tmp_path: Path) -> None:
    for one in _told(tmp_path, _OBJECT):
        assert "replaced" not in one.message
        assert "`self.history` keeps the graph" in one.message


@pytest.mark.parametrize(
    ("statement", "place"),
    [
        ("kept = [model(x.cuda()) for x, y in loader]", "kept"),
        ("kept = list(model(x.cuda()) for x, y in loader)", "kept"),
        ("kept = {model(x.cuda()) for x, y in loader}", "kept"),
        ("print(torch.cat([model(x.cuda()) for x, y in loader]))", "[model(x.cuda()) for …]"),
    ],
)
def test_what_a_comprehension_makes_has_a_name(tmp_path: Path, statement: str, place: str) -> None:
    text = "def evaluate(model, loader):\n    model.eval()\n    " + statement + "  # here\n    print(len(loader))\n"
    (one,) = _told(tmp_path, text)
    assert one.message.endswith(f"because `{place}` keeps it")


_UNDER_GUARD = """\
class Predictor:
    def __init__(self, model):
        self.model = model.cuda()

    def predict(self, batch):
        {made}

    def run(self, loader, limit):
        kept = []
        with torch.no_grad():
            {loop}:
                kept.append(self.predict({given}))
        return kept
"""


@pytest.mark.parametrize(
    ("made", "loop", "given", "found"),
    [
        ("return self.model(batch.cuda())", "for batch in loader", "batch", True),
        ("return self.model(batch.to('cuda'))", "for x, y in loader", "x", True),
        ("return {'logits': self.model(batch['x'].cuda())}", "for batch in loader", "batch", True),
        ("return self.model(torch.from_numpy(batch).cuda())", "while loader.more()", "loader.next_batch()", True),
        # the output leaves the device, or is a number
        ("return self.model(batch.cuda()).cpu()", "for batch in loader", "batch", False),
        ("return self.model(batch.cuda()).mean().item()", "for batch in loader", "batch", False),
        # nothing says that the batch is on the device, nor the model
        ("return model(batch)", "for batch in loader", "batch", False),
        # what is called need be no model
        ("return self.lookup(batch.cuda())", "for batch in loader", "batch", False),
        # the rounds go through numbers: the schedule that they index is no data
        ("return self.model(self.betas[batch].cuda())", "for batch in reversed(range(limit))", "batch", False),
    ],
)
def test_what_a_helper_computes_under_its_caller_s_guard(
    tmp_path: Path, made: str, loop: str, given: str, found: bool
) -> None:
    (tmp_path / "main.py").write_text(_HEAD + _UNDER_GUARD.format(made=made, loop=loop, given=given))
    result = memlint.lint([tmp_path], isolated=True)
    assert not result.failures
    assert [(one.code, one.severity) for one in result.findings] == ([("MEM104", "note")] if found else [])


_GUARDED = """\
def predict(model, lookup, batch):
    with torch.no_grad():
        logits = {made}
    return {result}


def run(model, lookup, loader):
    kept = []
    for batch in loader:
        kept.append(predict(model, lookup, batch))
    return kept
"""


@pytest.mark.parametrize("call", ["one.predict(batch)", "one.run(batch)"])
def test_what_a_method_of_another_object_computes(tmp_path: Path, call: str) -> None:
    text = _OBJECT.replace("        self.history.append(out)\n        return out.argmax(1)\n", "        return out\n")
    text = text.replace("    def predict", "    @torch.no_grad()\n    def predict").replace("  # here", "") + (
        "    def run(self, batch):\n        with torch.no_grad():\n            return self.model(batch.cuda())\n\n\n"
        "def main(loader):\n    one = Predictor()\n    kept = []\n    for batch in loader:\n"
        f"        kept.append({call})\n    print(len(kept))\n"
    )
    (tmp_path / "main.py").write_text(_HEAD + text)
    found = memlint.lint([tmp_path], isolated=True).findings
    assert [one.code for one in found] == ["MEM104"]


@pytest.mark.parametrize(
    ("made", "result", "found"),
    [
        ("model(batch.cuda())", "logits", True),
        ("model(batch.cuda())", "logits.softmax(1)", True),
        ("model(batch.cuda())", "logits.softmax(1).cpu()", False),
        ("model(batch.cuda())", "logits.argmax(1).tolist()", False),
        ("model(batch.cpu())", "logits", False),
        ("lookup(batch.cuda())", "logits", False),
    ],
)
def test_what_a_helper_computes_under_its_own_guard(tmp_path: Path, made: str, result: str, found: bool) -> None:
    (tmp_path / "main.py").write_text(_HEAD + _GUARDED.format(made=made, result=result))
    linted = memlint.lint([tmp_path], isolated=True)
    assert not linted.failures
    assert [(one.code, one.severity) for one in linted.findings] == ([("MEM104", "note")] if found else [])
