"""A mistake in the analysis of one function costs that function alone, and is said."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint
from memlint.flow import call

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
    evaluate_call = call.evaluate_call

    def fails(frame: object, state: object, expr: object) -> object:
        if frame.function.name == "broken":  # type: ignore[attr-defined]
            raise KeyError("a mistake")
        return evaluate_call(frame, state, expr)  # type: ignore[arg-type]

    monkeypatch.setattr(call, "evaluate_call", fails)
    result = memlint.lint([tmp_path])
    assert [(Path(found.path).name, found.code) for found in result.findings] == [("good.py", "MEM101")]
    (failure,) = result.failures
    assert Path(failure.path).name == "bad.py"
    assert "internal error in the analysis of broken" in failure.reason
