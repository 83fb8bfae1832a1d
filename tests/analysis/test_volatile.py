"""``volatile=True``: of no effect since torch 0.4, and only what goes into a model can have been meant to have one."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

EVALUATION = """
from torch.autograd import Variable


def validate(model, loader):
    model.eval()
    right = 0
    for x, y in loader:
        x = Variable(x, volatile=True)
        right += model(x).data.max(1)[1].eq(y).sum()
    return right
"""


def codes(tmp_path: Path, text: str) -> list[str]:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "run.py").write_text(text)
    return [found.code for found in memlint.lint([tmp_path]).findings]


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        ("requirements.txt", "numpy==1.14\ntorch==0.3.1.post2\n", []),
        ("requirements.txt", "torch<0.4\n", ["MEM203"]),
        ("requirements.txt", "torch==0.4.1\n", ["MEM203"]),
        ("requirements.txt", "torch>=0.3\n", ["MEM203"]),
        ("requirements.txt", "# torch==0.3.1\nsometorch==0.3\n", ["MEM203"]),
        ("environment.yml", "dependencies:\n  - pytorch=0.3.0\n", []),
        ("setup.py", 'setup(install_requires=["torch==0.3.1"])\n', []),
        ("requirements.txt", "torch==0.3.1\ntorch==1.0; python_version > '3'\n", ["MEM203"]),
    ],
)
def test_a_release_that_knows_it(tmp_path: Path, file: str, text: str, expected: list[str]) -> None:
    (tmp_path / file).write_text(text)
    assert codes(tmp_path, EVALUATION) == expected


STEP = """
from torch import nn
from torch.autograd import Variable


class Distance(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Linear(2, 2)

    def forward(self, a, b):
        return (self.scale(a) - b).pow(2).mean()


def train(model, loader, optimizer):
    distance = Distance()
    model.train()
    for x, y in loader:
        x = Variable(x{0})
        y = Variable(y{1})
        made = model(x)
        loss = distance(made, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize("x", ["", ", volatile=True"])
def test_what_a_training_step_goes_through_saves_what_it_needs(tmp_path: Path, x: str) -> None:
    """Before 0.4 ``loss.backward()`` raised for a volatile ``x``: nobody meant it for a guard."""
    assert codes(tmp_path, STEP.format(x, ", volatile=True")) == []


GAN = """
from torch import nn
from torch.autograd import Variable


def train(critic: nn.Module, generator: nn.Module, loader, optimizer):
    for x in loader:
        fake = generator(Variable(x.normal_(), volatile=True))
        loss = critic(Variable(x)).mean() - critic(fake{cut}).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
"""


@pytest.mark.parametrize(("cut", "expected"), [(".data", ["MEM203"]), ("", [])])
def test_what_is_cut_off_from_a_training_step_needs_the_guard(tmp_path: Path, cut: str, expected: list[str]) -> None:
    assert codes(tmp_path, GAN.format(cut=cut)) == expected


PHASES = """
from torch import nn
from torch.autograd import Variable


def run(model: nn.Module, loaders, criterion, optimizer):
    for phase in ["train", "val"]:
        for x, y in loaders[phase]:
            if phase == "train":
                x = Variable(x)
            else:
                x = Variable(x, volatile=True)
            loss = criterion(model(x), y)
            if phase == "train":
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
"""


def test_one_call_for_training_and_for_what_is_volatile(tmp_path: Path) -> None:
    assert codes(tmp_path, PHASES) == ["MEM203"]


RELEASE = """
from torch.autograd import Variable


def features(model, image, cfg):
    if {test}:
        image = Variable(image, volatile=True)
    else:
        image = image.cuda()
    return model.body(image).data.cpu().numpy()
"""


@pytest.mark.parametrize(("test", "expected"), [("cfg.TORCH_VERSION_BELOW_04", []), ("cfg.quick", ["MEM203"])])
def test_a_test_of_the_release_keeps_volatile_for_those_that_know_it(
    tmp_path: Path, test: str, expected: list[str]
) -> None:
    assert codes(tmp_path, RELEASE.format(test=test)) == expected


FROZEN = """
from torch.autograd import Variable


def features(model, loader):
    for parameter in model.parameters():
        parameter.requires_grad = {flag}
    for x in loader:
        print(model(Variable(x, volatile=True)).data.sum())
"""


@pytest.mark.parametrize(("flag", "expected"), [("False", []), ("True", ["MEM203"])])
def test_a_model_whose_parameters_are_frozen_needs_no_guard(tmp_path: Path, flag: str, expected: list[str]) -> None:
    assert codes(tmp_path, FROZEN.format(flag=flag)) == expected


OLD = """
from torch.autograd import Variable


def validate(model, criterion, loader):
    model.eval()
    total = 0
    for x, y in loader:
        total += criterion(model(Variable(x, volatile=True)), Variable(y)).data.sum()
    return {returned}
"""


@pytest.mark.parametrize(("returned", "severity"), [("total", "note"), ("total.item()", "warning")])
def test_code_that_knows_nothing_newer_may_run_with_a_torch_that_heeds_it(
    tmp_path: Path, returned: str, severity: str
) -> None:
    (tmp_path / "train.py").write_text(OLD.format(returned=returned), encoding="utf-8")
    found = [one for one in memlint.lint([tmp_path], isolated=True).findings if one.code == "MEM203"]
    assert [one.severity for one in found] == [severity]


def test_another_file_that_is_newer_says_nothing_of_an_old_one(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "new.py").write_text("import torch\n\nwith torch.no_grad():\n    pass\n", encoding="utf-8")
    (tmp_path / "old.py").write_text(OLD.format(returned="total"), encoding="utf-8")
    (found,) = [one for one in memlint.lint([tmp_path], isolated=True).findings if one.code == "MEM203"]
    assert found.severity == "note"


SUM = """
from torch.autograd import Variable


def validate(model, loader, criterion):
    model.eval()
    total = 0
    for x, y in loader:
        x, y = Variable(x, volatile=True).cuda(), Variable(y).cuda()
        total += criterion(model(x), y)
    return {given}
"""


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        pytest.param("total.data[0]", False, id="of the torch in which it guards"),
        pytest.param("total.item()", True, id="of a later torch"),
    ],
)
def test_a_sum_over_volatile_inputs(tmp_path: Path, given: str, kept: bool) -> None:
    assert ("MEM101" in codes(tmp_path, SUM.format(given=given))) is kept
