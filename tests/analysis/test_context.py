"""Tensors on the context of an autograd function: which they are, and what is none or is let go of."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import memlint

FUNCTION = """
import torch
from torch import nn
from torch.autograd import Function

import kernels


def helper(ctx, grad):
    {helped}
    return grad


class Layer({base}):
    @staticmethod
    def forward(ctx, x, w, other, n=3):
        y = x.mm(w)
        {kept}
        return {returned}

    @staticmethod
    def backward(ctx, grad, *rest):
        {backward}
        return grad, None, None, None
"""


def findings(tmp_path: Path, text: str) -> list[tuple[str, str]]:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "layer.py").write_text(text)
    found = memlint.lint([tmp_path], isolated=True).findings
    kinds = [re.search(r"an? [a-z ]* of the function(?=: )", one.message) for one in found if one.code == "MEM106"]
    severities = [one.severity for one in found if one.code == "MEM106"]
    return [(severity, kind[0]) for severity, kind in zip(severities, kinds, strict=True) if kind]


def kept(tmp_path: Path, line: str, **parts: str) -> list[tuple[str, str]]:
    defaults = {"base": "Function", "returned": "y", "backward": "pass", "helped": "pass"}
    return findings(tmp_path, FUNCTION.format(kept=line, **{**defaults, **parts}))


OUTPUT = ("warning", "an output of the function")
VIEW = ("warning", "a view of an output of the function")
INTERMEDIATE = ("note", "an intermediate of the function")
INPUT = ("note", "an input of the function")


@pytest.mark.parametrize(
    ("line", "returned", "expected"),
    [
        ("ctx.y = y", "y", [OUTPUT]),
        ("ctx.y = y", "(y, x.sum())", [OUTPUT]),
        ("ctx.y = y", "(x.sum(), y)", [OUTPUT]),
        ("ctx.y = out = x.exp()", "out", [OUTPUT]),
        ("ctx.y = x.exp()", "ctx.y", [OUTPUT]),
        ("ctx.y, ctx.n = y, n", "y", [OUTPUT]),
        ("out = kernels.run(x); ctx.y = out", "out", [OUTPUT]),
        ("ctx.both = [y, n]", "y", [OUTPUT]),
        ("ctx.y = y.view(-1)", "y", [VIEW]),
        ("ctx.y = y[0]", "y", [VIEW]),
        ("ctx.y = y.t()[:, 1:]", "y", [VIEW]),
        # a view that is returned holds what it was cut from, and that does not hold it
        ("ctx.y = y", "y.view(-1)", [INTERMEDIATE]),
        ("ctx.y = y.detach()", "y", [INTERMEDIATE]),
        ("ctx.y = y; y = y * 2", "y", [INTERMEDIATE]),
        ("ctx.y = y; y *= 2", "y", [OUTPUT]),
        ("ctx.x = x", "y", [INPUT]),
        ("ctx.x = x", "x", [INPUT]),
        ("if torch.is_tensor(x): ctx.x = x", "y", [INPUT]),
        ("if not torch.is_tensor(other): ctx.x = x", "y", [INPUT]),
        ("if not torch.is_tensor(y): ctx.y = y", "y", [OUTPUT]),  # (bound here: which value was asked is not told)
        ("x.add_(1); ctx.mark_dirty(x); ctx.x = x", "x", [OUTPUT]),
        ("ctx.save_for_backward(other); ctx.other = other", "y", [INPUT]),
        # what is no number with a fraction has no grad_fn
        ("idx = y.argmax(1); ctx.idx = idx; ctx.mark_non_differentiable(idx)", "(y, idx)", [INTERMEDIATE]),
    ],
)
def test_what_is_kept(tmp_path: Path, line: str, returned: str, expected: list[tuple[str, str]]) -> None:
    assert kept(tmp_path, line, returned=returned) == expected


@pytest.mark.parametrize(
    "line",
    [
        "ctx.save_for_backward(x, y)",
        "ctx.other = other",
        "ctx.n = n",
        "ctx.shape, ctx.rows = x.shape, x.size(0)",
        "ctx.kind, ctx.device, ctx.dtype = x.type(), x.device, x.dtype",
        "ctx.sparse = x.is_sparse",
        "ctx.array = x.cpu().numpy()",
        "ctx.values = y.tolist()",
        "ctx.total = y.sum()",
        "ctx.auto = torch.is_autocast_enabled()",
        "ctx.size = nn.modules.utils._pair(n)",
        "ctx.group = torch.distributed.new_group([n])",
        "ctx.made = kernels.plan(x)",
        "ctx.parts = [kernels.run(x)]",
        "ctx.run = lambda: y",
        "ctx.to_save = y",
        "ctx.set_materialize_grads(False)",
        "ctx.y = y; del ctx.y",
        "ctx.save_for_backward(x) if torch.is_tensor(x) else setattr(ctx, 'x', x)",
        "if torch.is_tensor(x): ctx.save_for_backward(x)\n        else: ctx.x = x",
        "if not isinstance(x, torch.Tensor): ctx.x = x",
    ],
)
def test_what_is_none(tmp_path: Path, line: str) -> None:
    assert kept(tmp_path, line) == []


@pytest.mark.parametrize(
    ("backward", "helped", "found"),
    [
        ("use(ctx.y)", "pass", "warning"),
        ("del ctx.y", "pass", "note"),
        ("ctx.y = None", "pass", "note"),
        ("ctx.y.resize_(0)", "pass", ""),
        ("helper(ctx, grad)", "pass", "warning"),
        ("helper(ctx, grad)", "ctx.y = None", "note"),
        ("kernels.finish(ctx)", "pass", ""),
        ("ctx.__dict__.clear()", "pass", ""),
    ],
)
def test_what_backward_lets_go_of(tmp_path: Path, backward: str, helped: str, found: str) -> None:
    # (what is left is the cycle where no backward runs)
    expected = [(found, OUTPUT[1])] if found else []
    assert kept(tmp_path, "ctx.y = y", backward=backward, helped=helped) == expected


def test_what_backward_lets_go_of_and_is_no_output(tmp_path: Path) -> None:
    assert kept(tmp_path, "ctx.x = x", backward="del ctx.x") == []
    assert kept(tmp_path, "ctx.z = y.exp()", backward="ctx.z = None") == []


@pytest.mark.parametrize(
    ("base", "found"),
    [
        ("torch.autograd.Function", True),
        ("torch.autograd.function.InplaceFunction", True),
        ("nn.Module", False),
        ("kernels.Function", False),
        ("object", False),
    ],
)
def test_whose_context_it_is(tmp_path: Path, base: str, found: bool) -> None:
    assert kept(tmp_path, "ctx.y = y", base=base) == ([OUTPUT] if found else [])


def test_a_graph_of_its_own_is_kept_by_hand(tmp_path: Path) -> None:
    lines = "with torch.enable_grad():\n            ctx.y = y = x.detach().requires_grad_().exp()"
    assert kept(tmp_path, lines) == []


SETUP = """
from torch.autograd import Function


class Layer(Function):
    @staticmethod
    def forward(x, w, n):
        return {returned}

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, w, n = inputs
        {kept}

    @staticmethod
    def backward(ctx, *grads):
        return grads[0], None, None
"""


@pytest.mark.parametrize(
    ("returned", "line", "expected"),
    [
        ("x.mm(w)", "ctx.out = output", [OUTPUT]),
        ("x.mm(w)", "ctx.x, ctx.n = x, n", [INPUT]),
        ("(x.mm(w), x.exp())", "y, z = output; ctx.z = z", [OUTPUT]),
        ("(x.mm(w), n)", "y, m = output; ctx.m = m", []),
    ],
)
def test_setup_context(tmp_path: Path, returned: str, line: str, expected: list[tuple[str, str]]) -> None:
    assert findings(tmp_path, SETUP.format(returned=returned, kept=line)) == expected


@pytest.mark.parametrize(("line", "kind"), [("ctx.y = y", "per-iteration"), ("ctx.x = x", "peak")])
def test_how_it_grows(tmp_path: Path, line: str, kind: str) -> None:
    text = FUNCTION.format(base="Function", kept=line, returned="y", backward="pass", helped="pass")
    (tmp_path / "layer.py").write_text(text)
    (found,) = memlint.lint([tmp_path], isolated=True).findings
    assert (found.growth.memory, found.growth.kind) == ("device-tensor", kind)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ctx.both = (w, n)", [INPUT]),
        ("ctx.both = [x, x.shape]", [INPUT]),
        ("ctx.both = (other, n)", []),
        ("ctx.both = (n, x.shape, x.size(0))", []),
        ("w = 3; ctx.both = (w, n)", []),
        ("ctx.both = (x, n); del ctx.both", []),
    ],
)
def test_inputs_in_a_tuple(tmp_path: Path, line: str, expected: list[tuple[str, str]]) -> None:
    assert kept(tmp_path, "z = x.view(-1).sum() + w.view(-1).sum(); " + line) == expected


def test_a_docstring_tells_of_a_tuple(tmp_path: Path) -> None:
    doc = '"""Takes.\n\n        other : torch.Tensor\n            rows\n        """'
    told = FUNCTION.replace("        y = x.mm(w)", f"        {doc}\n        y = x.mm(w)")
    assert findings(
        tmp_path,
        told.format(kept="ctx.both = (other, n)", base="Function", returned="y", backward="pass", helped="pass"),
    ) == [INPUT]


HANDED = """
from torch.autograd import Function

import kernels


class Parts:
    @staticmethod
    def keep(ctx, inputs, outputs):
        {kept}

    @staticmethod
    def back(ctx, grad):
        {back}
        return grad


class Layer(Function):
    @staticmethod
    def forward(x, w):
        return kernels.run(x, w)

    @staticmethod
    def setup_context(ctx, inputs, outputs):
        {call}

    @staticmethod
    def backward(ctx, grad, *rest):
        return Parts.back(ctx, grad), None
"""


@pytest.mark.parametrize(
    ("kept", "back", "call", "expected"),
    [
        ("ctx.out = outputs", "pass", "Parts.keep(ctx, inputs, outputs)", [OUTPUT]),
        ("y, n = outputs; ctx.save_for_backward(y); ctx.y = y", "pass", "Parts.keep(ctx, inputs, outputs)", [OUTPUT]),
        ("ctx.out = outputs", "del ctx.out", "Parts.keep(ctx, inputs, outputs)", [("note", OUTPUT[1])]),
        ("ctx.out = outputs", "kernels.end(ctx)", "Parts.keep(ctx, inputs, outputs)", []),
        ("ctx.out = outputs", "pass", "Parts.keep(ctx, inputs, None)", []),
        ("ctx.out = outputs", "pass", "Parts.keep(outputs, inputs, ctx)", []),
        ("outputs = outputs.sum(); ctx.out = outputs.item()", "pass", "Parts.keep(ctx, inputs, outputs)", []),
        ("x, w = inputs; ctx.shape = x.shape", "pass", "Parts.keep(ctx, inputs, outputs)", []),
    ],
)
def test_what_a_helper_keeps_that_is_handed_the_context(
    tmp_path: Path, kept: str, back: str, call: str, expected: list[tuple[str, str]]
) -> None:
    assert findings(tmp_path, HANDED.format(kept=kept, back=back, call=call)) == expected


OLD = """
from torch.autograd import Function


class Layer(Function):
    def {forward}(self, x):
        y = x.exp()
        {kept}
        return y

    {decorator}
    def backward({ctx}, grad):
        return grad
"""


@pytest.mark.parametrize(
    ("kept", "forward", "decorator", "ctx", "expected"),
    [
        ("self.x = x", "forward", "", "self", [INPUT]),
        ("self.y = y", "forward", "", "self", [("note", "an output of the function")]),
        ("self.save_for_backward(x)", "forward", "", "self", []),
        ("self.x = x", "prepare", "", "self", []),
        ("self.x = x", "forward", "@staticmethod", "ctx", []),
    ],
)
def test_a_function_of_the_old_style(
    tmp_path: Path, kept: str, forward: str, decorator: str, ctx: str, expected: list[tuple[str, str]]
) -> None:
    text = OLD.format(kept=kept, forward=forward, decorator=decorator, ctx=ctx)
    assert [(one, kind) for one, kind in findings(tmp_path, text)] == expected
