"""Programs whose methods all call each other, for tests of what bounds the ways through them."""

from __future__ import annotations


def methods_that_all_call_each_other(count: int) -> str:
    """A class whose methods each keep a model's output and may call every other one, and a loop that runs the first."""
    lines = ["import torch", "", "", "class Search:", "    def __init__(self):"]
    lines += ["        self.model = torch.nn.Linear(9, 1)", "        self.kept = []", ""]
    for number in range(count):
        lines += [f"    def step_{number}(self, x, k):", "        out = self.model(x)", "        self.kept.append(out)"]
        for other in range(count):
            if other != number:
                lines += [f"        if k == {other}:", f"            return self.step_{other}(x, k - 1)"]
        lines += ["        return out", ""]
    lines += ["", "search = Search()", "for x in torch.utils.data.DataLoader(torch.rand(99, 9)):"]
    return "\n".join([*lines, "    search.step_0(x, 3)"])
