"""Models that are deleted while what they wrap, or their caller's variable, lives on; and functions that only free."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint import Finding

PROGRAM = """
import gc
import torch
from peft import PeftModel, get_peft_model
from torch import nn, optim
from transformers import AutoModelForCausalLM, pipeline
from elsewhere import consume


def empty():
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def reset(rounds):
    for _ in range(rounds):
        torch.cuda.empty_cache()


def release(model=None, optimizer=None):
    if optimizer is not None:
        del optimizer
    if model is not None:
        del model
    empty_all = torch.cuda.empty_cache
    gc.collect()
    torch.cuda.empty_cache()


def to_host(model):
    model.cpu()
    del model
    torch.cuda.empty_cache()


def run(names, name, path, x, config):
    {body}
"""
MAKE = 'net = AutoModelForCausalLM.from_pretrained(name, device_map="cuda")'
ADAM = ("optimizer = optim.Adam(net.parameters())", "net(x.cuda()).loss.backward()", "optimizer.step()")
USE = "print(net(x.cuda()).logits.argmax())"
EMPTY = "torch.cuda.empty_cache()"
OTHER = 'other = AutoModelForCausalLM.from_pretrained("other").cuda()'
PEFT = "model = PeftModel.from_pretrained(net, path)"
LOOP = "for name in names:"
SHOW = "def show(): print(net(x.cuda()))"


def found(folder: Path, *body: str) -> list[Finding]:
    code = PROGRAM.format(body="\n    ".join(body))
    (folder / "program.py").write_text(code, encoding="utf-8")
    result = memlint.lint([folder], select=["MEM110"], isolated=True, preview=True)
    assert not result.failures
    return list(result.findings)


def indented(*body: str) -> list[str]:
    return [f"    {line}" for line in body]


@pytest.mark.parametrize(
    ("body", "holder"),
    [
        pytest.param((MAKE, *ADAM, "del net", "empty()", OTHER), "`optimizer`", id="a function that only frees"),
        pytest.param(
            (MAKE, *ADAM, "print('net' in locals())", "del net", EMPTY, OTHER), "`optimizer`", id="asked for by name"
        ),
        pytest.param((MAKE, PEFT, "model(x)", "del model", EMPTY, OTHER), "`net`", id="what a wrapper was made of"),
        pytest.param(
            (MAKE, "model = get_peft_model(net, config)", "model(x)", "del model", EMPTY, OTHER), "`net`", id="adapters"
        ),
        pytest.param((MAKE, "model = net.eval()", "model(x)", "del model", EMPTY, OTHER), "`net`", id="an alias"),
        pytest.param(
            (MAKE, "model = nn.DataParallel(net)", "model(x)", "del model", EMPTY, OTHER), "`net`", id="replicas"
        ),
        pytest.param((MAKE, PEFT, "model(x)", "del net", EMPTY, OTHER), "`model`", id="a wrapper of it"),
        pytest.param(
            (MAKE, 'pipe = pipeline("text-generation", model=net)', "print(pipe(x))", "del net", EMPTY, OTHER),
            "`pipe`",
            id="a pipeline",
        ),
        pytest.param((MAKE, USE, "release(net)", OTHER), "`net`", id="the caller's variable"),
        pytest.param((MAKE, USE, "release(model=net)", OTHER), "`net`", id="by keyword"),
        pytest.param((SHOW, MAKE, "show()", "release(net)", MAKE, "show()"), "`net`", id="read by a call before it"),
        pytest.param((LOOP, *indented(MAKE, USE, "release(net)")), "`net`", id="the caller's variable in a loop"),
    ],
)
def test_what_still_holds_it(tmp_path: Path, body: tuple[str, ...], holder: str) -> None:
    (one,) = found(tmp_path, *body)
    assert f": {holder}, which is not used any more" in one.message


@pytest.mark.parametrize(
    "body",
    [
        pytest.param((MAKE, *ADAM, "del net, optimizer", "empty()", OTHER), id="both"),
        pytest.param((MAKE, *ADAM, "del net", "reset(3)", OTHER), id="a function that repeats it"),
        pytest.param((MAKE, *ADAM, "print(locals())", "del net", EMPTY, OTHER), id="all by name"),
        pytest.param((MAKE, PEFT, "model(x)", "del model, net", EMPTY, OTHER), id="the wrapper and the model"),
        pytest.param((MAKE, PEFT, "model(x)", "del model", EMPTY, OTHER, USE), id="the model is needed"),
        pytest.param((MAKE, PEFT, "model(x)", "net = None", "del model", EMPTY, OTHER), id="the model went before"),
        pytest.param(
            ("path = str(path)", "model = PeftModel.from_pretrained(make(), path)", "del model", EMPTY, OTHER),
            id="another argument of a wrapper",
        ),
        pytest.param((MAKE, 'model = net.to("cpu")', "model(x)", "del model", EMPTY, OTHER), id="on the host"),
        pytest.param((MAKE, USE, "release(net)", "del net", OTHER), id="deleted by the caller too"),
        pytest.param((MAKE, USE, "release(net)", USE, OTHER), id="used by the caller"),
        pytest.param((MAKE, USE, "net = release(net)", OTHER), id="rebound to what it returns"),
        pytest.param((SHOW, MAKE, "release(net)", OTHER, "show()"), id="used by a call"),
        pytest.param((SHOW, MAKE, "consume(show)", "release(net)", MAKE), id="used by a function that others have"),
        pytest.param((MAKE, USE, "to_host(net)", OTHER), id="moved to the host"),
        pytest.param((MAKE, USE, "release(net)"), id="nothing runs after it"),
        pytest.param((MAKE, USE, "release(None)", OTHER, USE), id="no variable"),
    ],
)
def test_what_is_freed_or_needed(tmp_path: Path, body: tuple[str, ...]) -> None:
    assert not found(tmp_path, *body)
