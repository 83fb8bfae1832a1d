"""A teacher inside ``set_grad_enabled(phase == "train")``: the guard is the student's, and in training it records."""

from __future__ import annotations

from pathlib import Path

import pytest
from linting import codes_in

DISTIL = """
import torch
from torch import nn, optim
from data import loaders
from loss import distillation


def frozen_teacher():
    net = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    for p in net.parameters():
        p.requires_grad = False
    return net


def train(student: nn.Module, teacher: nn.Module, optimizer, prompt=0, epochs=12):
    {mode}
    for epoch in range(epochs):
        for phase in ["train", "val"]:
            if phase == "train":
                student.train()
            else:
                student.eval()
            for x, y in loaders[phase]:
                x, y = x.cuda(), y.cuda()
                optimizer.zero_grad()
                with torch.set_grad_enabled(phase == "train"):
                    out = student(x)
                    {teach}
                    loss = distillation(out, y, soft)
                    if phase == "train":
                        loss.backward()
                        optimizer.step()


def main(student, teacher):
    {caller}
    optimizer = optim.Adam(student.parameters())
    train(student.cuda(), teacher.cuda(), optimizer, nn.Parameter(torch.zeros(3)))
"""
PLAIN = {"mode": "teacher.eval()", "teach": "soft = teacher(x)", "caller": "pass"}


@pytest.mark.parametrize(
    "change", [{}, {"mode": "pass", "caller": "teacher.eval()"}], ids=["put into eval mode", "by the caller"]
)
def test_a_teacher_that_records_where_the_student_does(tmp_path: Path, change: dict[str, str]) -> None:
    assert "MEM202" in codes_in(tmp_path, DISTIL.format(**{**PLAIN, **change}))


@pytest.mark.parametrize(
    "change",
    [
        {"teach": "with torch.no_grad():\n                        soft = teacher(x)"},
        {"mode": "for p in teacher.parameters():\n        p.requires_grad = False\n    teacher.eval()"},
        {"mode": "pass"},
        {"mode": "teacher.train()"},
        {"mode": "teacher.eval()\n    more = optim.Adam(teacher.parameters())"},
        {"teach": "soft = teacher(out)"},
        {"teach": "pass\n" + " " * 16 + "with torch.set_grad_enabled(epoch > 3):\n" + " " * 20 + "soft = teacher(x)"},
        {"teach": "x.requires_grad_(phase == 'train')\n                    soft = teacher(x)"},
        {"mode": "teacher = frozen_teacher()\n    teacher.eval()"},
        {"teach": "soft = teacher(x + prompt)"},
    ],
    ids=[
        "guarded",
        "frozen",
        "in no known mode",
        "in train mode",
        "trained as well",
        "of the student's own",
        "under a guard of its own",
        "behind an input whose gradient may be wanted",
        "made frozen",
        "behind a prompt that is learned",
    ],
)
def test_teachers_of_which_nothing_is_said(tmp_path: Path, change: dict[str, str]) -> None:
    assert "MEM202" not in codes_in(tmp_path, DISTIL.format(**{**PLAIN, **change}))


FILLED = "loaders = {}\nloaders['train'] = DataLoader(images)\nloaders['val'] = "


@pytest.mark.parametrize(
    ("table", "found"),
    [
        ("loaders = {'train': DataLoader(images), 'val': DataLoader(others)}", True),
        ("loaders = {phase: DataLoader(images[phase]) for phase in ('train', 'val')}", True),
        (FILLED + "DataLoader(others)", True),
        # what another entry holds may have been computed by a network that learns
        (FILLED + "[embed(x) for x in others]", False),
        ("loaders = {'train': DataLoader(images), 'val': [embed(x) for x in others]}", False),
        ("loaders = {'train': DataLoader(images)}\nloaders['val'] = [embed(x) for x in others]", False),
        ("loaders = {'train': DataLoader(images)}\nloaders |= {'val': [embed(x) for x in others]}", False),
        ("loaders = {'train': DataLoader(images)}\nloaders.update(val=[embed(x) for x in others])", False),
        (FILLED.replace("loaders['val'] =", "def more():\n    loaders['val'] =") + "[embed(x) for x in others]", False),
        ("loaders = {'train': DataLoader(images)}\nloaders['val'], _ = [embed(x) for x in others], 1", False),
        ("loaders = make(images)\nloaders['train'] = DataLoader(images)", False),
    ],
)
def test_the_batches_of_a_table_of_loaders(tmp_path: Path, table: str, found: bool) -> None:
    head = "from torch.utils.data import DataLoader\nfrom images import embed, images, make, others\n"
    (tmp_path / "data.py").write_text(f"{head}\n{table}\n", encoding="utf-8")
    assert ("MEM202" in codes_in(tmp_path, DISTIL.format(**PLAIN))) == found
