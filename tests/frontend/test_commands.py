"""Lines that only IPython runs do not keep a file from being read."""

from __future__ import annotations

from pathlib import Path

import pytest

import memlint

TRAINING = """import torch


def train(model, loader):
    total = 0
    for x in loader:
        loss = model(x).sum()
        loss.backward()
        total += loss
"""


@pytest.mark.parametrize(
    "text",
    [
        f"import os\n!pip install torch==2.1\n{TRAINING}",
        f"# In[1]:\n%matplotlib inline\n{TRAINING}",
        f"%cd /content\n!unzip 3d_models.zip\n{TRAINING}x = 1\n!nvidia-smi\n",
        f"{TRAINING}\n!wget https://example.org/1a.zip\n\n\n\n\n!unzip 2b.zip\n",
        f"if True:\n    !pip install \\\n        torch\n{TRAINING}",
        f"{TRAINING}%%bash\nls | wc -l\n",
        f"try:\n    import torch\n    !pip install torch\nexcept ImportError:\n    pass\n{TRAINING}",
        f"x = (3\n     % 2)\n{TRAINING}\n!ls\n",
        f'"""\n!ls\n"""\n{TRAINING}\n!ls\n',
        f"{TRAINING}\r\n!ls -l 0b\r\n".replace("\n", "\r\n").replace("\r\r", "\r"),
        f"files = !ls\n{TRAINING}%time train(model, loader)\ntrain?\n",
    ],
)
def test_the_code_around_them_is_checked(text: str, tmp_path: Path) -> None:
    (tmp_path / "export.py").write_text(text, newline="")
    (found,) = memlint.lint([tmp_path]).findings
    lines = text.replace("\r\n", "\n").split("\n")
    assert (found.code, lines[found.line - 1]) == ("MEM101", "        total += loss")
    fixed = memlint.apply_fixes([tmp_path], unsafe=True)
    assert [one.code for one in fixed.fixed] == ["MEM101"]
    assert (tmp_path / "export.py").read_bytes().decode() == text.replace("+= loss", "+= loss.detach()")


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x = (3\n     % 2)\ny = 1 +\n", 3),
        ("x = 3 \\\n    % 2\ndef f(:\n    pass\n", 3),
        ('"""\n!ls\n"""\ny = 1a\n', 4),
        ("!ls\n%time x\ny = 1 +\n", 3),
    ],
)
def test_other_mistakes_are_told_as_python_tells_them(text: str, line: int, tmp_path: Path) -> None:
    (tmp_path / "export.py").write_text(text)
    (found,) = memlint.lint([tmp_path]).findings
    assert (found.code, found.line) == ("MEM000", line)
