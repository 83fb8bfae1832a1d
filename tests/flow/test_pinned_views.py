"""Views that a loop collects: which of them keep much more than they show, and what else keeps that anyway."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint import Finding

PROGRAM = """
import numpy as np
import torch
from torch import nn
from transformers import AutoModel
from library import keep


class Collector:
    def __init__(self):
        self.kept = []

    @torch.no_grad()
    def run(self, loader, network: nn.Module, given):
        model = AutoModel.from_pretrained("bert-base-uncased")
        lstm = nn.LSTM(64, 64)
        kept = []
        other = []
        table = {{}}
        for step, batch in enumerate(loader):
            {body}
"""


def found(tmp_path: Path, *body: str, code: str = "MEM114") -> list[Finding]:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "collect.py").write_text(PROGRAM.format(body="\n            ".join(body)))
    result = memlint.lint([tmp_path], isolated=True, preview=True)
    assert not result.failures
    return [each for each in result.findings if each.code == code]


@pytest.mark.parametrize(
    "body",
    [
        ("out = model(**batch)", "kept.append(out.last_hidden_state[:, 0])"),
        ("out = model(**batch)", "kept.append(out['last_hidden_state'][:, 0, :])"),
        ("out = model(**batch)", "first = out.hidden_states[-1][:, 0].detach().numpy()", "table[step] = first"),
        ("kept.append((step, model(**batch).last_hidden_state[:, -1].unsqueeze(1)))",),
        ("kept.append({'step': step, 'state': model(**batch)[0][:, 0, :]})",),
        ("steps, last = lstm(batch)", "kept.append(steps[:, -1])"),
        ("kept.append(network(batch).cpu()[:, 3, :])",),
        ("kept.append(network(batch)[:, :, 2].view(-1))",),
        ("self.kept.append(network(batch).cpu().numpy()[:, -1, :])",),
        (
            "states = model(**batch).last_hidden_state",
            "kept.append(states[:, 0])",
            "other.append(states.mean(1))",
            "other.append(states[:, -1])",
        ),
    ],
)
def test_what_keeps_more_than_it_shows(tmp_path: Path, body: tuple[str, ...]) -> None:
    first, *_ = found(tmp_path, *body)
    assert (first.severity, first.growth.kind) == ("note", "per-iteration")
    assert "is a view" in first.message


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(("kept.append(model(**batch).last_hidden_state[:, 0].clone())",), id="copied"),
        pytest.param(("kept.append(model(**batch).last_hidden_state.cpu()[:, 0].numpy().copy())",), id="array copied"),
        pytest.param(("kept.append(model(**batch).last_hidden_state[:, 0].cpu())",), id="may be copied"),
        pytest.param(("kept.append(model(**batch).last_hidden_state[:, 0].reshape(-1))",), id="is copied"),
        pytest.param(("kept.append(model(**batch).last_hidden_state[:, 0].mean(1))",), id="computed"),
        pytest.param(("kept.append(model(**batch).last_hidden_state[:, given])",), id="not known"),
        pytest.param(("kept.append(model(**batch).last_hidden_state[:, [0]])",), id="by a list"),
        pytest.param(("kept.append(model(**batch).last_hidden_state[:, 1:])",), id="most of it"),
        pytest.param(("kept.append(model(**batch).last_hidden_state[0])",), id="one sample"),
        pytest.param(("kept.append(network(batch).cpu()[:, 0])",), id="one place"),
        pytest.param(("kept.append(network(batch).cpu()[:, 0, :])",), id="one channel"),
        pytest.param(("kept.append(network(batch)[0][:, 0, :])",), id="of a tuple that is none"),
        pytest.param(("kept.append(network(batch).cpu()[:, 1])",), id="a few numbers a sample"),
        pytest.param(("kept = []", "kept.append(network(batch).cpu()[:, 1, :])"), id="anew"),
        pytest.param(("kept.append(network(batch).cpu()[:, 1, :])", "kept.clear()"), id="emptied"),
        pytest.param(("kept.append(network(batch).cpu()[:, 1, :])", "if step > 9:", "    kept.pop(0)"), id="bounded"),
        pytest.param(("given.append(network(batch).cpu()[:, 1, :])",), id="a place of the caller's"),
        pytest.param(("last = network(batch).cpu()[:, 1, :]",), id="a variable"),
        pytest.param(("self.last = network(batch).cpu()[:, 1, :]",), id="an attribute"),
        pytest.param(("kept.append(given[:, 1, :])",), id="there anyway"),
        pytest.param(("out = network(batch)", "other.append(out)", "kept.append(out[:, 1, :])"), id="kept as well"),
        pytest.param(("out = network(batch)", "self.out = out", "kept.append(out[:, 1, :])"), id="in an attribute"),
        pytest.param(("out = network(batch)", "keep(out)", "kept.append(out[:, 1, :])"), id="handed on"),
        pytest.param(
            ("out = network(batch)", "kept.append(out[:, 0, :])", "kept.append(out[:, 1, :])"), id="all parts"
        ),
    ],
)
def test_what_does_not(tmp_path: Path, body: tuple[str, ...]) -> None:
    assert found(tmp_path, *body) == []


@pytest.mark.parametrize(
    ("body", "copy"),
    [
        (("kept.append(network(batch)[:, 1, :].detach())",), "network(batch)[:, 1, :].detach().clone()"),
        (("kept.append(network(batch)[:, 1, :].numpy())",), "network(batch)[:, 1, :].numpy().copy()"),
        (("kept.append(network(batch).cpu().numpy()[:, 1, :])",), "network(batch).cpu().numpy()[:, 1, :].copy()"),
        (("view = network(batch).numpy()[:, 1, :]", "table[step] = view"), "view.copy()"),
    ],
)
def test_the_copy_is_of_the_kind_of_what_is_kept(tmp_path: Path, body: tuple[str, ...], copy: str) -> None:
    found(tmp_path, *body)
    fixed = memlint.apply_fixes([tmp_path], write=False, unsafe=True, isolated=True, preview=True, select=["MEM114"])
    added = [line for line in fixed.diff.decode().splitlines() if line.startswith("+ ")]
    assert len(added) == 1 and copy in added[0]


def test_where_the_device_fills_that_is_said_alone(tmp_path: Path) -> None:
    body = ("out = network(batch.cuda())", "kept.append(out[:, 1, :])")
    assert found(tmp_path, *body) == []
    assert len(found(tmp_path, *body, code="MEM104")) == 1


def test_where_a_graph_is_kept_that_is_said_alone(tmp_path: Path) -> None:
    program = PROGRAM.replace("    @torch.no_grad()\n", "")
    (tmp_path / "collect.py").write_text(
        program.format(body="out = network(batch.cuda())\n            kept.append(out[:, 1, :])")
    )
    codes = {each.code for each in memlint.lint([tmp_path], isolated=True, preview=True).findings}
    assert "MEM114" not in codes


def test_rows_of_a_handful_of_rounds(tmp_path: Path) -> None:
    program = PROGRAM.replace("for step, batch in enumerate(loader)", "for step in range(8)")
    (tmp_path / "collect.py").write_text(program.format(body="kept.append(network(given).cpu()[:, 1, :])"))
    assert not memlint.lint([tmp_path], isolated=True, preview=True, select=["MEM114"]).findings
