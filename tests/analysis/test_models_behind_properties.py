"""A model that a class keeps in one attribute and reads by a property is the same model."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.linting import codes_in

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
        pytest.param("return self._model.module", "self.model.eval()", "open('log')", ["MEM201"], id="in a wrapper"),
        pytest.param("return self._model.module", "self.model.eval()", "torch.no_grad()", [], id="wrapped, guarded"),
        pytest.param(
            "return getattr(self._model, 'module', self._model)",
            "self.model.eval()",
            "open('log')",
            ["MEM201"],
            id="perhaps in a wrapper",
        ),
        pytest.param(
            "return self._model.module if self.many else self._model",
            "self.model.eval()",
            "open('log')",
            ["MEM201"],
            id="in a wrapper or not",
        ),
        pytest.param("return self._model.module", "self.model.begin()", "open('log')", [], id="of an unknown object"),
        pytest.param(
            "return wrapped(self._model)", "self.model.eval()", "torch.no_grad()", [], id="something made of it"
        ),
    ],
)
def test_property(returned: str, switched: str, guard: str, codes: list[str], tmp_path: Path) -> None:
    assert codes_in(tmp_path, TEXT.format(returned=returned, switched=switched, guard=guard)) == codes


@pytest.mark.parametrize(
    ("switched", "guard", "codes"),
    [
        ("self.model.eval()", "open('log')", ["MEM201"]),
        ("self.model.eval()", "torch.no_grad()", []),
        ("self.model.begin()", "open('log')", []),
    ],
)
def test_property_that_is_kept(switched: str, guard: str, codes: list[str], tmp_path: Path) -> None:
    setter = "    @model.setter\n    def model(self, value):\n        self.bind(value)\n\n"
    text = TEXT.format(returned="return self._model", switched=switched, guard=guard)
    assert setter in text
    text = text.replace(setter, "").replace("@property", "@functools.cached_property")
    assert codes_in(tmp_path, "import functools\n" + text) == codes
