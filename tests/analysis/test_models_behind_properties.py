"""A model that a class keeps in one attribute and reads by a property is the same model."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

TEXT = """
import torch


class Base:
    def __init__(self, model=None):
        self._model = None
        self.bind(model)

    @property
    def model(self):
        assert self._model is not None
        {returned}

    @model.setter
    def model(self, value):
        self.bind(value)

    def bind(self, model):
        self._model = model

    def switch(self):
        {switched}

    def apply(self, *inputs):
        return self.model(*inputs)


class Trainer(Base):
    def __init__(self, model, criterion, optimizer):
        super().__init__(model)
        self.criterion = criterion
        self.optimizer = optimizer

    def both(self, x, y, backward=True):
        given = self.apply(x)
        loss = self.criterion(given, y)
        if backward:
            loss.backward()
        return given, loss

    def train(self, loader):
        for x, y in loader:
            self.optimizer.zero_grad()
            self.both(x.cuda(), y.cuda())
            self.optimizer.step()

    def validate(self, loader):
        self.switch()
        total = 0
        with {guard}:
            for x, y in loader:
                given, loss = self.both(x.cuda(), y.cuda(), backward=False)
                total += loss.item()
        return total
"""


@pytest.mark.parametrize(
    ("returned", "switched", "guard", "codes"),
    [
        pytest.param("return self._model", "self.model.eval()", "open('log')", ["MEM201"], id="the same model"),
        pytest.param("return self._model", "self._model.eval()", "open('log')", ["MEM201"], id="by its attribute"),
        pytest.param("return self._model", "self.model.eval()", "torch.no_grad()", [], id="guarded"),
        pytest.param("return self._model", "self.model.begin()", "open('log')", [], id="nothing says that it is one"),
        pytest.param(
            "return wrapped(self._model)", "self.model.eval()", "torch.no_grad()", [], id="something made of it"
        ),
    ],
)
def test_property(returned: str, switched: str, guard: str, codes: list[str], tmp_path: Path) -> None:
    text = TEXT.format(returned=returned, switched=switched, guard=guard)
    (tmp_path / "main.py").write_text(text, encoding="utf-8")
    result = memlint.lint([tmp_path], isolated=True)
    assert not result.failures
    assert [one.code for one in result.findings] == codes
