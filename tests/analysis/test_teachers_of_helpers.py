"""A teacher that runs in a helper of the function whose backward its student learns by."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

_LOSS = """\
import torch
from torch.nn import functional as F
from torchvision.models import resnet18, resnet50


def divergence(a, b):
    return F.kl_div(F.log_softmax(a, 1), F.softmax(b, 1), reduction="batchmean")


"""
_OBJECT = """\
class Distiller:
    def __init__(self, student, teacher):
        self.student, self.teacher = student, teacher
        self.teacher.eval()
        {init}

    def targets(self, x):
        {guard}
            return self.teacher(x)

    def loss(self, x, y):
        out = self.student(x)
        return F.cross_entropy(out, y) + divergence(out, self.targets(x))


def main(loader):
    student, teacher = resnet18().cuda(), resnet50().cuda()
    student.train()
    distiller = Distiller(student, teacher)
    optimizer = torch.optim.SGD({parameters}, lr=0.1)
    for x, y in loader:
        loss = distiller.loss(x.cuda(), y.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_FUNCTION = """\
def soft_targets(teacher, x):
    {guard}
        return teacher(x)


def main(loader):
    student, teacher = resnet18().cuda(), resnet50().cuda()
    student.train()
    teacher.eval()
    {init}
    optimizer = torch.optim.SGD({parameters}, lr=0.1)
    for x, y in loader:
        x = x.cuda()
        loss = divergence(student(x), soft_targets(teacher, {given}))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""
_PLAIN = {"guard": "if True:", "init": "pass", "parameters": "student.parameters()", "given": "x"}
_BOTH = "[*student.parameters(), *teacher.parameters()]"


@pytest.mark.parametrize("program", [_OBJECT, _FUNCTION], ids=["object", "function"])
def test_a_teacher_in_a_helper_records(tmp_path: Path, program: str) -> None:
    assert codes_in(tmp_path, _LOSS + program.format(**_PLAIN)) == ["MEM202"]


@pytest.mark.parametrize(
    ("program", "change"),
    [
        pytest.param(_OBJECT, {"guard": "with torch.no_grad():"}, id="guarded"),
        pytest.param(_OBJECT, {"init": "self.teacher.requires_grad_(False)"}, id="frozen"),
        pytest.param(_OBJECT, {"parameters": _BOTH}, id="trained as well"),
        pytest.param(_FUNCTION, {"guard": "with torch.no_grad():"}, id="function, guarded"),
        pytest.param(_FUNCTION, {"init": "teacher.requires_grad_(False)"}, id="function, frozen"),
        pytest.param(_FUNCTION, {"init": "chosen = torch.load('x')", "parameters": "chosen"}, id="unknown parameters"),
        pytest.param(_FUNCTION, {"given": "student(x)"}, id="on the student's output"),
        pytest.param(_FUNCTION, {"init": "teacher.train()"}, id="in train mode"),
    ],
)
def test_a_teacher_in_a_helper_that_is_right(tmp_path: Path, program: str, change: dict[str, str]) -> None:
    assert codes_in(tmp_path, _LOSS + program.format(**{**_PLAIN, **change})) == []
