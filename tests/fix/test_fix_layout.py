"""What a guard does to the lines that it goes around, and to the names that it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAD = "import torch\nfrom torch import nn\n"


def fixed(folder: Path, text: str) -> str:
    """The program after all fixes."""
    (folder / "pyproject.toml").touch()
    (folder / "train.py").write_text(text)
    command = [sys.executable, "-m", "memlint", "train.py", "--isolated", "--fix", "--unsafe-fixes", "--fix-only"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert done.returncode == 0 and "not applied" not in done.stderr, done.stderr
    return (folder / "train.py").read_text()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            "\tfor x in loader:\n\t\tn += model(x).argmax(1).sum().item()\n",
            "\twith torch.no_grad():\n\t\tfor x in loader:\n\t\t\tn += model(x).argmax(1).sum().item()\n",
            id="tabs",
        ),
        pytest.param(
            "  for x in loader:\n    n += model(x).argmax(1).sum().item()\n",
            "  with torch.no_grad():\n    for x in loader:\n      n += model(x).argmax(1).sum().item()\n",
            id="two blanks",
        ),
        pytest.param(
            "    for x in loader: n += model(x).argmax(1).sum().item()\n",
            "    with torch.no_grad():\n        for x in loader: n += model(x).argmax(1).sum().item()\n",
            id="one line",
        ),
        pytest.param(
            "    for x in loader: out = model(x); n += out.argmax(1).sum().item()\n",
            "    with torch.no_grad():\n        for x in loader: out = model(x); n += out.argmax(1).sum().item()\n",
            id="semicolons inside",
        ),
        pytest.param(
            '    for x in loader:  # each\n        s = """a\n  b\n"""\n'
            "        # then\n        n += model(x).sum().item()\n",
            '    with torch.no_grad():\n        for x in loader:  # each\n            s = """a\n  b\n"""\n'
            "            # then\n            n += model(x).sum().item()\n",
            id="strings of several lines and comments",
        ),
        pytest.param(
            "    for x in loader:\n        n += \\\n          model(x).sum().item()\n",
            "    with torch.no_grad():\n        for x in loader:\n            n += \\\n"
            "              model(x).sum().item()\n",
            id="a backslash",
        ),
        pytest.param(
            "    for x in loader:\n#        x = old(x)\n        # new\n        n += model(x).sum().item()\n",
            "    with torch.no_grad():\n        for x in loader:\n#        x = old(x)\n            # new\n"
            "            n += model(x).sum().item()\n",
            id="code that was commented out",
        ),
    ],
)
def test_the_lines_of_a_block(before: str, after: str, tmp_path: Path) -> None:
    step = before[: len(before) - len(before.lstrip())]
    head = f"{HEAD}\n\ndef fit(model, loader):\n{step}model.train()\n{step}model.eval()\n{step}n = 0\n"
    tail = f"{step}return n\n"
    assert fixed(tmp_path, head + before + tail) == head + after + tail


@pytest.mark.parametrize(
    "body",
    [
        "    model.eval(); out = model(x)\n    return out.argmax(1).tolist()\n",
        "    model.eval()\n    if x is None: return 0\n    elif model(x).sum().item() > 0:\n        return 1\n",
    ],
    ids=["a semicolon before it", "elif"],
)
def test_what_cannot_be_indented_is_left(body: str, tmp_path: Path) -> None:
    text = f"{HEAD}\n\ndef fit(model, x):\n{body}"
    assert fixed(tmp_path, text) == text


BODY = "def evaluate(model, loader):\n    model.eval()\n    return [model(x).argmax(1).tolist() for x in loader]\n"


@pytest.mark.parametrize(
    ("head", "fixed_head", "decorator"),
    [
        ("import torch as t\n", "import torch as t\n", "@t.no_grad()\n"),
        ("import torch.nn as nn\nimport torch\n", "import torch.nn as nn\nimport torch\n", "@torch.no_grad()\n"),
        (
            '"""Text."""\nfrom __future__ import annotations\nfrom torch import nn\n',
            '"""Text."""\nfrom __future__ import annotations\nfrom torch import nn\nimport torch\n',
            "@torch.no_grad()\n",
        ),
    ],
    ids=["an alias", "two imports", "only nn"],
)
def test_the_name_of_torch(head: str, fixed_head: str, decorator: str, tmp_path: Path) -> None:
    assert fixed(tmp_path, f"{head}\n\n{BODY}") == f"{fixed_head}\n\n{decorator}{BODY}"


@pytest.mark.parametrize(
    "text",
    [
        f"try:\n    import torch\nexcept ImportError:\n    torch = None\n\n\n{BODY}",
        f"{BODY}\nimport torch\n",
        f"from torch import nn\ntorch = nn\n\n\n{BODY}",
    ],
    ids=["perhaps not there", "imported later", "something else"],
)
def test_no_decorator_by_a_name_that_may_not_be_torch(text: str, tmp_path: Path) -> None:
    assert fixed(tmp_path, text) == text


@pytest.mark.parametrize("decorator", ["@staticmethod", "@classmethod"])
def test_a_decorator_goes_under_those_that_are_there(decorator: str, tmp_path: Path) -> None:
    own = "cls, " if decorator == "@classmethod" else ""
    method = f"class E:\n    {decorator}\n    def evaluate({own}model, loader):\n        model.eval()\n"
    method += "        return [model(x).argmax(1).tolist() for x in loader]\n"
    after = method.replace("    def", "    @torch.no_grad()\n    def")
    assert fixed(tmp_path, f"{HEAD}\n\n{method}") == f"{HEAD}\n\n{after}"


def test_a_property_gets_a_block(tmp_path: Path) -> None:
    method = "class E:\n    @property\n    def evaluate(self):\n        self.model.eval()\n"
    method += "        return self.model(self.x).argmax(1).tolist()\n"
    after = method.replace("        return", "        with torch.no_grad():\n            return")
    assert fixed(tmp_path, f"{HEAD}\n\n{method}") == f"{HEAD}\n\n{after}"
