"""Valid programs that nobody would write: none may crash the analysis, and each is analysed the same way twice."""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memlint import lint

#: programs a run; the slow run is for nights: MEMLINT_FUZZ=2000 pytest tests/analysis/test_fuzz.py
EXAMPLES = int(os.environ.get("MEMLINT_FUZZ", "25"))
SETTINGS = settings(
    max_examples=EXAMPLES,
    deadline=None,
    database=None,
    derandomize="MEMLINT_FUZZ" not in os.environ,
    suppress_health_check=list(HealthCheck),
)

NAMES = (
    "model",
    "net",
    "loss",
    "losses",
    "x",
    "y",
    "out",
    "total",
    "opt",
    "loader",
    "batch",
    "h",
    "self",
    "args",
    "state",
    "stats",
    "f",
    "i",
)
ATTRIBUTES = ("loss", "hidden", "history", "net", "data", "grad", "logits", "shape", "append", "T", "training")
METHODS = (
    "backward",
    "append",
    "extend",
    "update",
    "detach",
    "item",
    "cpu",
    "to",
    "cuda",
    "mean",
    "clone",
    "eval",
    "train",
    "step",
    "zero_grad",
    "parameters",
    "setdefault",
    "get",
    "pop",
    "clear",
    "insert",
    "add_",
    "items",
    "values",
    "forward",
    "register_buffer",
    "keys",
    "add",
    "put",
    "appendleft",
    "state_dict",
    "register_forward_hook",
    "split",
    "unbind",
    "meter",
    "helper",
    "popitem",
    "copy",
    "size",
    "view",
    "numpy",
)
CALLABLES = (
    "torch.cat",
    "torch.stack",
    "torch.zeros",
    "torch.ones_like",
    "torch.no_grad",
    "torch.enable_grad",
    "torch.load",
    "F.relu",
    "F.cross_entropy",
    "nn.Linear",
    "nn.Sequential",
    "DataLoader",
    "torch.optim.Adam",
    "list",
    "dict",
    "zip",
    "enumerate",
    "map",
    "filter",
    "sum",
    "max",
    "len",
    "float",
    "range",
    "iter",
    "next",
    "sorted",
    "getattr",
    "setattr",
    "partial",
    "deque",
    "defaultdict",
    "copy.deepcopy",
    "itertools.cycle",
    "super().f",
    "Meter",
    "Net",
    "helper",
    "other.helper",
    "other.Meter",
    "torch.autograd.grad",
    "torch.set_grad_enabled",
    "isinstance",
    "hasattr",
    "set",
    "tuple",
    "print",
    "torch.utils.checkpoint.checkpoint",
    "contextlib.nullcontext",
    "int",
    "reversed",
    "torch.tensor",
    "torch.randn",
    "vars",
    "Data",
    "type",
)
DECORATORS = (
    "torch.no_grad()",
    "torch.no_grad",
    "torch.inference_mode()",
    "staticmethod",
    "classmethod",
    "property",
    "functools.wraps(f)",
    "wrap",
    "torch.jit.script",
    "functools.lru_cache(maxsize=None)",
    "contextlib.contextmanager",
    "x.setter",
)
CONSTANTS = (
    "0",
    "1",
    "-1",
    "2.5",
    "1e400",
    "10**30",
    "99999999999999999999999",
    "'loss'",
    "'a' 'b'",
    "b'x'",
    "None",
    "True",
    "...",
    "3j",
    "''",
)
OPERATORS = ("+", "-", "*", "/", "//", "%", "**", "@", "|", "&", "^", "<<", ">>")
COMPARISONS = ("<", "==", "!=", ">=", "is", "is not", "in", "not in")


class Writer:
    """Writes one program; each choice is the random source's. ``scope``: module, class, function or async."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        self.room = rng.randint(10, 120)
        self.lines: list[str] = []

    def pick(self, items: tuple[str, ...]) -> str:
        return self.rng.choice(items)

    # ------------------------------------------------------------------------------------ expressions

    def expression(self, depth: int = 0, scope: str = "function") -> str:
        rng = self.rng
        if depth > 3 or rng.random() < 0.25:
            return self.pick(NAMES) if rng.random() < 0.75 else self.pick(CONSTANTS)

        def one() -> str:
            return self.expression(depth + 1, scope)

        kinds: list[Callable[[], str]] = [
            lambda: (
                f"{one()}.{self.pick(METHODS)}({self.arguments(depth, scope)})"
                if rng.random() < 0.9
                else f"({one()}).x.y().z"
            ),
            lambda: f"{self.pick(CALLABLES)}({self.arguments(depth, scope)})",
            lambda: f"{self.pick(NAMES)}({self.arguments(depth, scope)})",
            lambda: f"({one()}).{self.pick(ATTRIBUTES)}",
            lambda: f"({one()})[{self.index(depth, scope)}]",
            lambda: f"({one()} {self.pick(OPERATORS)} {one()})",
            lambda: f"({one()} {self.pick(COMPARISONS)} {one()} {self.pick(COMPARISONS)} {one()})",
            lambda: f"({one()} if {one()} else {one()})",
            lambda: f"({one()} {self.pick(('and', 'or'))} {one()})",
            lambda: f"({self.pick(('-', 'not ', '~', '+'))}{one()})",
            lambda: f"[{one()}, *({one()})]",
            lambda: f"({one()}, {one()})",
            lambda: f"{{{one()}: {one()}, **({one()})}}",
            lambda: f"{{'loss': {one()}, 'n': {one()}}}",
            lambda: f"{{{one()}, {one()}}}",
            lambda: f"[{one()} for {self.pick(NAMES)} in {self.plain(depth)} if {self.plain(depth)}]",
            lambda: (
                f"{{{self.plain(depth)}: {self.plain(depth)} for {self.pick(NAMES)}, *{self.pick(NAMES)} in {self.plain(depth)}}}"  # noqa: E501
            ),
            lambda: (
                f"sum({self.plain(depth)} for {self.pick(NAMES)} in {self.plain(depth)} for {self.pick(NAMES)} in {self.plain(depth)})"  # noqa: E501
            ),
            lambda: f"(lambda {self.pick(('', 'x', '*args', 'x=1, *, y=2', '**k'))}: {one()})",
            lambda: f"(lambda x: {one()})({one()})",
            lambda: f"f'{{{self.pick(NAMES)}!r:>{{{self.pick(NAMES)}}}}} {{{self.pick(NAMES)}.x}}'",
        ]
        if scope in ("function", "async"):
            kinds.append(lambda: f"({self.pick(NAMES)} := {self.plain(depth)})")
        if scope == "function":
            kinds += [lambda: f"(yield {one()})", lambda: f"(yield from {one()})"]
        if scope == "async":
            kinds.append(lambda: f"(await {one()})")
        return rng.choice(kinds)()

    def plain(self, depth: int) -> str:
        """An expression that may stand in a comprehension: no yield, no walrus."""
        return self.expression(max(depth + 1, 2), "class")

    def arguments(self, depth: int, scope: str) -> str:
        rng = self.rng
        parts = [self.expression(depth + 1, scope) for _ in range(rng.choice((0, 0, 1, 1, 1, 2, 3)))]
        if rng.random() < 0.15:
            parts.append(f"*({self.expression(depth + 1, scope)})")
        if rng.random() < 0.2:
            parts.append(
                f"{self.pick(('device', 'retain_graph', 'maxlen', 'x', 'loss', 'dim', 'key', 'inplace'))}={self.expression(depth + 1, scope)}"  # noqa: E501
            )
        if rng.random() < 0.1:
            parts.append(f"**({self.expression(depth + 1, scope)})")
        return ", ".join(parts)

    def index(self, depth: int, scope: str) -> str:
        return (
            self.pick(("0", "-1", "'loss'", ":", "::2", "..., None", ":, 0"))
            if self.rng.random() < 0.6
            else self.expression(depth + 1, scope)
        )

    def target(self, depth: int = 0) -> str:
        rng = self.rng
        kinds: list[Callable[[], str]] = [
            lambda: self.pick(NAMES),
            lambda: self.pick(NAMES),
            lambda: f"self.{self.pick(ATTRIBUTES)}",
            lambda: f"({self.expression(2, 'class')}).{self.pick(ATTRIBUTES)}",
            lambda: f"{self.pick(NAMES)}[{self.plain(2)}]",
            lambda: f"{self.pick(NAMES)}({self.plain(2)})[0]",
        ]
        if depth == 0:
            kinds += [
                lambda: f"({self.target(1)}, *{self.target(1)})",
                lambda: f"[{self.target(1)}, ({self.target(1)}, {self.target(1)})]",
            ]
        return rng.choice(kinds)()

    # ------------------------------------------------------------------------------------ statements

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    def block(self, depth: int, scope: str, loop: bool) -> None:
        before = len(self.lines)
        for _ in range(self.rng.randint(1, 4)):
            if self.room > 0 and depth < 9:
                self.room -= 1
                self.statement(depth, scope, loop)
        if len(self.lines) == before:
            self.put(depth, self.pick(("pass", "...")))

    def statement(self, depth: int, scope: str, loop: bool) -> None:
        rng = self.rng

        def one() -> str:
            return self.expression(0, scope)

        simple: list[Callable[[], str]] = [
            lambda: f"{self.target()} = {one()}",
            lambda: f"{self.target()} = {self.target()} = {one()}",
            lambda: f"{self.target(1)} {self.pick(OPERATORS)}= {one()}",
            lambda: f"{self.pick(NAMES)} = {self.pick(NAMES)} + {one()}",
            lambda: f"{self.pick(NAMES)}: {self.pick(('int', 'torch.Tensor', 'list[float]', 'Meter'))} = {one()}",
            lambda: f"{self.pick(NAMES)}.append({one()})",
            lambda: f"{self.pick(('loss', 'out', 'h', 'total'))} = model({one()})",
            lambda: f"{self.pick(('losses', 'self.history', 'stats[x]'))}.append(loss)",
            lambda: f"{self.pick(NAMES)}.backward()",
            one,
            one,
            lambda: f"del {self.pick(NAMES)}.{self.pick(ATTRIBUTES)}, {self.pick(NAMES)}[{self.plain(2)}]",
            lambda: f"del {self.pick(NAMES)}",
            lambda: f"assert {one()}, {one()}",
            lambda: "raise " + self.pick(("", "ValueError(x) from y", "loss")),
            lambda: f"import {self.pick(('torch', 'torch.nn as nn', 'other', 'os.path', 'missing.thing'))}",
            lambda: (
                f"from {self.pick(('other', '.other', 'torch', '.', 'os'))} import {self.pick(NAMES)} as {self.pick(NAMES)}"  # noqa: E501
            ),
        ]
        if scope in ("function", "async"):
            simple += [
                lambda: (
                    "return" + (f" {self.expression(0, scope)}" if scope == "function" and rng.random() < 0.8 else "")
                ),
                lambda: f"return {self.pick(NAMES)}" if scope == "function" else "return",
            ]
        if loop:
            simple += [lambda: "break", lambda: "continue"]
        if rng.random() < 0.55:
            self.put(depth, rng.choice(simple)())
            return
        inner = depth + 1
        match rng.randrange(12):
            case 0 | 1 | 2:
                prefix = "async " if scope == "async" and rng.random() < 0.4 else ""
                self.put(depth, f"{prefix}for {self.target()} in {one()}:")
                self.block(inner, scope, True)
                if rng.random() < 0.2:
                    self.put(depth, "else:")
                    self.block(inner, scope, loop)
            case 3:
                self.put(depth, f"while {one()}:")
                self.block(inner, scope, True)
            case 4 | 5:
                self.put(depth, f"if {one()}:")
                self.block(inner, scope, loop)
                if rng.random() < 0.5:
                    self.put(depth, f"elif {one()}:")
                    self.block(inner, scope, loop)
                    self.put(depth, "else:")
                    self.block(inner, scope, loop)
            case 6:
                prefix = "async " if scope == "async" and rng.random() < 0.4 else ""
                guard = self.pick(
                    (
                        "torch.no_grad()",
                        "torch.set_grad_enabled(x)",
                        "torch.autocast('cuda') as y, torch.no_grad()",
                        one(),
                    )
                )
                self.put(depth, f"{prefix}with {guard}:")
                self.block(inner, scope, loop)
            case 7:
                self.put(depth, "try:")
                self.block(inner, scope, loop)
                if rng.random() < 0.7:
                    self.put(depth, "except (RuntimeError, x) as i:" if rng.random() < 0.7 else "except ValueError:")
                    self.block(inner, scope, loop)
                    if rng.random() < 0.4:
                        self.put(depth, "else:")
                        self.block(inner, scope, loop)
                else:
                    self.put(depth, "finally:")
                    self.block(inner, scope, False)
            case 8:
                self.put(depth, f"match {one()}:")
                pattern = self.pick(
                    (
                        "[x, *y]",
                        "{'loss': h, **f}",
                        "Meter(loss=x)",
                        "0 | 1",
                        "(x, (y, _)) as h",
                        "nn.Linear()",
                        "None",
                        "'a'",
                    )
                )
                self.put(inner, f"case {pattern}" + (f" if {self.plain(1)}:" if rng.random() < 0.3 else ":"))
                self.block(inner + 1, scope, loop)
                self.put(inner, "case _:")
                self.block(inner + 1, scope, loop)
            case 9 | 10:
                self.function(depth, scope)
            case _:
                self.class_(depth)

    def function(self, depth: int, scope: str, name: str | None = None) -> None:
        rng = self.rng
        for _ in range(rng.choice((0, 0, 0, 1, 2))):
            self.put(depth, f"@{self.pick(DECORATORS)}")
        name = name or self.pick(
            ("f", "helper", "train", "forward", "__init__", "training_step", "update", "__call__", "loss", "evaluate")
        )
        params = self.pick(
            (
                "",
                "self",
                "self, x",
                "self, batch, *args, **state",
                "model, loader, opt",
                "x, /, y=None, *, h: torch.Tensor = 0",
                "*losses",
                "self, loss=[]",
                "x: 'Net', y: list[int]",
            )
        )
        inner = "async" if rng.random() < 0.15 else "function"
        self.put(
            depth,
            f"{'async ' if inner == 'async' else ''}def {name}({params}){self.pick(('', '', ' -> float', ' -> torch.Tensor'))}:",  # noqa: E501
        )
        taken = {part.strip(" */").split(":")[0].split("=")[0].strip() for part in params.split(",")}
        if rng.random() < 0.25:
            free = [item for item in NAMES if item not in taken]
            self.put(depth + 1, f"global {rng.choice(free)}")
        self.block(depth + 1, inner, False)

    def class_(self, depth: int) -> None:
        base = self.pick(
            (
                "",
                "(nn.Module)",
                "(pl.LightningModule)",
                "(Net)",
                "(Meter, Net)",
                "(dict)",
                "(torch.autograd.Function)",
                "(x, metaclass=y)",
                "(other.Meter)",
                "(NamedTuple)",
                "(torch.utils.data.Dataset)",
            )
        )
        if self.rng.random() < 0.15:
            self.put(depth, "@dataclass")
        self.put(depth, f"class {self.pick(('Net', 'Meter', 'Inner', 'Data'))}{base}:")
        self.block(depth + 1, "class", False)
        for _ in range(self.rng.randint(0, 3)):
            if self.room > 0:
                self.function(depth + 1, "class")

    def program(self) -> str:
        self.lines = [
            "import torch, copy, itertools, functools, contextlib",
            "import torch.nn as nn, torch.nn.functional as F",
            "import pytorch_lightning as pl",
            "from torch.utils.data import DataLoader",
            "from functools import partial",
            "from collections import deque, defaultdict",
            "from dataclasses import dataclass",
            "from typing import NamedTuple",
            self.pick(
                ("import other", "from other import *", "from other import helper, Meter, Net", "from . import other")
            ),
            "model, opt = nn.Linear(2, 2), torch.optim.Adam(nn.Linear(2, 2).parameters())",
            "loader, losses, stats = DataLoader([1]), [], {}",
        ]
        while self.room > 0:
            self.room -= 1
            self.statement(0, "module", False)
        return "\n".join(self.lines) + "\n"


def valid(text: str) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<program>", "exec")
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        return False
    return True


def program(rng: random.Random) -> str:
    """A valid program (a global that is also a parameter, say, makes one invalid: the next one is taken)."""
    for _ in range(60):
        text = Writer(rng).program()
        if valid(text):
            return text
    return "import torch\n"


def check(folder: Path, texts: dict[str, str]) -> None:
    """Lint the programs twice: no failure, and the same findings."""
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    first, second = (lint([folder], isolated=True, preview=True, min_confidence="low") for _ in range(2))
    assert not first.failures, (first.failures, texts)
    assert msgspec.json.encode(first.findings) == msgspec.json.encode(second.findings), texts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("fuzz")
    (made / "pyproject.toml").write_text("", encoding="utf-8")
    return made


@SETTINGS
@given(seed=st.integers(0, 2**48))
def test_no_valid_program_crashes_the_analysis(folder: Path, seed: int) -> None:
    rng = random.Random(seed)
    check(folder, {"main.py": program(rng), "other.py": program(rng).replace("other", "main")})


@SETTINGS
@given(seed=st.integers(0, 2**48))
def test_no_generated_syntax_crashes_the_analysis(folder: Path, seed: int) -> None:
    generator = pytest.importorskip("pysource_codegen")
    text = "import torch\n" + generator.generate(seed, node_limit=300, depth_limit=6)
    if valid(text) and "__future__" not in text:
        check(folder, {"main.py": text, "other.py": ""})
