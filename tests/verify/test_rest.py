"""What a program pays once all is measured, and what is still seen then."""

from __future__ import annotations

from pathlib import Path

from runs import verified

_LONG = """\
import sys

import torch
from torch import nn

model = nn.Linear(8, 64)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses, calls, late = [], [], []
put = getattr(late, "append")  # no rule looks through this


def count(frame, event, _):
    if event == "call" and "measure" in frame.f_code.co_filename:
        calls.append(frame.f_code.co_name)


def train(epochs, steps):
    for epoch in range(epochs):
        for step in range(steps):
            loss = model(torch.randn(4, 8)).square().mean()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss)
        if epoch == epochs - 2:
            sys.setprofile(count)
    sys.setprofile(None)


def evaluate(batches):
    with torch.no_grad():
        for batch in range(batches):
            put(model(torch.randn(32, 8)))


train(9, 700)
with open("calls", "w") as file:
    file.write(str(len(calls)))
if "late" in sys.argv:
    evaluate(60)
"""


def test_once_all_is_measured_a_step_costs_the_calls_of_its_probes(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_LONG, encoding="utf-8")
    run = verified("train.py", "--full", cwd=tmp_path)
    steps = 700
    calls = int((tmp_path / "calls").read_text())
    assert calls < 10 * steps, "a few for the top of the loop, the place that is flagged, the step of the optimizer"
    (finding,) = run.report["findings"]
    assert (finding["verdict"]["verdict"], finding["verdict"]["hits"]) == ("confirmed-host", 9 * 700)
    loops = {loop["place"]: (loop["iterations"], loop["runs"], loop["longest"]) for loop in run.report["loops"]}
    assert loops["train.py:18"] == (9, 1, 9)
    assert loops["train.py:19"] == (9 * 700, 9, 700)
    assert run.report["run"]["steps"] == 9 * 700


def test_a_loop_that_comes_later_is_read(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(_LONG, encoding="utf-8")
    report = verified("train.py", "--full", "--", "late", cwd=tmp_path).report
    (left,) = [one for one in report["unattributed"]["loops"] if one["device"] == "cpu"]
    assert (left["loop"], left["bytes_per_iteration"]) == ("train.py:32", 4 * 32 * 64)
    loops = {loop["place"]: (loop["iterations"], loop["runs"], loop["longest"]) for loop in report["loops"]}
    assert loops["train.py:19"] == (9 * 700, 9, 700)
    assert loops["train.py:32"] == (60, 1, 60)
