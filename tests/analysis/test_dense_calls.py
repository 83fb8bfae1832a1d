"""Functions that call each other, all of them: the ways through them are more than can be gone, the findings are few.
What takes years is not asserted by a clock: without the bounds these tests do not end."""

from __future__ import annotations

from pathlib import Path

from dense_programs import methods_that_all_call_each_other
from linting import codes_in


def test_layers_of_functions_that_call_each_of_the_next(tmp_path: Path) -> None:
    """Whether a loop is around what keeps a tensor is asked of the callers of callers, each once."""
    width, depth = 12, 6
    lines = ["import torch", "", ""]
    for layer in range(depth):
        for number in range(width):
            lines += [f"def step_{layer}_{number}(model: torch.nn.Module, x, kept):"]
            lines += [f"    step_{layer + 1}_{one}(model, x, kept)" for one in range(width) if layer + 1 < depth]
            lines += [] if layer + 1 < depth else ["    kept.append(model(x))"]
            lines += ["", ""]
    lines += ["def run(model: torch.nn.Module, loader):", "    kept = []", "    for x in loader:"]
    lines += ["        step_0_0(model, x, kept)", "    return torch.cat(kept).mean().item()", "", ""]
    lines += ["run(torch.nn.Linear(9, 1), torch.utils.data.DataLoader(torch.rand(99, 9)))"]
    assert codes_in(tmp_path, "\n".join(lines)).count("MEM102") == width


def test_functions_that_all_call_each_other(tmp_path: Path) -> None:
    """Whether a backward reaches what a model gives is asked of all that call it, for each graph once."""
    count = 14
    lines = ["import torch", "", ""]
    for number in range(count):
        lines += [f"def evaluate_{number}(model: torch.nn.Module, x, k):", "    model.eval()", "    out = model(x)"]
        for other in range(count):
            if other != number:
                lines += [f"    if k == {other}:", f"        return evaluate_{other}(model, x, k - 1)"]
        lines += ["    return out.argmax(1)", "", ""]
    lines += [
        "def test(model: torch.nn.Module, loader):",
        "    for x in loader:",
        "        print(evaluate_0(model, x, 3))",
    ]
    assert set(codes_in(tmp_path, "\n".join(lines))) == {"MEM201"}


def test_methods_that_all_call_each_other(tmp_path: Path) -> None:
    """What each gives is told apart by the way it came, up to a bound."""
    assert "MEM102" in codes_in(tmp_path, methods_that_all_call_each_other(14))
