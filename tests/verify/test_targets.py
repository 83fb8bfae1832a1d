"""Which loops are watched without a finding in them: those that run a model, however it is known for one."""

from __future__ import annotations

import pytest

from memlint.verifier.probing.targets import loops_to_watch

_CLASS = "class Base(nn.Module):\n    pass\nclass Net(Base):\n    pass\n"
_LOOP = "for x in batches:\n    {call}(x)\n"


@pytest.mark.parametrize(
    ("before", "call", "watched"),
    [
        ("model = nn.Linear(8, 8)\n", "model", True),
        ("model = torch.nn.Sequential(layer, other).to(device)\n", "model", True),
        (_CLASS + "net = Net().cuda()\n", "net", True),
        (_CLASS + "class Run:\n    def __init__(self):\n        self.net = Net()\nrun = Run()\n", "run.net", True),
        ("net.eval()\n", "net", True),
        ("def go(x):\n    return net(x)\nnet = nn.Linear(8, 8)\n", "go", True),
        (_CLASS, "print", False),
        ("rows = load()\n", "rows.append", False),
        ("class Net(nn.Module):\n    def __init__(self):\n        self.layer = nn.Linear(8, 8)\n", "net.layer", False),
    ],
)
def test_a_loop_that_runs_a_model_is_watched(before: str, call: str, watched: bool) -> None:
    text = before + _LOOP.format(call=call)
    line = before.count("\n") + 1
    assert loops_to_watch({"a.py": text}, {}) == {"a.py": [(line, 1)] if watched else []}
