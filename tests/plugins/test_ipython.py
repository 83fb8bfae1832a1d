"""The magics, in a kernel that runs cells as a notebook has it."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from torch_python import torch_python

pytest.importorskip("IPython")
manager = pytest.importorskip("jupyter_client.manager")

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.slow

SETUP = """import torch
from torch import nn
model = nn.Linear(64, 64)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
loader = [(torch.randn(8, 64), torch.randn(8, 64)) for _ in range(40)]
losses = []
"""
LOOP = """for x, y in loader:
    opt.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    opt.step()
    losses.append(loss)
"""
#: runs a cell; what it has shown, and the name of the error that it ended with
Run = Callable[[str], tuple[str, str]]


def kernel(python: str, folder: Path) -> Iterator[Run]:
    made = manager.KernelManager()
    made.kernel_spec.argv[0] = python
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    made.start_kernel(cwd=str(folder), env=environment)
    client = made.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=120)

        def run(cell: str) -> tuple[str, str]:
            shown: list[str] = []

            def hear(message: dict[str, dict[str, object]]) -> None:
                shown.append(str(message["content"].get("text", "")))
                shown.extend(str(message["content"].get("traceback", "")).split("\\n"))

            reply = client.execute_interactive(cell, timeout=300, output_hook=hear)
            return re.sub(r"(?:\x1b|\\x1b)\[[0-9;]*m", "", "\n".join(shown)), reply["content"].get("ename", "")

        yield run
    finally:
        client.stop_channels()
        made.shutdown_kernel(now=True)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    (tmp_path / "pyproject.toml").touch()
    yield from kernel(sys.executable, tmp_path)


@pytest.fixture
def torch_run(tmp_path: Path) -> Iterator[Run]:
    (tmp_path / "pyproject.toml").touch()
    yield from kernel(torch_python("ipykernel", "libcst", "msgspec", "rich"), tmp_path)


def test_the_cells_of_the_session_are_linted(run: Run) -> None:
    """Also where they fail: what they say is what counts."""
    said, error = run("%load_ext memlint")
    assert (said.strip(), error) == ("", "")
    run("!true\n" + SETUP)
    run(LOOP)
    said, error = run("%memlint")
    assert not error
    assert "In [3], line 6: warning MEM102[retained-graph] `losses` keeps `loss`" in said
    assert "    losses.append(loss)\n" in said
    assert "1. In [3], line 3: `model` records the graph" in said
    assert said.rstrip().endswith("memlint: 1 finding in 4 cells")
    run(LOOP)
    said, _ = run("%memlint")
    assert "In [5], line 6" in said and "In [3]" not in said, "a cell that runs again counts once"
    said, _ = run("%memlint --ignore MEM102")
    assert "nothing found" in said
    said, error = run("%memlint --select NONE")
    assert not error and "memlint: error: --select: unknown rule `NONE`" in said


@pytest.mark.torch
def test_a_cell_is_verified_where_it_runs(torch_run: Run) -> None:
    run = torch_run
    run("%load_ext memlint")
    assert run(SETUP)[1] == ""
    said, error = run(f"%%memlint\nlosses.clear()\n{LOOP}len(losses)")
    assert not error
    assert "In [3], line 8: confirmed-host: MEM102[retained-graph]: each iteration leaves" in said
    assert run("print(len(losses), loss.item() > 0)")[0].strip() == "40 True", "its names stay, and it ran once"
    said, _ = run(f"%%memlint\nkept = []\n{LOOP.replace('losses.append(loss)', 'kept.append(loss.detach())')}")
    assert "confirmed-host" not in said
    # another run of probes beside those that are still there
    run("%%memlint\ndef go(out):\n    for x, y in loader:\n        out.append(model(x))\n")
    said, error = run("%%memlint\nfor epoch in range(3):\n    go([])\n")
    assert not error and "mistake" not in said
    said, _ = run("%%memlint\nkept = []\nfor x, y in loader:\n    kept.append(model(x))\n1 / 0\n")
    assert "ZeroDivisionError" in said
    assert re.search(r"In \[8\], line 4: confirmed: MEM\d+.* leaves 2,048 B of tensors on cpu", said)
    said, _ = run("%%memlint\nx = = 1")
    assert "SyntaxError" in said
    # nothing is measured any more
    assert run("from torch.utils._python_dispatch import _len_torch_dispatch_stack as n\nprint(n())")[0].strip() == "0"


def test_a_block_is_verified_with_the_cells_that_it_calls(torch_run: Run) -> None:
    run = torch_run
    assert run("import memlint\n" + SETUP)[1] == ""
    run("def go():\n    kept = []\n    for x, y in loader:\n        kept.append(model(x))\n    return kept")
    said, error = run("with memlint.verify() as report:\n    kept = go()\nprint(report)")
    assert not error
    assert "In [2]:4: confirmed: each iteration leaves 2,048 B of tensors on cpu" in said
    assert run("print(len(kept))")[0].strip() == "40"
