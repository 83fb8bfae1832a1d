"""Programs that apply a model: scripts that run it once, classes that make it on one of several ways, globals."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

NET = """
import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Linear(8, 8)

    def forward(self, x):
        return self.layers(x)


def build():
    return Net()
"""


def found(folder: Path, text: str, **others: str) -> tuple[list[int], list[int], list[str]]:
    """Where MEM201 stands, where it should, and the severities."""
    for name, other in {"net": NET, "main": text, **others}.items():
        (folder / f"{name}.py").write_text(other, encoding="utf-8")
    result = memlint.lint([folder], isolated=True)
    assert not result.failures
    told = [one for one in result.findings if one.code == "MEM201"]
    here = [number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# here")]
    return [one.line for one in told], here, [one.severity for one in told]


SCRIPT = """
import cv2
import torch
from net import Net

model = Net().cuda()
{load}
model.{mode}()
x = {input}
y = model(x)  {place}
print(y[0].detach().cpu().numpy())
"""
READ = "torch.from_numpy(cv2.imread('a.png')).cuda()"
LOADS = "model.load_state_dict(torch.load('net.pt', map_location='cpu'))"


@pytest.mark.parametrize(
    ("load", "mode", "given", "place"),
    [
        (LOADS, "eval", READ, "# here"),
        ("", "eval", READ, "# here"),
        (LOADS, "eval", "torch.randn(1, 8).cuda()", "# here"),
        ("", "eval", "torch.randn(1, 8).cuda()", ""),
        (LOADS, "eval", "torch.zeros(1, 8).cuda()", ""),
        (LOADS, "train", READ, ""),
    ],
    ids=["trained, on a file", "on a file", "trained, on noise", "try-out", "asks for a shape", "no evaluation"],
)
def test_a_script_that_runs_its_model_once_has_a_note(
    tmp_path: Path, load: str, mode: str, given: str, place: str
) -> None:
    lines, here, severities = found(tmp_path, SCRIPT.format(load=load, mode=mode, input=given, place=place))
    assert lines == here
    assert set(severities) <= {"note"}


def test_the_try_out_of_a_file_s_own_network_is_none(tmp_path: Path) -> None:
    text = NET + f"\n\nmodel = Net()\nmodel.eval()\nx = {READ}\nprint(model(x))\n"
    assert found(tmp_path, "import cv2\n" + text)[0] == []


CHOSEN = """
import torch
from net import Net


class Detector:
    def __init__(self, backend):
        if backend == "torch":
            self._make()
        elif backend == "engine":
            self.engine = object()
        else:
            raise ValueError(backend)

    def _make(self):
        self.model = Net()
        self.model.{mode}()

    def __call__(self, images):
        found = []
        for image in images:
            out = self.model(torch.from_numpy(image).cuda())  {place}
            found.append(out)
        return found


print(Detector("torch")([]))
"""


@pytest.mark.parametrize(("mode", "place"), [("eval", "# here"), ("train", "")])
def test_a_mode_holds_where_the_other_way_makes_no_such_module(tmp_path: Path, mode: str, place: str) -> None:
    lines, here, _ = found(tmp_path, CHOSEN.format(mode=mode, place=place))
    assert lines == here


EITHER = """
import torch
from net import Net


def main(flag, files):
    if flag:
        model = Net()
        model.eval()
    else:
        model = Net()
        {other}
    for file in files:
        out = model(torch.load(file).cuda())  {place}
        flag.use(out)


main(1, [])
"""


@pytest.mark.parametrize(("other", "place"), [("model.eval()", "# here"), ("model.train()", ""), ("pass", "")])
def test_one_of_two_modules_has_no_mode_that_the_other_lacks(tmp_path: Path, other: str, place: str) -> None:
    lines, here, _ = found(tmp_path, EITHER.format(other=other, place=place))
    assert lines == here


SERVED = """
import torch
from net import Net, build
{top}


def answer(image):
    x = torch.from_numpy(image).cuda()
    out = model(x)  {place}
    return out.detach().cpu().numpy()


def main():
    global model
    model = {made}
    {then}
    print(answer(None))


if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize(
    ("top", "made", "then", "place"),
    [
        ("model = None", "torch.jit.load('net.pt')", "model = model.cuda()", "# here"),
        ("", "torch.jit.load('net.pt')", "model = model.cuda()", "# here"),
        ("model = None", "build()", "model.eval()", "# here"),
        ("model = Net()", "Net()", "model.eval()", "# here"),
        ("model = None", "build()", "model.train()", ""),
        ("model = None", "build()", "", ""),
    ],
)
def test_a_global_model_has_the_mode_that_its_maker_gives_it(
    tmp_path: Path, top: str, made: str, then: str, place: str
) -> None:
    lines, here, _ = found(tmp_path, SERVED.format(top=top, made=made, then=then, place=place))
    assert lines == here


PHASES = """
import torch


def run(model, optimizer, loader, training, tracker, criterion):
    model.train(training)
    for x, y in loader:
        out = model(x.cuda())  {place}
        if training:
            loss = criterion(out, y.cuda())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        else:
            with torch.no_grad():
                loss = criterion(out, y.cuda())
        {use}


def main(model, optimizer, loader, phases, tracker, criterion):
    for training in phases:
        run(model, optimizer, loader, training, tracker, criterion)


main(*[])
"""


@pytest.mark.parametrize(
    ("use", "place"),
    [
        ("tracker.log_metrics(out)", "# here"),
        ("tracker.log_scalars({'loss': loss, 'out': out})", "# here"),
        ("tracker.consume(out)", ""),
    ],
)
def test_a_logger_runs_no_backward(tmp_path: Path, use: str, place: str) -> None:
    lines, here, _ = found(tmp_path, PHASES.format(use=use, place=place))
    assert lines == here
