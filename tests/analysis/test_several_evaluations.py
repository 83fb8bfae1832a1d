"""Several evaluations in one function, and one that only some of its callers guard."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

HEAD = """
import torch
from torch import nn
from torch.utils.data import DataLoader


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 3), nn.ReLU())

    def forward(self, x):
        return self.layers(x)


"""

LOADED = """
def main(loader, held_out):
    net = Net().cuda()
    net.eval()
    right = 0
    for x, y in loader:
        right += (net(x).argmax(1) == y).sum().item()  # here
    {before}
    x, y = held_out
    print(right, ({model}(x).argmax(1) == y).float().mean().item())  {place}
"""

PARTLY = """
def evaluate(model, loader):
    model.eval()
    total = 0
    for x in loader:
        total += model(x.cuda()).mean().item()  {place}
    return total


def train(model, loader, val):
    opt = torch.optim.SGD(model.parameters(), 0.1)
    for epoch in range(100):
        model.train()
        for x in loader:
            opt.zero_grad()
            model(x).sum().backward()
            opt.step()
        {val}


def {final}:
    {again}
"""


def lines(folder: Path, text: str) -> tuple[list[int], list[int]]:
    """Where MEM201 stands, and where it should."""
    text = HEAD + text
    (folder / "main.py").write_text(text, encoding="utf-8")
    result = memlint.lint([folder], isolated=True)
    assert not result.failures
    found = [one.line for one in result.findings if one.code == "MEM201"]
    return found, [number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# here")]


@pytest.mark.parametrize(
    ("before", "model", "place"),
    [
        ("best = torch.load('best.pt', map_location='cuda').eval()", "best", "# here"),
        ("best = Net().cuda(); best.load_state_dict(torch.load('a.pt')); best.eval()", "best", "# here"),
        ("pass", "net", ""),  # (the same evaluation, of which the loop has been told)
        ("best = Net()", "best", ""),
    ],
)
def test_a_model_that_is_loaded_after_the_loop_is_another_evaluation(
    tmp_path: Path, before: str, model: str, place: str
) -> None:
    found, wanted = lines(tmp_path, LOADED.format(before=before, model=model, place=place))
    assert found == wanted


UNGUARDED = "return evaluate(model, loader)"
GUARDED = "with torch.no_grad():\n        return evaluate(model, loader)"


@pytest.mark.parametrize(
    ("val", "final", "again", "place"),
    [
        ("evaluate(model, val)", "final(model, loader)", GUARDED, "# here"),
        ("with torch.no_grad(): evaluate(model, val)", "final(model, loader)", GUARDED, ""),
        ("with torch.no_grad(): evaluate(model, val)", "final(model, loader)", UNGUARDED, "# here"),
        ("with torch.no_grad(): evaluate(model, val)", "test_final(model, loader)", UNGUARDED, "# here"),
        ("with torch.no_grad(): evaluate(model, val)", "test_final(model=net, loader=())", UNGUARDED, ""),
    ],
)
def test_an_evaluation_that_some_callers_guard(tmp_path: Path, val: str, final: str, again: str, place: str) -> None:
    found, wanted = lines(tmp_path, PARTLY.format(val=val, final=final, again=again, place=place))
    assert found == wanted


BETWEEN = (
    PARTLY.replace("evaluate(", "score(", 1)
    + """

def evaluate(model, loader):
    return score(model, loader)
"""
)


@pytest.mark.parametrize(
    ("val", "again", "place"),
    [
        ("with torch.no_grad(): evaluate(model, val)", UNGUARDED, "# here"),
        ("evaluate(model, val)", GUARDED, "# here"),
        ("with torch.no_grad(): evaluate(model, val)", GUARDED, ""),
        ("with torch.no_grad(): evaluate(model, val)", UNGUARDED.replace("evaluate", "find"), ""),
    ],
)
def test_an_evaluation_behind_a_helper_that_some_callers_guard(
    tmp_path: Path, val: str, again: str, place: str
) -> None:
    found, wanted = lines(tmp_path, BETWEEN.format(val=val, final="final(model, loader)", again=again, place=place))
    assert found == wanted


CUTS = """
class Runner:
    def __init__(self):
        self.net = Net().cuda()
        self.opt = torch.optim.SGD(self.net.parameters(), 0.1)

    def score(self, x):
        out = self.net(x.cuda())  {place}
        {then}
        return out.detach().cpu().numpy()


def main(runner: Runner, loader, val):
    for x in loader:
        {call}
    with torch.no_grad():
        return [runner.score(x) for x in val]
"""


@pytest.mark.parametrize(
    ("then", "call", "place"),
    [
        ("pass", "print(runner.score(x))", "# here"),
        ("out = out.softmax(1)", "print(runner.score(x))", "# here"),
        # guarded as well
        ("pass", "with torch.no_grad(): print(runner.score(x))", ""),
        # a step of training: the backward runs where autograd records
        ("if out.requires_grad: out.sum().backward(); self.opt.step()", "print(runner.score(x))", ""),
        # the graph is kept for a later backward
        ("self.last = out", "runner.score(x); runner.last.sum().backward(); runner.opt.step()", ""),
    ],
)
def test_a_helper_that_cuts_the_graph_and_that_some_callers_guard(
    tmp_path: Path, then: str, call: str, place: str
) -> None:
    found, wanted = lines(tmp_path, CUTS.format(then=then, call=call, place=place))
    assert found == wanted


def test_the_call_without_a_guard_is_named(tmp_path: Path) -> None:
    text = PARTLY.format(val="evaluate(model, val)", final="final(model, loader)", again=GUARDED, place="")
    (tmp_path / "main.py").write_text(HEAD + text, encoding="utf-8")
    (found,) = memlint.lint([tmp_path], isolated=True).findings
    assert (found.severity, found.confidence) == ("warning", "medium")
    assert [step.message for step in found.trace] == [
        "calls `evaluate` with grad mode on",
        "calls `evaluate` with grad mode off",
    ]


SHARED = PARTLY.replace(".mean().item()", ".mean()")


OFF_FOR_GOOD = PARTLY + "\n\ndef off():\n    torch.set_grad_enabled(False)\n"


@pytest.mark.parametrize(
    ("text", "val"),
    [
        (SHARED, "evaluate(model, val).backward()"),
        (SHARED, "model.last = evaluate(model, val)"),
        (SHARED, "return evaluate(model, val)"),
        (OFF_FOR_GOOD, "evaluate(model, val)"),
    ],
)
def test_what_a_caller_may_train_by_and_what_may_be_off_for_good(tmp_path: Path, text: str, val: str) -> None:
    text = text.format(val=val, final="final(model, loader)", again=GUARDED, place="")
    (tmp_path / "main.py").write_text(HEAD + text, encoding="utf-8")
    assert not [one for one in memlint.lint([tmp_path], isolated=True).findings if one.code == "MEM201"]


@pytest.mark.parametrize("val", ["print(evaluate(model, val).item())", "print(evaluate(model, val).argmax())"])
def test_a_graph_that_the_caller_cuts(tmp_path: Path, val: str) -> None:
    text = SHARED.format(val=val, final="final(model, loader)", again=GUARDED, place="")
    (tmp_path / "main.py").write_text(HEAD + text, encoding="utf-8")
    found = {one.code: one for one in memlint.lint([tmp_path], isolated=True).findings}
    assert found["MEM201"].severity != "note" and "total" in found["MEM201"].message
    assert "MEM101" in found


OWN = """
class Trainer:
    def __init__(self, model):
        self.model = model

    def test(self, loader):
        {mode}
        self.evaluate(loader)  {place}

    def validate(self, loader):
        with torch.no_grad():
            self.evaluate(loader)

    def evaluate(self, loader):
        {base}


class Own(Trainer):
    def evaluate(self, loader):
        for x, name in loader:
            out = self.model(x)
            torch.save(out.argmax(1).cpu(), name)
"""


@pytest.mark.parametrize(
    ("mode", "base", "place"),
    [
        ("self.model.eval()", "return NotImplementedError('every trainer has its own')", "# here"),
        ("self.model.eval()", "raise NotImplementedError", "# here"),
        ("pass", "raise NotImplementedError", ""),  # (the name alone says little, where others guard it)
    ],
)
def test_the_method_that_runs_in_the_place_of_an_open_one(tmp_path: Path, mode: str, base: str, place: str) -> None:
    found, wanted = lines(tmp_path, OWN.format(mode=mode, base=base, place=place))
    assert found == wanted


KEEPING = PARTLY.replace(
    "loader):\n    model.eval()",
    "loader, keep=False):\n    rows = []\n    model.eval()",
).replace(
    "total += model(x.cuda()).mean().item()  {place}",
    "out = model(x.cuda())\n        total += out.mean().item()\n        {keeps}",
)


@pytest.mark.parametrize(
    ("keeps", "number"),
    [("if keep: rows.append(out.cpu().numpy())", 0), ("if keep: rows.append(out.detach().cpu().numpy())", 1)],
)
def test_a_call_for_which_it_may_raise(tmp_path: Path, keeps: str, number: int) -> None:
    """`numpy()` refuses what has a graph: whoever asks for the arrays guards the call, though nobody sees where."""
    text = KEEPING.format(
        val="with torch.no_grad(): evaluate(model, val)", final="final(model, loader)", again=UNGUARDED, keeps=keeps
    )
    (tmp_path / "main.py").write_text(HEAD + text, encoding="utf-8")
    found = [one for one in memlint.lint([tmp_path], isolated=True).findings if one.code == "MEM201"]
    assert len(found) == number


PREDICTOR = """
import torch
from torch import nn

import exporting


class Predictor:
    def __init__(self, network: nn.Module, device):
        self.network, self.device = network.to(device), device

    def scores(self, image):
        self.network.eval()
        parts = []
        for tile in image.split(8):
            parts.append(self.network(tile.to(self.device)))  # here
        return torch.cat(parts)

    @torch.no_grad()
    def predict_files(self, images):
        return [self.scores(image).cpu().numpy() for image in images]


def {name}(network, images, pool, device):
    predictor = Predictor(network, device)
    for image in images:
        {guard}
            exporting.export(pool, predictor.scores(image).cpu())
"""


@pytest.mark.parametrize(
    ("name", "guard", "found"),
    [
        ("perform_validation", "if image is not None:", True),
        ("perform_validation", "with torch.no_grad():", False),
        # what gets the scores may train by them
        ("refine", "if image is not None:", False),
    ],
)
def test_an_evaluation_hands_on_what_a_predictor_gives(tmp_path: Path, name: str, guard: str, *, found: bool) -> None:
    (tmp_path / "train.py").write_text(PREDICTOR.format(name=name, guard=guard))
    findings = memlint.lint([tmp_path]).findings
    assert any(item.code == "MEM201" for item in findings) is found
