"""Except clauses for memory that did not suffice: which go on beside the frames that failed, and which do not."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint import Finding

PROGRAM = """
import logging
import sys
import traceback

import torch
from torch import nn
from library import consume, is_oom, solve

optimizer, tokenizer = consume("optimizer"), consume("tokenizer")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Linear(8, 8)

    def forward(self, x):
        return self.body(x)


def embed(net, x):
    return net(x.cuda())


def report(error):
    logging.error("%s", error)


def run(x, batches, function, retry=True):
    net = Net().cuda()
    errors = []
    last = None
    for x in batches:
        try:
            {tried}
        except {kind}:
            {handler}
        consume(y)
    {after}
"""
RETRY = "y = torch.cat([net(part) for part in x.chunk(2)])"
MEMORY = "torch.cuda.OutOfMemoryError"


def found(
    tmp_path: Path, handler: list[str], kind: str = MEMORY, tried: str = "y = net(x)", after: str = "return errors"
) -> list[Finding]:
    clause = "\n            ".join(handler)
    (tmp_path / "program.py").write_text(PROGRAM.format(tried=tried, kind=kind, handler=clause, after=after))
    result = memlint.lint([tmp_path], isolated=True)
    assert not result.failures
    return [each for each in result.findings if each.code == "MEM108"]


@pytest.mark.parametrize(
    ("kind", "test"),
    [
        ("torch.cuda.OutOfMemoryError", ""),
        ("torch.OutOfMemoryError as error", ""),
        ("(torch.cuda.OutOfMemoryError, torch.OutOfMemoryError)", ""),
        ("RuntimeError as error", "if 'out of memory' in str(error):"),
        ("RuntimeError as error", "if 'CUDA out of memory. ' in error.args[0] and retry:"),
        ("RuntimeError as error", "if str(error).startswith('CUDA out of memory'):"),
        ("RuntimeError as error", "if not 'out of memory' not in str(error):"),
        ("Exception as error", "if isinstance(error, torch.cuda.OutOfMemoryError):"),
        ("Exception as error", "if is_oom(error):"),
        ("Exception", "if 'out of memory' in traceback.format_exc():"),
    ],
)
def test_a_retry_after_which_error(tmp_path: Path, kind: str, test: str) -> None:
    handler = [test, f"    {RETRY}", "else:", "    raise"] if test else [RETRY]
    (each,) = found(tmp_path, handler, kind)
    assert (each.severity, each.confidence) == ("warning", "high")
    assert "net(part)" in each.message


@pytest.mark.parametrize("test", ["if 'out of memory' not in str(error):", "if not is_oom(error):"])
def test_a_retry_behind_the_test_for_other_errors(tmp_path: Path, test: str) -> None:
    assert len(found(tmp_path, [test, "    raise", RETRY], "RuntimeError as error")) == 1


@pytest.mark.parametrize(
    ("kind", "handler"),
    [
        ("RuntimeError as error", [RETRY]),
        ("ValueError", [RETRY]),
        ("RuntimeError as error", ["if 'cudnn' in str(error):", f"    {RETRY}"]),
        ("RuntimeError as error", ["if 'out of memory' not in str(error):", f"    {RETRY}"]),
        ("RuntimeError as error", ["if 'out of memory' in str(error):", "    raise", RETRY]),
        ("(torch.cuda.OutOfMemoryError, ValueError)", [RETRY]),
    ],
)
def test_after_another_error(tmp_path: Path, kind: str, handler: list[str]) -> None:
    assert found(tmp_path, handler, kind) == []


@pytest.mark.parametrize(
    ("tried", "retry", "expected"),
    [
        ("y = net(x)", "y = net(x[:1])", ["warning"]),
        ("y = embed(net, x)", "y = embed(net, x[:1])", ["warning"]),
        ("y = net(x)", "y = embed(net, x[:1])", ["note"]),
        ("y = function(x)", "y = function(x[:1])", ["warning"]),
        ("y = solve.compute(x)", "y = solve.compute(x[:1])", ["warning"]),
        ("y = net(x)", "y = net(x[:1]).cpu()", ["warning"]),
        ("y = net(x)", "y = torch.cat([net(part).to('cpu') for part in x.chunk(2)])", ["warning"]),
        ("optimizer.step()", "optimizer.step()", []),
        ("y = optimizer.run(x)", "y = optimizer.run(x[:1])", ["warning"]),
        ("y = tokenizer.encode(x)", "y = tokenizer.encode(x[:1])", []),
        ("y = self.buffer.sample(x)", "y = self.buffer.sample(x)", []),
        # operations of torch have no frames that hold tensors
        ("y = torch.cdist(x, x)", "y = torch.cdist(x[:1], x)", []),
        ("y = x.matmul(x)", "y = x.matmul(x[:1])", []),
        ("y = consume(x)", "y = report(x)", []),
        ("report(x)", "report(x)", []),
        ("y = logging.getLogger(x)", "y = logging.getLogger(x)", []),
    ],
)
def test_what_is_tried_again(tmp_path: Path, tried: str, retry: str, expected: list[str]) -> None:
    assert [each.severity for each in found(tmp_path, [retry], tried=tried)] == expected


@pytest.mark.parametrize(
    "handler",
    [
        ["torch.cuda.empty_cache()", "continue"],
        ["parts = 2", "y = None"],
        ["report('skipped')", "raise"],
        ["y = net.cpu()(x.cpu())"],
        ["y = net(x, device='cpu')"],
        ["device = torch.device('cpu')", "y = net.to(device)(x.to(device))"],
        ["y = lambda: net(x[:1])"],
        ["traceback.clear_frames(sys.exc_info()[2])", RETRY],
    ],
)
def test_what_does_not_meet_the_frames(tmp_path: Path, handler: list[str]) -> None:
    assert found(tmp_path, handler) == []


def test_a_clause_is_reported_once(tmp_path: Path) -> None:
    (each,) = found(tmp_path, ["consume(embed(net, x))", "y = net(x[:1])", "y = torch.cat([y, net(x[1:])])"])
    assert "net(x[:1])" in each.message


def test_a_retry_after_the_clause(tmp_path: Path) -> None:
    after = f"if last:\n        {RETRY}"
    assert found(tmp_path, ["last = True"], after=after) == []


RECURSION = """
import torch


class Trainer:
    def valid_step(self, sample, raise_oom=False):
        self.model.eval()
        with torch.no_grad():
            try:
                loss = {tried}
            except RuntimeError as e:
                if "out of memory" in str(e):
                    if not raise_oom:
                        torch.cuda.empty_cache()
                        return self.{called}(sample, raise_oom=True)
                raise e
        return loss
"""


@pytest.mark.parametrize(
    ("tried", "called", "count"),
    [
        ("self.task.valid_step(sample, self.model)", "valid_step", 1),
        ("self.model(sample)", "valid_step", 1),
        ("torch.cdist(sample, sample)", "valid_step", 0),
        ("self.model(sample)", "note_skipped", 0),
    ],
)
def test_a_function_that_calls_itself(tmp_path: Path, tried: str, called: str, count: int) -> None:
    (tmp_path / "program.py").write_text(RECURSION.format(tried=tried, called=called))
    assert len(memlint.lint([tmp_path], isolated=True, select=["MEM108"]).findings) == count


@pytest.mark.parametrize(
    ("kind", "handler", "count"),
    [
        ("Exception as error", ["errors.append(error)"], 1),
        ("Exception as error", ["errors.append((x, error))"], 1),
        ("Exception as error", ["last = error", "torch.cuda.empty_cache()"], 1),
        ("Exception", ["errors.append(sys.exc_info())"], 0),
        ("Exception as error", ["errors.append(sys.exc_info())"], 1),
        ("Exception as error", ["errors.append(str(error))"], 0),
        ("Exception as error", ["errors.append(f'{{error}}')"], 0),
        ("Exception as error", ["errors.append(traceback.format_exc())"], 0),
        ("Exception as error", ["errors.append(error.with_traceback(None))"], 0),
        ("Exception as error", ["last = error", "break"], 0),
        ("Exception as error", ["last = error", "raise"], 0),
    ],
)
def test_an_exception_that_is_stored(tmp_path: Path, kind: str, handler: list[str], count: int) -> None:
    assert [each.severity for each in found(tmp_path, handler, kind)] == ["note"] * count


@pytest.mark.parametrize(("handler", "count"), [(["last = error"], 0), (["last = error", "oom = True"], 1)])
def test_an_exception_of_what_cannot_be_followed(tmp_path: Path, handler: list[str], count: int) -> None:
    found_there = found(tmp_path, handler, "Exception as error", tried="y = solve.run(x)")
    assert [each.confidence for each in found_there] == ["medium"] * count


@pytest.mark.parametrize(("handler", "growth"), [("last = error", "peak"), ("errors.append(error)", "per-iteration")])
def test_how_stored_exceptions_grow(tmp_path: Path, handler: str, growth: str) -> None:
    (each,) = found(tmp_path, [handler], "Exception as error")
    assert (each.growth.memory, each.growth.kind) == ("device-tensor", growth)


def test_an_exception_of_what_runs_no_model(tmp_path: Path) -> None:
    assert found(tmp_path, ["errors.append(error)"], "Exception as error", tried="y = open(x)") == []
