"""A mistake in the analysis of one function costs that function alone, and is said."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import memlint
from memlint.analysis.calls import interpreting
from memlint.analysis.domain.summary.function_state import FunctionState
from memlint.analysis.domain.summary.summary import Summary
from memlint.analysis.facts import analyser

LEAK = """
import torch

def {name}(model, loader, optimizer):
    total = 0
    for x, y in loader:
        loss = {loss}(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total += loss
    return float(total)
"""


def test_the_other_functions_are_analysed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "good.py").write_text(LEAK.format(name="train", loss="torch.nn.functional.mse_loss"))
    (tmp_path / "bad.py").write_text(LEAK.format(name="broken", loss="torch.nn.functional.l1_loss"))
    evaluate_call = interpreting.evaluate_call

    def fails(frame: object, state: object, expr: object) -> object:
        if frame.function.name == "broken":  # type: ignore[attr-defined]
            raise KeyError("a mistake")
        return evaluate_call(frame, state, expr)  # type: ignore[arg-type]

    monkeypatch.setattr(interpreting, "evaluate_call", fails)
    result = memlint.lint([tmp_path])
    assert [(Path(found.path).name, found.code) for found in result.findings] == [("good.py", "MEM101")]
    (failure,) = result.failures
    assert Path(failure.path).name == "bad.py"
    assert "internal error in the analysis of broken" in failure.reason


def test_a_function_with_more_operations_than_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is cut short, which is said, and the others are not."""
    (tmp_path / "good.py").write_text(LEAK.format(name="train", loss="torch.nn.functional.mse_loss"))
    lines = "\n".join(f"    x{i + 1} = torch.relu(model(x{i}))" for i in range(40))
    (tmp_path / "long.py").write_text(f"import torch\n\n\ndef long(model, x0):\n{lines}\n    return x40\n")
    monkeypatch.setattr(FunctionState, "MAX_NODES", 20)
    result = memlint.lint([tmp_path])
    assert [(Path(found.path).name, found.code) for found in result.findings] == [("good.py", "MEM101")]
    assert not result.failures
    assert any("long" in remark and "cut short" in remark for remark in result.remarks)


def test_a_function_that_leaves_more_behind_than_callers_can_translate(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each place of a class whose objects hold each other leads to all graphs that any of them has."""
    (tmp_path / "good.py").write_text(LEAK.format(name="train", loss="torch.nn.functional.mse_loss"))
    lines = "\n".join(f"        self.x{i} = self.net(self.x{i - 1}) + self.x{i - 1}" for i in range(1, 20))
    (tmp_path / "wide.py").write_text(
        "import torch\n\n\nclass Wide:\n    def wide(self, x):\n"
        f"        self.net, self.x0 = torch.nn.Linear(8, 8), x\n{lines}\n"
    )
    monkeypatch.setattr(analyser, "MAX_SOURCES", 10)
    result = memlint.lint([tmp_path])
    assert [(Path(found.path).name, found.code) for found in result.findings] == [("good.py", "MEM101")]
    assert not result.failures
    assert any("Wide.wide" in remark and "cut short" in remark for remark in result.remarks)


def test_a_function_that_is_too_large_is_named(tmp_path: Path) -> None:
    """Work is bounded by the size of the code, and a bound that was met is told to the user; the rest is found."""
    lines = "".join(f"        if loader.c{i}:\n            kept{i} = model(x + {i})\n" for i in range(3_000))
    large = f"import torch\n\ndef large(model, loader):\n    for x in loader:\n{lines}    return kept0\n"
    (tmp_path / "large.py").write_text(large + LEAK.format(name="train", loss="torch.nn.functional.l1_loss"))
    result = memlint.lint([tmp_path])
    assert [name.rsplit("/", 1)[-1] for name in result.cut_short] == ["large.py: large"]
    assert [found.code for found in result.findings] == ["MEM101"]
    done = subprocess.run(
        [sys.executable, "-m", "memlint", "check", "--no-cache", "."], cwd=tmp_path, capture_output=True, text=True
    )
    assert "1 function too large to follow to the end: large.py: large" in done.stderr


def test_what_a_function_does_itself_is_told_where_callers_do_not_translate_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own leak is found; of what it hands back to its caller nothing is known, so nothing is said there."""
    (tmp_path / "both.py").write_text(
        "import torch\n\n\n"
        "class Trainer:\n"
        "    def __init__(self, net, optimizer):\n"
        "        self.net, self.optimizer, self.history = net, optimizer, []\n\n"
        "    def epoch(self, loader):\n"
        "        for x, y in loader:\n"
        "            loss = torch.nn.functional.mse_loss(self.net(x), y)\n"
        "            self.optimizer.zero_grad()\n"
        "            loss.backward()\n"
        "            self.optimizer.step()\n"
        "            self.history.append(loss)\n"
        "        return loss\n\n\n"
        "def main(net, optimizer, loader):\n"
        "    trainer, kept = Trainer(net, optimizer), []\n"
        "    for _ in range(100):\n"
        "        kept.append(trainer.epoch(loader))\n"
        "    print(kept)\n"
    )

    def found() -> list[tuple[str, int]]:
        return [(one.code, one.line) for one in memlint.lint([tmp_path]).findings]

    assert found() == [("MEM102", 14), ("MEM102", 21)]
    monkeypatch.setattr(Summary, "WIDE", 1)
    assert found() == [("MEM102", 14)]


def test_a_finding_has_its_place_where_libcst_does_not_read_the_function(tmp_path: Path) -> None:
    """An annotated attribute in brackets: Python reads it, libcst does not."""
    (tmp_path / "train.py").write_text(
        "import torch\n\n\n"
        "def train(self, model, loader, optimizer, criterion):\n"
        "    (self.total): float = 0.0\n"
        "    losses = []\n"
        "    for x, y in loader:\n"
        "        loss = criterion(model(x), y)\n"
        "        optimizer.zero_grad()\n"
        "        loss.backward()\n"
        "        optimizer.step()\n"
        "        losses.append(loss)  # kept\n"
        "    return len(losses)\n"
    )
    (finding,) = memlint.lint([tmp_path]).findings
    assert (finding.line, finding.column, finding.end_column) == (12, 9, 28)


def test_more_model_calls_than_are_told_apart_are_no_mistake(tmp_path: Path) -> None:
    calls = "".join(f"    out.append(model(x[{number}]))\n" for number in range(FunctionState.MAX_NODES + 10))
    (tmp_path / "score.py").write_text(
        f"import torch\n\ndef score(model, x, out):\n    model.eval()\n{calls}    return out\n"
    )
    result = memlint.lint([tmp_path])
    assert result.failures == ()
    assert any("cut short" in remark for remark in result.remarks)
