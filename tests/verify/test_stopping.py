"""When a program is stopped: not before what may yet grow has been read."""

from __future__ import annotations

from pathlib import Path

from runs import verified

_EVALUATES_FIRST = """\
import torch
from torch import nn

model = nn.Linear(8, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [torch.randn(32, 8) for _ in range(40)]
kept = []
put = getattr(kept, "append")  # no rule looks through this


def evaluate():
    model.eval()
    total = 0.0
    for x in batches:
        out = model(x)
        total += out.mean().item()
    model.train()
    return total / len(batches)


for step in range(300):
    out = model(batches[step % 40])
    optimizer.zero_grad()
    out.square().mean().backward()
    optimizer.step()
    if step % 100 == 0:
        evaluate()
    put(out)
print("ran to its end")
"""


def test_a_training_loop_is_read_though_its_first_iteration_evaluates(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_EVALUATES_FIRST, encoding="utf-8")
    report = verified("train.py", cwd=tmp_path).report
    assert report["findings"] != []
    (left,) = report["unattributed"]["loops"]
    assert (left["loop"], left["bytes_per_iteration"]) == ("train.py:21", 4 * 32 * 64)
